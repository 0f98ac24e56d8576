"""All attributes of a job or an array in qstat's order, and how qstat prints them: text, JSON,
XML, dsv."""

import json
import re
from xml.sax.saxutils import escape

from fake_drm.submission import base_id
from fake_pbs import words

WIDTH = 79


def of_job(store, record):
    """[(name, value)]; the value of a group such as Resource_List is such a list itself."""
    if words.is_torque(store):
        return _torque(store, record)
    letter = words.state(store, record)
    ended = letter in ("F", "X")
    ran = record["start"] is not None and (record["state"] != "ended" or record["started"])
    element = record["array_id"] is not None
    now = store.clock.now()
    rows = [("Job_Name", record["name"]), ("Job_Owner", words.owner(store, record))]
    if ran:
        rows.append(("resources_used", _used(store, record, now)))
    rows += [("job_state", letter), ("queue", record["partition"])]
    rows.append(("server", store.settings["cluster"]))
    rows += [("Account_Name", record["account"])] if record["account"] else []
    rows += [] if element else [("Checkpoint", "u")]
    rows.append(("ctime", words.ctime(record["submit"])))
    if record["dependency"]:
        rows.append(("depend", record["extra"].get("depend", record["dependency"])))
    rows.append(("Error_Path", record["extra"]["error_path"]))
    if ran:
        node = record["node"] or store.settings["node"]
        rows += [("exec_host", node + "/0"), ("exec_vnode", words.vnode(store, record))]
    rows += [] if element else [("Hold_Types", words.hold_types(record))]
    rows += [("Join_Path", record["extra"]["join"]), ("Keep_Files", record["extra"]["keep"])]
    rows.append(("Mail_Points", "a"))
    rows.append(("mtime", words.ctime(_changed(record))))
    rows += [("Output_Path", record["extra"]["output_path"]), ("Priority", 0)]
    rows.append(("qtime", words.ctime(record["submit"])))
    rows.append(("Rerunable", "True" if record["requeue"] else "False"))
    rows.append(("Resource_List", _requested(record)))
    if ran:
        rows.append(("stime", words.ctime(record["start"])))
        if store.settings["flavour"] == "openpbs" and ended:
            rows.append(("obittime", words.ctime(record["end"])))
        if record["session"] and not ended:
            rows.append(("session_id", record["session"][0]))
        rows.append(("jobdir", record["workdir"]))
    rows.append(("substate", words.substate(store, record)))
    rows.append(("Variable_List", [tuple(one) for one in record["extra"]["variables"]]))
    rows += [("comment", words.comment(store, record))] if words.comment(store, record) else []
    held = record["priority"] == 0 or record["dependency"]
    if ran or record["restarts"] or not held:
        rows.append(("etime", words.ctime(record["submit"])))
    rows += _ending(store, record, ran, ended, element)
    rows.append(("project", "_pbs_project_default"))
    if store.settings["flavour"] == "openpbs":
        rows.append(("Submit_Host", store.settings["cluster"]))
    return rows


def _ending(store, record, ran, ended, element):
    rows = []
    runs = record["restarts"] + (1 if ran else 0)
    if record["why"] == "launch_failed_held":
        runs = 21
    rows += [("run_count", runs)] if runs else []
    if ended and ran and "o" not in record["extra"]["keep"]:
        rows.append(("Stageout_status", 0 if record["extra"].get("undelivered") else 1))
    status = words.exit_status(store, record)
    rows += [("Exit_status", status)] if status is not None else []
    if element:
        rows.append(("array_id", words.array_id(store, record)))
        rows.append(("array_index", record["task_id"]))
    else:
        rows.append(("Submit_arguments", record["extra"]["arguments"]))
    rows += [("history_timestamp", int(record["end"]))] if ended else []
    return rows


def _changed(record):
    return record["end"] or record["start"] or record["submit"]


def _used(store, record, now):
    ran = words.run_seconds(record, now)
    cput = record["cpu_s"]
    percent = int(100 * cput / ran) if ran >= 1 else 0
    return [
        ("cpupercent", percent),
        ("cput", words.hms(cput)),
        ("mem", "%dkb" % record["rss_kb"]),
        ("ncpus", record["cpus"]),
        ("vmem", "%dkb" % record["rss_kb"]),
        ("walltime", words.hms(ran)),
    ]


def _requested(record):
    resources = [tuple(one) for one in record["extra"]["resources"]]
    names = {name for name, _ in resources}
    select = "1:ncpus=%d" % record["cpus"]
    if "mem" in names:
        select += ":mem=" + dict(resources)["mem"]
    chunk = re.search(r":mem=(\w+)", dict(resources).get("select", ""))
    defaults = [("mem", chunk.group(1))] if chunk else []
    defaults += [
        ("ncpus", record["cpus"]),
        ("nodect", record["nodes"]),
        ("place", "free" if "select" in names else "pack"),
        ("select", select),
    ]
    return sorted(resources + [one for one in defaults if one[0] not in names])


