"""Command lines that take many ids: how many fit into one."""

from __future__ import annotations

from typing import List, Sequence

#: Far below the 128 KiB that Linux allows for one argument: over ssh the whole command line is
#: one argument, and each id may be quoted.
ROOM_FOR_IDS = 60_000


def chunk_ids(external_ids: Sequence[str], room: int = ROOM_FOR_IDS) -> List[List[str]]:
    """Return the ids in as few lists as fit into one command line each, each id once, in order.

    Args:
        external_ids: Checked ids (nothing is quoted here).
        room: Bytes for the ids of one command.
    """
    chunks: List[List[str]] = []
    used = room
    for external_id in dict.fromkeys(external_ids):
        # A blank and two quotes.
        need = len(external_id.encode("utf-8", errors="replace")) + 3
        if used + need > room:
            chunks.append([])
            used = 0
        chunks[-1].append(external_id)
        used += need
    return chunks
