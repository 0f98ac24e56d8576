"""What all commands share: the state folder, the log, the played faults; then the command
itself."""

import importlib
import os
import sys
import time

from fake_drm.settings import SettingsError
from fake_drm.store import Store
from fake_slurm.options import UsageError

COMMANDS = ("sbatch", "squeue", "scontrol", "sacct", "scancel")
CONTROLLER_DOWN_TEXT = "Unable to contact slurm controller (connect failure)"


def main(command, argv):
    """Run ``command`` (one of COMMANDS) and return its exit code."""
    path = os.environ.get("FAKE_SLURM_STATE")
    if command not in COMMANDS:
        return _refuse("fake slurm: no command %r" % command)
    if not path:
        return _refuse(
            "%s: fake: FAKE_SLURM_STATE is not set; it must name a state folder" % command
        )
    if not os.path.isdir(path):
        return _refuse(
            "%s: fake: FAKE_SLURM_STATE=%s is no folder; make one with "
            "fake_slurm.control.create(path), or mkdir" % (command, path)
        )
    try:
        store = Store(path)
    except (SettingsError, OSError) as error:
        return _refuse("%s: fake: %s" % (command, error))
    store.log_command([command] + argv)
    latency = store.settings["latency"]
    pause = float(latency.get(command, latency.get("*", 0)))
    if pause:
        time.sleep(pause)
    _print_banner(store, command)
    if argv in (["--version"], ["-V"]):
        print("slurm-wlm " + store.settings["version"])
        return 0
    module = importlib.import_module("fake_slurm." + command)
    try:
        code = module.main(store, argv)
        sys.stdout.flush()
        return code
    except UsageError as error:
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


def require_controller(store, prefix, code=1):
    """Raise UsageError, after its delay, if the controller is played down. ``prefix`` starts the
    message."""
    down = store.settings["controller_down"]
    if store.stopped and not down:
        down = {"text": "%s [fake: stop_all() was called on this state]" % CONTROLLER_DOWN_TEXT}
    if not down:
        return
    down = down if isinstance(down, dict) else {}
    time.sleep(float(down.get("delay", 0)))
    raise UsageError(
        "%s: %s\n" % (prefix, down.get("text", CONTROLLER_DOWN_TEXT)), int(down.get("rc", code))
    )


def require_cluster(store, command, names):
    """Raise UsageError unless ``names`` (of -M) is our cluster."""
    cluster = store.settings["cluster"]
    for name in names.split(","):
        if name not in ("", cluster, "all"):
            raise UsageError(
                "{0}: error: No cluster '{1}' known by database.\n{0}: error: '{1}' can't be "
                "reached now, or it is an "
                "invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available "
                "clusters.\n".format(
                    command, name
                )
            )
