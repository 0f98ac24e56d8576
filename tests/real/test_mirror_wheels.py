"""``mirror`` on the released wheels of galaxy-app 26.1.2 and pulsar-app 0.16.0.

All numbers and names were counted by hand, from reading both and from::

    diff -rq galaxy/jobs/runners/util pulsar/managers/util

which tells of 21 files that differ (3 of them shell), and of 2 + 8 that only one of the two has,
where the folder ``gcp_batch`` stands for its 4 files and ``drmaa`` for 1.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Set, Tuple

import pytest

from pulsar_failure_reasons.cli import main
from tests.real.require import require_real
from tests.real.wheels import WheelError, wheel

pytestmark = pytest.mark.real

GALAXY = ("galaxy-app", "26.1.2")
PULSAR = ("pulsar-app", "0.16.0")
ROOT = Path(__file__).resolve().parents[2]

IDENTICAL = {"cli/factory.py", "cli/job/slurm_torque.py"}
FORMATTING = {"cli/__init__.py", "cli/job/pbs.py", "cli/shell/local.py", "external.py"}
BEHAVIOUR = {
    "__init__.py", "cli/job/__init__.py", "cli/job/lsf.py", "cli/job/slurm.py",
    "cli/job/torque.py", "cli/shell/__init__.py", "cli/shell/rsh.py", "condor/__init__.py",
    "env.py", "job_script/__init__.py", "job_script/CLUSTER_SLOTS_STATEMENT.sh",
    "job_script/DEFAULT_JOB_FILE_TEMPLATE.sh", "job_script/MEMORY_STATEMENT_TEMPLATE.sh", "kill.py",
    "process_groups.py", "pykube_util.py", "sudo.py",
}
ONLY_GALAXY = {
    "fork_safe_write.py", "gcp_batch/__init__.py", "gcp_batch/helpers.py",
    "gcp_batch/container_script.sh", "gcp_batch/direct_script.sh",
}
ONLY_PULSAR = {
    "aws_batch.py", "cvmfsexec.py", "drmaa/__init__.py", "gcp_util.py", "job_name.py",
    "job_script/MEMORY_STATEMENT.sh", "retry.py", "tes.py",
}
#: What differs in some files, by kind and name; "Galaxy" or "Pulsar" where only one has it.
PARTS: Dict[str, Set[Tuple[str, str, str]]] = {
    "__init__.py": {("constant", "runner_states", "")},
    "cli/job/__init__.py": {("function", "BaseJobExec.parse_single_status", "")},
    "cli/job/lsf.py": {
        ("function", "LSF.job_script_kwargs", ""),
        ("function", "LSF.submit", ""),
        ("function", "LSF.parse_single_status", ""),
        ("function", "LSF.parse_failure_reason", ""),
        ("function", "LSF._get_job_state", ""),
    },
    "cli/shell/__init__.py": {("function", "BaseShellExec.execute", "")},
    "cli/shell/rsh.py": {
        ("function", "RemoteShell.execute", ""),
        ("import", "<shared>.cli.shell.local.DEFAULT_TIMEOUT_CHECK_INTERVAL", "Pulsar"),
    },
    "condor/__init__.py": {("constant", "DEFAULT_QUERY_CLASSAD", "")},
    "job_script/__init__.py": {
        ("import", "<shared>.fork_safe_write.fork_safe_write", "Galaxy"),
        ("import", "dataclasses.dataclass", "Galaxy"),
        ("constant", "MEMORY_STATEMENT_DEFAULT_TEMPLATE", ""),
        ("constant", "PREPARE_DIRS_TEMPLATE", "Galaxy"),
        ("constant", "PREPARE_DIRS", "Pulsar"),
        ("constant", "REQUIRED_TEMPLATE_PARAMS", ""),
        ("constant", "OPTIONAL_TEMPLATE_PARAMS", ""),
        ("function", "job_script", ""),
        ("function", "write_script", ""),
        ("function", "exit_handler_setup", "Pulsar"),
        ("class", "ScriptIntegrityChecks", "Galaxy"),
        ("class", "ExitHandlers", "Pulsar"),
    },
    "kill.py": {("function", "kill_pid", "")},
    "process_groups.py": {("function", "check_pg", ""), ("function", "kill_pg", "")},
    "sudo.py": {("function", "sudo_popen", "")},
}


class Wheels(NamedTuple):
    """The two files."""

    galaxy: Path
    pulsar: Path

    @property
    def arguments(self) -> List[str]:
        """Both, as the command takes them."""
        return [str(self.galaxy), str(self.pulsar)]


@pytest.fixture(scope="module")
def wheels() -> Wheels:
    """Both wheels, fetched if they are not there."""
    try:
        return Wheels(wheel(*GALAXY), wheel(*PULSAR))
    except WheelError as error:
        require_real("wheels of Galaxy and Pulsar", str(error))
        raise  # never: that has skipped or failed


@pytest.fixture(scope="module")
def report(wheels: Wheels) -> Dict[str, Any]:
    """What the command, in a process of its own, tells of the two wheels."""
    return run_json(*wheels.arguments)


def run_json(*arguments: str) -> Dict[str, Any]:
    """Run the command as a user would, who finds differences, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "mirror", *arguments, "--format", "json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900,
    )
    assert (done.returncode, done.stderr) == (1, "")
    values: Dict[str, Any] = json.loads(done.stdout)
    return values


