"""docs/tools.md: what each command prints, from running it.

The input is always the same: captured texts of tests/data, a ledger and two trees that are made
here, a simulated Slurm. What differs from host to host in the output of `check` is replaced.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from tests.check.harness import write_app
from tests.manager.harness import Pulsar, Slurm, own_observers
from tests.pulsar_server import wait_until
from tests.report import small_ledger
from tests.simulated import control
from tools.doc_tables import GENERATED

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
TIMEOUT_S = 300

#: Input by name in the folder in which the commands run.
TEXTS = {
    "job.stderr": DATA / "slurm/captures/22.05/oom_cgroup/job.stderr",
    "h_rt.qacct": DATA / "gridengine/captures/h_rt.qacct",
    "transfer.log": DATA / "htcondor/logs/transfer_input_missing.log",
}
GALAXY = {
    "jobs/runners/pulsar.py": "import pulsar.client\n\n\ndef update(status):\n"
    '    return status in ["failed", "lost"]\n',
    "jobs/runners/util/__init__.py": 'states = dict(\n    WALLTIME="walltime",\n'
    '    TOOL_LIMIT="tool_limit",\n)\n',
    "jobs/runners/util/rsh.py": "from pulsar.managers.util.retry import Retry\n",
    "jobs/runners/util/kill.py": "def kill(pid: int):\n    return pid\n",
}
PULSAR = {
    "managers/status.py": 'QUEUED = "queued"\nFAILED = "failed"\nLOST = "lost"\n',
    "managers/util/__init__.py": 'states = dict(WALLTIME="walltime")\n',
    "managers/util/rsh.py": "from .retry import Retry\n",
    "managers/util/retry.py": "class Retry:\n    pass\n",
    "managers/util/kill.py": 'def kill(pid):\n    """End a process."""\n    return pid\n',
}
ALLOW = '[[allow]]\npath = "*"\nkind = "status"\nreason = "a contract of both"\n'


class Example(NamedTuple):
    """One command line: what it is for, its arguments, a file to show before it, its exit code."""

    text: str
    arguments: Tuple[str, ...]
    shown: str = ""
    code: int = 0
    before: Optional[Callable[[pathlib.Path, Slurm], None]] = None


def _lose_jobs(folder: pathlib.Path, slurm: Slurm) -> None:
    """Have jobs of the server of app.yml run, stop it, and let Slurm forget them."""
    with own_observers():
        pulsar = Pulsar(folder)
        ids = [pulsar.submit("41", "true", "--comment=fake:min_job_age=0"),
               pulsar.submit("42", "true", "--comment=fake:start_delay=600")]
        wait_until((pulsar.directory("41") / "return_code").exists, 60, "the job to end", 0.05)
        pulsar.shutdown()
    slurm.set(accounting="off")
    for external_id in ids:
        control.forget(slurm.state, external_id)


PERIOD = ("--ledger", "failure-ledger.sqlite", "--since", "2026-02-20", "--until", "2026-03-04")
SECTIONS: Tuple[Tuple[str, str, Tuple[Example, ...]], ...] = (
    ("explain", "Why did this job end, and how do you know? From what a DRM printed, an external "
     "id, a Pulsar job id or an HTCondor hold code. `^^^` marks the words that decided.", (
         Example("What Slurm wrote into the job's stderr:",
                 ("explain", "--drm", "slurm", "--source", "stderr", "job.stderr"), "job.stderr"),
         Example("Grid Engine's accounting:", ("explain", "--drm", "sge", "h_rt.qacct")),
         Example("An event log of HTCondor, as JSON:",
                 ("explain", "--drm", "htcondor", "--source", "userlog", "--format", "json",
                  "transfer.log")),
         Example("A hold by its code, as a DRM admin sees it:",
                 ("explain", "--drm", "htcondor", "--hold-code", "34", "--hold-subcode", "102",
                  "--hold-reason", "memory usage exceeded request_memory")),
         Example("Where there is nothing to read:",
                 ("explain", "--drm", "lsf", "none.txt"), code=2),
     )),
    ("check", "Will reasons arrive from this host? It changes nothing; `--submit` sends a job that "
     "exceeds its walltime, and shows the reason arriving.", (
         Example("A host where all is well (paths, user and times are those of an example):",
                 ("check", "app.yml")),
     )),
    ("report", "What failed, how often, where, and which limits are too low? From the failure "
     "ledger, which each manager keeps.", (
         Example("By cause and tool:", ("report", *PERIOD, "--by", "cause,tool")),
         Example("For a spreadsheet:", ("report", *PERIOD, "--by", "day,cause", "--format", "csv")),
         Example("For Prometheus:", ("report", *PERIOD, "--format", "prometheus")),
         Example("A snippet for Total Perspective Vortex:", ("report", *PERIOD, "--format", "tpv")),
     )),
    ("reconcile", "Which jobs have ended, been lost or been left by a kill while Pulsar was away? "
     "It asks the DRM once, and changes nothing without `--apply`. A running Pulsar does all this "
     "by itself.", (
         Example("Where all is in line:", ("reconcile", "app.yml")),
         Example("Where Slurm has forgotten a job that ended and one that had not begun:",
                 ("reconcile", "app.yml"), code=1, before=_lose_jobs),
     )),
    ("mirror", "Have Galaxy's and Pulsar's shared trees parted? [The page of mirror](mirror.md) "
     "has more. Two small trees:", (
         Example("", ("mirror", "galaxy-checkout", "pulsar-checkout", "--allow", "allow.toml"),
                 "allow.toml", code=1),
     )),
    ("run", "Start Pulsar with our seams where `.pth` files are forbidden, as in "
     "`pulsar-failure-reasons run pulsar-main --app_conf_path app.yml`.", (
         Example("A script that is not there:", ("run", "pulsar-server"), code=2),
     )),
)
#: What differs from host to host: pattern and what stands for it.
REPLACED = (
    (r"checked as \S+ with \S+ and PATH=\S+",
     "checked as pulsar with /srv/pulsar/venv/bin/python and PATH=/usr/bin:/bin"),
    (r"/\S+/site-packages/", "/srv/pulsar/venv/lib/python3.11/site-packages/"),
    (r"\b\d+\.\d+ s\b", "0.050 s"),
    (r"that is \d+ s of answering", "that is 12 s of answering"),
    # Of root alone, who is replaced above.
    (r"(?ms)^warning PFR218 [^\n]*\n[^\n]*\n(.*)\b1 warning", r"\g<1>0 warning"),
)


def tools_page() -> str:
    """Return docs/tools.md; it runs every command.

    Raises:
        SystemExit: a command ended with another exit code than it should; the message has its
            output.
    """
    lines = ["# The tools", "", GENERATED, "",
             "One command, `pulsar-failure-reasons`, in the extra `[tools]` (`run` works without). "
             "Data goes to stdout, all else to stderr; exit code 0 fine, 1 found a problem, 2 "
             "could not run. `--help` of each has examples."]
    with tempfile.TemporaryDirectory(prefix="tools-page-") as scratch:
        folder = pathlib.Path(scratch).resolve()
        with _input_of_commands(folder) as slurm:
            for name, text, examples in SECTIONS:
                lines += ["", f"## {name}", "", text]
                for example in examples:
                    if example.before is not None:
                        example.before(folder, slurm)
                    lines += _shown(example, folder)
    return "\n".join([*lines, ""])


@contextlib.contextmanager
def _input_of_commands(folder: pathlib.Path) -> Iterator[Slurm]:
    """Put all that the commands read into a folder, and a simulated Slurm on PATH."""
    for name, source in TEXTS.items():
        shutil.copyfile(source, folder / name)
    for root, files in (("galaxy-checkout/galaxy", GALAXY), ("pulsar-checkout/pulsar", PULSAR)):
        for name, text in files.items():
            path = folder / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (folder / "allow.toml").write_text(ALLOW)
    small_ledger.make(folder / "failure-ledger.sqlite")
    write_app(folder, manager={"type": "queued_slurm"})
    with Slurm(folder / "slurm").in_use() as slurm:
        yield slurm


def _shown(example: Example, folder: pathlib.Path) -> List[str]:
    block = []
    if example.shown:
        block += [f"$ cat {example.shown}", (folder / example.shown).read_text().rstrip()]
    block += [f"$ pulsar-failure-reasons {' '.join(map(_quoted, example.arguments))}",
              _output(example, folder)]
    if example.code:
        block += ["$ echo $?", str(example.code)]
    return ["", *([example.text, ""] if example.text else []), "```console", *block, "```"]


def _quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


def _output(example: Example, folder: pathlib.Path) -> str:
    command = [sys.executable, "-m", "pulsar_failure_reasons", *example.arguments]
    done = subprocess.run(
        command, cwd=folder, env=dict(os.environ, LC_ALL="C.UTF-8"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, timeout=TIMEOUT_S,
    )
    if done.returncode != example.code:
        raise SystemExit("%s ended with %d:\n%s" % (
            " ".join(command), done.returncode, done.stdout))
    output = done.stdout.replace(str(folder), "/srv/pulsar")
    for pattern, replacement in REPLACED:
        output = re.sub(pattern, replacement, output)
    return "\n".join(line.rstrip() for line in output.rstrip().splitlines())
