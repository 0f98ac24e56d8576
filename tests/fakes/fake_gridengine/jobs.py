"""Which jobs Grid Engine's commands name, and what they say while the qmaster is down."""

import re

from fake_drm import submission
from fake_drm.arguments import task_list
from fake_drm.cli import CommandError, require_server
from fake_gridengine import words

COMMLIB = "error: commlib error: got select error (Connection refused)\n"
UNABLE = 'unable to send message to qmaster using port 6444 on host "%s": got send error\n'
LINES = {
    "qstat": COMMLIB + "error: " + UNABLE,
    "qstat -j": COMMLIB + UNABLE + UNABLE,
    "qsub": COMMLIB + "Unable to run job: " + UNABLE + "Exiting.\n",
}


def require_qmaster(store, command):
    """Raise CommandError while the qmaster is played down."""
    text = LINES.get(command, COMMLIB)
    node = store.settings["node"]
    try:
        require_server(store, text % ((node,) * text.count("%s")), 1)
    except CommandError:
        if command not in LINES:  # these print half of it on stdout
            print((UNABLE % node).rstrip("\n"))
        raise


def living(store, text):
    """The records of ``7``, ``7.2`` or ``7.1-3:1`` that the qmaster knows; ``[]`` for none."""
    match = re.fullmatch(r"([0-9]+)(?:\.([0-9:-]+))?", text)
    if match is None:
        return []
    records = submission.elements(store, int(match.group(1)))
    if match.group(2):
        wanted = task_list(match.group(2))[0]
        records = [one for one in records if one["task_id"] in wanted]
    return [one for one in records if words.state(one)]


def with_tasks(ids, tasks):
    """``["7"], "2-3"`` as ``["7.2-3"]``."""
    return ids if tasks is None else ["%s.%s" % (one, tasks) for one in ids]
