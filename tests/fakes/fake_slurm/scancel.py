"""``scancel``: ends jobs, or sends them a signal."""

import signal
import sys

from fake_drm import process, transitions
from fake_slurm import cli, dialect, jobs
from fake_slurm.options import UsageError, not_simulated, parse

LONGS = """account= batch clusters= ctld full help hurry interactive jobname= name= me nodelist=
partition= qos= quiet reservation= sibling= signal= state= usage user= verbose version
wckey=""".split()
SHORTS = {
    "A": "account",
    "b": "batch",
    "M": "clusters",
    "f": "full",
    "H": "hurry",
    "i": "interactive",
    "n": "name",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "s": "signal",
    "t": "state",
    "u": "user",
    "v": "verbose",
    "V": "version",
    "w": "nodelist",
}
NOT_SIMULATED = ("interactive", "help", "usage", "nodelist", "reservation", "sibling", "wckey")


def main(store, argv):
    """Cancel or signal; returns the exit code."""
    given, ids = parse("scancel", argv, LONGS, SHORTS)
    options = {{"jobname": "name"}.get(name, name): value for name, value in given}
    for name in NOT_SIMULATED:
        if name in options:
            raise not_simulated("scancel", "--" + name)
    number = _signal_number(options)
    filters = [
        name
        for name in ("user", "me", "name", "partition", "account", "state", "qos")
        if name in options
    ]
    if not ids and not filters:
        raise UsageError("scancel: error: No job identification provided\n")
    if "clusters" in options:
        cli.require_cluster(store, "scancel", options["clusters"])
    targets = [_target(text) for word in ids for text in word.split(",")]
    code = 0
    if not targets:
        _require_user(store, options)
        cli.require_controller(store, "slurm_load_jobs error")
        targets = [
            (record["id"], None, str(record["id"]))
            for record in store.all()
            if _matches(record, options)
        ]
    for job_id, tasks, text in targets:
        cli.require_controller(store, "scancel: error: Kill job error on job id %s" % text, 8)
        code = max(code, _cancel(store, job_id, tasks, text, number, options))
    return code


def _signal_number(options):
    """The signal to send, None for an ordinary cancel."""
    name = options.get("signal")
    if name is None:
        return None
    known = {item.name[3:]: item.value for item in signal.Signals}
    word = name.upper()[3:] if name.upper().startswith("SIG") else name.upper()
    number = int(word) if word.isdigit() else known.get(word)
    if number is None:
        raise UsageError("Unknown job signal: %s\n" % name)
    return (
        None
        if number == signal.SIGKILL and "batch" not in options and "full" not in options
        else number
    )


def _target(text):
    try:
        return jobs.parse_id(text) + (text,)
    except ValueError:
        raise UsageError("scancel: error: Invalid job id %s\n" % text) from None


def _require_user(store, options):
    name = options.get("user")
    if name and not jobs.user_exists(store, name):
        raise UsageError("scancel: error: Invalid user name: %s\n" % name)


def _matches(record, options):
    """The filters of a scancel without ids."""
    user = jobs.acting_user()
    if record["state"] == "ended" or user[1] not in (0, record["uid"]):
        return False
    if "me" in options and record["uid"] != user[1]:
        return False
    return all(
        record[name] in options[name].split(",")
        for name in ("user", "name", "partition", "account", "qos")
        if name in options
    )


def _cancel(store, job_id, tasks, text, number, options):
    user = jobs.acting_user()
    woken = []
    with store.lock():
        found = [
            record
            for record in jobs.find(store, job_id, tasks)
            if jobs.visible(store, record, user) and record["state"] != "ended"
        ]
        now = store.clock.now()
        for record in found:
            if user[1] not in (0, record["uid"]):
                sys.stderr.write(
                    "scancel: error: Kill job error on job id %s: Access/permission denied\n" % text
                )
                return 210  # the error number 2002, as far as an exit code holds it
            if number is None:
                transitions.cancel(record, user[1], now, float(store.option(record, "completing")))
                # an element taken out of a waiting array leaves no trace
                record["erased"] = tasks is not None and jobs.is_meta(record)
                store.write(record)
                woken.append(record)
            elif record["session"]:
                _signal(record, number, options, now)
    for record in woken:
        process.wake(record["runner"])
    return 0


def _signal(record, number, options, now):
    """-b: the script; -f: it and its children; neither: steps only, and no job here has any."""
    pid = record["session"][0]
    if not process.alive(record["session"]) or not ({"batch", "full"} & set(options)):
        return
    if number in (signal.SIGTERM, signal.SIGKILL):
        try:
            with open(record["stderr"], "a") as handle:
                handle.write(dialect.cancelled_at(record, record["node"], "", now))
        except OSError:
            pass
    below = process.descendants(pid) if "full" in options else []
    for one in [pid] + below:
        process.send(one, number)
