"""``bjobs``: tables, chosen fields, JSON, and the long form."""

import json
import re
import sys

from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import CommandError, not_simulated
from fake_drm.submission import base_id
from fake_lsf import bhist, fields, jobs, words

WITH_VALUE = {"o", "u", "q", "m", "J", "P", "G", "g", "app", "hostfile", "sla"}
FLAGS = set("a d p r s l w W noheader json UF A x X sum N V h aps gpu prio".split())
USAGE = refuse("%s: Illegal option.\nUsage: bjobs [options] [job_ID ...]\n", 255)
TABLE = "jobid user stat queue from_host exec_host job_name submit_time".split()
TABLE_WIDTHS = (7, 7, 5, 10, 11, 11, 10, 0)


def main(store, argv):
    """List; returns the exit code."""
    given, ids = parse_anywhere(argv, WITH_VALUE, FLAGS, USAGE, joined=False)
    options = dict(given)
    for name in ("A", "UF", "sum", "hostfile", "aps", "X"):
        if name in options:
            raise not_simulated("bjobs", "-" + name)
    if "V" in options:
        sys.stderr.write("IBM Spectrum LSF Standard %s\n" % store.settings["version"])
        return 0
    jobs.require_lsf(store)
    columns, delimiter = _columns(options["o"]) if "o" in options else (None, None)
    ids = [one for one in ids if one != "0"]
    records, missing = _select(store, options, ids)
    if "json" in options:
        _print_json(store, records, missing, columns)
    elif "l" in options:
        _print_long(store, records)
    elif columns is not None:
        _print_columns(store, records, columns, delimiter, "noheader" not in options)
    else:
        _print_table(store, records, "noheader" not in options, "w" in options or "W" in options)
    sys.stdout.flush()
    if "json" not in options:
        for one in missing:
            sys.stderr.write("Job <%s> is not found\n" % one)
    if not ids and not records and "json" not in options:
        found = "No %sjob found\n" % ("" if "a" in options else "unfinished ")
        sys.stderr.write(found)
        return 255
    return 255 if missing else 0


def _select(store, options, ids):
    """The jobs to show, and the ids that name none."""
    if ids:
        records, missing = [], []
        for one in ids:
            found = [record for record in jobs.find(store, one) if jobs.known(store, record)]
            records += [record for record in found if record not in records]
            missing += [] if found else [one]
        return records, missing
    user = options.get("u")
    records = [
        record
        for record in store.all()
        if jobs.known(store, record)
        and (user == "all" or record["user"] == user if user else jobs.visible(record))
        and ("a" in options or _is_asked_for(options, record))
        and ("q" not in options or record["partition"] == options["q"])
        and ("J" not in options or record["name"] == options["J"])
    ]
    return records, []


def _is_asked_for(options, record):
    state = words.stat(record)
    kinds = {
        "d": ("DONE", "EXIT"),
        "p": ("PEND",),
        "r": ("RUN",),
        "s": ("PSUSP", "USUSP", "SSUSP"),
    }
    asked = [name for name in kinds if name in options]
    if asked:
        return any(state in kinds[name] for name in asked)
    return state not in ("DONE", "EXIT")


def _columns(text):
    """``[(name, width)], delimiter`` of ``jobid:8 stat:-5 delimiter='^'``; 0 for a default."""
    delimiter = None
    match = re.search(r"delimiter='([^']*)'|delimiter=(\S+)", text)
    if match:
        delimiter = match.group(1) if match.group(1) is not None else match.group(2)
        text = text[: match.start()] + text[match.end():]
        if len(delimiter.encode()) != 1:
            raise CommandError("delimiter: only one character is allowed.\n", 255)
    columns = []
    for word in text.replace(",", " ").split():
        name, _, width = word.partition(":")
        field = fields.canonical(name)
        if field is None:
            raise CommandError("%s: Unknown field name.\n" % name, 255)
        columns.append((field, width))
    return columns, delimiter


def _print_columns(store, records, columns, delimiter, heading):
    rows = [[name.upper() for name, _ in columns]] if heading and records else []
    for record in records:
        values = fields.values(store, record)
        rows.append([values[name] or "-" for name, _ in columns])
    for row in rows:
        if delimiter is not None:
            print(delimiter.join(row))
        else:
            print(" ".join(map(_padded, row, columns)))


def _padded(value, column):
    name, asked = column
    width = int(asked.lstrip("-") or 0) if asked else fields.WIDTHS[name]
    width = width or fields.WIDTHS[name]
    if len(value) > width:
        value = "*" + value[len(value) - width + 1:]
    return value.rjust(width) if asked.startswith("-") else value.ljust(width)


def _print_json(store, records, missing, columns):
    names = [name for name, _ in columns] if columns else TABLE
    shown = []
    for record in records:
        values = fields.values(store, record)
        shown.append([(name.upper(), values[name]) for name in names])
    shown += [[("JOBID", one), ("ERROR", "Job <%s> is not found" % one)] for one in missing]
    print("{\n  \"COMMAND\":\"bjobs\",\n  \"JOBS\":%d,\n  \"RECORDS\":[" % len(shown))
    for number, pairs in enumerate(shown):
        inner = ",\n".join("      %s:%s" % (_quoted(key), _quoted(value)) for key, value in pairs)
        print("    {\n%s\n    }%s" % (inner, "," if number < len(shown) - 1 else ""))
    print("  ]\n}")


def _quoted(text):
    return json.dumps(text, ensure_ascii=False).replace("/", "\\/")


def _print_table(store, records, heading, wide):
    if heading and records:
        print("JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME")
    for record in records:
        values = fields.values(store, record)
        cells = []
        for name, width in zip(TABLE, TABLE_WIDTHS):
            value = values[name]
            if wide and not value:
                value = "-"
            if width and not wide and len(value) > width:
                tail = "*" + value[len(value) - width + 1:]
                value = tail if name == "job_name" else value[:width]
            cells.append(value.ljust(width))
        print(" ".join(cells))


def _print_long(store, records):
    for number, record in enumerate(records):
        if number:
            print("-" * 78)
        print()
        head = "Job <%s>, Job Name <%s>, User <%s>, Project <%s>, Status <%s>, Queue <%s>, " % (
            _id_text(record),
            words.name_of(record),
            record["user"],
            record["account"],
            words.stat(record),
            record["partition"],
        )
        bhist.print_wrapped(head + "Command <%s>" % record["command"].replace("\n", ";"))
        for when, said in bhist.events(store, record):
            bhist.print_wrapped("%s: %s." % (words.long_time(when), said))


def _id_text(record):
    index = "" if record["array_id"] is None else "[%d]" % record["task_id"]
    return "%d%s" % (base_id(record), index)
