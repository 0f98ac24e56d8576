"""``mirror`` on small trees: what counts as a difference, and what is told of it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import List

import pytest

from pulsar_failure_reasons import mirror
from pulsar_failure_reasons.errors import MirrorError
from pulsar_failure_reasons.mirror.findings import Kind
from tests.mirror_trees import GALAXY_FOLDER, PULSAR_FOLDER, compare, shared, told, write

# Each: Galaxy's file, Pulsar's file. The files lie at cli/job/x.py.
FORMATTING = {
    "line_breaks": ("x = f(1, 2)\n", "x = f(\n    1,\n    2,\n)\n"),
    "quotes": ("x = 'a'\n", 'x = "a"\n'),
    "comments": ("x = 1\n", "# why\nx = 1  # because\n"),
    "line_ends": ("x = 1\ny = 2\n", "x = 1\r\ny = 2\r\n"),
    "module_docstring": ("x = 1\n", '"""What for."""\nx = 1\n'),
    "function_docstring": ("def f():\n    return 1\n", 'def f():\n    """Say."""\n    return 1\n'),
    "docstring_instead_of_pass": ("def f():\n    pass\n", 'def f():\n    """Nothing."""\n'),
    "pass_beside_a_docstring": (
        "class A:\n    pass\n    x = 1\n", 'class A:\n    """Say."""\n    x = 1\n',
    ),
    "class_docstring": ("class A:\n    x = 1\n", 'class A:\n    """Say."""\n    x = 1\n'),
    "string_in_a_block": (
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        'try:\n    import a\nexcept ImportError:\n    """Fine."""\n    a = None\n',
    ),
    "import_order": ("import a\nimport b\n", "import b\nimport a\n"),
    "imported_names_order": ("from a import b, c\n", "from a import (\n    c,\n    b,\n)\n"),
    "imports_split": ("from a import b, c\n", "from a import b\nfrom a import c\n"),
    "import_order_in_a_block": (
        "try:\n    from a import b, c\nexcept ImportError:\n    b = None\n",
        "try:\n    from a import c, b\nexcept ImportError:\n    b = None\n",
    ),
    "another_way_to_the_same_module": ("from . import y\n", "from ..job import y\n"),
    "own_tree_by_its_whole_name": (
        "from galaxy.jobs.runners.util.cli.job.y import z\n",
        "from pulsar.managers.util.cli.job.y import z\n",
    ),
    "parameter_annotation": (
        "def f(a, b=1):\n    pass\n", "def f(a: int, b: int = 1):\n    pass\n",
    ),
    "return_annotation": ("def f():\n    pass\n", "def f() -> None:\n    pass\n"),
    "variable_annotation": ("x = 1\n", "x: int = 1\n"),
    "annotation_alone": ("x = 1\n", "y: int\nx = 1\n"),
    "attribute_annotation": (
        "def f(a):\n    a.x = []\n", "def f(a):\n    a.x: 'list[int]' = []\n",
    ),
    "import_for_annotations": (
        "def f(a):\n    pass\n", "from typing import Any\n\ndef f(a: Any):\n    pass\n",
    ),
    "future_annotations": ("x = 1\n", "from __future__ import annotations\nx = 1\n"),
    "block_for_type_checkers": (
        "x = 1\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nx = 1\n",
    ),
    "block_hidden_from_type_checkers": (
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        "import typing\ntry:\n    import a\nexcept ImportError:\n"
        "    if not typing.TYPE_CHECKING:\n        a = None\n",
    ),
    "fields_that_have_no_effect": (
        "class A(Protocol):\n    pass\n", "class A(Protocol):\n    x: int\n",
    ),
    "field_annotation": (
        "@dataclass\nclass A:\n    x: int\n", "@dataclass\nclass A:\n    x: 'Optional[int]'\n",
    ),
    "order_of_all": ("__all__ = ('a', 'b')\n", "__all__ = ('b', 'a')\n"),
    "f_string_without_values": ("x = f'a'\n", "x = 'a'\n"),
}
# Each: Galaxy's file, Pulsar's file, what is told.
BEHAVIOUR = {
    "constant": ("X = 1\n", "X = 2\n", "constant X both"),
    "type_of_a_constant": ("X = 1\n", "X = True\n", "constant X both"),
    "keyword": ("S = B(A='a', T='t')\n", "S = B(A='a')\n", "constant S both"),
    "constant_of_a_class": (
        "class A:\n    X = 'a'\n", "class A:\n    X = 'b'\n", "constant A.X both",
    ),
    "literal_in_a_method": (
        "class A:\n    def f(self):\n        return 'a'\n",
        "class A:\n    def f(self):\n        return 'b'\n",
        "function A.f both",
    ),
    "default_of_a_parameter": (
        "def f(a=1):\n    pass\n", "def f(a=2):\n    pass\n", "function f both",
    ),
    "parameter": ("def f(a):\n    pass\n", "def f(a, b):\n    pass\n", "function f both"),
    "name_of_a_parameter": ("def f(a):\n    pass\n", "def f(b):\n    pass\n", "function f both"),
    "decorator": ("def f():\n    pass\n", "@d\ndef f():\n    pass\n", "function f both"),
    "async": ("def f():\n    pass\n", "async def f():\n    pass\n", "function f both"),
    "order_of_statements": (
        "def f():\n    a()\n    b()\n", "def f():\n    b()\n    a()\n", "function f both",
    ),
    "base_class": ("class A(B):\n    pass\n", "class A(C):\n    pass\n", "class A both"),
    "function_more": ("x = 1\n", "x = 1\ndef f():\n    pass\n", "function f Pulsar"),
    "constant_more": ("x = 1\ny = 2\n", "x = 1\n", "constant y Galaxy"),
    "class_more": (
        "x = 1\n", "x = 1\nclass A:\n    y = 1\n    def f(self):\n        pass\n",
        "class A Pulsar",
    ),
    "import_more": ("import a\nimport b\n", "import a\n", "import b Galaxy"),
    "other_relative_module": (
        "from . import y\n", "from .. import y\n",
        "import <shared>.cli.job.y Galaxy, import <shared>.cli.y Pulsar",
    ),
    "import_with_another_name": (
        "from a import b\n", "from a import b as c\n",
        "import a.b Galaxy, import a.b as c Pulsar",
    ),
    "typing_import_that_is_used": (
        "class A(dict):\n    pass\n",
        "from typing import TypedDict\nclass A(TypedDict):\n    pass\n",
        "class A both, import typing.TypedDict Pulsar",
    ),
    "field_of_a_dataclass": (
        "@dataclass\nclass A:\n    x: int\n", "@dataclass\nclass A:\n    x: int\n    y: int\n",
        "constant A.y Pulsar",
    ),
    "field_that_becomes_none": (
        "@dataclass\nclass A:\n    x: int = 1\n", "@dataclass\nclass A:\n    x = 1\n",
        "constant A.x both",
    ),
    "field_that_becomes_a_class_variable": (
        "@dataclass\nclass A:\n    x: int = 1\n",
        "@dataclass\nclass A:\n    x: 'ClassVar[int]' = 1\n".replace("'", ""),
        "constant A.x both",
    ),
    "type_that_pydantic_reads": (
        "class A(BaseModel):\n    x: int\n", "class A(BaseModel):\n    x: str\n",
        "constant A.x both",
    ),
    "block": (
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        "try:\n    import a\nexcept ImportError:\n    a = 1\n",
        "code try both",
    ),
    "call": ("f(1)\n", "f(2)\n", "code call both"),
    "content_of_all": ("__all__ = ['a']\n", "__all__ = ['b']\n", "constant __all__ both"),
    "definitions_in_another_order": (
        "def f():\n    pass\n\ndef g():\n    pass\n", "def g():\n    pass\n\ndef f():\n    pass\n",
        "order order of definitions both",
    ),
    "else_of_a_block_for_type_checkers": (
        "if TYPE_CHECKING:\n    x = 1\nelse:\n    x = 2\n",
        "if TYPE_CHECKING:\n    x = 1\nelse:\n    x = 3\n",
        "constant x both",
    ),
    "first_of_two_definitions": (
        "def f():\n    return 1\ndef f():\n    return 2\n",
        "def f():\n    return 3\ndef f():\n    return 2\n",
        "function f both",
    ),
    "second_definition": (
        "def f():\n    return 1\n", "def f():\n    return 1\ndef f():\n    return 2\n",
        "function f both",
    ),
}


@pytest.mark.parametrize("name", FORMATTING)
def test_formatting_is_no_difference(name: str, tmp_path: Path) -> None:
    """What does not change behaviour is told as formatting, and is no finding."""
    galaxy, pulsar = FORMATTING[name]
    report = compare(tmp_path, {"cli/job/x.py": galaxy}, {"cli/job/x.py": pulsar})
    assert report.verdicts["cli/job/x.py"].value == "formatting"
    assert told(report) == []


@pytest.mark.parametrize("name", BEHAVIOUR)
def test_behaviour_is_a_difference(name: str, tmp_path: Path) -> None:
    """What may change behaviour is told, by the function or constant that it is in."""
    galaxy, pulsar, expected = BEHAVIOUR[name]
    report = compare(tmp_path, {"cli/job/x.py": galaxy}, {"cli/job/x.py": pulsar})
    assert report.verdicts["cli/job/x.py"].value == "behaviour"
    found = [line.replace("cli/job/x.py ", "") for line in told(report)]
    assert ", ".join(sorted(found)) == expected


def test_the_same_bytes_are_identical(tmp_path: Path) -> None:
    """Equal files are not even parsed, so also one that no Python can read is identical."""
    report = compare(tmp_path, {"x.txt": "a(\n"}, {"x.txt": "a(\n"})
    assert report.verdicts["x.txt"].value == "identical"


def test_words_tell_what_differs_in_a_constant(tmp_path: Path) -> None:
    """A token more in a bunch of them is named, with its lines."""
    report = compare(
        tmp_path,
        {"__init__.py": "\nstates = Bunch(\n    A='a',\n    TOOL='tool',\n)\n"},
        {"__init__.py": "states = Bunch(A='a')\n"},
    )
    (finding,) = report.findings
    assert finding.galaxy is not None and finding.pulsar is not None
    assert (finding.galaxy.line, finding.galaxy.words) == (2, ("'tool'", "TOOL"))
    assert (finding.pulsar.line, finding.pulsar.words) == (1, ())
    assert ("    constant states: Galaxy line 2, Pulsar line 1; only Galaxy: 'tool', TOOL"
            in mirror.as_text(report).splitlines())


# --- files that are no Python -----------------------------------------------------------------


def test_a_changed_template_is_a_difference(tmp_path: Path) -> None:
    """Shell text is compared as it is, its lines counted, and its loaders named."""
    loads = 'T = resource_string(__name__, "T.sh")\n'
    report = compare(
        tmp_path,
        {"s/T.sh": "a\nb\nc\n", "s/__init__.py": loads},
        {"s/T.sh": "a\nB\nc\nd\n", "s/__init__.py": "T = 1\n"},
    )
    (finding,) = report.of_kinds(Kind.TEXT)
    assert finding.note == "1 lines only in Galaxy, 2 only in Pulsar"
    assert finding.used_by == (f"{GALAXY_FOLDER}/s/__init__.py:1",)


def test_other_line_ends_of_a_template_are_a_difference(tmp_path: Path) -> None:
    """A shell reads a carriage return."""
    report = compare(tmp_path, {"T.sh": "a\n"}, {"T.sh": "a\r\n"})
    assert [item.note for item in report.findings] == [
        "the same lines, in another order or with other line ends"]


# --- files on one side, imports, resources, statuses ------------------------------------------


def test_files_on_one_side(tmp_path: Path) -> None:
    """They are told, and where the other side imports them, also under its own name."""
    report = compare(
        tmp_path,
        {
            "only_galaxy.py": "x = 1\n",
            "user.py": "import os\nfrom pulsar.managers.util.retry import Retry\n",
            "broken.py": "from .retry import Retry\n",
        },
        {"retry.py": "class Retry:\n    pass\n", "drmaa/__init__.py": "", "lone.py": ""},
        {"galaxy/jobs/runners/drmaa.py": "def f():\n    from pulsar.managers.util import drmaa\n"},
    )
    found = {item.path: (item.side, item.used_by) for item in report.of_kinds(Kind.FILE)}
    assert found == {
        "only_galaxy.py": ("Galaxy", ()),
        "user.py": ("Galaxy", ()),
        "broken.py": ("Galaxy", ()),
        "retry.py": ("Pulsar", (f"{GALAXY_FOLDER}/broken.py:1", f"{GALAXY_FOLDER}/user.py:2")),
        "drmaa/__init__.py": ("Pulsar", ("galaxy/jobs/runners/drmaa.py:2",)),
        "lone.py": ("Pulsar", ()),
    }


@pytest.mark.parametrize(
    "where, text, expected",
    [
        (f"{GALAXY_FOLDER}/x.py", "from pulsar.managers.util.y import a\n", "x.py:1 always"),
        (f"{GALAXY_FOLDER}/x.py", "import pulsar.client\n", "x.py:1 always"),
        (f"{GALAXY_FOLDER}/x.py",
         "try:\n    from pulsar.managers.util.y import a\nexcept ImportError:\n    a = None\n",
         "x.py:2 guarded: may fail"),
        (f"{GALAXY_FOLDER}/x.py",
         "try:\n    from pulsar.managers.util.y import a\nexcept:\n    a = None\n",
         "x.py:2 guarded: may fail"),
        (f"{GALAXY_FOLDER}/x.py",
         "try:\n    from pulsar.managers.util.y import a\nexcept KeyError:\n    a = None\n",
         "x.py:2 always"),
        (f"{GALAXY_FOLDER}/x.py",
         "try:\n    import z\nexcept ImportError:\n    import pulsar.managers.util.y\n",
         "x.py:4 fallback: only where another import fails"),
        (f"{GALAXY_FOLDER}/x.py",
         "if TYPE_CHECKING:\n    from pulsar.managers.util.y import a\n",
         "x.py:2 type checking only"),
        (f"{GALAXY_FOLDER}/x.py", "from pulsar.managers.util.y import gone\n",
         "x.py:1 Pulsar has no gone; always"),
        (f"{GALAXY_FOLDER}/x.py", "from pulsar.managers.util.gone import a\n",
         "x.py:1 Pulsar has no a; always"),
        (f"{GALAXY_FOLDER}/x.py", "import pulsar.managers.util.gone\n",
         "x.py:1 Pulsar has no pulsar.managers.util.gone; always"),
        ("galaxy/jobs/runners/z.py", "from pulsar.managers.util import y\n",
         "galaxy/jobs/runners/z.py:1 always"),
        ("galaxy/jobs/runners/z.py", "from pulsar.client import manager\n", ""),
        (f"{PULSAR_FOLDER}/x.py", "from galaxy.model import Job\n", "x.py:1 always"),
        (f"{PULSAR_FOLDER}/x.py", "from galaxy.util import asbool\n", ""),
        (f"{PULSAR_FOLDER}/x.py", "from galaxy.utility import asbool\n", "x.py:1 always"),
        ("pulsar/client/manager.py", "from galaxy.jobs.runners.util import y\n",
         "pulsar/client/manager.py:1 always"),
        ("pulsar/client/manager.py", "from galaxy.jobs.runners.utility import y\n", ""),
        ("pulsar/client/manager.py", "from galaxy.model import Job\n", ""),
    ],
)
def test_imports_that_reach_across(
    where: str, text: str, expected: str, tmp_path: Path
) -> None:
    """Imports of the other's shared tree are told from anywhere, others from the shared tree."""
    report = compare(tmp_path, {"y.py": "a = 1\n"}, {"y.py": "a = 1\n"}, {where: text})
    found = []
    for item in report.of_kinds(Kind.ACROSS):
        place = item.galaxy or item.pulsar
        assert place is not None
        found.append(f"{item.path}:{place.line} {item.note}")
    assert ", ".join(found) == expected


