"""The `.pth` line and the finder behind it: how they behave in any Python process."""

from __future__ import annotations

import os
import pathlib
import pkgutil
import runpy
import subprocess
import sys
import zipfile
from typing import Dict, List, Optional

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PTH = ROOT / "pulsar_failure_reasons.pth"

# A package with Pulsar's seams and nothing else, so that these tests take milliseconds.
MINIATURE = {
    "pulsar/__init__.py": "__version__ = '0.16.0'\n",
    "pulsar/manager_factory.py": "def _get_managers_dict():\n    return {'stock': dict}\n",
    "pulsar/manager_endpoint_util.py": """\
def status_dict(manager, job_id):
    return full_status(manager, 'failed', job_id)


def full_status(manager, job_status, job_id):
    return {'job_id': job_id}


def submit_job(manager, job_config):
    pass
""",
    "pulsar/web/__init__.py": "",
    "pulsar/web/routes.py": """class PulsarController:
    def __init__(self, path, method, response_type):
        self.details = {'__path__': path, '__method__': method, 'response_type': response_type}

    def __call__(self, func):
        def controller(): pass
        controller.__dict__.update(self.details, func=func)
        return controller


@PulsarController('/jobs', 'POST', 'json')
def setup(manager, job_id, tool_id=None, tool_version=None, use_metadata='true'):
    pass
""",
    "pulsar/main.py": "import pulsar.manager_factory\nif __name__ == '__main__': print('ran')\n",
}
ALL_ACTIVE = """
import pulsar.web.routes
from pulsar_failure_reasons.pulsar_hooks import active_seams
assert all(active_seams().values()), active_seams()
"""


