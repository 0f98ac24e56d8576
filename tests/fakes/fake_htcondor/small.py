"""Stands in for the wheel's own classes where it is not installed: ClassAd, JobEventLog, Submit
and enums.

Only what a manager uses. Text logs, no XML.
"""

import collections.abc
import enum
import os
import re

from fake_htcondor import expressions

EVENT_TYPES = {
    0: "SUBMIT",
    1: "EXECUTE",
    2: "EXECUTABLE_ERROR",
    3: "CHECKPOINTED",
    4: "JOB_EVICTED",
    5: "JOB_TERMINATED",
    6: "IMAGE_SIZE",
    7: "SHADOW_EXCEPTION",
    8: "GENERIC",
    9: "JOB_ABORTED",
    10: "JOB_SUSPENDED",
    11: "JOB_UNSUSPENDED",
    12: "JOB_HELD",
    13: "JOB_RELEASED",
    21: "REMOTE_ERROR",
    22: "JOB_DISCONNECTED",
    23: "JOB_RECONNECTED",
    24: "JOB_RECONNECT_FAILED",
    28: "JOB_AD_INFORMATION",
    29: "JOB_STATUS_UNKNOWN",
    33: "ATTRIBUTE_UPDATE",
    40: "FILE_TRANSFER",
    46: "DATAFLOW_JOB_SKIPPED",
}
JobEventType = enum.IntEnum("JobEventType", {name: number for number, name in EVENT_TYPES.items()})
JobAction = enum.IntEnum(
    "JobAction",
    {
        "Hold": 1,
        "Release": 2,
        "Remove": 3,
        "RemoveX": 4,
        "Vacate": 5,
        "VacateFast": 6,
        "Suspend": 8,
        "Continue": 9,
    },
)
JobStatus = enum.IntEnum(
    "JobStatus",
    {
        "IDLE": 1,
        "RUNNING": 2,
        "REMOVED": 3,
        "COMPLETED": 4,
        "HELD": 5,
        "TRANSFERRING_OUTPUT": 6,
        "SUSPENDED": 7,
    },
)
DaemonType = enum.IntEnum(
    "DaemonType", {"Any": 1, "Master": 2, "Schedd": 3, "Startd": 4, "Collector": 5, "Negotiator": 6}
)
QueryOpt = enum.IntFlag(
    "QueryOpt", {"Default": 0, "AutoCluster": 1, "GroupBy": 2, "DefaultMyJobsOnly": 4}
)
TransactionFlag = enum.IntFlag("TransactionFlag", {"Default": 0, "NonDurable": 1, "ShouldLog": 4})


class HTCondorException(Exception):
    """What the bindings raise."""


class Value(enum.IntEnum):
    """UNDEFINED and ERROR as Python sees them."""

    Error = 1
    Undefined = 2


class ExprTree:
    """An expression that has not been evaluated."""

    def __init__(self, text):
        try:
            expressions.parse(str(text))
        except expressions.ParseError as error:
            raise ValueError(str(error)) from error
        self._text = str(text)

    def __str__(self):
        return self._text

    def eval(self, scope=None, target=None):
        """Evaluate in the scope of an ad."""
        return _python(expressions.evaluate(self._text, scope._texts if scope is not None else {}))


class ClassAd(collections.abc.MutableMapping):
    """An ad: case-insensitive names; literals come as Python values, anything else as ExprTree."""

    def __init__(self, source=None):
        self._texts = {}
        if isinstance(source, str):
            self._texts.update(_split_ad(source))
        elif source:
            self.update(source)

    def _name(self, name):
        lowered = name.lower()
        return next((known for known in self._texts if known.lower() == lowered), None)

    def __getitem__(self, name):
        known = name if name in self._texts else self._name(name)
        if known is None:
            raise KeyError(name)
        text = self._texts[known]
        if text.startswith("["):
            return ClassAd(text)
        if not re.fullmatch(
            r'"(?:\\.|[^"\\])*"|[-+]?[\d.]+(?:[eE][+-]?\d+)?|true|false|undefined|error', text, re.I
        ):
            return ExprTree(text)
        return _python(expressions.evaluate(text, {}))

    def __setitem__(self, name, value):
        text = str(value) if isinstance(value, ExprTree) else expressions.literal(value)
        self._texts[self._name(name) or name] = text

    def __delitem__(self, name):
        del self._texts[self._name(name)]

    def __iter__(self):
        return iter(self._texts)

    def __len__(self):
        return len(self._texts)

    def __contains__(self, name):
        return self._name(name) is not None

    def eval(self, name):
        """Evaluate an attribute."""
        if name not in self:
            raise KeyError(name)
        return _python(expressions.Scope(self._texts).lookup(name))

    def lookup(self, name):
        """Return an attribute as ExprTree."""
        return ExprTree(self._texts[self._name(name)])

    def printOld(self):
        """Return the ad in its old form, a line for each attribute."""
        return "".join("%s = %s\n" % item for item in self._texts.items())

    __str__ = __repr__ = printOld


def _python(value):
    return (
        {expressions.UNDEFINED: Value.Undefined, expressions.ERROR: Value.Error}.get(value, value)
        if isinstance(value, expressions.Special)
        else value
    )


def _split_ad(text):
    """Split ``[a = 1; b = "x;y"]`` into names and expression texts."""
    inner = text.strip()[1:-1]
    parts = re.findall(r'\s*(\w+)\s*=\s*((?:"(?:\\.|[^"\\])*"|\[[^\]]*\]|[^;"\[])*)', inner)
    return {name: value.strip() for name, value in parts}


class Submit(collections.abc.MutableMapping):
    """A submit description."""

    def __init__(self, input=None, queue=None, **more):
        self._commands = {}
        if isinstance(input, str):
            for line in input.splitlines():
                name, equals, value = line.partition("=")
                if equals and not line.strip().startswith("#"):
                    self._commands[_command(name)] = value.strip()
        elif isinstance(input, dict):
            for name, value in input.items():
                self._take(name, value)
        elif input is not None:
            raise TypeError(
                "input must be a dictionary mapping string to strings, a string, or None"
            )
        for name, value in more.items():
            self[name] = value

    def _take(self, name, value):
        if not isinstance(name, str):
            raise TypeError("key must be a string")
        if name.lower() == "queue":
            raise ValueError("the queue statement can not be specified in a dictionary")
        if not isinstance(value, (str, int, float, os.PathLike)):
            raise TypeError("value must be a string")
        if "\n" in str(value):
            raise ValueError("parse_up_to_q_line() failed")
        self._commands[_command(name)] = str(value)

    def __getitem__(self, name):
        return self._commands[_command(name)]

    def __setitem__(self, name, value):
        if not isinstance(value, str):
            raise TypeError("value must be a string")
        self._take(name, value)

    def __delitem__(self, name):
        raise NotImplementedError("delete is not implemented for Submit objects")

    def __iter__(self):
        return iter(self._commands)

    def __len__(self):
        return len(self._commands)


def _command(name):
    name = name.strip()
    return "MY." + name[1:] if name.startswith("+") else name


class SubmitResult:
    """What was submitted."""

    def __init__(self, cluster, first_proc, num_procs, clusterad, spooled):
        self._values = (cluster, first_proc, num_procs, clusterad)

    def cluster(self):
        """The id of the cluster."""
        return self._values[0]

    def first_proc(self):
        """The id of the first job in it."""
        return self._values[1]

    def num_procs(self):
        """How many jobs."""
        return self._values[2]

    def clusterad(self):
        """What the jobs have in common."""
        return self._values[3]

    __int__ = cluster