def test_a_module_is_told_once(tmp_path: Path) -> None:
    """Imports of one module are one finding, with each name once."""
    text = ("from pulsar.managers.util.y import a, b\n"
            "def f():\n    from pulsar.managers.util.y import a\n")
    report = compare(
        tmp_path, {}, {"y.py": "a = b = 1\n"}, {"galaxy/jobs/runners/z.py": text})
    (finding,) = report.of_kinds(Kind.ACROSS)
    assert finding.galaxy is not None and finding.galaxy.words == ("a", "b")
    assert finding.galaxy.line == 1


@pytest.mark.parametrize(
    "load",
    [
        'resource_string(__name__, "T.sh")',
        'Template(resource_string(__name__, "T.sh"))',
        'open(os.path.join(os.path.dirname(__file__), "T.sh")).read()',
        'importlib.resources.files(__package__).joinpath("T.sh").read_text()',
        '(Path(__file__).parent / "T.sh").read_text()',
        'Path(__file__).parent / "T.sh"',
    ],
)
def test_a_resource_that_a_side_lacks(load: str, tmp_path: Path) -> None:
    """A file that is loaded by name is missed on the side that lacks it, in all usual ways."""
    file = {"s/__init__.py": f"X = {load}\n"}
    report = compare(tmp_path, file, {**file, "s/T.sh": "a\n"})
    assert [(item.path, item.name, item.side, item.note)
            for item in report.of_kinds(Kind.RESOURCE)] == [
        ("s/__init__.py", "s/T.sh", "Galaxy", "Galaxy loads it and lacks it"),
        ("s/__init__.py", "s/T.sh", "Pulsar", "Galaxy lacks it"),
    ]


