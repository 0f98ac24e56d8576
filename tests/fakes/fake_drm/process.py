"""Processes seen through /proc: identity, descendants, memory; and how to start one detached."""

import os
import signal

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def identity(pid):
    """Return ``[pid, start time]``, which no later process shares; None if ``pid`` is gone or a
    zombie."""
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return [pid, int(fields[19])]


def alive(known):
    """True if the process with that identity still runs. ``known`` may be None."""
    return bool(known) and identity(known[0]) == list(known)


def _stat(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as handle:
            text = handle.read().decode("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(") ")[2].split()


def children(pid):
    """Return the pids of the direct children."""
    found = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread)) as handle:
                found.extend(int(word) for word in handle.read().split())
    except OSError:
        pass
    return found


def descendants(pid):
    """Return the pids of all processes below ``pid``, parents first."""
    found = []
    todo = children(pid)
    while todo:
        child = todo.pop()
        found.append(child)
        todo.extend(children(child))
    return found


def rss_kb(pid):
    """Resident memory of one process; 0 if it is gone."""
    try:
        with open("/proc/%d/statm" % pid) as handle:
            return int(handle.read().split()[1]) * PAGE_KB
    except (OSError, IndexError):
        return 0


def cpu_s(pid):
    """CPU seconds of one process and of its children that it waited for; 0 if it is gone."""
    fields = _stat(pid)
    return 0.0 if fields is None else sum(map(int, fields[11:15])) / CLOCK_TICKS


def send(pid, number):
    """Send a signal; False if the process is gone."""
    try:
        os.kill(pid, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def wake(known):
    """Tell a runner to look at its job's record now."""
    if alive(known):
        send(known[0], signal.SIGUSR1)


def adopt_orphans():
    """Become the parent of grandchildren whose parents die, so that none of a job's processes
    escapes."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError):
        pass


def spawn_detached(argv):
    """Start a process that outlives us, holds none of our files, and is nobody's child of ours."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, 256)
        os.execv(argv[0], argv)
    finally:
        os._exit(127)