@pytest.fixture
def miniature(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the miniature Pulsar."""
    for name, text in MINIATURE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def python(
    code: str, path: Optional[pathlib.Path] = None, options: Optional[List[str]] = None,
    arguments: Optional[List[str]] = None,
) -> str:
    """Return what this environment's Python prints, errors too; fail unless it exits with 0.

    The environment has our package installed, so its `.pth` file is active.
    """
    env: Dict[str, str] = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    completed = subprocess.run(
        [sys.executable] + (options or []) + (arguments or ["-c", code]), env=env, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
    )
    assert completed.returncode == 0, completed.stdout
    return completed.stdout


def test_the_pth_file_is_what_its_readable_source_says() -> None:
    """The one-line form in the wheel is the code that can be read in tools/pth_source.py."""
    assert PTH.read_text() == runpy.run_path(str(ROOT / "tools" / "pth_source.py"))["line"]()


def test_the_pth_file_is_one_statement_line() -> None:
    """`site` executes lines that begin with `import `, and takes all others for paths."""
    lines = [line for line in PTH.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 1
    assert lines[0].startswith("import ")


def test_the_start_file_names_a_callable_that_makes_the_seams(miniature: pathlib.Path) -> None:
    """A Python that reads `.start` files (PEP 829) calls this after `pkgutil.resolve_name`."""
    (line,) = (ROOT / "pulsar_failure_reasons.start").read_text().split()
    assert callable(pkgutil.resolve_name(line))
    # -S: no `.pth` is read, as a Python that prefers the `.start` file does not.
    python("""
import sys
sys.path[:0] = [%r, %r]
import pkgutil
pkgutil.resolve_name(%r)()
import pulsar.manager_factory, pulsar.manager_endpoint_util
""" % (str(miniature), str(ROOT), line) + ALL_ACTIVE, options=["-S"])


def test_a_python_that_is_not_pulsar_imports_nothing_of_ours() -> None:
    """Start-up and foreign imports leave our package alone."""
    assert python("""
import sys, json, email, importlib.util
assert importlib.util.find_spec("pulsarx") is None
print([name for name in sys.modules if name.startswith("pulsar")])
print([type(f).__name__ for f in sys.meta_path].count("PulsarFailureReasonsFinder"))
""") == "[]\n1\n"


def test_another_package_called_pulsar_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Apache Pulsar's client has the same name and no seam modules."""
    (tmp_path / "pulsar.py").write_text("class Client: pass\n")
    assert python("import pulsar; print(pulsar.Client.__name__)", tmp_path) == "Client\n"


@pytest.mark.parametrize("options", [["-S"], ["-I"], ["-E"], ["-s"], ["-B", "-O"]])
def test_silent_under_every_start_option(options: List[str]) -> None:
    """No option of the interpreter makes the `.pth` line complain."""
    assert python("", options=options) == ""


@pytest.mark.parametrize("imports", [
    "import pulsar.manager_factory, pulsar.manager_endpoint_util",
    "import pulsar.manager_endpoint_util, pulsar.manager_factory",
    "from pulsar.manager_endpoint_util import status_dict; from pulsar import manager_factory",
    "from pulsar import manager_endpoint_util, manager_factory",
    "import pulsar_failure_reasons as p; p.install(); p.install()",
    "import pulsar.manager_factory; import pulsar_failure_reasons as p; p.install()",
])
def test_any_order_of_imports(imports: str, miniature: pathlib.Path) -> None:
    """Both seams are there whichever module comes first and whoever imports it."""
    python(imports + ALL_ACTIVE, miniature)


def test_by_hand_without_a_web_server(miniature: pathlib.Path) -> None:
    """A Pulsar that is spoken to by messages alone may lack what its web server needs."""
    (miniature / "pulsar" / "web" / "routes.py").write_text("import webob_is_not_here\n")
    assert python("""
import pulsar_failure_reasons
pulsar_failure_reasons.install()
from pulsar_failure_reasons.pulsar_hooks import active_seams
print([name for name, active in active_seams().items() if not active])
""", miniature) == "['pulsar.web.routes.setup']\n"


def test_wrapped_once_only(miniature: pathlib.Path) -> None:
    """The `.pth` line run again, `install()` and the finder together wrap each function once."""
    assert python("""
exec(%r); exec(%r)
import sys, pulsar_failure_reasons
import pulsar.manager_factory
pulsar_failure_reasons.install()
exec(%r)
from pulsar_failure_reasons._import_hook import activate
activate(); activate()
pulsar_failure_reasons.install()
print(hasattr(pulsar.manager_factory._get_managers_dict.__wrapped__, "__wrapped__"))
print([type(f).__name__ for f in sys.meta_path].count("PulsarFailureReasonsFinder"))
""" % ((PTH.read_text(),) * 3), miniature) == "False\n1\n"


def test_a_reloaded_module_gets_its_seam_again(miniature: pathlib.Path) -> None:
    """`importlib.reload` runs the module anew, and the finder with it."""
    python("""
import importlib, pulsar.manager_factory, pulsar.manager_endpoint_util
importlib.reload(pulsar.manager_factory)
importlib.reload(pulsar.manager_endpoint_util)
""" + ALL_ACTIVE, miniature)


def test_nothing_shows_on_the_modules(miniature: pathlib.Path) -> None:
    """Spec, loader, source, name and pickling are those of an untouched module."""
    python("""
import inspect, pickle, importlib.machinery as machinery
import pulsar.manager_factory as m
assert type(m.__loader__) is machinery.SourceFileLoader is type(m.__spec__.loader)
assert "exec_module" not in vars(m.__loader__)
assert m.__spec__.loader is m.__loader__ and m.__spec__.name == "pulsar.manager_factory"
assert inspect.getsource(m) == open(m.__file__).read()
assert "'stock': dict" in inspect.getsource(m._get_managers_dict)
assert m._get_managers_dict.__name__ == "_get_managers_dict"
assert pickle.loads(pickle.dumps(m._get_managers_dict)) is m._get_managers_dict
assert pickle.loads(pickle.dumps(m.__loader__)).path == m.__file__
types = pickle.loads(pickle.dumps(dict(m._get_managers_dict())))
assert types["stock"] is dict
""", miniature)


def test_run_as_a_module(miniature: pathlib.Path) -> None:
    """`python -m pulsar.main` works, as some units start Pulsar."""
    assert python("", miniature, arguments=["-m", "pulsar.main"]) == "ran\n"


def test_asking_for_a_spec_does_not_spoil_the_import(miniature: pathlib.Path) -> None:
    """Tools that look for modules without importing them change nothing."""
    python("""
import importlib.util, pkgutil, sys
import pulsar
names = [m.name for m in pkgutil.walk_packages(pulsar.__path__, "pulsar.")]
assert "pulsar.manager_factory" in names, names
assert importlib.util.find_spec("pulsar.manager_factory").origin.endswith("manager_factory.py")
assert importlib.util.find_spec("pulsar.no_such_module") is None
assert "pulsar.manager_factory" not in sys.modules
import pulsar.manager_factory, pulsar.manager_endpoint_util
""" + ALL_ACTIVE, miniature)


@pytest.mark.parametrize("place", ["insert(0, ", "append("])
def test_other_import_hooks(place: str, miniature: pathlib.Path) -> None:
    """A hook that asks `importlib.util.find_spec`, as wrapt's does, gets along with ours."""
    python("""
import sys, importlib.util
class Other:
    seen = []
    busy = set()
    def find_spec(self, name, path=None, target=None):
        if name in self.busy:
            return None
        self.busy.add(name)
        self.seen.append(name)
        try:
            return importlib.util.find_spec(name) if name.startswith("pulsar.") else None
        finally:
            self.busy.discard(name)
class Unguarded:
    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path:
            if finder is not self and not isinstance(finder, (Other, OldFashioned)):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
class OldFashioned:  # Python 3.11 and older still ask these
    def find_module(self, name, path=None):
        return None
sys.meta_path.%sOther())
sys.meta_path.%sUnguarded())
sys.meta_path.%sOldFashioned())
""" % (place, place, place) + """
import pulsar
import pulsar.manager_factory, pulsar.manager_endpoint_util
""" + ALL_ACTIVE, miniature)


def test_pulsar_in_a_zip_archive(tmp_path: pathlib.Path) -> None:
    """An archive's loader is shared by its modules; each seam module gets its own seam."""
    archive = tmp_path / "pulsar.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in MINIATURE.items():
            opened.writestr(name, text)
    assert python("""
import importlib.util, pulsar
importlib.util.find_spec("pulsar.manager_factory")
import pulsar.main, pulsar.manager_endpoint_util
assert "zipimporter" in repr(pulsar.manager_factory.__loader__)
assert not {"exec_module", "load_module"} & set(vars(pulsar.manager_endpoint_util.__loader__))
""" + ALL_ACTIVE, archive) == ""


def test_a_module_that_fails_to_import_fails_as_always(miniature: pathlib.Path) -> None:
    """The module's own error comes through, and a second try works once it is mended."""
    (miniature / "pulsar" / "manager_factory.py").write_text("raise ValueError('mine')\n")
    python("""
import sys, pulsar
sys.dont_write_bytecode = True
try:
    import pulsar.manager_factory
except ValueError as exc:
    assert str(exc) == "mine"
else:
    raise AssertionError
open(pulsar.__path__[0] + "/manager_factory.py", "w").write("def _get_managers_dict(): return {}")
import importlib
importlib.invalidate_caches()
import pulsar.manager_factory, pulsar.manager_endpoint_util
""" + ALL_ACTIVE, miniature)


def test_a_broken_package_of_ours_costs_one_line(
    miniature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """A half-removed or broken plugin is logged and Pulsar's modules stay as they are."""
    printed = python("""
import sys
sys.modules["pulsar_failure_reasons.pulsar_hooks"] = None
import pulsar.manager_factory
print(pulsar.manager_factory._get_managers_dict())
""", miniature)
    *log_lines, result = printed.splitlines()
    assert result == "{'stock': <class 'dict'>}"
    assert len(log_lines) == 1
    assert "could not be put into pulsar.manager_factory" in log_lines[0]
