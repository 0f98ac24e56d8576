"""``qstat``: the list, as a table or XML, and -j, the details of jobs."""

import sys
from xml.sax.saxutils import escape

from fake_drm import submission
from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import not_simulated
from fake_gridengine import jobs, words

SCHEMAS = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/%s.xsd"
HEAD = "job-ID  prior   name       user         state submit/start at     queue      %s" % (
    "                    slots ja-task-ID "
)

PATH_LIST = """      <JB_{0}_path_list>
        <path_list>
          <PN_path>{1}</PN_path>
          <PN_host></PN_host>
          <PN_file_host></PN_file_host>
          <PN_file_staging>false</PN_file_staging>
        </path_list>
      </JB_{0}_path_list>
"""


def main(store, argv):
    """Show; returns the exit code."""
    usage = refuse("error: ERROR! invalid option argument \"%s\"\n", 1)
    given, rest = parse_anywhere(
        argv, {"u", "j", "s", "q", "g", "explain", "U", "pe", "l"},
        {"xml", "r", "f", "ext", "ne", "pri", "t", "urg", "help", "F"}, usage, joined=False,
    )
    options = dict(given)
    for one in ("f", "ext", "F", "pri", "urg"):
        if one in options:
            raise not_simulated("qstat", "-" + one)
    jobs.require_qmaster(store, "qstat -j" if "j" in options and "xml" not in options else "qstat")
    if "j" in options:
        return _details(store, options["j"], "xml" in options)
    records = _select(store, options)
    if "xml" in options:
        _print_xml(store, records, "r" in options)
    elif records:
        print(HEAD)
        print("-" * 113)
        for one in _rows(store, records):
            print(_line(store, one))
            if "r" in options:
                print("       Full jobname:     %s" % one["name"])
                for name, value in one["extra"]["requests"].items():
                    print("       Hard Resources:   %s=%s" % (name, value))
    return 0


def _select(store, options):
    user = options.get("u", submission.acting_user()[0])
    wanted = options.get("s", "")
    return [
        record
        for record in store.all()
        if words.state(record)
        and (user == "*" or record["user"] in user.split(","))
        and (not wanted or _in_state(record, wanted))
    ]


def _in_state(record, wanted):
    kinds = {"p": _is_pending(record), "r": not _is_pending(record),
             "s": words.state(record) in ("s", "S", "T"), "a": True,
             "h": words.state(record) == "hqw"}
    return any(kinds.get(letter, False) for letter in wanted)


def _is_pending(record):
    return words.state(record).endswith(("qw", "Rq"))


def _rows(store, records):
    """The records, running ones first; waiting tasks of an array as one, with ``shown_tasks``."""
    rows = [dict(one, shown_tasks=_task(one)) for one in records if not _is_pending(one)]
    groups = {}
    for one in records:
        if _is_pending(one):
            groups.setdefault((submission.base_id(one), words.state(one)), []).append(one)
    for group in groups.values():
        tasks = [one["task_id"] for one in group if one["task_id"] is not None]
        rows.append(dict(group[0], shown_tasks=_ranges(tasks)))
    return rows


def _task(record):
    return "" if record["task_id"] is None else str(record["task_id"])


def _ranges(tasks):
    """``5,6`` for two tasks, ``1-6:1`` for more that are in steps."""
    if len(tasks) < 3:
        return ",".join(map(str, tasks))
    step = tasks[1] - tasks[0]
    if all(b - a == step for a, b in zip(tasks, tasks[1:])):
        return "%d-%d:%d" % (tasks[0], tasks[-1], step)
    return ",".join(map(str, tasks))


def _priority(record):
    return "0.00000" if record["why"].startswith("dependency") else "0.50000"


def _queue(store, record):
    if _is_pending(record):
        return ""
    return "%s@%s" % (record["partition"], record["node"] or store.settings["node"])


def _line(store, record):
    when = record["submit"] if _is_pending(record) else record["start"]
    return "%7d %s %-10.10s %-12.12s %-5s %s %-30.30s %5d %s" % (
        submission.base_id(record),
        _priority(record),
        record["name"],
        record["user"],
        words.state(record),
        words.date(when),
        _queue(store, record),
        record["cpus"],
        record["shown_tasks"] or " " * 7,
    )


def _print_xml(store, records, requests):
    rows = _rows(store, records)
    print("<?xml version='1.0'?>")
    print('<job_info  xmlns:xsd="%s">' % (SCHEMAS % "qstat"))
    for tag, pending in (("queue_info", False), ("job_info", True)):
        print("  <%s>" % tag)
        for one in rows:
            if _is_pending(one) == pending:
                sys.stdout.write(_xml_row(store, one, pending, requests))
        print("  </%s>" % tag)
    print("</job_info>")


def _xml_row(store, record, pending, requests):
    when = ("JB_submission_time", record["submit"]) if pending else (
        "JAT_start_time", record["start"]
    )
    rows = [
        ("JB_job_number", submission.base_id(record)),
        ("JAT_prio", _priority(record)),
        ("JB_name", record["name"]),
        ("JB_owner", record["user"]),
        ("state", words.state(record)),
        (when[0], words.iso(when[1])),
        ("queue_name", _queue(store, record)),
        ("slots", record["cpus"]),
    ]
    rows += [("tasks", record["shown_tasks"])] if record["shown_tasks"] else []
    if requests:
        rows.append(("full_job_name", record["name"]))
    text = "    <job_list state=\"%s\">\n" % ("pending" if pending else "running")
    text += "".join("      <%s>%s</%s>\n" % (n, escape(str(v)), n) for n, v in rows)
    if requests:
        for name, value in record["extra"]["requests"].items():
            if name in record["extra"]["limits"] and name.endswith(("_rt", "_cpu")):
                value = "%d" % record["extra"]["limits"][name]
            text += '      <hard_request name="%s" resource_contribution="0.000000">%s' % (
                escape(name), escape(value)
            )
            text += "</hard_request>\n"
        text += "      <binding>NONE</binding>\n"
    return text + "    </job_list>\n"


