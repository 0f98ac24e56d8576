"""The simulated pool from the command line: ``python -m fake_htcondor STATE COMMAND ...``.

Commands: ``show``, ``configure NAME=VALUE ...``, ``play CLUSTER STEPS``, ``release CLUSTER``,
``hold CLUSTER CODE [SUBCODE [REASON]]``, ``remove CLUSTER [REASON]``,
``schedd up|down|restart``, ``stop``.
"""

import argparse
import json
import sys

from fake_htcondor import control
from fake_htcondor.play import PlayError
from fake_htcondor.store import StateError, Store

SCHEDD = {"up": control.schedd_up, "down": control.schedd_down, "restart": control.restart_schedd}


def show(options):
    """Print a line for each job in the queue: cluster, JobStatus, hold codes and reason."""
    with Store(options.state).look() as queue:
        for job in queue.jobs():
            hold = [job[name] for name in ("HoldReasonCode", "HoldReasonSubCode", "HoldReason")]
            print("\t".join(str(value) for value in [job.cluster, job.status, *hold]))


def configure(options):
    """Change settings; values are JSON, or plain text where they are none."""
    changes = {}
    for word in options.setting:
        name, _, value = word.partition("=")
        try:
            changes[name] = json.loads(value)
        except ValueError:
            changes[name] = value
    control.configure(options.state, **changes)


def parser():
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m fake_htcondor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("state", help="the folder in FAKE_HTCONDOR_STATE")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("show").set_defaults(run=show)
    commands.add_parser("stop").set_defaults(run=lambda options: control.stop(options.state))
    command = commands.add_parser("configure")
    command.add_argument("setting", nargs="+", metavar="NAME=VALUE")
    command.set_defaults(run=configure)
    command = commands.add_parser("schedd")
    command.add_argument("change", choices=sorted(SCHEDD))
    command.set_defaults(run=lambda options: SCHEDD[options.change](options.state))
    for name in ("play", "hold", "release", "remove"):
        command = commands.add_parser(name)
        command.add_argument("cluster", type=int)
        command.set_defaults(run=act)
        if name == "play":
            command.add_argument("steps")
        if name == "hold":
            command.add_argument("code", type=int)
            command.add_argument("subcode", type=int, nargs="?", default=0)
        if name in ("hold", "remove"):
            command.add_argument("reason", nargs="?", default="by user admin")
    return top


def act(options):
    """Do something to one job."""
    if options.command == "play":
        control.play(options.state, options.cluster, options.steps)
    elif options.command == "hold":
        control.hold(options.state, options.cluster, options.code, options.subcode, options.reason)
    elif options.command == "release":
        control.release(options.state, options.cluster)
    else:
        control.remove(options.state, options.cluster, options.reason)


def main():
    """Return 0, or 2 if it could not be done."""
    options = parser().parse_args()
    try:
        options.run(options)
    except (StateError, PlayError, KeyError) as error:
        print("fake_htcondor: %s" % error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
