"""The generated pages of ends by command line: each table holds what the manuals list."""

from __future__ import annotations

import re
from typing import Callable, Dict, List, Tuple

import pytest

from tools.doc_gridengine import gridengine_ends_page
from tools.doc_lsf import lsf_ends_page
from tools.doc_pbs import pbs_ends_page

PAGES: Dict[str, Callable[[], str]] = {
    "lsf": lsf_ends_page, "pbs": pbs_ends_page, "gridengine": gridengine_ends_page,
}
WALLTIME = "walltime | job | `walltime_reached` |"
MEMORY = "memory | job | `memory_limit_reached` |"
CANCELLED = "any | `failed` | cancelled | user | `unknown_error` |"
LOST_NODE = "any | `failed` | node_failure | infrastructure | `unknown_error` |"
#: Rows that the design, the manuals and what was measured on real DRMs ask for.
ROWS: List[Tuple[str, str]] = [
    ("lsf", f"| `TERM_RUNLIMIT` | absent or not 0 | `failed` | {WALLTIME}"),
    ("lsf", f"| `TERM_MEMLIMIT` | absent or not 0 | `failed` | {MEMORY}"),
    ("lsf", f"| `TERM_SWAP`: swap space | absent or not 0 | `failed` | {MEMORY}"),
    ("lsf", "| `TERM_CPULIMIT` | absent or not 0 | `failed` | cpu_time | job "
            "| `walltime_reached` |"),
    ("lsf", f"| `TERM_OWNER` | {CANCELLED}"),
    ("lsf", "| `DONE` | absent | after `missing_grace`: `failed` | lost | infrastructure "
            "| `unknown_error` |"),
    ("lsf", "| the same, and LSF's report says `TERM_MEMLIMIT` | absent or not 0 | `failed` "
            f"| {MEMORY}"),
    ("lsf", "| `SSUSP` | `running` |"),
    ("lsf", "| `UNKWN` | `running` |"),
    ("lsf", "| `ZOMBI` | as before |"),
    ("pbs", f"| -29 `JOB_EXEC_KILL_WALLTIME` | absent or not 0 | `failed` | {WALLTIME}"),
    ("pbs", f"| -11 `JOB_EXEC_OVERLIMIT_WT` | absent or not 0 | `failed` | {WALLTIME}"),
    ("pbs", f"| -10 `JOB_EXEC_OVERLIMIT_MEM` | absent or not 0 | `failed` | {MEMORY}"),
    ("pbs", f"| comment `... and terminated by alice@host` | {CANCELLED}"),
    ("pbs", f"| 271 (256 + 15), far from any limit | {CANCELLED}"),
    ("pbs", f"| the same, and its time limit has passed | absent or not 0 | `failed` | {WALLTIME}"),
    ("pbs", "| `H` held | `queued` |"),
    ("pbs", "| `S` suspended | `running` |"),
    ("gridengine", f"| 100, `exit_status` 137, at its `h_rt` | absent or not 0 | `failed` "
                   f"| {WALLTIME}"),
    ("gridengine", f"| 100, `exit_status` 137, at its `h_vmem` | absent or not 0 | `failed` "
                   f"| {MEMORY}"),
    ("gridengine", f"| 8 in prolog | {LOST_NODE}"),
    ("gridengine", f"| 19 before writing exit_status | {LOST_NODE}"),
    ("gridengine", "| `Eqw` in error | after `hold_grace`: `failed` |"),
    ("gridengine", "| anything else | any | after `hold_grace`: `failed` | held | unknown "
                   "| `unknown_error` |"),
]


@pytest.mark.parametrize("drm, row", ROWS)
def test_rows(drm: str, row: str) -> None:
    """The tables say what the design says."""
    assert row in PAGES[drm]().splitlines()


def test_no_state_or_reason_of_lsf_is_left_out() -> None:
    """bjobs(1) STAT, and the manual's table of termination reasons."""
    page = lsf_ends_page()
    for word in (
        "PEND PROV PSUSP WAIT RUN USUSP SSUSP DONE EXIT UNKWN ZOMBI POST_DONE POST_ERR "
        "TERM_ADMIN TERM_BUCKET_KILL TERM_CHKPNT TERM_CPULIMIT TERM_CSM_ALLOC TERM_CWD_NOTEXIST "
        "TERM_DATA TERM_DEADLINE TERM_EXTERNAL_SIGNAL TERM_FORCE_ADMIN TERM_FORCE_OWNER TERM_KUBE "
        "TERM_LOAD TERM_MC_RECALL TERM_MEMLIMIT TERM_ORPHAN_SYSTEM TERM_OTHER TERM_OWNER "
        "TERM_PRE_EXEC_FAIL TERM_PREEMPT TERM_PROCESSLIMIT TERM_RC TERM_REMOVE_HUNG_JOB "
        "TERM_REQUEUE_ADMIN TERM_REQUEUE_OWNER TERM_REQUEUE_RC TERM_RMS TERM_RUNLIMIT TERM_SLURM "
        "TERM_SWAP TERM_THREADLIMIT TERM_UNKNOWN TERM_WINDOW TERM_ZOMBIE"
    ).split():
        assert f"`{word}`" in page


def test_no_state_or_number_of_pbs_is_left_out() -> None:
    """qstat(1B), and the negative numbers of OpenPBS's job.h and Torque's pbs_job.h."""
    page = pbs_ends_page()
    for letter in "BCEFHMQRSTUWX":
        assert f"`{letter}`" in page
    openpbs, torque = page.partition("\n## OpenPBS")[2].split("\n## Torque")
    for text, numbers in ((openpbs, {*range(-30, -9), *range(-7, 0)}), (torque, range(-14, 0))):
        assert {int(n) for n in re.findall(r"(-\d+) `JOB_EXEC", text)} == set(numbers)


def test_no_letter_or_code_of_grid_engine_is_left_out() -> None:
    """sge_status(5): its letters, and its failed codes but those that the first table explains."""
    page = gridengine_ends_page()
    shown = set("".join(re.findall(r"^\| `([A-Za-z]+)` ", page, re.MULTILINE)))
    assert set("dEhrRsStTqwz") <= shown
    numbers = re.findall(r"^\| (\d+) [a-zA-Z]", page, re.MULTILINE)
    assert {int(number) for number in numbers} == {
        *range(1, 17), *range(18, 23), *range(26, 30), *range(31, 37), 38,
    }
    for number in ("24 migrating", "25 rescheduling"):
        assert number in page