# ---- qstat -j ------------------------------------------------------------------------------------


def _details(store, text, xml):
    found, missing = [], []
    for one in filter(None, text.split(",")):
        # a task (46.2) is no job to qstat -j
        records = jobs.living(store, one) if one.isdigit() else []
        if records:
            found.append(records)
        else:
            missing.append(one)
    if xml:
        if not found:
            names = "".join("    <ST_name>%s</ST_name>\n" % escape(one) for one in missing)
            print("<?xml version='1.0'?>\n<unknown_jobs >\n%s</unknown_jobs>" % names)
            return 0
        print("<?xml version='1.0'?>")
        print('<detailed_job_info  xmlns:xsd="%s">\n  <djob_info>' % (
            SCHEMAS % "detailed_job_info"
        ))
        for records in found:
            sys.stdout.write(_xml_details(records))
        print("  </djob_info>\n  <messages>\n  </messages>\n</detailed_job_info>")
        return 0
    for records in found:
        _print_details(store, records)
    if missing:
        sys.stdout.flush()
        sys.stderr.write("Following jobs do not exist: \n%s\n" % "\n".join(missing))
        return 1
    return 0


def _xml_details(records):
    first = records[0]
    rows = [
        ("JB_job_number", submission.base_id(first)),
        ("JB_ar", 0),
        ("JB_exec_file", "job_scripts/%d" % submission.base_id(first)),
        ("JB_submission_time", int(first["submit"])),
        ("JB_owner", first["user"]),
        ("JB_uid", first["uid"]),
        ("JB_group", first["group"]),
        ("JB_gid", first["gid"]),
        ("JB_account", first["account"]),
        ("JB_notify", "true" if first["extra"]["notify"] else "false"),
        ("JB_job_name", first["name"]),
        ("JB_script_file", first["command"]),
    ]
    text = "    <element>\n"
    text += "".join("      <%s>%s</%s>\n" % (n, escape(str(v)), n) for n, v in rows)
    for stream in ("stderr", "stdout"):
        text += PATH_LIST.format(stream, escape(first["extra"][stream + "_path"].lstrip(":")))
    text += "      <JB_ja_tasks>\n"
    for one in records:
        text += "        <ulong_sublist>\n"
        text += "          <JAT_status>%d</JAT_status>\n" % (0 if _is_pending(one) else 128)
        text += "          <JAT_task_number>%d</JAT_task_number>\n" % (one["task_id"] or 1)
        reason = _reason(one)
        if reason:
            text += "          <JAT_message_list>\n            <ulong_sublist>\n"
            text += "              <QIM_type>1</QIM_type>\n"
            text += "              <QIM_message>%s</QIM_message>\n" % escape(
                reason, {"'": "&apos;", '"': "&quot;"}
            )
            text += "            </ulong_sublist>\n          </JAT_message_list>\n"
        text += "        </ulong_sublist>\n"
    return text + "      </JB_ja_tasks>\n    </element>\n"


def _reason(record):
    if record["shown"] and record["shown"]["reason"]:
        return record["shown"]["reason"]
    return record["extra"].get("error_reason", "") if words.state(record) == "Eqw" else ""


def _print_details(store, records):
    first = records[0]
    rows = [
        ("job_number", submission.base_id(first)),
        ("exec_file", "job_scripts/%d" % submission.base_id(first)),
        ("submission_time", words.ctime(first["submit"])),
        ("owner", first["user"]),
        ("uid", first["uid"]),
        ("group", first["group"]),
        ("gid", first["gid"]),
        ("sge_o_workdir", first["extra"]["submitted_from"]),
        ("sge_o_host", "localhost"),
        ("account", first["account"]),
        ("stderr_path_list", "NONE:NONE:" + first["extra"]["stderr_path"]),
    ]
    if first["extra"]["requests"]:
        requests = ["%s=%s" % one for one in first["extra"]["requests"].items()]
        rows.append(("hard resource_list", ",".join(requests)))
    rows += [
        ("notify", "TRUE" if first["extra"]["notify"] else "FALSE"),
        ("job_name", first["name"]),
        ("stdout_path_list", "NONE:NONE:" + first["extra"]["stdout_path"]),
        ("jobshare", 0),
        ("script_file", first["command"]),
    ]
    rows += [("job-array tasks", first["extra"]["tasks"])] if first["extra"]["tasks"] else []
    if first["extra"]["hold_jid"]:
        rows.append(("jid_predecessor_list", first["extra"]["hold_jid"]))
    rows.append(("job_type", "NONE"))
    print("=" * 62)
    for name, value in rows:
        print("%-27s %s" % (name + ":", value))
    for one in records:
        if not _is_pending(one):
            print("usage %4d:                 cpu=00:00:00, mem=0.00000 GB s, io=0.00000 GB, "
                  "vmem=N/A, maxvmem=N/A" % (one["task_id"] or 1))
        if _reason(one):
            print("error reason %4d:          %s" % (one["task_id"] or 1, _reason(one)))
    said = "Job is in error state" if any(map(_reason, records)) else (
        "There are no messages available"
    )
    print("%-27s %s" % ("scheduling info:", said))
