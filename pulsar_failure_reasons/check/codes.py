"""The codes of all findings: data, from which the tables of ``docs/check.md`` are written.

A code never changes its meaning; one that is no longer used is not given again.
"""

from __future__ import annotations

from enum import Enum
from typing import Dict, NamedTuple, Tuple


class Level(Enum):
    """How bad a finding is; only an error makes the exit code 1."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Code(NamedTuple):
    """One code: how bad it is, what it means, and what to do ("" where nothing is)."""

    level: Level
    means: str
    do: str = ""


#: Headings of the table by the hundred of the codes.
THEMES: Tuple[Tuple[str, str], ...] = (
    ("PFR1", "Pulsar and its managers"),
    ("PFR2", "The DRM"),
    ("PFR3", "Folders, log, ledger"),
    ("PFR4", "The trial job (`--submit`)"),
    ("PFR5", "Galaxy"),
)

_OK, _INFO, _WARNING, _ERROR = Level.OK, Level.INFO, Level.WARNING, Level.ERROR
_ASK_AGAIN = "run the command by hand as Pulsar's user; raise command_timeout if it is only slow"

CODES: Dict[str, Code] = {
    # ---- Pulsar and its managers ----------------------------------------------------------
    "PFR101": Code(_OK, "the version of Pulsar will do"),
    "PFR102": Code(
        _ERROR, "this Pulsar is too old", "upgrade it: pip install 'pulsar-app>=0.15.16'"
    ),
    "PFR103": Code(
        _WARNING, "the version of Pulsar cannot be told (a fork?)",
        "nothing, if the seams below are in place; the tests run with 0.15.16 and 0.16.0",
    ),
    "PFR104": Code(
        _INFO, "as which user, and with which PATH, was checked",
        "compare with the service: systemctl show pulsar --property User --property Environment",
    ),
    "PFR105": Code(
        _ERROR, "a Python process as Pulsar's could not be started, or did not come to its end",
        "start it by hand: python -c 'import pulsar.manager_factory'",
    ),
    "PFR110": Code(_OK, "the seams are in place in a fresh process, by the file named"),
    "PFR111": Code(
        _OK, "the seams come in by server.ini's paste.app_factory",
        "serve with gunicorn --paste server.ini; pulsar-serve does not read that line",
    ),
    "PFR112": Code(_OK, "the seams come in where Pulsar is started in the way named"),
    "PFR113": Code(
        _ERROR, "nothing puts the seams into Pulsar: its managers are not known to it",
        "start Pulsar with `pulsar-failure-reasons run pulsar-main ...` (then check with --route "
        "run), or bring back the .pth file: pip install --force-reinstall --no-deps "
        "pulsar-failure-reasons",
    ),
    "PFR114": Code(
        _ERROR, "a seam is not in place: no reason is sent, or no manager type is known",
        "install a Pulsar and a pulsar-failure-reasons that know each other (docs/install.md)",
    ),
    "PFR120": Code(_OK, "the manager tells why a job ended"),
    "PFR121": Code(
        _ERROR, "there is no manager of this type, so Pulsar does not start",
        "correct `type:`, or install the package that brings it",
    ),
    "PFR122": Code(
        _WARNING, "the manager's type cannot tell why a job ended",
        "use the type named, which takes the same options",
    ),
    "PFR123": Code(
        _ERROR, "no manager of this app.yml tells why a job ended",
        "type: queued_slurm, queued_htcondor_classified or queued_cli_classified",
    ),
    "PFR124": Code(
        _WARNING, "an entry point of group pulsar.managers clashes or cannot be imported",
        "mend or remove the package it names",
    ),
    "PFR130": Code(_OK, "the manager's options are valid"),
    "PFR131": Code(
        _ERROR, "an option has a value that cannot work, so Pulsar does not start",
        "write one of the values that the line names",
    ),
    "PFR132": Code(
        _WARNING, "an option is not known and looks misspelt; its default holds",
        "correct its name",
    ),
    "PFR133": Code(
        _INFO, "an option is neither ours nor one that we know Pulsar to have; it is passed on",
        "nothing, if it is one of your job or shell plugin's; else look for a misspelling",
    ),
    "PFR134": Code(
        _ERROR, "the manager cannot be made, so Pulsar does not start",
        "correct the option that the line is about",
    ),
    "PFR140": Code(
        _WARNING, "reasons are switched off in this environment",
        "unset PULSAR_FAILURE_REASONS (in the service's environment, if it has it too)",
    ),
    "PFR141": Code(
        _INFO, "the manager only observes: reasons are recorded and not sent",
        "remove observe_only when you have seen enough",
    ),
    "PFR142": Code(
        _INFO, "several managers share one look at the DRM, or one staging folder",
    ),
    "PFR199": Code(
        _ERROR, "a check itself failed: a mistake of this package",
        "please report the line, with the output of --format json",
    ),
    # ---- the DRM --------------------------------------------------------------------------
    "PFR201": Code(_OK, "the DRM's commands are there"),
    "PFR202": Code(
        _ERROR, "a command of the DRM is not on PATH, or not behind the shell plugin",
        "put it on the PATH of the service (systemd: Environment=PATH=...)",
    ),
    "PFR203": Code(
        _WARNING, "a command that only helps is not there",
        "install it, or set accounting: none if there is no accounting",
    ),
    "PFR204": Code(_OK, "HTCondor's Python bindings are there"),
    "PFR205": Code(
        _ERROR, "HTCondor's Python bindings cannot be imported",
        "pip install 'pulsar-failure-reasons[htcondor]'",
    ),
    "PFR206": Code(_OK, "libdrmaa can be loaded"),
    "PFR207": Code(
        _ERROR, "jobs are to be submitted by DRMAA, and libdrmaa cannot be loaded",
        "set DRMAA_LIBRARY_PATH and install the Python package drmaa, or submit: sbatch",
    ),
    "PFR208": Code(
        _ERROR, "the host behind the shell plugin does not answer",
        "try the same ssh by hand as Pulsar's user",
    ),
    "PFR210": Code(_OK, "Slurm keeps accounting"),
    "PFR211": Code(
        _WARNING, "Slurm keeps no accounting: the end of a job that slurmctld has forgotten can "
        "only be inferred",
        "keep MinJobAge at several times status_poll_interval; accounting: none silences this",
    ),
    "PFR212": Code(
        _ERROR, "accounting: sacct, and Slurm keeps no accounting: forgotten jobs wait for ever",
        "accounting: auto",
    ),
    "PFR213": Code(_OK, "slurmctld remembers an ended job for long enough"),
    "PFR214": Code(
        _WARNING, "slurmctld forgets an ended job after less than four looks",
        "raise MinJobAge in slurm.conf, or lower status_poll_interval",
    ),
    "PFR215": Code(
        _ERROR, "slurmctld may forget an ended job between two looks, and nothing else tells "
        "its end",
        "raise MinJobAge above several times status_poll_interval, or have accounting",
    ),
    "PFR216": Code(
        _WARNING, "JobFileAppend=1: the stderr of a requeued job still has the lines of its "
        "first run, which may be read as the end of the second",
        "JobFileAppend=0, or --open-mode=truncate in the native specification",
    ),
    "PFR217": Code(
        _WARNING, "Slurm's configuration could not be read, so it was not checked",
        "scontrol show config",
    ),
    "PFR218": Code(
        _WARNING, "Slurm is asked as root, for whom its filter by user does not work: each look "
        "gets the jobs of all users",
        "run Pulsar, and this check, as a user of its own",
    ),
    "PFR220": Code(_OK, "a query of the DRM, its time and its cost"),
    "PFR221": Code(_ERROR, "the DRM gave no usable answer to the query for jobs", _ASK_AGAIN),
    "PFR222": Code(
        _WARNING, "a query took more than half of command_timeout",
        "raise command_timeout, and status_poll_interval with it",
    ),
    "PFR223": Code(_ERROR, "accounting gave no usable answer", _ASK_AGAIN),
    "PFR224": Code(_INFO, "accounting is not asked"),
    "PFR225": Code(
        _INFO, "a job plugin that we do not know: whether it answers can only be told with a job",
        "check --submit does not work either; send a job through Galaxy",
    ),
    "PFR226": Code(
        _WARNING, "Grid Engine's accounting file is not there",
        "nothing, if no job has ended yet; else share $SGE_ROOT/CELL/common with this host",
    ),
    # ---- folders, log, ledger -------------------------------------------------------------
    "PFR301": Code(_OK, "the folder can be written by this user"),
    "PFR302": Code(
        _ERROR, "the folder cannot be written by this user",
        "check as Pulsar's user; else correct owner or mode",
    ),
    "PFR303": Code(
        _INFO, "the folder is not there yet; Pulsar will make it",
        "if Pulsar has run already: check in its folder, where relative paths begin",
    ),
    "PFR304": Code(
        _ERROR, "the folder is not there, and this user cannot make it",
        "make it, for Pulsar's user",
    ),
    "PFR305": Code(
        _WARNING, "less than 1 GB is free: a full disk leaves jobs without return_code and reason",
        "make room",
    ),
    "PFR306": Code(
        _WARNING, "persistence is off: after a restart Pulsar knows none of its jobs",
        "set persistence_directory",
    ),
    "PFR307": Code(
        _WARNING, "the folder belongs to another user than the one who checks",
        "check as that user: sudo -u USER pulsar-failure-reasons check ...",
    ),
    "PFR311": Code(
        _OK, "our log lines are shown by servers that read this logging configuration "
        "(pulsar-main, gunicorn --log-config; pulsar-serve of 0.16.0 reads none)",
    ),
    "PFR312": Code(
        _WARNING, "this logging configuration silences our loggers",
        "give it a [logger_pulsar] with qualname = pulsar, level INFO or DEBUG, and a handler",
    ),
    "PFR313": Code(
        _WARNING, "only warnings and errors are shown, not the two lines of each job",
        "level = INFO or DEBUG, for the logger `pulsar` and its handler",
    ),
    "PFR314": Code(
        _INFO, "no logging configuration was found",
        "--server-ini FILE, if the service has one elsewhere; pulsar-serve of 0.16.0 sets up none",
    ),
    "PFR315": Code(
        _ERROR, "the logging configuration cannot be read, so Pulsar does not start",
        "correct the line that is named",
    ),
    "PFR321": Code(_OK, "the ledger can be written"),
    "PFR322": Code(
        _ERROR, "the ledger cannot be written: its rows will be lost, jobs are not affected",
        "correct the option failure_ledger, or owner and mode of its file",
    ),
    "PFR323": Code(_INFO, "no ledger is kept"),
    # ---- the trial job --------------------------------------------------------------------
    "PFR401": Code(_OK, "a job that exceeded its walltime was ended by the DRM, and Galaxy would "
                   "be told so"),
    "PFR402": Code(
        _ERROR, "the trial job ended, and Galaxy would not be told that it was its walltime",
        "look at the lines above, and at docs/troubleshooting.md",
    ),
    "PFR403": Code(
        _ERROR, "the trial job did not come to its end in time",
        "is there a free slot? a longer --deadline; else docs/troubleshooting.md",
    ),
    "PFR404": Code(
        _ERROR, "the trial job could not be submitted",
        "correct what the DRM's words are about, mostly the native specification",
    ),
    "PFR405": Code(_WARNING, "something of the trial job is left behind", "remove it by hand"),
    "PFR406": Code(_ERROR, "the trial job was interrupted, and cancelled"),
    "PFR407": Code(
        _WARNING, "no trial job for this manager: we know no walltime option of its DRM",
        "send a job through Galaxy",
    ),
    "PFR408": Code(
        _WARNING, "the reason was found and would not be sent",
        "observe_only or PULSAR_FAILURE_REASONS=off is in force",
    ),
    # ---- Galaxy ---------------------------------------------------------------------------
    "PFR501": Code(_OK, "Galaxy and the Pulsar library it brings"),
    "PFR502": Code(
        _INFO, "this Python has no Galaxy, so only the files were checked",
        "run check with the Python of Galaxy's environment",
    ),
    "PFR503": Code(
        _ERROR, "Galaxy's Pulsar library was overwritten by pulsar-app",
        "pip uninstall --yes pulsar-app, then pip install --force-reinstall --no-deps "
        "pulsar-galaxy-lib==VERSION",
    ),
    "PFR504": Code(
        _ERROR, "Galaxy's Pulsar runners cannot be imported",
        "pip install --force-reinstall --no-deps pulsar-galaxy-lib==VERSION",
    ),
    "PFR505": Code(
        _WARNING, "pulsar-app is installed beside pulsar-galaxy-lib: the next upgrade of either "
        "overwrites the other",
        "give Pulsar an environment of its own, and pip uninstall pulsar-app here",
    ),
    "PFR510": Code(_OK, "the runner is loaded by our class"),
    "PFR511": Code(
        _ERROR, "a Pulsar runner is Galaxy's own: its jobs' reasons are ignored",
        "load it by our class",
    ),
    "PFR512": Code(_ERROR, "the runner's class does not exist or cannot be imported",
                   "correct `load:`"),
    "PFR513": Code(_INFO, "there is no Pulsar runner in this configuration"),
    "PFR514": Code(_OK, "Galaxy's own Pulsar runner, with our mixin put in by the environment"),
    "PFR520": Code(_OK, "the resubmit rules of this environment can fire"),
    "PFR521": Code(
        _ERROR, "a name in a condition is not known: Galaxy raises instead of resubmitting",
        "correct the name",
    ),
    "PFR522": Code(
        _ERROR, "a condition is no expression that Galaxy evaluates",
        "names, numbers, and, or, not, comparisons, + - * / % only",
    ),
    "PFR523": Code(
        _ERROR, "a condition can never be true",
        "write a name that is set when a job fails",
    ),
    "PFR524": Code(
        _ERROR, "the rule names its target in a form that this Galaxy does not read: jobs go back "
        "to where they failed",
        "environment: instead of destination:",
    ),
    "PFR525": Code(
        _ERROR, "the rule's target is not an environment of this configuration",
        "correct its name",
    ),
    "PFR526": Code(
        _ERROR, "`resubmit` is not a list of rules",
        "resubmit: [{condition: ..., environment: ...}]",
    ),
    "PFR527": Code(
        _WARNING, "the rule also reruns jobs that somebody cancelled outside Galaxy",
        "add: and not cancelled_externally",
    ),
    "PFR528": Code(
        _WARNING, "a rule has no end: it can send a job round for ever",
        "add: and attempt <= 3",
    ),
    "PFR529": Code(
        _WARNING, "the rule can only fire with our runner class, and this environment's is not",
        "load the runner by our class",
    ),
    "PFR530": Code(
        _WARNING, "a rule stands behind one without a condition, which is always taken first",
        "put the rule without a condition last",
    ),
    "PFR531": Code(
        _WARNING, "a Pulsar environment has no default_file_action, so a resubmitted job may "
        "bring another environment's",
        "set default_file_action",
    ),
    "PFR532": Code(_INFO, "no environment of a Pulsar runner has a resubmit rule"),
    "PFR540": Code(
        _INFO, "a file of TPV's configuration is not on this host and was not checked",
    ),
    "PFR541": Code(
        _ERROR, "a file of TPV's configuration cannot be read", "correct it",
    ),
}