def of_kind(report: Dict[str, Any], *kinds: str) -> List[Dict[str, Any]]:
    """Return the differences of some kinds."""
    return [item for item in report["differences"] if item["kind"] in kinds]


def test_versions(report: Dict[str, Any]) -> None:
    """It is these versions that were compared."""
    assert report["galaxy"]["version"] == "26.1.2"
    assert report["pulsar"]["version"] == "0.16.0"


def test_numbers(report: Dict[str, Any]) -> None:
    """The numbers of files are those of diff, and of reading what it tells."""
    numbers = report["summary"]
    assert numbers["identical"] == 2
    assert numbers["formatting"] == 4
    assert numbers["behaviour"] == 17
    assert numbers["only_galaxy"] == 5
    assert numbers["only_pulsar"] == 8
    assert numbers["imports_across"] == 6
    assert numbers["resources_missing"] == 3
    assert numbers["bare_statuses"] == 5
    assert (numbers["allowed"], numbers["not_allowed"]) == (0, numbers["differences"])
    assert report["not_checked"] == []


def test_files_of_both_sides(report: Dict[str, Any]) -> None:
    """Each file has the verdict that a reader gives it."""
    verdicts = {word: {path for path, found in report["files"].items() if found == word}
                for word in ("identical", "formatting", "behaviour")}
    assert verdicts == {
        "identical": IDENTICAL, "formatting": FORMATTING, "behaviour": BEHAVIOUR}


def test_agrees_with_diff(wheels: Wheels, report: Dict[str, Any], tmp_path: Path) -> None:
    """`diff -rq` of the unpacked wheels tells of the same files."""
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path)
    done = subprocess.run(
        ["diff", "-rq", "galaxy/jobs/runners/util", "pulsar/managers/util"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )
    lines = done.stdout.splitlines()
    differ = {line.split()[1].partition("runners/util/")[2] for line in lines
              if line.startswith("Files ")}
    assert len(differ) == 21
    assert differ == FORMATTING | BEHAVIOUR
    alone = {line.replace("Only in ", "").replace(": ", "/").partition("/util/")[2]
             for line in lines if line.startswith("Only in ")}
    told = {item["path"] for item in of_kind(report, "file")}
    assert alone == {path if path in alone else path.split("/")[0] for path in told}
    assert len(lines) == 21 + 2 + 8


def test_files_on_one_side(report: Dict[str, Any]) -> None:
    """Those of Galaxy, those of Pulsar, and the two of Pulsar's that Galaxy imports."""
    found = {item["path"]: item for item in of_kind(report, "file")}
    assert {path for path, item in found.items() if item["only_in"] == "Galaxy"} == ONLY_GALAXY
    assert {path for path, item in found.items() if item["only_in"] == "Pulsar"} == ONLY_PULSAR
    assert {path: item["used_by"] for path, item in found.items() if item["used_by"]} == {
        "drmaa/__init__.py": ["galaxy/jobs/runners/drmaa.py:90"],
        "retry.py": ["galaxy/jobs/runners/util/cli/shell/rsh.py:5"],
    }


@pytest.mark.parametrize("path", PARTS)
def test_parts_of_files(path: str, report: Dict[str, Any]) -> None:
    """The functions and constants that differ are those that a reader finds."""
    found = {(item["kind"], item["name"], item["only_in"] or "")
             for item in report["differences"]
             if item["path"] == path and item["kind"] not in ("across", "resource")}
    assert found == PARTS[path]


def test_the_token_that_pulsar_lacks(report: Dict[str, Any]) -> None:
    """`runner_states` differs by TOOL_TIMELIMIT_REACHED, and by nothing else."""
    (finding,) = [item for item in report["differences"] if item["name"] == "runner_states"]
    assert finding["galaxy"] == {
        "line": 10, "words": ["'tool_timelimit_reached'", "TOOL_TIMELIMIT_REACHED"]}
    assert finding["pulsar"] == {"line": 11, "words": []}


def test_imports_that_reach_across(report: Dict[str, Any]) -> None:
    """Galaxy needs Pulsar's `retry` and `drmaa`; all other ways are guarded or a fallback."""
    found = [(item["path"], item["name"], item["note"]) for item in of_kind(report, "across")]
    assert sorted(found) == [
        ("cli/factory.py", "galaxy.jobs.runners.util.cli", "guarded: may fail"),
        ("cli/factory.py", "pulsar.managers.util.cli",
         "fallback: only where another import fails"),
        ("cli/job/__init__.py", "galaxy.model", "guarded: may fail"),
        ("cli/shell/rsh.py", "pulsar.managers.util.retry", "always"),
        ("galaxy/jobs/runners/drmaa.py", "pulsar.managers.util.drmaa", "always"),
        ("pulsar/client/manager.py", "galaxy.jobs.runners.util.cli", "guarded: may fail"),
    ]


def test_resources(report: Dict[str, Any]) -> None:
    """Pulsar loads a memory statement that Galaxy lacks, and leaves the shared one unused."""
    found = [(item["name"], item["note"]) for item in of_kind(report, "resource")]
    assert sorted(found) == [
        ("gcp_batch/container_script.sh", "Pulsar lacks it"),
        ("gcp_batch/direct_script.sh", "Pulsar lacks it"),
        ("job_script/MEMORY_STATEMENT.sh", "Galaxy lacks it"),
    ]
    used_by = {item["path"]: item["used_by"] for item in of_kind(report, "text")}
    assert used_by["job_script/MEMORY_STATEMENT_TEMPLATE.sh"] == [
        "galaxy/jobs/runners/util/job_script/__init__.py:28"]


def test_bare_statuses(report: Dict[str, Any]) -> None:
    """Galaxy's runner compares five of Pulsar's eight statuses, all as bare literals."""
    prefix = "PulsarJobRunner._update_job_state_for_status: "
    found = {item["name"].replace(prefix, ""): item["galaxy"]["line"]
             for item in of_kind(report, "status")}
    assert found == {
        "complete": 385, "cancelled": 385, "failed": 393, "lost": 393, "running": 401}
    assert {item["path"] for item in of_kind(report, "status")} == {"galaxy/jobs/runners/pulsar.py"}
    assert report["statuses_never_compared"] == ["preprocessing", "queued", "postprocessing"]


def test_unpacked_and_installed_trees(
    wheels: Wheels, report: Dict[str, Any], tmp_path: Path
) -> None:
    """The unpacked wheels tell the same as the wheels, whichever folder of them is given."""
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path)
    again = run_json(str(tmp_path), str(tmp_path / "pulsar" / "managers" / "util"))
    assert again["summary"] == report["summary"]
    assert again["differences"] == report["differences"]
    assert (again["galaxy"]["version"], again["pulsar"]["version"]) == ("26.1.2", "0.16.0")


