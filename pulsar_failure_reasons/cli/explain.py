"""``pulsar-failure-reasons explain``: why did this job end, and how do you know?

Reads what a DRM said (a file, or standard input) or an HTCondor hold code, with the same rules as
the managers. The text stands for what the DRM says; without a ``return_code``, a non-zero exit of
the job's own is the tool's.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List, Optional

from pulsar_failure_reasons.drm import htcondor
from pulsar_failure_reasons.drm.captured import Captured
from pulsar_failure_reasons.drm.registry import DRM_MODULES
from pulsar_failure_reasons.message import write_message
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause, Evidence, clean_text

#: Names for people, and the other names that a DRM goes by.
LABELS = {
    "slurm": "Slurm",
    "htcondor": "HTCondor",
    "lsf": "LSF",
    "pbs": "PBS",
    "gridengine": "Grid Engine",
}
#: A flavour of PBS is told to the reader: its negative numbers mean other things.
OTHER_NAMES = {
    "torque": "pbs",
    "openpbs": "pbs",
    "pbspro": "pbs",
    "sge": "gridengine",
    "uge": "gridengine",
    "condor": "htcondor",
}
EXAMPLES = """\
examples:
  sacct -j 123 | pulsar-failure-reasons explain --drm slurm -
  pulsar-failure-reasons explain --drm htcondor --source userlog job_condor.log
  pulsar-failure-reasons explain --drm torque --source qstat-f --format json job.txt
  pulsar-failure-reasons explain --drm htcondor --hold-code 26 --hold-reason "MEMORY EXCEEDED"
"""


def add_parser(subcommands: Any) -> None:
    """Add ``explain`` to the subcommands of ``pulsar-failure-reasons``."""
    parser = subcommands.add_parser(
        "explain",
        help="say why a job ended, from what its DRM said",
        description="Say why a job ended, and how that is known, from what its DRM said.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--drm", required=True, choices=sorted([*LABELS, *OTHER_NAMES]), help="which DRM said it"
    )
    parser.add_argument(
        "--source", default="auto", metavar="NAME",
        help="what the text is (scontrol, sacct, squeue, stderr, userlog, ad, bjobs, bhist, "
        "qstat-f, tracejob, qacct ...; default: auto, told from the text itself)",
    )
    parser.add_argument("--job", metavar="ID", help="the job meant, where the text has several")
    parser.add_argument("--hold-code", type=int, metavar="N", help="an HTCondor HoldReasonCode")
    parser.add_argument("--hold-subcode", type=int, default=0, metavar="N")
    parser.add_argument("--hold-reason", default="", metavar="TEXT")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the text; - is standard input")
    parser.set_defaults(handler=explain)


def explain(arguments: argparse.Namespace) -> int:
    """Run the command; 2 only where there is nothing to read."""
    drm = OTHER_NAMES.get(arguments.drm, arguments.drm)
    if arguments.hold_code is not None:
        captured = _read_hold(arguments)
    else:
        text = _read_text(arguments.file)
        if text is None:
            return 2
        source = arguments.source if drm == arguments.drm else f"{arguments.drm}+{arguments.source}"
        captured = DRM_MODULES[drm].read_captured(text, source, arguments.job)
    answer = as_answer(captured, LABELS[drm])
    if arguments.format == "json":
        print(json.dumps(answer, indent=2))
    else:
        print("\n".join(as_lines(answer)))
    return 0


def _read_text(path: Optional[str]) -> Optional[str]:
    """Return the text to read; None, with a line on stderr, where there is none."""
    if path is None:
        _refuse("name a file with the DRM's text, or - for standard input")
        return None
    try:
        if path == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        _refuse(f"{path} cannot be read: {error.strerror or error}")
        return None
    if not raw.strip():
        _refuse(f"{'standard input' if path == '-' else path} is empty")
        return None
    return raw.decode("utf-8", errors="replace")


def _refuse(why: str) -> None:
    print(f"pulsar-failure-reasons explain: {why}", file=sys.stderr)


def _read_hold(arguments: argparse.Namespace) -> Captured:
    """Return what a hold by its code, subcode and reason says, as a hold that nobody releases."""
    hold = htcondor.classify_hold(
        arguments.hold_code, arguments.hold_subcode, arguments.hold_reason
    )
    said = f"{htcondor.name_hold(hold.code, hold.subcode)} {arguments.hold_reason}"
    evidence = (Evidence("hold", "HoldReasonCode", said),)
    failure = hold.kind is htcondor.HoldKind.FAILURE
    return Captured(
        ended=failure,
        cause=hold.cause if failure else None,
        confidence=hold.confidence,
        detail=hold.detail,
        evidence=evidence,
    )


def as_answer(captured: Captured, label: str) -> Dict[str, Any]:
    """Return the answer as JSON values.

    ``ended`` is true, false or null (cannot tell); ``cause`` is null for a job that ended well
    or has not ended; ``runner_state`` is what Galaxy would be told, null for nothing.
    """
    cause = captured.cause if captured.ended is not False else None
    row = CAUSE_TABLE[cause] if cause is not None else None
    told = captured.ended is True and row is not None
    return {
        "ended": captured.ended,
        "cause": cause.value if cause else None,
        "runner_state": row.runner_state if told and row else None,
        "fault": row.fault.value if told and row else None,
        "confidence": captured.confidence.value if captured.confidence else None,
        "message": _message(captured, cause, label),
        "external_id": captured.external_id,
        "cancelled_by": captured.cancelled_by,
        "evidence": [
            {"source": item.source, "field": item.field, "value": item.value}
            for item in captured.evidence
        ],
    }


def _message(captured: Captured, cause: Optional[Cause], label: str) -> str:
    detail = clean_text(captured.detail)
    if captured.ended is None:
        return "the text does not tell whether and how the job ended"
    if captured.ended is False:
        return "the job has not ended" + (f": {detail}" if detail else "")
    if cause is None:
        return "the job ended well"
    return write_message(
        label, cause, detail, None,
        external_id=captured.external_id, cancelled_by=captured.cancelled_by,
    )


def as_lines(answer: Dict[str, Any]) -> List[str]:
    """Return the answer for people: the sentence, what Galaxy sees, and the evidence."""
    lines = [answer["message"]]
    for name in ("cause", "fault", "confidence"):
        if answer[name]:
            lines.append(f"  {name + ':':<14}{answer[name]}")
    if answer["ended"] is True:
        lines.append(f"  {'Galaxy sees:':<14}{answer['runner_state'] or 'no reason'}")
    for item in answer["evidence"]:
        lines.append(f"  {'evidence:':<14}{item['source']} {item['field']} = {item['value']}")
    return lines
