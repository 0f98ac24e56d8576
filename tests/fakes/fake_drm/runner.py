"""One job's runner: waits for its turn, runs its script for real, enforces its limits, records its
end.

Started detached by the submit command (``launch.py run-job STATE ID``); it ends itself when the
job has ended, is held, or its state folder is gone. Other commands change the job's record and
send SIGUSR1.
"""

import os
import signal
import sys
import time

from fake_drm import process, transitions
from fake_drm.store import Store

MEMORY_POLL_S = 0.05
IDLE_POLL_S = 1.0
WAKE_UPS = {signal.SIGCHLD, signal.SIGUSR1}
# Between fork and exec Python would make an exception of it, and the job an exit code.
BLOCKED = WAKE_UPS | {signal.SIGINT}
EVENTS = ("node_failure", "preempt", "requeue", "requeue_hold", "forget", "suspend", "resume")


def main(argv):
    """``STATE ID``: run that job to its end. Returns an exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    store = Store(argv[0])
    if store.stopped or store.read(int(argv[1])) is None:
        return 0
    try:
        Runner(store, int(argv[1])).run()
    except Exception:  # nobody watches us: leave a trace where a test's author looks
        import traceback

        with open(os.path.join(store.path, "runner-errors.log"), "a") as handle:
            handle.write("job %s\n%s" % (argv[1], traceback.format_exc()))
        return 1
    return 0


def spawn(store, job_id):
    """Start the runner of a job."""
    launcher = os.path.join(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "launch.py"
    )
    process.spawn_detached(
        [sys.executable, "-S", "-E", launcher, "run-job", store.path, str(job_id)]
    )


class Runner:
    """The life of one job, from pending to its end, over all its restarts."""

    def __init__(self, store, job_id):
        self.store = store
        self.id = job_id
        self.child = None  # pid of the job's script
        self.kill_began = None  # real time of the SIGTERM
        self.killed = 0  # how many signals of the dialect's were sent
        self.stopped = False  # the job's processes were sent SIGSTOP
        self.warned = set()  # indices of the soft limits whose signal was sent
        self.reaped_cpu_s = 0.0
        self.max_rss_kb = 0
        record = store.read(job_id)
        self.dialect = __import__(record["dialect"] + ".dialect", fromlist=["dialect"])

    def _hook(self, name, default):
        """What this DRM's dialect says of ``name``, else Slurm's way."""
        return getattr(self.dialect, name, default)

    def run(self):
        """Look at the job, act, sleep until something may have changed; until there is nothing to
        do."""
        if not self._register():
            return
        process.adopt_orphans()
        pause = 0.0
        while pause is not None:
            if pause > 0:
                signal.sigtimedwait(WAKE_UPS, pause)
            try:
                pause = self._step()
            except FileNotFoundError:  # the test removed its folder
                self._kill_all(signal.SIGKILL)
                return

    def _register(self):
        with self.store.lock():
            record = self.store.read(self.id)
            if record is None or process.alive(record["runner"]):
                return False
            record["runner"] = process.identity(os.getpid())
            self.store.write(record)
        return True

    def _step(self):
        """Act once. Returns the seconds to sleep, or None if the runner is no longer needed."""
        if self.child is not None:
            self._reap()
        self.store.reload()
        record = self.store.read(self.id)
        if record is None or self.store.stopped:
            self._kill_all(signal.SIGKILL)
            return None
        if self.child is not None:
            return self._supervise(record)
        if record["state"] == "pending" and record["why"] not in transitions.NEVER_STARTS:
            return self._try_to_start()
        with self.store.lock():
            record = self.store.read(self.id)
            if record["state"] == "pending" and record["why"] not in transitions.NEVER_STARTS:
                return 0.0
            record["runner"] = None
            self.store.write(record)
        return None

    # -- before the start

    def _try_to_start(self):
        with self.store.lock():
            record = self.store.read(self.id)
            if record["state"] != "pending" or record["why"] in transitions.NEVER_STARTS:
                return 0.0
            pause = self._blocked(record)
            if pause is None and not self._event_before_start(record):
                self._start(record)
            self.store.write(record)
        return 0.0 if pause is None else pause

    def _blocked(self, record):
        """Seconds until it is worth looking again, or None if the job may start."""
        now = self.store.clock.now()
        ready = record["submit_real"] + float(self.store.option(record, "start_delay"))
        if time.time() < ready:
            return ready - time.time()
        if record["begin"] is not None and now < record["begin"]:
            transitions.wait(record, "begin_time")
            return min(1.0, self.store.clock.real_seconds(record["begin"] - now))
        if record["dependency"]:
            state = transitions.dependency_state(record["dependency"], self.store.read)
            if state == "waiting":
                transitions.wait(record, "dependency")
                return 0.2
            if state == "never":
                transitions.wait(record, "dependency_never")
                if self.store.settings["kill_invalid_dependency"]:
                    transitions.end(record, "cancelled", now)
                return 0.0
        if record["throttle"]:
            siblings = self.store.array(record["array_id"])
            busy = sum(one["state"] == "running" for one in siblings)
            earlier = any(
                one["state"] == "pending"
                and one["why"] in ("", "array_limit")
                and one["restarts"] == 0
                and one["task_id"] < record["task_id"]
                for one in siblings
            )
            if busy >= record["throttle"] or earlier:
                transitions.wait(record, "array_limit")
                return 0.2
        return None

    def _event_before_start(self, record):
        """Play what the job's options ask for instead of its start; True if something was
        played."""
        options = record["options"]
        now = self.store.clock.now()
        if record["restarts"] >= float(options.get("times", 1)):
            return False
        delay = float(self.store.option(record, "requeue_delay"))
        if "dependency_never" in options:
            transitions.wait(record, "dependency_never")
        elif "deadline" in options:
            record["deadline"] = now
            transitions.end(record, "deadline", now, 1)
        elif "boot_failure" in options:
            if record["requeue"]:
                transitions.requeue(record, "boot_failure", now, delay)
                record["past"].pop()
            else:
                transitions.end(record, "boot_failure", now, 1)
        elif "launch_failure" in options:
            transitions.fail_launch(record, now, delay)
        else:
            return False
        return True

    def _start(self, record):
        now = self.store.clock.now()
        node = self.store.settings["node"]
        self.max_rss_kb, self.kill_began, self.killed = 0, None, 0
        self.stopped, self.warned, self.reaped_cpu_s = False, set(), 0.0
        if self._hook("refuse_start", lambda *unused: False)(self.store, record, now):
            return
        files = self._open_files(record)
        if files is None:
            transitions.start(record, now, node, None)
            transitions.end(record, "output_error", now, 53)
            return
        environment = self.dialect.environment(record, self.store)
        self.child = os.fork()
        if self.child == 0:
            self._become_job(record, files, environment)
        for descriptor in set(files):
            os.close(descriptor)
        transitions.start(record, now, node, process.identity(self.child) or [self.child, 0])

    def _open_files(self, record):
        """Open the job's three streams; None where one cannot be."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if record["append"] else os.O_TRUNC)
        opened = []
        try:
            opened.append(os.open(record["stdin"], os.O_RDONLY))
            opened.append(self._open_output(record, "stdout", flags))
            same = record["stderr"] == record["stdout"]
            opened.append(opened[1] if same else self._open_output(record, "stderr", flags))
        except OSError:
            for descriptor in set(opened):
                os.close(descriptor)
            return None
        return opened

    def _open_output(self, record, name, flags):
        try:
            return os.open(record[name], flags, 0o644)
        except OSError:
            if not self._hook("RUNS_WITHOUT_OUTPUT", False):
                raise
            record["extra"]["undelivered"] = record[name]
            return os.open(os.devnull, os.O_WRONLY)

    def _become_job(self, record, files, environment):
        """In the forked child: turn into the job's script. Never returns."""
        try:
            os.setsid()
            # Python ignores the first two, a shell's background job the others
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            moved = [os.dup(descriptor) for descriptor in files]
            for number, descriptor in enumerate(moved):
                os.dup2(descriptor, number)
            os.closerange(3, 256)
            try:
                os.chdir(record["workdir"])
            except OSError as error:
                os.write(2, self.dialect.bad_workdir(record, error).encode())
                os.chdir("/tmp")
            script = self.store.spool_path(self.id, "script")
            program, argv = self._hook("command_line", _plain_command)(record, script)
            fed = self._hook("standard_input", lambda *unused: None)(record, script)
            if fed is not None:
                _feed(fed)
            self._hook("set_limits", lambda *unused: None)(record)
            try:
                os.execve(program, argv, environment)
            except OSError as error:
                os.write(2, self.dialect.bad_script(record, script, error).encode())
                os._exit(2)
        finally:
            os._exit(1)

    # -- while it runs

    def _supervise(self, record):
        """Enforce limits, play events, kill what has to be killed. Returns the seconds to sleep."""
        now = self.store.clock.now()
        if record["killing"]:
            return self._kill(record)
        pause = IDLE_POLL_S
        if record["state"] == "running":
            due = self._next_event(record)
            if due is not None:
                if time.time() >= due[0]:
                    self._play(due[1])
                    return 0.0
                pause = min(pause, due[0] - time.time())
            limit = transitions.end_by(record)
            if limit is not None:
                slack = float(self.store.option(record, "limit_slack"))
                left = self.store.clock.real_seconds(limit + slack - now)
                if left <= 0:
                    self._change(lambda job, at: transitions.end(job, "time_limit", at), "running")
                    return 0.0
                pause = min(pause, left)
            pause = min(pause, self._warn(record, now), self._suspend_or_resume(record))
            watched = self._watch_memory(record)
            if self._watch_cpu(record) or watched:
                pause = min(pause, MEMORY_POLL_S)
        return max(pause, 0.001)

    def _warn(self, record, now):
        """Send the signals of soft limits: [simulated seconds, "time" or "cpu", signal]."""
        pause = IDLE_POLL_S
        for number, (limit, kind, signum) in enumerate(record["soft_limits"]):
            if number in self.warned or record["suspended"]:
                continue
            if kind == "cpu":
                left = limit - self._cpu_used()
                pause = min(pause, MEMORY_POLL_S)
            else:
                left = record["start"] + limit + record["paused_s"] - now
                pause = min(pause, max(self.store.clock.real_seconds(left), 0.0))
            if left <= 0:
                self.warned.add(number)
                self._kill_all(signum)
                pause = 0.0
        return pause

    def _suspend_or_resume(self, record):
        wanted = bool(record["suspended"])
        if wanted != self.stopped:
            self._kill_all(signal.SIGSTOP if wanted else signal.SIGCONT)
            self.stopped = wanted
        return IDLE_POLL_S

    def _cpu_used(self):
        """Seconds of CPU time of the job so far, on the simulated clock."""
        live = sum(map(process.cpu_s, process.descendants(os.getpid())))
        return (self.reaped_cpu_s + live) * self.store.clock.scale

    def _watch_cpu(self, record):
        """End a job that used up its CPU time; True if it has a limit to watch."""
        if not record["cpu_limit"]:
            return False
        used = self._cpu_used()
        if used >= record["cpu_limit"]:

            def over(job, now):
                job["cpu_s"] = used
                transitions.end(job, "cpu_limit", now)

            self._change(over, "running")
        return True

    def _change(self, change, state=None):
        """Apply ``change(record, now)`` under the lock, if the job still is in ``state``."""
        with self.store.lock():
            record = self.store.read(self.id)
            if (
                record is not None
                and (state is None or record["state"] == state)
                and not record["killing"]
            ):
                change(record, self.store.clock.now())
                self.store.write(record)

    def _next_event(self, record):
        if record["restarts"] >= float(record["options"].get("times", 1)):
            return None
        events = [
            (record["start_real"] + float(record["options"][name]), name)
            for name in EVENTS
            if name in record["options"]
        ]
        done = {
            "forget": record["forgotten"],
            "suspend": record["suspended"] or record["paused_s"],
            "resume": not record["suspended"],
        }
        events = [event for event in events if not done.get(event[1])]
        return min(events) if events else None

    def _play(self, name):
        self._change(lambda record, now: play(self.store, record, name, now), "running")

    def _watch_memory(self, record):
        """Measure, and act on, the job's memory; True if it has a limit to watch."""
        pids = process.descendants(os.getpid())
        sizes = {pid: process.rss_kb(pid) for pid in pids}
        used_kb = sum(sizes.values())
        self.max_rss_kb = max(self.max_rss_kb, used_kb)
        style = self.store.option(record, "memory_limit")
        if record["memory_per"] == "default" or not record["memory_mb"] or style == "none":
            return False
        limit_kb = (
            1024 * record["memory_mb"] * (record["cpus"] if record["memory_per"] == "cpu" else 1)
        )
        if used_kb > limit_kb:
            if style == "overmemkill":
                self._say(
                    record,
                    self.dialect.memory_kill(
                        record, used_kb * 1024, limit_kb * 1024, time_of(self.store)
                    ),
                )
                self._change(
                    lambda job, now: job.update(killing="memory_kill", rss_kb=used_kb), "running"
                )
                self._kill_all(signal.SIGKILL)
            else:
                self._change(lambda job, now: job.update(memory_exceeded=True), "running")
                process.send(max(sizes, key=lambda pid: sizes[pid]), signal.SIGKILL)
        return True

    # -- the end

    def _kill(self, record):
        """The DRM's line in the job's stderr, its signals (SIGTERM, where the dialect names no
        others), each ``kill_wait`` after the one before, and SIGKILL."""
        if self.kill_began is None:
            self.kill_began = time.time()
            self._say(record, self.dialect.killed(record, record["killing"], time_of(self.store)))
        signals = self._hook("kill_signals", lambda *unused: [signal.SIGTERM])(record)
        wait = (
            0.0
            if record["killing"] in ("node_failure", "memory_kill")
            else float(self.store.option(record, "kill_wait"))
        )
        left = self.kill_began + wait * self.killed - time.time()
        if left > 0:
            return left
        if self.killed < len(signals):
            self._kill_all(signals[self.killed])
            self._kill_all(signal.SIGCONT)
            self.killed += 1
            return wait
        self._kill_all(signal.SIGKILL)
        return 0.05

    def _kill_all(self, number):
        for pid in process.descendants(os.getpid()):
            process.send(pid, number)

    def _say(self, record, text):
        if not text:
            return
        try:
            with open(record["stderr"], "a") as handle:
                handle.write(text)
        except OSError:
            pass

    def _reap(self):
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.reaped_cpu_s += usage.ru_utime + usage.ru_stime
            if pid == self.child:
                self._script_ended(status, usage.ru_maxrss)

    def _script_ended(self, status, maxrss_kb):
        self._kill_all(signal.SIGKILL)  # what the script left behind
        self.child = None
        with self.store.lock():
            record = self.store.read(self.id)
            if record is None:
                return
            now = self.store.clock.now()
            completing = float(self.store.option(record, "completing"))
            record["rss_kb"] = max(self.max_rss_kb, maxrss_kb)
            record["cpu_s"] = max(record["cpu_s"], self.reaped_cpu_s * self.store.clock.scale)
            record["script_exit"] = status
            if record["state"] == "running":
                if record["memory_exceeded"]:
                    self._say(record, self.dialect.out_of_memory(record))
                transitions.exited(record, status, now, completing)
            else:
                transitions.finished(record, status, now, completing)
            self._hook("run_over", lambda *unused: None)(self.store, record, now)
            self.store.write(record)


def _plain_command(record, script):
    return script, [script] + record["arguments"]


def _feed(text):
    """Let the standard input be this text, which has to be short enough for a pipe."""
    reader, writer = os.pipe()
    os.write(writer, text.encode("utf-8", "surrogateescape"))
    os.close(writer)
    os.dup2(reader, 0)
    os.close(reader)


def time_of(store):
    """The simulated time now."""
    return store.clock.now()


def play(store, record, name, now):
    """Apply one of EVENTS, or a neutral state change of the same kind, to a running job's
    record."""
    delay = float(store.option(record, "requeue_delay"))
    completing = float(store.option(record, "completing"))
    if name == "node_failure":
        transitions.fail_node(record, now, delay)
    elif name == "preempt":
        transitions.preempt(record, now, delay, completing)
    elif name == "requeue":
        transitions.requeue(record, "requeued", now, delay)
    elif name == "requeue_hold":
        transitions.requeue(record, "requeued", now, delay, "requeued_held")
    elif name == "forget":
        record["forgotten"] = True
    elif name == "suspend":
        transitions.suspend(record, now, "system")
    elif name == "resume":
        transitions.resume(record, now)
    else:
        raise ValueError("no event %r; known: %s" % (name, ", ".join(EVENTS)))
