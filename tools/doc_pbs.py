"""docs/pbs-ends.md, from the code."""

from __future__ import annotations

from typing import Dict, Iterator, List

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.drm.pbs import (
    Flavour,
    PbsJob,
    PbsState,
    classify_stderr,
    exit_code_of,
    view_of,
)
from tools.doc_tables import (
    EXTERNAL_ID,
    Situation,
    ends_table,
    intro,
    living_table,
    no_answer,
    unknown_situations,
)

#: The last state of a job, by flavour.
ENDED = {Flavour.OPENPBS: "F", Flavour.TORQUE: "C"}
LOWEST_EXIT_STATUS = -99
WALLTIME_LINE = "=>> PBS: job killed: walltime 62 exceeded limit 60"
#: A job that ran, for 10 s of an hour.
RAN = {
    "stime": "Sun Nov 29 12:00:00 2026",
    "resource_list.walltime": "01:00:00",
    "resources_used.walltime": "00:00:10",
}
TO_ITS_LIMIT = {**RAN, "resources_used.walltime": "01:00:02"}


def shown(flavour: Flavour, state: str, **attributes: str) -> JobView:
    """Return a job as qstat would show it."""
    return view_of(PbsJob(EXTERNAL_ID, {"job_state": state, **attributes}), flavour)


def ended(flavour: Flavour, attributes: Dict[str, str], **more: str) -> JobView:
    """Return an ended job as qstat would show it."""
    return shown(flavour, ENDED[flavour], **attributes, **more)


def end_situations() -> Iterator[Situation]:
    """Yield how a job ends in either flavour."""
    flavour = Flavour.OPENPBS
    yield Situation("0", ended(flavour, RAN, exit_status="0"))
    yield Situation("1 to 125", ended(flavour, RAN, exit_status="1"))
    yield Situation("126 or 127", ended(flavour, RAN, exit_status="127"))
    yield Situation("271 (256 + 15), far from any limit", ended(flavour, RAN, exit_status="271"))
    yield Situation("the same, and its time limit has passed",
                    ended(flavour, TO_ITS_LIMIT, exit_status="271"))
    yield Situation("265 (256 + 9), far from any limit", ended(flavour, RAN, exit_status="265"))
    yield Situation("the same, and PBS wrote `%s`" % WALLTIME_LINE,
                    ended(flavour, RAN, exit_status="265"),
                    classify_stderr(WALLTIME_LINE, EXTERNAL_ID))
    yield Situation("another signal (256 + n, 128 + n)", ended(flavour, RAN, exit_status="267"))


def openpbs_situations() -> Iterator[Situation]:
    """Yield what only OpenPBS and PBS Pro tell."""
    flavour = Flavour.OPENPBS

    def said(comment: str, number: str = "271") -> JobView:
        return ended(flavour, RAN, exit_status=number,
                     comment="Job run at Sun Nov 29 on (n1:ncpus=1) and %s" % comment)

    yield Situation("comment `... and exceeded resource walltime`",
                    said("exceeded resource walltime", "-29"))
    yield Situation("comment `... and exceeded resource mem` (or `vmem`)",
                    said("exceeded resource mem", "-27"))
    yield Situation("comment `... and exceeded resource cput`",
                    said("exceeded resource cput", "-28"))
    yield Situation("comment `... and terminated by alice@host`",
                    said("terminated by alice@host"))
    yield Situation("`substate` 91, no Exit_status", ended(flavour, {}, substate="91"))
    yield Situation("`Stageout_status` 0",
                    ended(flavour, RAN, exit_status="0", stageout_status="0"))
    yield Situation("comment `job held, too many failed attempts to run`, deleted",
                    ended(flavour, {}, comment="job held, too many failed attempts to run"))