@pytest.mark.parametrize("line", ['open("T.sh")', 'getLogger(__name__)', 'f(__name__, "no name")'])
def test_what_loads_no_resource(line: str, tmp_path: Path) -> None:
    """A file of the working directory, a logger and a sentence are no resources."""
    report = compare(tmp_path, {"x.py": f"{line}\n"}, {"x.py": f"{line}\n"})
    assert report.findings == []


RUNNER = """\
import pulsar.client

class R:
    def update(self, status, other):
        if status in ["failed", "lost"]:
            if "failed" == status:
                pass
        elif status == "canceled" or other == "unrelated":
            pass
"""


def test_statuses_as_bare_literals(tmp_path: Path) -> None:
    """Each status that a runner compares is told, and a word beside them that is none."""
    report = compare(tmp_path, {}, {}, {"galaxy/jobs/runners/pulsar.py": RUNNER})
    found = [(item.name, item.note.partition(";")[0]) for item in report.of_kinds(Kind.STATUS)]
    assert found == [
        ("R.update: failed", "pulsar.managers.status.FAILED"),
        ("R.update: lost", "pulsar.managers.status.LOST"),
        ("R.update: canceled", "Pulsar has no such status"),
    ]
    assert report.never_compared == ["queued"]


def test_a_runner_without_pulsar_compares_other_words(tmp_path: Path) -> None:
    """In a file that imports nothing of Pulsar's, "failed" is somebody else's word."""
    text = RUNNER.replace("import pulsar.client", "# not as pulsar does")
    report = compare(tmp_path, {}, {}, {"galaxy/jobs/runners/local.py": text})
    assert report.findings == []


