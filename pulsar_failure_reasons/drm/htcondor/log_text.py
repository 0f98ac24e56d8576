"""Job event logs and job ads as text, turned into the dicts that the bindings yield.

For texts that people paste (``explain``); the log of a job that is followed is read by the
bindings, and here only where they cannot read it. Forms: the log's text (old ``11/11 06:17:44``
and ISO times), XML and JSON; ads in long form (``Attr = value``), XML and JSON. Pieces are read
as far as they go; nothing raises.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .codes import JobEvent

#: One event or ad.
Record = Dict[str, Any]

_LONGEST_TEXT = 2_000_000

EVENT_BY_TYPE_NAME: Mapping[str, JobEvent] = {
    "SubmitEvent": JobEvent.SUBMIT,
    "ExecuteEvent": JobEvent.EXECUTE,
    "ExecutableErrorEvent": JobEvent.EXECUTABLE_ERROR,
    "CheckpointedEvent": JobEvent.CHECKPOINTED,
    "JobEvictedEvent": JobEvent.JOB_EVICTED,
    "JobTerminatedEvent": JobEvent.JOB_TERMINATED,
    "JobImageSizeEvent": JobEvent.IMAGE_SIZE,
    "ShadowExceptionEvent": JobEvent.SHADOW_EXCEPTION,
    "JobAbortedEvent": JobEvent.JOB_ABORTED,
    "JobSuspendedEvent": JobEvent.JOB_SUSPENDED,
    "JobUnsuspendedEvent": JobEvent.JOB_UNSUSPENDED,
    "JobHeldEvent": JobEvent.JOB_HELD,
    "JobReleaseEvent": JobEvent.JOB_RELEASED,
    "RemoteErrorEvent": JobEvent.REMOTE_ERROR,
    "JobDisconnectedEvent": JobEvent.JOB_DISCONNECTED,
    "JobReconnectedEvent": JobEvent.JOB_RECONNECTED,
    "JobReconnectFailedEvent": JobEvent.JOB_RECONNECT_FAILED,
}


def read_records(text: str) -> Tuple[List[Record], List[Record]]:
    """Return the events and the job ads in a text, in order; two empty lists for neither."""
    text = text[:_LONGEST_TEXT]
    records = _read_json(text) or _read_xml(text)
    if records:
        events = [_with_number(record) for record in records if is_event(record)]
        return events, [record for record in records if not is_event(record)]
    found = _read_log(text)
    return (found, []) if found else ([], _read_long_ads(text))


def is_event(record: Record) -> bool:
    """Tell whether a record is an event and not a job ad."""
    return "EventTypeNumber" in record or record.get("MyType") in EVENT_BY_TYPE_NAME


def _with_number(event: Record) -> Record:
    number = EVENT_BY_TYPE_NAME.get(str(event.get("MyType")))
    return event if "EventTypeNumber" in event or number is None else {
        **event, "EventTypeNumber": int(number)
    }


# --- JSON and XML -------------------------------------------------------------------------


def _read_json(text: str) -> List[Record]:
    word = text.strip()
    if not word.startswith(("{", "[")):
        return []
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return _read_json_objects(word)
    found = value if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, dict)]


def _read_json_objects(word: str) -> List[Record]:
    """Return the objects of a text that holds one after the other."""
    decoder, found, at = json.JSONDecoder(), [], word.find("{")
    while at >= 0:
        try:
            value, at = decoder.raw_decode(word, at)
        except (ValueError, RecursionError):
            break
        if isinstance(value, dict):
            found.append(value)
        at = word.find("{", at)
    return found


_XML_TOKEN = re.compile(
    r'<a\s+n="(?P<name>[^"]*)">\s*(?:<(?P<kind>[sire])>(?P<value>[^<]*)</(?P=kind)>'
    r'|<b\s+v="(?P<flag>[tf])"\s*/>|(?P<undefined><un\s*/>)|(?P<open><c>))'
    r"|(?P<close></c>)|(?P<record><c>)"
)


def _read_xml(text: str) -> List[Record]:
    if '<a n="' not in text:
        return []
    found: List[Record] = []
    current: Record = {}
    depth = 0
    for token in _XML_TOKEN.finditer(text):
        if token.group("record") or token.group("close"):
            if depth:
                depth -= 1 if token.group("close") else 0
                continue
            if current:
                found.append(current)
            current = {}
        elif token.group("open"):
            depth += 1
        elif not depth:
            current[token.group("name")] = _xml_value(token)
    return found + ([current] if current else [])


def _xml_value(token: "re.Match[str]") -> Any:
    if token.group("flag"):
        return token.group("flag") == "t"
    if token.group("undefined"):
        return None
    value = html.unescape(token.group("value"))
    if token.group("kind") in ("i", "r"):
        return _number(value)
    return value


def _number(value: str) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


# --- ads in long form ---------------------------------------------------------------------

_ATTRIBUTE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.]{0,200})\s*=(?![=?!])\s*(?P<value>\S.*)")


def _read_long_ads(text: str) -> List[Record]:
    found: List[Record] = []
    current: Record = {}
    for line in text.splitlines() + [""]:
        match = _ATTRIBUTE.match(line.strip())
        if match:
            current[match.group("name")] = _long_value(match.group("value").rstrip("; \t"))
        elif not line.strip() and current:
            found.append(current)
            current = {}
    return found


def _long_value(value: str) -> Any:
    """Return the value of an attribute; an expression stays text."""
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    lower = value.lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower in ("undefined", "error"):
        return None
    number = _number(value)
    return value if number is None else number


# --- the log's text form ------------------------------------------------------------------

_HEADER = re.compile(
    r"^\W{0,8}(?P<number>[0-9]{3}) \((?P<cluster>-?[0-9]+)\.(?P<proc>-?[0-9]+)\.-?[0-9]+\) "
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}/[0-9]{1,2}(?:/[0-9]{2,4})?)[ T]"
    r"(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})\S*\s*(?P<title>.*)$"
)
_CODES = re.compile(r"\bCode (?P<code>-?[0-9]+) Subcode (?P<subcode>-?[0-9]+)")
_TABLE_LINE = re.compile(r"^\s*(?P<name>[A-Za-z]+)(?: \(\w+\))?\s*:(?P<numbers>[ \t0-9.]*)")


def _read_log(text: str) -> List[Record]:
    found: List[Record] = []
    header: Optional["re.Match[str]"] = None
    body: List[str] = []
    for line in text.splitlines():
        match = _HEADER.match(line)
        if (match or line.strip() == "...") and header:
            found.append(_log_event(header, body))
            header = None
        if match:
            header, body = match, []
        elif header:
            body.append(line.strip())
    return found + ([_log_event(header, body)] if header else [])


def _log_event(header: "re.Match[str]", body: List[str]) -> Record:
    event: Record = {
        "EventTypeNumber": int(header.group("number")),
        "Cluster": int(header.group("cluster")),
        "Proc": int(header.group("proc")),
        "EventTime": f"{_iso_date(header.group('date'))}T{header.group('time')}",
    }
    read = _BODIES.get(event["EventTypeNumber"])
    if read:
        event.update(read(header.group("title"), body))
    return event


def _iso_date(date: str) -> str:
    """Return a date in ISO form; one without a year gets the leap year 2000, to compare with."""
    if "/" not in date:
        return date
    month, day, *year = date.split("/")
    return f"{int(year[0]) % 100 + 2000 if year else 2000:04d}-{int(month):02d}-{int(day):02d}"


def _execute_body(title: str, body: List[str]) -> Record:
    slot = re.search(r"SlotName: (\S+)", "\n".join(body))
    host = re.search(r"on host: (\S+)", title)
    return {
        "SlotName": slot.group(1) if slot else None,
        "ExecuteHost": host.group(1) if host else None,
    }


def _held_body(title: str, body: List[str]) -> Record:
    found = _CODES.search("\n".join(body))
    reason = " ".join(line for line in body if line and not _CODES.match(line))
    return {
        "HoldReason": reason or None,
        "HoldReasonCode": int(found.group("code")) if found else None,
        "HoldReasonSubCode": int(found.group("subcode")) if found else None,
    }


def _remote_error_body(title: str, body: List[str]) -> Record:
    said = _held_body(title, body)
    said["ErrorMsg"] = said.pop("HoldReason")
    return said


def _terminated_body(title: str, body: List[str]) -> Record:
    text = "\n".join(body)
    value = re.search(r"Normal termination \(return value (-?[0-9]+)\)", text)
    signal = re.search(r"Abnormal termination \(signal (-?[0-9]+)\)", text)
    return {
        "TerminatedNormally": True if value else (False if signal else None),
        "ReturnValue": int(value.group(1)) if value else None,
        "TerminatedBySignal": int(signal.group(1)) if signal else None,
        **_resource_table(body),
    }


def _evicted_body(title: str, body: List[str]) -> Record:
    found = _CODES.search(title)
    reasons = [line for line in body if _is_prose(line)]
    reason = reasons[0] if reasons else None
    return {
        "TerminatedAndRequeued": any("terminated and was requeued" in line for line in body),
        "ReasonCode": int(found.group("code")) if found else None,
        "ReasonSubCode": int(found.group("subcode")) if found else None,
        "Reason": reason[len("Reason: "):] if reason and reason.startswith("Reason: ") else reason,
        **_resource_table(body),
    }


def _is_prose(line: str) -> bool:
    return bool(line) and not re.match(
        r"\([01]\)|Usr \d|[\d.]+\s+-\s|Partitionable|\w+(?: \(\w+\))?\s+:|\w+ = ", line
    )


def _reason_body(title: str, body: List[str]) -> Record:
    prose = [line for line in body if line and not line.startswith("Job terminated by ")]
    if prose:
        return {"Reason": prose[0]}
    # Old versions say this of every removal, also one by an admin or a policy.
    return {"Reason": title if "by the user" in title else None}


def _message_body(name: str) -> Callable[[str, List[str]], Record]:
    def read(title: str, body: List[str]) -> Record:
        return {name: next((line for line in body if line), None)}

    return read


def _image_size_body(title: str, body: List[str]) -> Record:
    text = "\n".join(body)
    said: Record = {}
    for name in ("MemoryUsage", "ResidentSetSize"):
        match = re.search(rf"([0-9]+)\s+-\s+{name} of job", text)
        if match:
            said[name] = int(match.group(1))
    return said


def _resource_table(body: List[str]) -> Record:
    """Return usage and request of memory (MB) and disk (KB): "Usage Request Allocated"."""
    said: Record = {}
    for line in body:
        match = _TABLE_LINE.match(line)
        if match is None or match.group("name") not in ("Memory", "Disk"):
            continue
        numbers = [_number(word) for word in match.group("numbers").split()]
        # Usage is blank where nothing was measured, so columns count from the right.
        if len(numbers) >= 2:
            said[f"Request{match.group('name')}"] = numbers[-2]
        if len(numbers) >= 3:
            said[f"{match.group('name')}Usage"] = numbers[-3]
    return said


def _ad_body(title: str, body: List[str]) -> Record:
    ads = _read_long_ads("\n".join(line for line in body if line))
    inner = ads[0] if ads else {}
    return {name: value for name, value in inner.items() if name != "EventTypeNumber"}


_BODIES: Mapping[int, Callable[[str, List[str]], Record]] = {
    JobEvent.EXECUTE: _execute_body,
    JobEvent.JOB_EVICTED: _evicted_body,
    JobEvent.JOB_TERMINATED: _terminated_body,
    JobEvent.IMAGE_SIZE: _image_size_body,
    JobEvent.SHADOW_EXCEPTION: _message_body("Message"),
    JobEvent.JOB_ABORTED: _reason_body,
    JobEvent.JOB_HELD: _held_body,
    JobEvent.JOB_RELEASED: _reason_body,
    JobEvent.REMOTE_ERROR: _remote_error_body,
    JobEvent.JOB_DISCONNECTED: _message_body("DisconnectReason"),
    JobEvent.JOB_RECONNECT_FAILED: _message_body("Reason"),
    JobEvent.JOB_AD_INFORMATION: _ad_body,
}
