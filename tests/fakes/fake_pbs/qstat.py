"""``qstat``: the table, -f as text, JSON, dsv (OpenPBS) or XML (Torque), the server."""

import sys

from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import CommandError, not_simulated
from fake_drm.submission import base_id
from fake_pbs import attributes, jobs, qsub, words

FINISHED = "qstat: %s Job has finished, use -x or -H to obtain historical job information\n"
NO_HISTORY = "qstat: PBS is not configured to maintain job history %s\n"
WIDE = """
%s:{blank}
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
""".format(blank=" ")


def main(store, argv):
    """Show; returns the exit code."""
    torque = words.is_torque(store)
    usage = refuse(
        "qstat: conflicting options.\nusage: \nqstat [-f] [-J] [-p] [-t] [-x] [-E] [-F format] "
        "[-D delim] [ job_identifier... | destination... ]\n", 2
    )
    if argv[:1] == ["--version"]:
        return qsub.print_version(store)
    flags = set("f x t a n s w H i r J E p B Q e q G M l c 1".split())
    given, ids = parse_anywhere(argv, {"F", "D", "u", "W"}, flags, usage)
    options = dict(given)
    form = options.get("F", "").lower()
    if torque and form:
        raise usage("-F")
    try:
        jobs.require_pbs(store, "qstat")
    except CommandError:
        if form == "json":  # the header is printed in any case
            sys.stdout.write(attributes.json_text(store, []))
        raise
    if "B" in options:
        return _print_server(store, "f" in options)
    if "Q" in options or "q" in options:
        raise not_simulated("qstat", "-Q")
    found, code = _select(store, options, ids)
    shown = [(job_id, rows) for job_id, rows, _ in _views(store, found, options)]
    if torque and "x" in options:
        if shown:
            sys.stdout.write(attributes.xml_text(shown))
    elif form == "json":
        sys.stdout.write(attributes.json_text(store, shown))
    elif form == "dsv":
        delimiter = options.get("D", "|")
        sys.stdout.write("".join(attributes.dsv(one, rows, delimiter) for one, rows in shown))
    elif "f" in options:
        sys.stdout.write("".join(attributes.text(one, rows) for one, rows in shown))
    elif set(options) & set("asnuirH"):
        _print_wide(store, shown, options)
    elif found:
        _print_table(store, found, options)
    return code


def _select(store, options, ids):
    """[list of records that an id names], and the exit code; complaints go to stderr at once."""
    torque = words.is_torque(store)
    history = not torque and ("x" in options or "H" in options)
    if history and not jobs.keeps_history(store):
        for one in ids or [""]:
            full = jobs.full_id(store, one) if one[:1].isdigit() else one
            sys.stderr.write(NO_HISTORY % full)
        return [], 0
    if not ids:
        return _all(store, options, history), 0
    found, code = [], 0
    for one in ids:
        try:
            records = jobs.find(store, "qstat", one)
            if not history and all(jobs.is_history(store, record) for record in records):
                raise CommandError(FINISHED % jobs.full_id(store, one), 35)
        except CommandError as error:
            sys.stderr.write(error.text)
            code = error.code
            continue
        whole = jobs.parse(store, "qstat", one)[1] == "all"
        found += [records] if whole else [[record] for record in records]
    return found, code


def _all(store, options, history):
    groups = {}
    for record in store.all():
        if not jobs.remembered(store, record):
            continue
        if jobs.is_history(store, record) and not history:
            continue
        if "u" in options and record["user"] not in options["u"].split(","):
            continue
        groups.setdefault(base_id(record), []).append(record)
    return list(groups.values())


def _views(store, found, options):
    """(id, attributes, record or None) of each line; arrays as one, with -t their elements too."""
    views = []
    for records in found:
        if records[0]["array_id"] is None or _is_named_element(store, records):
            views += [_view(store, record) for record in records]
            continue
        if not words.is_torque(store):
            name = words.array_id(store, records[0])
            views.append((name, attributes.of_array(store, records), None))
            records = records if "t" in options else []
        views += [_view(store, record) for record in records]
    return views


def _is_named_element(store, records):
    return len(records) < records[0]["array_size"]


def _view(store, record):
    rows = attributes.of_job(store, record)
    if words.state(store, record) == "F" and not jobs.is_history(store, record):
        # an ended element of an array that goes on
        rows = [(name, "X" if name == "job_state" else value) for name, value in rows]
    return words.job_id(store, record), rows, record


def _print_table(store, found, options):
    torque = words.is_torque(store)
    if torque:
        print("Job ID                    Name             User            Time Use S Queue")
        print("------------------------- ---------------- --------------- -------- - -----")
        line = "%-25.25s %-16.16s %-15.15s %8s %s %-15.15s"
    elif "w" in options:
        print("Job id                         Name            User             Time Use S Queue")
        print("-" * 29 + "  " + "-" * 15 + " " + "-" * 15 + "  -------- - " + "-" * 15)
        line = "%-30.30s %-15.15s %-16.16s %8s %s %-15.15s"
    else:
        print("Job id            Name             User              Time Use S Queue")
        print("----------------  ---------------- ----------------  -------- - -----")
        line = "%-16.16s  %-16.16s %-16.16s  %8s %s %-16.16s"
    for job_id, rows, _ in _views(store, found, options):
        shown = dict(rows)
        used = dict(shown.get("resources_used", ()))
        letter = shown["job_state"]
        time_used = used.get("cput", "0") if letter not in "RB" or torque else "0"
        user = shown["Job_Owner"].partition("@")[0]
        print(line % (job_id, shown["Job_Name"], user, time_used, letter, shown["queue"]))


def _print_wide(store, shown, options):
    if not shown:
        return
    sys.stdout.write(WIDE % store.settings["cluster"])
    for job_id, rows in shown:
        one = dict(rows)
        used = dict(one.get("resources_used", ()))
        wanted = dict(one["Resource_List"])
        limit = wanted.get("walltime", "  -- ")
        print(
            "%-15.15s %-8.8s %-8.8s %-10.10s %6.6s %3s %3s %6s %5.5s %s %5.5s"
            % (
                job_id,
                one["Job_Owner"].partition("@")[0],
                one["queue"],
                one["Job_Name"],
                one.get("session_id", "   -- "),
                1,
                wanted.get("ncpus", 1),
                wanted.get("mem", "   -- "),
                limit,
                one["job_state"],
                used.get("walltime", "  -- ")[:5],
            )
        )
        if "s" in options and "comment" in one:
            print("   " + one["comment"])


def _print_server(store, full):
    server = store.settings["cluster"]
    if not full:
        print("Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status")
        print("---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------")
        print("%-16.16s     0     0     0     0     0     0     0     0 Active" % server)
        return 0
    print("Server: %s" % server)
    for name, value in (
        ("server_state", "Active"),
        ("server_host", server),
        ("scheduling", "True"),
        ("default_queue", store.settings["partitions"][0]),
        ("query_other_jobs", "True"),
        ("pbs_version", store.settings["version"]),
    ):
        print("    %s = %s" % (name, value))
    print()
    return 0
