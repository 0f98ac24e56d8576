"""A DRM that only describes its commands: what is asked, and when accounting is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, List, Optional

import pytest
from pulsar.managers.util.cli.shell.local import LocalShell

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.drm.by_command import ByCommand
from pulsar_failure_reasons.errors import DrmError, DrmUnreachableError
from pulsar_failure_reasons.managers.cli_module import ModuleSource
from pulsar_failure_reasons.managers.cli_shell import Link
from pulsar_failure_reasons.reason import Confidence


def views(stdout: str, stderr: str) -> List[JobView]:
    """Read an answer: an id and a phase in each line."""
    del stderr
    rows = [line.split() for line in stdout.splitlines()]
    return [JobView(i, word, Phase(word), Confidence.CONTROLLER) for i, word in rows]


def error(argv: Any, returncode: int, stderr: str) -> Optional[DrmError]:
    """Return an outage for any failure."""
    return DrmUnreachableError(f"{argv[0]}: {stderr}") if returncode else None


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """The file in which the commands note that they ran."""
    return tmp_path / "asked"


def source(asked: Path, accounting: str = "auto", **described: Any) -> ModuleSource:
    """Return a source whose commands note their ids, and print what was set for them."""
    def command(name: str, prints: str, ends: int = 0) -> Any:
        script = f'echo {name} "$LC_ALL" "$@" >> {asked}; printf "{prints}"; exit {ends}'
        return lambda ids: ["sh", "-c", script, name, *ids]

    module: Any = ModuleType("toy")
    module.LABEL = "Toy"
    module.error_from_command = error
    module.BY_COMMAND = ByCommand(
        job_plugin="Toy", submit_command="tsub", headers=lambda out, err, name: "",
        status=command("status", "1 running\\n2 queued\\n"), parse_status=views,
        cancel=command("cancel", "", described.pop("cancel_ends", 0)),
        **({"ended": command("ended", "3 ended\\n"), "parse_ended": views}
           if described.pop("keeps_accounting", True) else {}),
    )
    return ModuleSource(Link(LocalShell, 60, "LocalShell"), module, accounting)


def test_one_command_for_all_jobs(asked: Path) -> None:
    """All ids go into one status command, in the C locale."""
    found = source(asked).query_these(["1", "2"], [])
    assert [(view.external_id, view.phase) for view in found] == [
        ("1", Phase.RUNNING), ("2", Phase.QUEUED),
    ]
    assert asked.read_text() == "status C 1 2\n"


def test_accounting(asked: Path) -> None:
    """Forgotten jobs are asked of accounting, in one command too."""
    found = source(asked).query_ended(["3", "4"])
    assert found is not None and [view.external_id for view in found] == ["3"]
    assert asked.read_text() == "ended C 3 4\n"


@pytest.mark.parametrize(
    "accounting, keeps", [("none", True), ("auto", False)], ids=["switched off", "there is none"]
)
def test_no_accounting(asked: Path, accounting: str, keeps: bool) -> None:
    """None is the answer where there is no accounting, or it is not to be asked."""
    assert source(asked, accounting, keeps_accounting=keeps).query_ended(["3"]) is None
    assert not asked.exists()


def test_cancel(asked: Path) -> None:
    """Jobs are cancelled in one command, whose failure is told."""
    source(asked).cancel(["1", "2"])
    assert asked.read_text() == "cancel C 1 2\n"
    with pytest.raises(DrmUnreachableError, match="sh: "):
        source(asked, cancel_ends=1).cancel(["1"])