def of_array(store, records):
    """The attributes of a whole array, from its elements."""
    first = dict(records[0])
    letters = [words.state(store, one) for one in records]
    ended = all(letter in ("F", "C") for letter in letters)
    began = any(letter not in ("Q", "H", "W") for letter in letters)
    letter = "F" if ended else "B" if began else letters[0]
    codes = [words.exit_status(store, one) for one in records if words.is_ended(one)]
    # 41[] whose elements were all deleted has 1, and so has one with a failed element
    code = 1 if any(code not in (0, None) for code in codes) else 0
    counts = [
        sum(one in "QHW" for one in letters),
        sum(one in "RS" for one in letters),
        sum(one == "E" for one in letters),
        0 if ended else sum(one == "F" for one in letters),
    ]
    first.update(array_id=None, restarts=0, started=False)
    base = str(base_id(records[0]))
    rows = []
    keep = "Job_Name Job_Owner queue server Checkpoint ctime Hold_Types Join_Path Keep_Files " \
        "Mail_Points mtime Priority qtime Rerunable Resource_List Variable_List etime"
    indexed = {"Error_Path", "Output_Path"}
    for name, value in of_job(store, records[0]):
        if name == "server":
            rows += [(name, value), ("Checkpoint", "u")]
        elif name in indexed:
            tail = "%s.%d" % (base, records[0]["task_id"])
            rows.append((name, re.sub(re.escape(tail) + "$", base + ".^array_index^", value)))
            rows += [("Hold_Types", "n")] if name == "Error_Path" else []
        elif name == "job_state":
            rows.append((name, letter))
        elif name == "stime" and began:
            rows.append((name, value))
        elif name == "substate":
            state = 70 if letter == "B" else 10
            rows.append((name, (93 if code else 92) if ended else state))
        elif name == "comment" and began:
            start = min(one["start"] for one in records if one["start"])
            text = "Job Array Began at " + words._day(start)
            rows.append((name, text + (" and failed" if code else " and finished") * ended))
        elif name in keep.split():
            rows.append((name, value))
    if codes:
        rows += [("Stageout_status", 1), ("Exit_status", code)]
    rows += [
        ("Submit_arguments", first["extra"]["arguments"]),
        ("array", "True"),
        ("array_state_count", "Queued:%d Running:%d Exiting:%d Expired:%d" % tuple(counts)),
        ("array_indices_submitted", first["extra"]["indices"]),
        ("array_indices_remaining", _remaining(records, letters)),
    ]
    if ended:
        rows.append(("history_timestamp", int(max(one["end"] for one in records))))
    rows += [("project", "_pbs_project_default"), ("Submit_Host", store.settings["cluster"])]
    return rows


def _remaining(records, letters):
    left = [str(one["task_id"]) for one, letter in zip(records, letters) if letter in "QHW"]
    return ",".join(left) or "-"


def _torque(store, record):
    letter = words.state(store, record)
    ran = record["start"] is not None and (record["state"] != "ended" or record["started"])
    now = store.clock.now()
    used = [one for one in _used(store, record, now) if one[0] in ("cput", "mem", "vmem")]
    used += [("walltime", words.hms(words.run_seconds(record, now)))]
    used.insert(1, ("energy_used", 0))
    rows = [("Job_Name", record["name"]), ("Job_Owner", words.owner(store, record))]
    rows += [("resources_used", used)] if ran else []
    rows += [("job_state", letter), ("queue", record["partition"])]
    rows.append(("server", store.settings["cluster"]))
    rows += [("Account_Name", record["account"])] if record["account"] else []
    rows += [("Checkpoint", "u"), ("ctime", _Time(record["submit"]))]
    rows.append(("Error_Path", record["extra"]["error_path"]))
    rows += [("exec_host", (record["node"] or store.settings["node"]) + "/0")] if ran else []
    rows.append(("Hold_Types", words.hold_types(record)))
    rows += [("Join_Path", record["extra"]["join"]), ("Keep_Files", record["extra"]["keep"])]
    rows += [("Mail_Points", "a"), ("mtime", _Time(_changed(record)))]
    rows += [("Output_Path", record["extra"]["output_path"]), ("Priority", 0)]
    rows.append(("qtime", _Time(record["submit"])))
    rows.append(("Rerunable", "True" if record["requeue"] else "False"))
    resources = [tuple(one) for one in record["extra"]["resources"]]
    rows.append(("Resource_List", sorted(resources + [("nodect", record["nodes"])])))
    rows += [("session_id", record["extra"].get("session", 1000 + record["id"]))] if ran else []
    rows.append(("Variable_List", [tuple(one) for one in record["extra"]["variables"]]))
    rows += [("euser", record["user"]), ("egroup", record["group"]), ("queue_type", "E")]
    rows += [("comment", words.comment(store, record))] if words.comment(store, record) else []
    rows.append(("etime", _Time(record["submit"])))
    status = words.exit_status(store, record)
    rows += [("exit_status", status)] if status is not None and letter == "C" else []
    rows.append(("submit_args", record["extra"]["arguments"]))
    if ran:
        rows += [("start_time", _Time(record["start"])), ("start_count", record["restarts"] + 1)]
    rows.append(("fault_tolerant", "False"))
    if letter == "C":
        rows.append(("comp_time", _Time(record["end"])))
    rows.append(("job_radix", 0))
    if letter == "C" and ran:
        rows.append(("total_runtime", "%.6f" % words.run_seconds(record, now)))
    rows += [("submit_host", store.settings["cluster"]), ("init_work_dir", record["workdir"])]
    rows.append(("request_version", 1))
    return rows