# --- the allow file ---------------------------------------------------------------------------

DIFFERENT = ({"x.py": "A = 1\nB = 1\n"}, {"x.py": "A = 2\nB = 2\n"})


@pytest.mark.parametrize(
    "entry, not_allowed",
    [
        ('path = "x.py"', []),
        ('path = "*"', []),
        ('path = ["y.py", "x.*"]\nname = "A"', ["B"]),
        ('path = "x.py"\nname = ["A", "B"]\nkind = "constant"', []),
        ('path = "x.py"\nkind = ["function", "file"]', ["A", "B"]),
        ('path = "y.py"', ["A", "B"]),
        ('path = "x.py"\nname = "a"', ["A", "B"]),
    ],
)
def test_intended_differences(entry: str, not_allowed: List[str], tmp_path: Path) -> None:
    """An entry allows what its path, kind and name fit, and no more; one that fits none is told."""
    allow = tmp_path / "allow.toml"
    allow.write_text(f'[[allow]]\n{entry}\nreason = "why"\n')
    report = compare(tmp_path, *DIFFERENT, allowances=mirror.read_allowances(str(allow)))
    assert [item.name for item in report.not_allowed] == not_allowed
    assert {item.allowed for item in report.findings} - {None} == (
        set() if len(not_allowed) == 2 else {"why"})
    assert bool(report.unused_allowances) is (len(not_allowed) == 2)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[[allow]\n", "is not TOML"),
        ("[other]\nx = 1\n", "only [[allow]] tables"),
        ("allow = 1\n", "only [[allow]] tables"),
        ("allow = [1]\n", "entry 1: expected a table, got 1"),
        ('[[allow]]\nreason = "a"\n', "entry 1: path must be a text or a list of texts, got None"),
        ('[[allow]]\npath = "x"\n', "entry 1: needs a reason"),
        ('[[allow]]\npath = "x"\nreason = " "\n', "entry 1: needs a reason"),
        ('[[allow]]\npath = []\nreason = "a"\n', "entry 1: path must be"),
        ('[[allow]]\npath = "x"\nreason = "a"\nnames = "b"\n', "entry 1: unknown key names"),
        ('[[allow]]\npath = "x"\nreason = "a"\nkind = "b"\n', "entry 1: no kind b; there are:"),
    ],
)
def test_an_allow_file_that_is_wrong(text: str, expected: str, tmp_path: Path) -> None:
    """A wrong entry is an error that names it: a typing error must not allow more."""
    allow = tmp_path / "allow.toml"
    allow.write_text(text)
    with pytest.raises(MirrorError) as caught:
        mirror.read_allowances(str(allow))
    assert expected in str(caught.value)


