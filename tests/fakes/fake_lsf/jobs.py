"""Which jobs LSF's commands name and see: ``7``, ``6[2]``, ``6[1-3,5]``, and 0 for all."""

import re
import time

from fake_drm import submission
from fake_drm.arguments import task_list
from fake_drm.cli import require_server
from fake_lsf import words

DOWN = "LSF is down. Please wait ...\n"


def require_lsf(store):
    """Raise CommandError while LSF is played down. (The real commands wait for ever.)"""
    require_server(store, DOWN, 255)


def known(store, record):
    """True while mbatchd lists the job: not forgotten, not ended longer than CLEAN_PERIOD ago."""
    if record["forgotten"] or record["erased"]:
        return False
    if record["state"] != "ended" or record["end_real"] is None:
        return True
    age = float(store.option(record, "min_job_age"))
    return time.time() < max(record["end_real"], record["completing_until"]) + age


def find(store, text):
    """The records that an id names, known to mbatchd or not; ``[]`` for what is no id."""
    match = re.fullmatch(r"([0-9]+)(?:\[([0-9,:-]+)\])?(?:@.*)?", text)
    if match is None:
        return []
    records = submission.elements(store, int(match.group(1)))
    if match.group(2):
        tasks = task_list(match.group(2))[0]
        records = [one for one in records if one["task_id"] in tasks]
    return records


def visible(record):
    """LSF shows one's own jobs unless -u says otherwise."""
    return record["user"] == submission.acting_user()[0]


def is_ended(record):
    """True once LSF tells the end."""
    return words.is_ended(record)
