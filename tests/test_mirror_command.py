"""The command ``mirror``: exit codes, and what goes where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from pulsar_failure_reasons.cli import main
from tests.mirror_trees import GALAXY_FOLDER, PULSAR_FOLDER, shared, write


def mirror(capsys: pytest.CaptureFixture[str], *argv: str) -> Tuple[int, str, str]:
    """Run the command; return exit code, stdout and stderr."""
    code = main(["mirror", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def trees(tmp_path: Path, galaxy: Dict[str, str], pulsar: Dict[str, str]) -> List[str]:
    """Write two trees and return the command's arguments."""
    write(tmp_path / "g", shared(GALAXY_FOLDER, galaxy))
    write(tmp_path / "p", shared(PULSAR_FOLDER, pulsar))
    return [str(tmp_path / "g"), str(tmp_path / "p")]


def test_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Formatting is no difference: exit code 0, and the numbers say it."""
    arguments = trees(tmp_path, {"x.py": "a = 1\n"}, {"x.py": "a = (1)\n"})
    code, out, err = mirror(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "2 files on both sides: 1 identical, 1 differ in formatting only, 0 in behaviour" in out
    assert out.splitlines()[-1] == "0 differences, 0 of them allowed"


def test_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and a line with file and constant on stdout."""
    arguments = trees(tmp_path, {"x.py": "A = 1\n"}, {"x.py": "A = 2\n"})
    code, out, err = mirror(capsys, *arguments)
    assert (code, err) == (1, "")
    place = "Galaxy line 1, Pulsar line 1"
    assert f"  x.py\n    constant A: {place}; only Galaxy: 1; only Pulsar: 2\n" in out
    assert out.splitlines()[-1] == "1 differences, 0 of them allowed"


def test_an_allowed_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and the reason beside the difference; entries without use are told."""
    allow = tmp_path / "allow.toml"
    allow.write_text('[[allow]]\npath = "x.py"\nreason = "on purpose"\n'
                     '[[allow]]\npath = "gone.py"\nreason = "long ago"\n')
    arguments = trees(tmp_path, {"x.py": "A = 1\n"}, {"x.py": "A = 2\n"})
    code, out, err = mirror(capsys, *arguments, "--allow", str(allow))
    assert (code, err) == (0, "")
    assert "only Pulsar: 2  [allowed: on purpose]\n" in out
    assert "this entry of the allow file fits nothing: gone.py (long ago)\n" in out
    assert out.splitlines()[-1] == "1 differences, 1 of them allowed"


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON form has the numbers, each file's verdict and each difference."""
    arguments = trees(tmp_path, {"x.py": "A = 1\n"}, {"x.py": "A = 2\n", "y.py": ""})
    code, out, err = mirror(capsys, *arguments, "--format", "json")
    values = json.loads(out)
    assert (code, err) == (1, "")
    assert values["files"] == {"__init__.py": "identical", "x.py": "behaviour"}
    assert values["summary"] == {
        "identical": 1, "formatting": 0, "behaviour": 1, "only_galaxy": 0, "only_pulsar": 1,
        "imports_across": 0, "resources_missing": 0, "bare_statuses": 0, "differences": 2,
        "allowed": 0, "not_allowed": 2,
    }
    assert values["differences"][0] == {
        "kind": "constant", "path": "x.py", "name": "A", "only_in": None,
        "galaxy": {"line": 1, "words": ["1"]}, "pulsar": {"line": 1, "words": ["2"]},
        "note": "", "used_by": [], "allowed": None,
    }
    assert values["differences"][1]["kind"] == "file"
    assert values["galaxy"] == {
        "source": arguments[0], "version": None, "folder": "galaxy/jobs/runners/util"}


def test_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of a file's content can break a table's row or become markup."""
    arguments = trees(tmp_path, {"x.py": "A = '<b>|*_'\n"}, {"x.py": "A = 2\n", "y.py": ""})
    code, out, err = mirror(capsys, *arguments, "--format", "markdown")
    assert (code, err) == (1, "")
    rows = [line for line in out.splitlines() if line.startswith("| `")]
    assert rows == [
        r"| `x.py` | constant A: Galaxy line 1, Pulsar line 1; only Galaxy: '\<b\>\|\*\_'; "
        "only Pulsar: 2 |  |",
        "| `y.py` | only in Pulsar |  |",
    ]


def test_could_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No tree, a broken allow file, a file that cannot be read: exit code 2, nothing on stdout."""
    good = trees(tmp_path, {"x.py": "A = 1\n"}, {"x.py": "A = 2\n"})
    (tmp_path / "bad.toml").write_text("[[allow\n")
    (tmp_path / "p" / PULSAR_FOLDER / "z.py").write_text("def f(:\n")
    for arguments, expected in [
        ([str(tmp_path / "none"), good[1]], "none: no such file or folder"),
        ([good[1], good[0]], "are the two arguments swapped?"),
        ([*good, "--allow", str(tmp_path / "none.toml")], "none.toml cannot be read"),
        ([*good, "--allow", str(tmp_path / "bad.toml")], "bad.toml is not TOML"),
        (good, "pulsar/managers/util/z.py line 1: Python 3"),
        ([good[0]], "Missing argument 'PULSAR_TREE'"),
        ([*good, "--format", "xml"], "'xml' is not one of"),
    ]:
        code, out, err = mirror(capsys, *arguments)
        assert (code, out) == (2, ""), arguments
        assert expected in err
