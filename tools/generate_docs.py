"""Write the pages of docs/ that are made from the code, and check the links of all pages.

    python3 tools/generate_docs.py            write them
    python3 tools/generate_docs.py --check    only tell which are stale; exit code 1 if any

docs/tools.md is made by running the commands: it needs the environments of `make test` or `make
lint`. All else needs this checkout and the standard library, nothing else.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from typing import Callable, Dict, Iterable, List, Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from pulsar_failure_reasons.drm.base import JobView, Phase  # noqa: E402
from pulsar_failure_reasons.message import write_message  # noqa: E402
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause, Confidence, Fault  # noqa: E402
from tools.doc_check import check_page  # noqa: E402
from tools.doc_gridengine import gridengine_ends_page  # noqa: E402
from tools.doc_htcondor import htcondor_holds_page  # noqa: E402
from tools.doc_lsf import lsf_ends_page  # noqa: E402
from tools.doc_pbs import pbs_ends_page  # noqa: E402
from tools.doc_slurm import slurm_ends_page  # noqa: E402
from tools.doc_tables import GENERATED, table  # noqa: E402

DOCS = ROOT / "docs"

# --- causes -----------------------------------------------------------------------------------

WHOSE_FAULT = {
    Fault.JOB: "the job asked for too little, or is wrong: change the job or its limits",
    Fault.USER: "somebody ended it on purpose: running it again is not wanted",
    Fault.INFRASTRUCTURE: "the cluster: the same job may run well next time",
    Fault.UNKNOWN: "nothing says whose",
}
HOW_SURE = {
    Confidence.CONTROLLER: "the DRM's controller said it (Slurm: squeue, sbatch; HTCondor: "
    "the schedd)",
    Confidence.ACCOUNTING: "accounting said it, after the controller had forgotten (Slurm: sacct; "
    "HTCondor: history)",
    Confidence.EVENT_LOG: "the job's event log (HTCondor only)",
    Confidence.STDERR: "a line that the DRM itself wrote into the job's stderr",
    Confidence.INFERRED: "nobody said it: concluded from what was missing, or from elapsed time",
}


def reasons_page() -> str:
    """Return docs/reasons.md."""
    return "\n".join([
        "# Causes, faults and runner states",
        "",
        GENERATED,
        "",
        "`runner_state` is Galaxy's word: `resubmit` conditions can name it. "
        "`failure_reason.cause` and `.fault` are this package's finer words.",
        "",
        *table(
            ["cause", "the job ...", "fault", "`runner_state`"],
            ([cause.value, row.meaning, row.fault.value,
              "`%s`" % row.runner_state if row.runner_state else "none: no key is sent"]
             for cause, row in CAUSE_TABLE.items()),
        ),
        "",
        "## Fault",
        "",
        *table(["fault", "means"], ([fault.value, WHOSE_FAULT[fault]] for fault in Fault)),
        "",
        "## Confidence",
        "",
        *table(["confidence", "where the decisive detail was read"],
               ([confidence.value, HOW_SURE[confidence]] for confidence in Confidence)),
        "",
        "## Messages",
        "",
        "`runner_state_message` is one sentence for the scientist. For a job with a limit of an "
        "hour and 4 GB on `node7`, and no more detail than the cause:",
        "",
        *table(["cause", "message"], ([cause.value, _message(cause)] for cause, row
                                      in CAUSE_TABLE.items() if row.runner_state)),
        "",
    ])


def _message(cause: Cause) -> str:
    view = JobView(
        external_id="123", job_state="", phase=Phase.ENDED, confidence=Confidence.CONTROLLER,
        elapsed_s=3605, walltime_s=3600, node="node7")
    return write_message(
        "Slurm", cause, "", view, external_id="123",
        memory_limit_bytes=4 * 2**30 if cause is Cause.MEMORY else None)


# --- all pages --------------------------------------------------------------------------------

PAGES: Dict[str, Callable[[], str]] = {
    "slurm-ends.md": slurm_ends_page,
    "htcondor-holds.md": htcondor_holds_page,
    "lsf-ends.md": lsf_ends_page,
    "pbs-ends.md": pbs_ends_page,
    "gridengine-ends.md": gridengine_ends_page,
    "reasons.md": reasons_page,
    "check.md": check_page,
}


def _tools_page() -> str:
    from tools.doc_tools import tools_page  # which needs what the commands need

    return tools_page()


#: Those that take a while: the commands are run.
RUN_PAGES: Dict[str, Callable[[], str]] = {"tools.md": _tools_page}


def stale_pages(pages: Mapping[str, Callable[[], str]] = PAGES) -> Dict[str, str]:
    """Return the text of each generated page that is not as the code would write it."""
    texts = {name: page() for name, page in pages.items()}
    return {name: text for name, text in texts.items()
            if not (DOCS / name).is_file() or (DOCS / name).read_text() != text}


def markdown_files() -> List[pathlib.Path]:
    """Return the pages whose links are checked."""
    return sorted(ROOT.glob("*.md")) + sorted(DOCS.glob("*.md"))


_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


def broken_links(pages: Iterable[pathlib.Path]) -> List[str]:
    """Return a line for each link to a file or heading of this checkout that is not there."""
    broken = []
    for page in pages:
        for target in _LINK.findall(_FENCE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append("%s: nothing at %s" % (page.relative_to(ROOT), target))
    return broken


def anchors(page: pathlib.Path) -> List[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def main() -> int:
    """Write or check; return 0, or 1 where a page is stale or a link broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    stale = stale_pages({**PAGES, **RUN_PAGES})
    for name, text in stale.items():
        if options.check:
            print("docs/%s is stale: run make docs" % name)
        else:
            DOCS.mkdir(exist_ok=True)
            (DOCS / name).write_text(text)
            print("wrote docs/%s" % name)
    broken = broken_links(markdown_files())
    for line in broken:
        print(line)
    if not stale and not broken:
        print("docs: %d pages, all links lead somewhere" % len(markdown_files()))
    return 1 if broken or (options.check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
