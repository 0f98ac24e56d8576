"""docs/adding-a-drm.md, walked: its blocks make a DRM, and its tests say what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "adding-a-drm.md"
#: What is copied: the package, and of the tests what a case table needs.
COPIED = ("pulsar_failure_reasons", "tests/__init__.py", "tests/drm/__init__.py")
_BLOCK = re.compile(
    r"(?:^`(?P<file>[\w/.]+)`(?P<how>[^\n]*):\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
TIMEOUT_S = 600

#: A dozen processes: too much for make test-fast.
pytestmark = pytest.mark.slow

#: Abacus itself: a folder with a line for each job.
ABACUS = """\
#!/bin/sh
cd "$ABACUS_STATE" || exit 1
case ${0##*/} in
asub) echo "1|RUNNING|-|-|node3|5|3600" > 1; cp "$1" script; echo "accepted job 1" ;;
aq) for id; do if [ -e $id ]; then cat $id; else echo "aq: no job $id" >&2; bad=1; fi; done
    exit ${bad:-0} ;;
akill) echo "$@" > killed ;;
esac
"""
#: Run on the copy: one job through a manager, its reason printed.
SERVER = """\
import json, pathlib, sys
from tests.manager.harness import Pulsar, own_observers
folder, state = map(pathlib.Path, sys.argv[1:])
with own_observers():
    server = Pulsar(folder, manager={"type": "queued_cli_classified", "job_plugin": "Abacus"})
    try:
        server.submit("1", "true")
        server.wait_for("1", "running")
        # At once: a look must not read half of it.
        (state / "new").write_text("1|KILLED|memory limit|137|node3|65|3600\\n")
        (state / "new").rename(state / "1")
        payload = server.end("1")
        server.submit("2", "true")
        server.wait_for("2", "running")
        server.proxy().kill("2")
        print(json.dumps(payload))
    finally:
        server.shutdown()
"""


class Block(NamedTuple):
    """A code block: its file, None where it is the second of one; ``how`` it changes that."""

    file: str
    how: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    """Yield the page's code blocks, those without a file with the file of the one before."""
    file = how = ""
    for match in _BLOCK.finditer(PAGE.read_text()):
        if match["file"]:
            file, how = match["file"], match["how"]
        yield Block(file, how, match["language"], match["text"])


def apply_block(folder: Path, block: Block) -> None:
    """Write a block into the copy, put it behind what is there, or change what is there."""
    target = folder / block.file
    if block.language == "diff":
        lines = block.text.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        before = target.read_text()
        assert before.count(old) == 1, f"{block.file} does not hold once:\n{old}"
        target.write_text(before.replace(old, new))
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    before = target.read_text() if "goes on" in block.how else ""
    assert before or not target.exists(), f"{block.file} is there already"
    target.write_text(before + block.text)


def run_in(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run Python on the copy."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PULSAR_FAILURE_REASONS": "", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=TIMEOUT_S,
    )


def run_console(folder: Path, text: str) -> Tuple[str, str]:
    """Run the command of a console block; return what the page shows and what came."""
    command, _, shown = text.partition("\n")
    words = command.split()
    if words[:4] == ["$", "python", "-m", "pytest"]:
        result = run_in(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words[4:])
        found = re.findall(r"^(.*(?:passed|failed).*) in [0-9.]+s", result.stdout, re.MULTILINE)
        return shown.strip(), found[-1] if found else result.stdout
    assert words[:2] == ["$", "pulsar-failure-reasons"], command
    result = run_in(folder, "-m", "pulsar_failure_reasons", *words[2:])
    return shown.strip(), result.stdout.partition("\n")[0]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, List[Tuple[str, str]]]:
    """Walk through the page; return the copy, and for each command (what is shown, what came)."""
    folder = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy)
    said = []
    for block in blocks():
        if block.language == "console":
            said.append(run_console(folder, block.text))
        elif block.language != "yaml":
            apply_block(folder, block)
    return folder, said


def test_every_stage_is_as_red_as_the_page_says(
    walked: Tuple[Path, List[Tuple[str, str]]],
) -> None:
    """From all red to all green, and then the command that people will type."""
    _, said = walked
    assert [came for _, came in said] == [shown for shown, _ in said]
    assert [bool(re.search("failed", shown)) for shown, _ in said] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    "right, wrong",
    [
        ('"memory limit": Cause.MEMORY', '"memory limit": Cause.WALLTIME'),
        ("AbacusState.UNKNOWN: Phase.UNKNOWN", "AbacusState.UNKNOWN: Phase.ENDED"),
        ("if not rows and not _NOT_FOUND.search(stderr):", "if False:"),
    ],
)
def test_the_table_can_fail(
    walked: Tuple[Path, List[Tuple[str, str]]], right: str, wrong: str
) -> None:
    """What the page tells to break turns its table red."""
    folder, _ = walked
    module = folder / "pulsar_failure_reasons" / "drm" / "abacus.py"
    text = module.read_text()
    assert text.count(right) == 1
    module.write_text(text.replace(right, wrong))
    try:
        _, came = run_console(folder, "$ python -m pytest tests/drm/test_abacus.py\n")
    finally:
        module.write_text(text)
    assert "failed" in came


def test_nothing_else_is_touched(walked: Tuple[Path, List[Tuple[str, str]]]) -> None:
    """A DRM is its module and a line in the registry; the rest is tests and their data."""
    files = {block.file for block in blocks() if block.file}
    assert files == {
        "pulsar_failure_reasons/drm/abacus.py",
        "pulsar_failure_reasons/drm/registry.py",
        "tests/data/abacus/SOURCES.md",
        "tests/data/abacus/aq.txt",
        "tests/drm/test_abacus.py",
    }


def test_the_manager_serves_it(
    walked: Tuple[Path, List[Tuple[str, str]]], tmp_path: Path
) -> None:
    """queued_cli_classified submits, watches, cancels, and says why, without code for it."""
    folder, _ = walked
    for name in ("tests/manager", "tests/fakes"):
        if not (folder / name).exists():
            shutil.copytree(ROOT / name, folder / name)
    for path in (ROOT / "tests").glob("*.py"):
        shutil.copy(path, folder / "tests" / path.name)
    commands, state = tmp_path / "bin", tmp_path / "state"
    commands.mkdir()
    state.mkdir()
    (commands / "asub").write_text(ABACUS)
    (commands / "asub").chmod(0o755)
    for name in ("aq", "akill"):
        (commands / name).symlink_to("asub")
    result = run_in(
        folder, "-c", SERVER, str(tmp_path), str(state),
        PATH=f"{commands}{os.pathsep}{os.environ['PATH']}", ABACUS_STATE=str(state),
    )
    assert result.returncode == 0, result.stdout
    payload = json.loads(result.stdout.splitlines()[-1])
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert payload["failure_reason"]["drm"] == "abacus"
    assert "#ABACUS -N " in (state / "script").read_text()
    assert (state / "killed").read_text() == "1\n"