# --- where trees come from --------------------------------------------------------------------


@pytest.mark.parametrize(
    "below, given",
    [
        ("", ""),
        ("lib", ""),
        ("lib", "lib"),
        ("lib", "lib/galaxy"),
        ("lib", "lib/galaxy/jobs"),
        ("lib", f"lib/{GALAXY_FOLDER}"),
        ("lib/python3.12/site-packages", ""),
        ("lib/python3.12/site-packages", "lib/python3.12/site-packages"),
        ("galaxy/lib", "galaxy"),
    ],
)
def test_folders_that_hold_a_tree(below: str, given: str, tmp_path: Path) -> None:
    """A checkout, an environment, the package and a folder in it all lead to the whole."""
    files = {f"{GALAXY_FOLDER}/__init__.py": "", "galaxy/jobs/runners/x.py": ""}
    write(tmp_path / below, files)
    tree = mirror.open_tree(mirror.GALAXY, str(tmp_path / given))
    assert set(tree.files) == set(files)
    assert tree.whole


def test_a_copy_of_the_shared_folder_alone(tmp_path: Path) -> None:
    """Any folder with an __init__.py will do; what cannot be looked at then is told."""
    write(tmp_path, {"util/__init__.py": "", "util/cli/x.py": "x = 1\n"})
    tree = mirror.open_tree(mirror.PULSAR, str(tmp_path / "util"))
    assert set(tree.mirrored()) == {"__init__.py", "cli/x.py"}
    report = mirror.compare_trees(mirror.open_tree(mirror.GALAXY, str(tmp_path / "util")), tree)
    assert report.findings == []
    assert report.not_checked == [
        "Galaxy outside of its shared tree: it was not given",
        "Pulsar outside of its shared tree: it was not given",
        "statuses as bare literals: needs Pulsar's pulsar/managers/status.py and the whole of "
        "Galaxy's package",
    ]


