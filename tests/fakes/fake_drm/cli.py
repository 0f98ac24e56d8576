"""The commands of the DRMs that are told apart by the folder's ``flavour``: LSF, PBS, Grid Engine.

All of them log themselves, wait for ``latency``, print the ``banner`` and then do their work in the
module of their package that carries their name.
"""

import importlib
import os
import sys
import time

from fake_drm.settings import SettingsError
from fake_drm.store import Store

PBS = "qsub qstat qdel qhold qrls qsig qrerun qselect tracejob".split()
COMMANDS = {
    "lsf": ("fake_lsf", "bsub bjobs bhist bacct bkill bstop bresume brequeue".split()),
    "openpbs": ("fake_pbs", PBS),
    "pbspro": ("fake_pbs", PBS),
    "torque": ("fake_pbs", PBS),
    "sge": ("fake_gridengine", "qsub qstat qdel qhold qrls qmod qacct".split()),
}


class CommandError(Exception):
    """A command's end: the text for stderr and the return code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.text = text
        self.code = code


def not_simulated(command, what):
    """A CommandError for something the real command can do and this one cannot."""
    return CommandError(
        "%s: fake: %s is not simulated (see tests/fakes/README.md)\n" % (command, what), 64
    )


def main(command, argv):
    """Run ``command`` and return its exit code."""
    path = os.environ.get("FAKE_DRM_STATE") or os.environ.get("FAKE_SLURM_STATE")
    if not path or not os.path.isdir(path):
        return _refuse(
            "%s: fake: FAKE_DRM_STATE=%s is no folder; make one with "
            "fake_drm.control.create(path, flavour)" % (command, path or "")
        )
    try:
        store = Store(path)
    except (SettingsError, OSError) as error:
        return _refuse("%s: fake: %s" % (command, error))
    package, commands = COMMANDS.get(store.settings["flavour"], ("", ()))
    if command not in commands:
        # as a shell would, for a command of another DRM
        sys.stderr.write("%s: command not found [fake: not in the DRM %s of %s]\n" % (
            command, store.settings["flavour"], path
        ))
        return 127
    store.log_command([command] + argv)
    latency = store.settings["latency"]
    pause = float(latency.get(command, latency.get("*", 0)))
    if pause:
        time.sleep(pause)
    _print_banner(store, command)
    module = importlib.import_module("%s.%s" % (package, command))
    try:
        code = module.main(store, argv)
        sys.stdout.flush()
        return code
    except CommandError as error:
        sys.stdout.flush()
        sys.stderr.write(error.text)
        return error.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def _refuse(text):
    sys.stderr.write(text + "\n")
    return 70


def _print_banner(store, command):
    banner = store.settings["banner"]
    wanted = store.settings["banner_commands"]
    if banner and (wanted is None or command in wanted):
        stream = sys.stderr if store.settings["banner_stream"] == "stderr" else sys.stdout
        stream.write(banner if banner.endswith("\n") else banner + "\n")
        stream.flush()


def require_server(store, text, code):
    """Raise CommandError, after its delay, if the DRM's server is played down.

    Args:
        text: what this DRM's command says then; a text in the setting replaces it.
        code: its return code, likewise.
    """
    down = store.settings["controller_down"]
    if store.stopped and not down:
        down = {"text": "%s[fake: stop_all() was called on this state]\n" % text}
    if not down:
        return
    down = down if isinstance(down, dict) else {}
    time.sleep(float(down.get("delay", 0)))
    said = down.get("text", text)
    if said and not said.endswith("\n"):
        said += "\n"
    raise CommandError(said, int(down.get("rc", code)))
