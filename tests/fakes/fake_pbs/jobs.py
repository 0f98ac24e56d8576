"""Which jobs PBS's commands name: ``7``, ``7.pbs1``, ``7[]``, ``7[2].pbs1``."""

import re
import time

from fake_drm import submission
from fake_drm.arguments import task_list
from fake_drm.cli import CommandError, require_server
from fake_pbs import words


def require_pbs(store, command):
    """Raise CommandError while the server is played down."""
    server = store.settings["cluster"]
    if words.is_torque(store):
        text = (
            "Unable to communicate with {0}(127.0.0.1)\nCannot connect to specified server host "
            "'{0}'.\n{1}: cannot connect to server {0} (errno=111) Connection refused\n"
        ).format(server, command)
        require_server(store, text, 111)
        return
    text = "Connection refused\n%s: cannot connect to server %s (errno=15010)\n"
    if command == "qdel":
        text = "Connection refused\nCouldn't connect to cluster: %.0s%s\n"
    require_server(store, text % (command, server), 255 if command == "qstat" else 162)


def unknown(store, command, text):
    """The CommandError of a job that the server does not know."""
    error = "Unknown Job Id Error" if words.is_torque(store) else "Unknown Job Id"
    return CommandError("%s: %s %s\n" % (command, error, full_id(store, text)), 153)


def full_id(store, text):
    """The id with the server's name."""
    return text if "." in text else "%s.%s" % (text, store.settings["cluster"])


def parse(store, command, text):
    """(number, tasks): None for a job, "all" for a whole array, else a list.

    Raises CommandError for what is no id.
    """
    match = re.fullmatch(r"([0-9]+)(\[([0-9,:-]*)\])?(?:\.([\w.-]+))?(?:@.*)?", text)
    if match is None:
        if command == "qstat":
            error = "Unknown queue destination " if not words.is_torque(store) else (
                "Unknown queue MSG=cannot locate queue "
            )
            raise CommandError("qstat: %s%s\n" % (error, text), 170)
        raise CommandError("%s: illegally formed job identifier: %s\n" % (command, text), 1)
    if match.group(4) and match.group(4) != store.settings["cluster"]:
        raise CommandError("%s: illegally formed job identifier: %s\n" % (command, text), 1)
    if match.group(2) is None:
        return int(match.group(1)), None
    if not match.group(3):
        return int(match.group(1)), "all"
    return int(match.group(1)), task_list(match.group(3))[0]


def find(store, command, text):
    """The records that an id names; raises CommandError where the server knows none (any more).

    A number alone does not name an array, nor ``7[]`` a job.
    """
    number, tasks = parse(store, command, text)
    records = [one for one in submission.elements(store, number) if remembered(store, one)]
    is_array = bool(records) and records[0]["array_id"] is not None
    if is_array != (tasks is not None):
        records = []
    if isinstance(tasks, list):
        records = [one for one in records if one["task_id"] in tasks]
    if not records:
        raise unknown(store, command, text)
    return records


def keeps_history(store):
    """True where OpenPBS shows ended jobs with -x; Torque shows them for a while in any case."""
    return store.settings["accounting"] != "off"


def remembered(store, record):
    """True while the server has the job in any form."""
    if record["forgotten"] or record["erased"]:
        return False
    if not words.is_ended(record):
        return True
    if not words.is_torque(store):
        if not keeps_history(store):
            return _array_goes_on(store, record)
    age = float(store.option(record, "min_job_age"))
    return time.time() < max(record["end_real"], record["completing_until"]) + age


def _array_goes_on(store, record):
    return record["array_id"] is not None and not all(
        words.is_ended(one) for one in store.array(record["array_id"])
    )


def is_history(store, record):
    """True for what OpenPBS shows with -x only: ended, and its array too."""
    return (
        not words.is_torque(store) and words.is_ended(record) and not _array_goes_on(store, record)
    )
