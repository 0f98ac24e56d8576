"""Reads text event logs where the wheel is not installed: JobEventLog and JobEvent."""

import collections.abc
import datetime
import os
import re
import time

from fake_htcondor.small import EVENT_TYPES, ClassAd, HTCondorException, JobEventType

HEAD = re.compile(
    r"(\d{3}) \((\d+)\.(\d+)\.(\d+)\) (\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)Z? ?(.*)"
)
TERMINATED = re.compile(
    r"\((\d)\) (?:Normal termination \(return value (-?\d+)\)|"
    r"Abnormal termination \(signal (\d+)\))"
)
CODES = re.compile(r"\tCode (-?\d+) Subcode (-?\d+)\n?")
END = "...\n"


class JobEvent(collections.abc.Mapping):
    """One event of a log."""

    def __init__(self, data, text):
        self._data, self._text = ClassAd(), text
        self._data.update(data)

    @property
    def type(self):
        """The type; ValueError on an unknown number."""
        return JobEventType(self._data["EventTypeNumber"])

    @property
    def cluster(self):
        """The id of the cluster."""
        return self._data["Cluster"]

    @property
    def proc(self):
        """The id of the job in it."""
        return self._data["Proc"]

    @property
    def timestamp(self):
        """Seconds since the epoch; the log's times are local."""
        return int(
            datetime.datetime.strptime(
                self._data["EventTime"].split(".")[0], "%Y-%m-%dT%H:%M:%S"
            ).timestamp()
        )

    def __getitem__(self, name):
        return self._data[name]

    def __iter__(self):
        return iter(self._data)

    def __len__(self):
        return len(self._data)

    def __str__(self):
        return self._text


class JobEventLog:
    """Reads the events of a text log from where it stopped."""

    def __init__(self, filename):
        if not isinstance(filename, str):
            raise TypeError("filename must be a string")
        self._filename, self._offset, self._deadline = filename, 0, 0.0
        self._open()

    def _open(self):
        try:
            self._handle = open(self._filename, "rb")
        except OSError as error:
            raise HTCondorException(
                "Could not initialize JobEventLog: %s: %r"
                % (os.strerror(error.errno), self._filename)
            ) from error

    def events(self, stop_after=None):
        """Return an iterator; 0 does not wait, None waits for ever."""
        if stop_after is not None and not isinstance(stop_after, int):
            raise TypeError("deadline must be an integer")
        self._deadline = float("inf") if stop_after is None else time.time() + stop_after
        return self

    def __iter__(self):
        return self

    def __next__(self):
        while not self._handle.closed:
            self._handle.seek(self._offset)
            rest = self._handle.read()
            end = rest.find(END.encode())
            while end > 0 and rest[end - 1] != 10:  # three dots within a line
                end = rest.find(END.encode(), end + 1)
            if end >= 0:
                self._offset += end + len(END)
                event = parse_event(rest[:end].decode("utf-8", "surrogateescape"))
                if event is None:
                    raise StopIteration  # garbage ends a pass
                return event
            if time.time() >= self._deadline:
                break
            time.sleep(0.05)
        raise StopIteration

    def close(self):
        """Close the log."""
        self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __getstate__(self):
        return (self._filename, self._offset)

    def __setstate__(self, state):
        self._filename, self._offset = state
        self._deadline = 0.0
        self._open()


def parse_event(text):
    """Return the JobEvent of one event's text (without its line of dots), or None for garbage."""
    match = HEAD.match(text)
    if match is None:
        return None
    number, cluster, proc, subproc = (int(match.group(place)) for place in (1, 2, 3, 4))
    data = {
        "EventTypeNumber": number,
        "Cluster": cluster,
        "Proc": proc,
        "Subproc": subproc,
        "EventTime": "%sT%s" % (match.group(5), match.group(6)),
        "MyType": "FutureEvent",
    }
    if number in EVENT_TYPES:
        data["MyType"] = EVENT_TYPES[number].title().replace("_", "") + "Event"
    lines = [line[1:] if line.startswith("\t") else line for line in text.splitlines()[1:]]
    data.update(_details(number, match.group(7), lines, text))
    return JobEvent(data, text)


def _details(number, head, lines, text):
    found = {}
    codes = CODES.search(text)
    ended = TERMINATED.search(text)
    if codes:
        found.update(HoldReasonCode=int(codes.group(1)), HoldReasonSubCode=int(codes.group(2)))
    if number in (4, 5) and ended:
        found["TerminatedNormally"] = ended.group(2) is not None
        key, value = (
            ("ReturnValue", ended.group(2))
            if ended.group(2)
            else ("TerminatedBySignal", ended.group(3))
        )
        found[key] = int(value)
    if number == 0:
        found["SubmitHost"] = head.rpartition("host: ")[2]
    elif number == 1:
        found["ExecuteHost"] = head.rpartition("host: ")[2]
        slot = re.search(r"SlotName: (.*)", text)
        found.update({"SlotName": slot.group(1)} if slot else {})
    elif number == 4:
        found.setdefault("TerminatedNormally", False)
        found["TerminatedAndRequeued"] = "Job terminated and was requeued" in text
        words = [
            line
            for line in lines[1:]
            if line[:1].isalpha() and not line.startswith("Partitionable")
        ]
        found.update({"Reason": words[0]} if words else {})
    elif number == 6:
        found["Size"] = int(head.rpartition(" ")[2])
        for name, pattern in (
            ("MemoryUsage", r"(\d+)  -  MemoryUsage"),
            ("ResidentSetSize", r"(\d+)  -  Resident"),
        ):
            measured = re.search(pattern, text)
            found.update({name: int(measured.group(1))} if measured else {})
    elif number == 12 and lines and lines[0] != "Reason unspecified":
        found["HoldReason"] = lines[0]
    elif number == 21:
        found["ErrorMsg"] = lines[0] if lines else ""
    elif number in (9, 13) and lines and lines[0]:
        found["Reason"] = lines[0]
    elif number == 7 and lines:
        found["Message"] = lines[0]
    elif number == 22 and lines:
        found["DisconnectReason"] = lines[0].strip()
    elif number == 24 and lines:
        found["Reason"] = lines[0].strip()
    elif number == 40:
        kinds = {
            "Started transferring input files": 2,
            "Finished transferring input files": 3,
            "Started transferring output files": 5,
            "Finished transferring output files": 6,
        }
        found["Type"] = kinds.get(head.strip(), 0)
    return found
