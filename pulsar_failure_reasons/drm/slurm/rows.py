"""Rows of fields that end in a separator nobody could guess, under a row of headings.

This framing is what makes the batched queries safe. Every field, the last one too, is followed
by a separator that is random for each query, so no job name or comment, whatever it holds, can
end a field or a row. The row of headings is asked for because it proves that the command
answered: an empty text, a site's banner or an error message does not, and can then never be
taken for "there are no jobs".
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from ...errors import OutputParseError


def parse_rows(
    text: str, separator: str, required: Sequence[str], command: str
) -> List[Dict[str, str]]:
    """Return the rows as dicts by heading; text before, between and after them is skipped.

    A row starts on a line of its own, so lines before it (a banner, ``CLUSTER: name``) can be
    told from its first field. A column whose heading is empty is one that this Slurm does not
    know; it is left out.

    Raises:
        OutputParseError: no row of headings with all that are ``required``, or rows of another
            number of fields.
    """
    chunks = text.split(separator)
    fields = chunks[:-1]
    # Headings hold no newline, so the first row ends at the first one after a separator.
    ends = (i for i, chunk in enumerate(chunks) if i and chunk.startswith(("\n", "\r")))
    width = next(ends, len(fields))
    headings = [_last_line(fields[0])] + fields[1:width] if fields else []
    if not set(required) <= set(headings):
        raise OutputParseError(
            f"{command} did not answer with its row of headings: {_shown(text, separator)}"
        )
    if len(fields) % width:
        raise OutputParseError(
            f"{command} answered {len(fields)} fields, not a multiple of {width}; the last are "
            f"{fields[-3:]!r:.200}"
        )
    rows = []
    for start in range(width, len(fields), width):
        end = start + width
        row = [_last_line(fields[start])] + fields[start + 1:end]
        # One row of headings per cluster with --clusters.
        if row != headings:
            rows.append({key: value for key, value in zip(headings, row) if key})
    return rows


def _last_line(text: str) -> str:
    return text.replace("\r\n", "\n").rpartition("\n")[2]


def _shown(text: str, separator: str) -> str:
    return repr(text.replace(separator, "|"))[:200]