def test_the_allow_file_of_the_documentation(
    wheels: Wheels, capsys: pytest.CaptureFixture[str]
) -> None:
    """With it these two pass, each entry is needed, and another change would still be told."""
    allow = str(ROOT / "docs" / "mirror-allow.toml")
    code = main(["mirror", *wheels.arguments, "--allow", allow, "--format", "json"])
    values = json.loads(capsys.readouterr().out)
    assert (code, values["summary"]["not_allowed"], values["unused_allowances"]) == (0, 0, [])
    assert values["summary"]["allowed"] == values["summary"]["differences"]


def step_of_the_page() -> str:
    """Return the script of the GitHub Actions step, for the versions tested, without installing."""
    page = (ROOT / "docs" / "mirror.md").read_text()
    (step,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    script = textwrap.dedent(step.partition("run: |\n")[2])
    install = "pip install 'pulsar-failure-reasons[tools]'\n"
    assert script.startswith(install) and script.count(" galaxy-app\n") == 1
    return script[len(install):].replace(" galaxy-app\n", " galaxy-app==26.1.2\n")


def test_the_github_actions_step(wheels: Wheels, tmp_path: Path) -> None:
    """The step of the page passes in a checkout of Pulsar as it is, and fails in a changed one."""
    checkout = tmp_path / "checkout"
    with zipfile.ZipFile(wheels.pulsar) as archive:
        archive.extractall(checkout)
    shutil.copy(ROOT / "docs" / "mirror-allow.toml", checkout)
    environment = {
        **os.environ, "RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "page"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step_of_the_page()]
    codes = []
    for change in ("", "\nDEFAULT_TIMEOUT = 1\n"):
        with open(checkout / "pulsar/managers/util/cli/shell/local.py", "a") as handle:
            handle.write(change)
        codes.append(subprocess.run(shell, cwd=checkout, env=environment, timeout=900,
                                    stdin=subprocess.DEVNULL).returncode)
    assert codes == [0, 1]
    rows = [line for line in (tmp_path / "page").read_text().splitlines()
            if line.startswith("| `") and line.endswith("|  |")]
    assert len(rows) == 1 and "constant DEFAULT\\_TIMEOUT" in rows[0]
