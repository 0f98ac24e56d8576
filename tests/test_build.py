"""The Makefile and its tools: no test is left out, environments are renewed when they must be."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import List

import pytest
from _pytest.mark.expression import Expression

TOOLS = str(Path(__file__).resolve().parent.parent / "tools")
if TOOLS not in sys.path:
    sys.path.insert(0, TOOLS)

import environment  # noqa: E402
import interpreters  # noqa: E402
import test_fast  # noqa: E402

MAKEFILE = (environment.ROOT / "Makefile").read_text()
MARKERS = ("real", "slow", "launcher", "simulated", "core")


def selected(expression: str, markers: List[str]) -> bool:
    """Tell whether ``pytest -m expression`` runs a test that has these markers."""
    return Expression.compile(expression).evaluate(lambda name, **_: name in markers)


def test_make_test_runs_every_test_once_on_the_python_of_make() -> None:
    """Whatever its markers, a test belongs to one of the targets behind `make test`."""
    expressions = re.findall(r'\$\(PYTEST\) -m "?([^"\n]+?)"?(?: --.*)?\n', MAKEFILE)
    assert len(expressions) == 3
    for count in range(len(MARKERS) + 1):
        for markers in itertools.combinations(MARKERS, count):
            chosen = [text for text in expressions if selected(text, list(markers))]
            assert len(chosen) == 1, markers


@pytest.mark.parametrize(
    "markers, first, others",
    [
        ([], True, True),
        (["simulated", "core"], True, False),
        (["simulated"], False, False),
        (["simulated", "core", "slow"], False, False),
        (["slow"], False, False),
        (["real"], False, False),
        (["launcher"], False, False),
    ],
)
def test_fast_tests(markers: List[str], first: bool, others: bool) -> None:
    """Both Pythons run what needs no DRM; the first also the core of the simulated one's tests."""
    assert selected(test_fast.PURE_AND_CORE, markers) is first
    assert selected(test_fast.PURE, markers) is others


def test_the_oldest_python_runs_all_but_the_long_ones() -> None:
    """What the fast tests leave out of those on simulated DRMs, the rest has."""
    for markers in (["simulated"], ["simulated", "core"], []):
        runs = [selected(text, markers) for text in (test_fast.PURE_AND_CORE, test_fast.REST)]
        assert sum(runs) == 1, markers


def test_help_lists_every_target() -> None:
    """`make help` prints targets with a description: all have one."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    described = re.findall(r"^([a-z-]+):.*?  ## \S", MAKEFILE, re.MULTILINE)
    assert described == phony.split()


def test_a_new_marker_needs_no_new_environment() -> None:
    """Only what an install reads makes an environment stale."""
    text = '[project]\nname = "a"\n[tool.pytest.ini_options]\nmarkers = []\n[tool.hatch.x]\ny = 1\n'
    assert environment._installed_tables(text) == '[project]\nname = "a"\n[tool.hatch.x]\ny = 1\n'
    assert "[tool.hatch.build.targets.wheel.force-include]" in environment._installed_tables(
        (environment.ROOT / "pyproject.toml").read_text())


def test_a_failed_download_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installer that fails twice and then works is no failure; each time is told."""
    monkeypatch.setattr(environment, "PAUSE_S", 0)
    script = tmp_path / "installer"
    count = tmp_path / "count"
    script.write_text(f"echo x >> {count}; echo index is away; [ $(wc -l < {count}) -ge 3 ]\n")
    environment._fetch(["sh", str(script)], tmp_path / "env")
    assert count.read_text() == "x\n" * 3
    told = capsys.readouterr().err
    assert told.count("index is away\nfailed: sh ") == 2
    assert "trying again in 0 s (3 more)" in told and "(2 more)" in told


def test_an_installer_that_never_works_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four attempts its last words are the error; one that hangs is ended."""
    monkeypatch.setattr(environment, "PAUSE_S", 0)
    with pytest.raises(SystemExit, match="(?s)no such package.*failed: sh -c echo x >>"):
        environment._fetch(
            ["sh", "-c", f"echo x >> {tmp_path}/count; echo no such package; exit 1"],
            tmp_path / "env")
    assert (tmp_path / "count").read_text() == "x\n" * 4
    monkeypatch.setattr(environment, "INSTALL_TIMEOUT_S", 0.2)
    monkeypatch.setattr(environment, "ATTEMPTS", 1)
    with pytest.raises(SystemExit, match="not done in 0 s: sleep 60"):
        environment._fetch(["sleep", "60"], tmp_path / "env")


def test_the_oldest_python_is_named_where_it_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither found nor fetched: the newest is tested with, the oldest told as missing."""
    monkeypatch.setattr(interpreters, "MAIN", (3, 11))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert interpreters.to_test_with() == ({(3, 11): sys.executable}, ["Python 3.9"])