class _Time(float):
    """Seconds that Torque's text shows as a date and its XML as a number."""


# ---- text ----------------------------------------------------------------------------------------


def text(job_id, rows):
    """One job as ``qstat -f`` prints it."""
    lines = ["Job Id: " + job_id]
    for name, value in rows:
        if name == "Variable_List":
            value = ",".join("%s=%s" % one for one in value)
        if isinstance(value, list):
            lines += [fold("    %s.%s = " % (name, inner), one) for inner, one in value]
        else:
            lines.append(fold("    %s = " % name, value))
    return "\n".join(lines) + "\n\n"


def fold(prefix, value):
    """One attribute, folded behind commas where there are any, else at the 79th column."""
    value = words.ctime(value) if isinstance(value, _Time) else str(value)
    written, column = prefix, len(prefix)
    for number, part in enumerate(re.findall(r"[^,]*,|[^,]+", value)):
        if number and column + len(part) > WIDTH:
            written, column = written + "\n\t", 8
        while column + len(part) > WIDTH:
            cut = WIDTH - column
            written, part, column = written + part[:cut] + "\n\t", part[cut:], 8
        written, column = written + part, column + len(part)
    return written


def dsv(job_id, rows, delimiter):
    """One job as ``-F dsv`` prints it."""
    cells = ["Job Id: " + job_id]
    for name, value in rows:
        if name == "Variable_List":
            cells.append("%s=%s" % (name, ",".join("%s=%s" % one for one in value)))
        elif isinstance(value, list):
            cells += ["%s.%s=%s" % (name, inner, one) for inner, one in value]
        else:
            cells.append("%s=%s" % (name, value))
    return delimiter.join(cells) + "\n"


# ---- JSON ----------------------------------------------------------------------------------------


def json_text(store, jobs):
    """The whole answer of ``-F json``: ``jobs`` is [(id, rows)]."""
    rows = [
        ("timestamp", int(store.clock.now())),
        ("pbs_version", store.settings["version"]),
        ("pbs_server", store.settings["cluster"]),
    ]
    if jobs:
        rows.append(("Jobs", [(job_id, one) for job_id, one in jobs]))
    return _object(rows, 0, ()) + "\n"


def _object(rows, depth, path):
    tabs = "\t" * (depth + 1)
    inner = ",\n".join(
        '%s%s:\t%s' % (tabs, json.dumps(name, ensure_ascii=False), _value(value, depth, path + (
            name,
        )))
        for name, value in rows
    )
    return "{\n%s\n%s}" % (inner, "\t" * depth)


def _value(value, depth, path):
    if isinstance(value, list):
        return _object(value, depth + 1, path)
    if isinstance(value, int):
        return str(value)
    if len(path) == 4:  # inside Variable_List and Resource_List values are retyped
        return _retyped(str(value))
    return json.dumps(str(value), ensure_ascii=False)


def _retyped(text):
    if text in ("true", "false"):
        return text
    try:
        number = float(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    if number != number:
        return json.dumps(text)
    if number in (float("inf"), float("-inf")):
        return "null"
    return str(int(number)) if number == int(number) else repr(number)


# ---- XML -----------------------------------------------------------------------------------------


def xml_text(jobs):
    """The whole answer of Torque's ``-x``: one line."""
    return "<Data>%s</Data>\n" % "".join(_xml_job(job_id, rows) for job_id, rows in jobs)


def _xml_job(job_id, rows):
    parts = [_element("Job_Id", job_id)]
    for name, value in rows:
        if name == "Variable_List":
            value = ",".join("%s=%s" % one for one in value)
        if isinstance(value, list):
            inner = "".join(_element(one, said) for one, said in value)
            parts.append("<%s>%s</%s>" % (name, inner, name))
        else:
            parts.append(_element(name, value))
    return "<Job>%s</Job>" % "".join(parts)


def _element(name, value):
    said = str(int(value)) if isinstance(value, _Time) else escape(str(value))
    return "<%s>%s</%s>" % (name, said, name)
