"""``pulsar-failure-reasons explain``: why did this job end, and how do you know?

Four ways in: a Pulsar job id (its job directory, or the ledger), an external id (the DRM is asked
now), a text that a DRM printed, and an HTCondor hold code. The same rules as in the managers; a
text stands for what the DRM says, and without a ``return_code`` a non-zero exit of the job's own
is the tool's.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Optional

import click

from pulsar_failure_reasons.cli import ask, job
from pulsar_failure_reasons.cli.answer import answer_of_text, as_lines, guessed_source
from pulsar_failure_reasons.cli.commands import Refused
from pulsar_failure_reasons.drm import htcondor
from pulsar_failure_reasons.drm.captured import Captured
from pulsar_failure_reasons.drm.external_ids import parse_external_id
from pulsar_failure_reasons.drm.registry import DRM_MODULES, LABELS, OTHER_NAMES
from pulsar_failure_reasons.errors import FailureReasonsError
from pulsar_failure_reasons.reason import Evidence

EPILOG = """\b
Examples:
  pulsar-failure-reasons explain 42 --app /etc/pulsar/app.yml
  pulsar-failure-reasons explain --drm slurm 123456
  sacct -j 123456 | pulsar-failure-reasons explain --drm slurm -
  pulsar-failure-reasons explain --drm htcondor --source userlog job_condor.log
  pulsar-failure-reasons explain --drm torque --source qstat-f --format json job.txt
  pulsar-failure-reasons explain --drm htcondor --hold-code 26 --hold-reason "MEMORY EXCEEDED"

\b
Exit code: 0 with an answer (also "cannot tell"), 2 where there is nothing to read.
"""
SOURCE_HELP = (
    "What the text is: scontrol, sacct, squeue, stderr, userlog, ad, bjobs, bhist, qstat-f, "
    "tracejob, qacct ...; auto guesses it from the text, and says so."
)


@click.command("explain", epilog=EPILOG)
@click.argument("target", required=False, metavar="[JOB_ID|EXTERNAL_ID|FILE|-]")
@click.option("--app", metavar="APP.YML", help="The target is a Pulsar job id of this server.")
@click.option("--manager", metavar="NAME", help="With --app: look only at this manager's jobs.")
@click.option("--drm", metavar="NAME", type=click.Choice(sorted([*LABELS, *OTHER_NAMES])),
              help="Which DRM said it, or is to be asked: " + ", ".join(sorted(LABELS)) + ".")
@click.option("--source", default="auto", metavar="NAME", show_default=True, help=SOURCE_HELP)
@click.option("--job", "job_meant", metavar="ID", help="The job meant, where a text has several.")
@click.option("--hold-code", type=int, metavar="N", help="An HTCondor HoldReasonCode.")
@click.option("--hold-subcode", type=int, default=0, metavar="N", help="And its subcode.")
@click.option("--hold-reason", default="", metavar="TEXT", help="And its HoldReason.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(target: Optional[str], app: Optional[str], form: str, **options: Any) -> None:
    """Say why a job ended, and how that is known.

    The target is a Pulsar job id with --app. With --drm it is a file with what the DRM printed
    (- is standard input), or an external id where no such file is there: then the DRM is asked.
    """
    try:
        answer = job.explain_job(app, _target(target), options["manager"]) if app else \
            _explain_drm(target, options)
    except FailureReasonsError as error:
        raise Refused(str(error)) from None
    if form == "json":
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo("\n".join(as_lines(answer)))


def _target(target: Optional[str]) -> str:
    if not target:
        raise Refused("name a job id, a file with the DRM's text, or - for standard input")
    return target


def _explain_drm(target: Optional[str], options: Dict[str, Any]) -> Dict[str, Any]:
    name = options["drm"]
    if name is None:
        raise Refused("name the DRM with --drm, or the server with --app for a Pulsar job id")
    drm = OTHER_NAMES.get(name, name)
    if options["hold_code"] is not None:
        if drm != "htcondor":
            raise Refused("--hold-code is HTCondor's: use it with --drm htcondor")
        return answer_of_text(_read_hold(options), LABELS[drm])
    if _is_external_id(_target(target)):
        return answer_of_text(ask.ask_drm(drm, _target(target)), LABELS[drm])
    # A flavour of PBS is told to the reader: its negative numbers mean other things.
    source = options["source"] if drm == name else f"{name}+{options['source']}"
    text = _read_text(_target(target))
    captured = DRM_MODULES[drm].read_captured(text, source, options["job_meant"])
    answer = answer_of_text(captured, LABELS[drm])
    return {**answer, **guessed_source(captured)} if options["source"] == "auto" else answer


def _is_external_id(target: str) -> bool:
    if target == "-" or os.path.exists(target):
        return False
    try:
        return target[0].isdigit() and parse_external_id(target) is not None
    except (FailureReasonsError, IndexError):
        return False


def _read_text(path: str) -> str:
    """Return the text to read; raise Refused, with what is wrong, where there is none."""
    try:
        if path == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}") from None
    if not raw.strip():
        raise Refused(f"{'standard input' if path == '-' else path} is empty")
    return raw.decode("utf-8", errors="replace")


def _read_hold(options: Dict[str, Any]) -> Captured:
    """Return what a hold by its code, subcode and reason says, as a hold that nobody releases."""
    reason = options["hold_reason"]
    hold = htcondor.classify_hold(options["hold_code"], options["hold_subcode"], reason)
    said = f"{htcondor.name_hold(hold.code, hold.subcode)} {reason}"
    failure = hold.kind is htcondor.HoldKind.FAILURE
    return Captured(
        ended=failure,
        cause=hold.cause if failure else None,
        confidence=hold.confidence,
        detail=hold.detail,
        evidence=(Evidence("hold", "HoldReasonCode", said),),
    )