def test_what_is_not_of_a_tree_is_left_out(tmp_path: Path) -> None:
    """Compiled files and hidden folders are no part of it, nor are others' data files."""
    write(tmp_path, {
        f"{PULSAR_FOLDER}/__init__.py": "", f"{PULSAR_FOLDER}/T.sh": "",
        f"{PULSAR_FOLDER}/old.pyc": "", f"{PULSAR_FOLDER}/__pycache__/x.txt": "",
        f"{PULSAR_FOLDER}/.git/config": "",
        "pulsar/web/page.html": "",
    })
    tree = mirror.open_tree(mirror.PULSAR, str(tmp_path))
    assert set(tree.files) == {f"{PULSAR_FOLDER}/__init__.py", f"{PULSAR_FOLDER}/T.sh"}


def wheel(path: Path, *names: str) -> str:
    """Write a wheel with empty files and return its path."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return str(path)


def test_a_wheel(tmp_path: Path) -> None:
    """A wheel is read as it is, and tells its version."""
    path = wheel(
        tmp_path / "p.whl", f"{PULSAR_FOLDER}/__init__.py", f"{PULSAR_FOLDER}/T.sh",
        "pulsar/core.py", "pulsar/web/page.html", "pulsar_app-0.16.0.dist-info/METADATA",
    )
    tree = mirror.open_tree(mirror.PULSAR, path)
    assert set(tree.files) == {
        f"{PULSAR_FOLDER}/__init__.py", f"{PULSAR_FOLDER}/T.sh", "pulsar/core.py"}
    assert (tree.version, tree.whole) == ("0.16.0", True)


@pytest.mark.parametrize("name", ["pulsar-app", "pulsar", "pulsar.managers.util"])
def test_an_installed_package(name: str) -> None:
    """The Pulsar beside us is found by its distribution's name and by its package's."""
    tree = mirror.open_tree(mirror.PULSAR, name)
    assert "job_script/DEFAULT_JOB_FILE_TEMPLATE.sh" in tree.mirrored()
    assert "pulsar/managers/status.py" in tree.files
    assert tree.version is not None and tree.version.startswith("0.1")


def test_nothing_to_read(tmp_path: Path) -> None:
    """Each way to give no tree is an error that says what was missed."""
    (tmp_path / "text.whl").write_text("no wheel")
    (tmp_path / "empty").mkdir()
    pulsar = write(tmp_path / "p", shared(PULSAR_FOLDER, {}))
    for source, expected in [
        ("none-such", "none-such: no such file or folder, and no installed package"),
        ("pytest", "pytest: no such file or folder, and no installed package"),
        (str(tmp_path / "none"), "no such file or folder"),
        (str(tmp_path / "text.whl"), "is not a wheel that can be read"),
        (str(tmp_path / "empty"), "empty holds no galaxy/jobs/runners/util"),
        (wheel(tmp_path / "e.whl", "x.py"), "e.whl holds no galaxy/jobs/runners/util"),
        (str(pulsar), "are the two arguments swapped?"),
        (str(pulsar / "pulsar" / "managers" / "util"), "are the two arguments swapped?"),
        (wheel(tmp_path / "p.whl", f"{PULSAR_FOLDER}/a.py"), "are the two arguments swapped?"),
    ]:
        with pytest.raises(MirrorError) as caught:
            mirror.open_tree(mirror.GALAXY, source)
        assert expected in str(caught.value)


def test_a_file_that_this_python_cannot_read(tmp_path: Path) -> None:
    """In the shared tree it ends the comparison, and is named; elsewhere it is passed over."""
    with pytest.raises(MirrorError, match=r"galaxy/jobs/runners/util/x.py line 2: Python 3"):
        compare(tmp_path, {"x.py": "\ndef f(:\n"}, {"x.py": "x = 1\n"})
    (tmp_path / "galaxy-root" / GALAXY_FOLDER / "x.py").write_text("x = 1\n")
    report = compare(tmp_path, {}, {}, {"galaxy/jobs/runners/y.py": "import pulsar\ndef f(:\n"})
    assert report.findings == []
    assert "imports of galaxy/jobs/runners/y.py line 2" in report.not_checked[0]