def number_situations(flavour: Flavour) -> Iterator[Situation]:
    """Yield each negative Exit_status of a flavour that ends a job."""
    for number in range(-1, LOWEST_EXIT_STATUS, -1):
        meaning = exit_code_of(number, flavour)
        if meaning is not None and not meaning.requeues:
            yield Situation("%d `%s`" % (number, meaning.name),
                            ended(flavour, RAN, exit_status=str(number)))
    yield Situation("any other below 0", ended(flavour, RAN, exit_status=str(LOWEST_EXIT_STATUS)))


def numbers_that_go_on(flavour: Flavour) -> List[str]:
    """Return the numbers of a flavour after which PBS starts the job again."""
    found = ((n, exit_code_of(n, flavour)) for n in range(-1, LOWEST_EXIT_STATUS, -1))
    return ["%d `%s`" % (n, code.name) for n, code in found if code is not None and code.requeues]


NAMES = {
    PbsState.BEGUN: "array of which tasks have begun",
    PbsState.EXITING: "exiting", PbsState.HELD: "held", PbsState.MOVED: "moved to another server",
    PbsState.QUEUED: "queued", PbsState.RUNNING: "running", PbsState.SUSPENDED: "suspended",
    PbsState.TRANSIT: "in transit", PbsState.USER_SUSPENDED: "suspended by a workstation's user",
    PbsState.WAITING: "waiting",
}


def living_situations() -> Iterator[Situation]:
    """Yield each state of a job that has not ended."""
    for state, name in NAMES.items():
        yield Situation("`%s` %s" % (state.value, name), shown(Flavour.OPENPBS, state.value))
        if state is PbsState.HELD:
            stuck = shown(Flavour.OPENPBS, "H",
                          comment="job held, too many failed attempts to run")
            yield Situation("`H`, comment `job held, too many failed attempts to run`", stuck)
    yield Situation("any other letter", shown(Flavour.OPENPBS, "?"))


def pbs_ends_page() -> str:
    """Return docs/pbs-ends.md."""
    ends = [state for state in PbsState if shown(Flavour.UNKNOWN, state.value).phase is Phase.ENDED]
    return "\n".join([
        *intro("What each end of OpenPBS, PBS Pro and Torque becomes"),
        "A job has ended in the states %s. None of them says how: `Exit_status`, the comment, used "
        "against requested, and what PBS wrote into stderr do."
        % ", ".join("`%s`" % state.value for state in ends),
        "",
        "Which flavour it is is asked first (`qstat --version`): the same number below 0 means "
        "other things. Where that cannot be told, only numbers that both read alike are read.",
        "",
        "## Ends in both flavours",
        "",
        *ends_table("`Exit_status`", end_situations()),
        "",
        "What is concluded from used against requested has confidence `inferred`.",
        "",
        "## OpenPBS and PBS Pro",
        "",
        *ends_table("qstat says", openpbs_situations()),
        "",
        *ends_table("`Exit_status`", number_situations(Flavour.OPENPBS)),
        "",
        "After %s PBS starts the job again: it is queued."
        % ", ".join(numbers_that_go_on(Flavour.OPENPBS)),
        "",
        "## Torque",
        "",
        *ends_table("`Exit_status`", number_situations(Flavour.TORQUE)),
        "",
        "After %s Torque starts the job again: it is queued."
        % ", ".join(numbers_that_go_on(Flavour.TORQUE)),
        "",
        "## States of a job that has not ended",
        "",
        *living_table(living_situations()),
        "",
        "*As before*: the status does not change, the job is looked at again. `after hold_grace`: "
        "`queued` until then, then the job is deleted in PBS and is failed with cause "
        "`node_failure`. A job that a person holds is never touched.",
        "",
        "## PBS does not know the job",
        "",
        "Torque forgets an ended job after `keep_completed` seconds, OpenPBS at once where its "
        "history is off (`job_history_enable`); with history on, `qstat -x` is asked.",
        "",
        *ends_table("The job was", unknown_situations(
            shown(Flavour.OPENPBS, "R"), shown(Flavour.OPENPBS, "Q"))),
        "",
        *no_answer("qstat"),
    ])
