"""One job's process: waits for its start, runs it for real, applies policies, plays what was asked
for.

Started detached by the client (``python launch.py STATE CLUSTER PROC``); ends itself when
the job has left the queue, is held with nothing to wait for, or the state folder is gone.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback

from fake_drm import process
from fake_htcondor import changes, events, expressions, files, play, policies
from fake_htcondor.store import Store
from fake_htcondor.submit import arguments_of, environment_of

WAKE_UPS = {signal.SIGCHLD, signal.SIGUSR1}


def spawn(store, cluster, proc):
    """Start the runner of a job."""
    launcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
    argv = [sys.executable, "-S", "-E", launcher, store.path, str(cluster), str(proc)]
    # it detaches itself: a fork here would not be safe in a process with threads, such as a server
    subprocess.run(argv, stdin=subprocess.DEVNULL, check=True, timeout=120)


def main(argv):
    """``STATE CLUSTER PROC``. Returns an exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WAKE_UPS)
    if not os.path.isdir(argv[0]):
        return 0
    store = Store(argv[0])
    runner = Runner(store, int(argv[1]), int(argv[2]))
    try:
        runner.run()
    except Exception:  # nobody watches us: leave a trace where a test's author looks
        runner.kill(signal.SIGKILL)
        if os.path.isdir(argv[0]):
            with open(os.path.join(store.path, "runner-errors.log"), "a") as handle:
                handle.write("job %s.%s\n%s" % (argv[1], argv[2], traceback.format_exc()))
        return 1
    return 0


class Runner:
    """The life of one job over all its runs."""

    def __init__(self, store, cluster, proc):
        self.store, self.cluster, self.proc = store, cluster, proc
        self.child = None  # the job's script
        self.run_number = None  # which run of the job the child is
        self.starting = False
        self.scratch = None
        self.result = None  # (exit code, signal) of an ended child that is not told yet
        self.generation = None
        self.shown_at = 0.0
        self.step_clock = 0.0

    def run(self):
        """Look at the job, act, sleep until something may have changed."""
        process.adopt_orphans()
        pause = self._register()
        while pause is not None:
            if pause > 0:
                signal.sigtimedwait(WAKE_UPS, pause)
            self._reap()
            try:
                pause = self._step()
            except sqlite3.OperationalError:
                if os.path.isdir(self.store.path):
                    raise
                pause = None  # the test removed its folder
        self.kill(signal.SIGKILL)

    def _register(self):
        with self.store.change() as open_queue:
            job = open_queue.get(self.cluster, self.proc)
            if job is None or process.alive(job.extra.get("runner")):
                return None
            job.extra["runner"] = process.identity(os.getpid())
            open_queue.put(job)
            self.generation = open_queue.settings()["generation"]
        return 0.0

    def _step(self):
        """Act once; the seconds to sleep, or None when there is nothing left to do."""
        with self.store.look() as open_queue:
            job, settings = open_queue.get(self.cluster, self.proc), open_queue.settings()
        if self._may_not_run(job):
            self._end_child(float(settings["vacate_time"]))
            return 0.0
        if job is None:
            return None
        if settings["schedd"] == "down":
            return 0.1
        pause = None
        with self.store.change() as open_queue:
            job = open_queue.get(self.cluster, self.proc)
            if job is None or self._may_not_run(job):  # changed since the look
                return 0.0
            pause = self._act(open_queue, job, settings)
            if pause is None and job.status == changes.HELD:
                job.extra["runner"] = None
                open_queue.put(job)
        return pause

    def _may_not_run(self, job):
        """Tell whether there is a process that has to be ended before anything else."""
        if self.child is None:
            return False
        gone = job is None or job.status != changes.RUNNING
        return gone or job.extra.get("run") != self.run_number

    def _act(self, open_queue, job, settings):
        if self.generation != settings["generation"]:
            self._schedd_is_back(job, settings)
        if job.status == changes.RUNNING:
            pause = self._while_running(job, settings)
        elif job.status == changes.IDLE:
            pause = self._while_idle(job, settings)
        elif job.status == changes.HELD:
            pause = self._while_held(job, settings)
        else:
            pause = self._when_over(open_queue, job)
            if pause is None:
                return None
        open_queue.put(job)
        if job.status in (changes.REMOVED, changes.COMPLETED):
            return self._when_over(open_queue, job)
        return pause

    def _when_over(self, open_queue, job):
        if job.extra.get("forget"):
            open_queue.drop(job)
            return None
        if job.status == changes.COMPLETED and job["LeaveJobInQueue"] is True:
            return 0.2
        if "removal" in job.extra:
            changes.finish_removal(job)
        open_queue.leave(job)
        return None

    def _schedd_is_back(self, job, settings):
        """The schedd started again: running jobs are found again."""
        self.generation = settings["generation"]
        if job.status == changes.RUNNING and job.extra.get("executing"):
            reason = "Local schedd and job shadow died, schedd now running again"
            changes.log(job, events.disconnected(reason, changes.slot(job), changes.STARTD))
            changes.log(
                job,
                events.reconnected(
                    changes.slot(job), changes.STARTD, changes.ADDRESS % "slot1_1_fake"
                ),
            )

    # -- before, while and after

    def _while_held(self, job, settings):
        if policies.apply_periodic(job, settings):
            return 0.0
        step = play.next_step(job, settings)
        if step is not None and step[1] in ("release", "remove", "forget"):
            since = time.time() - job["EnteredCurrentStatus"]
            if since >= step[0]:
                self._play(step, job)
                return 0.0
            return max(0.01, step[0] - since)
        waits = any(name in job.ad for name in ("PeriodicRelease", "PeriodicRemove"))
        waits = waits or settings["system_periodic_release"] or settings["system_periodic_remove"]
        return settings["policy_interval"] if waits else None

    def _while_idle(self, job, settings):
        if policies.apply_periodic(job, settings):
            return 0.0
        target = {
            "Memory": str(settings["memory_mb"]),
            "Cpus": str(settings["cpus"]),
            "Disk": "100000000",
            "Arch": '"X86_64"',
            "OpSys": '"LINUX"',
            "FileSystemDomain": '"localhost"',
        }
        matches = (
            expressions.truth(expressions.evaluate(job.ad["Requirements"], job.ad, target)) is True
        )
        if not matches or job["RequestCpus"] > settings["cpus"]:
            return settings["policy_interval"]
        left = job["QDate"] + settings["start_delay"] - time.time()
        if settings["start_delay"] and left > 0:
            return min(left, settings["policy_interval"])
        changes.matched(job)  # in the queue it runs before its log says EXECUTE
        self.run_number, self.starting = job.extra["run"], True
        return 0.0

    def _while_running(self, job, settings):
        if self.starting:
            self.starting = False
            self._start(job, settings)
            return 0.0
        if self.child is None and self.result is None:  # the runner of before died
            changes.put_back(job)
            return 0.0
        step = play.next_step(job, settings)
        if step is not None:
            left = max(self.step_clock, job.extra.get("executed_at", 0)) + step[0] - time.time()
            if left <= 0:
                return self._play(step, job)
        if self.result is not None:
            if job.extra.get("disconnected"):
                return 0.1
            return self._finish(job)
        if job.extra.get("suspended"):
            return settings["policy_interval"]
        if (
            policies.apply_periodic(job, settings)
            or policies.apply_limits(job, settings)
            or self._over_memory(job, settings)
        ):
            return 0.0
        pause = settings["policy_interval"]
        return pause if step is None else max(0.01, min(pause, left))

    def _over_memory(self, job, settings):
        """Measure the job; True if the execute side held it for its memory."""
        rss_kb = sum(process.rss_kb(pid) for pid in self._pids())
        if rss_kb <= 0:
            return False
        show = time.time() - self.shown_at > settings["image_size_interval"]
        if show or rss_kb > (job["ResidentSetSize_RAW"] or 0):
            changes.measured(job, rss_kb, show)
            self.shown_at = time.time() if show else self.shown_at
        return policies.apply_memory_limit(job, settings, rss_kb)

    def _play(self, step, job):
        if not play.apply(step, job, self._pids()):
            job.extra["forget"] = True
            job.ad["JobStatus"] = str(changes.REMOVED)
        self.step_clock = time.time()
        return 0.0

    def _start(self, job, settings):
        self.result = None
        step = play.next_step(job, settings)
        if play.before_start(step):
            self._play(step, job)
            return
        self.scratch = os.path.join(
            self.store.path, "execute", "dir_%d_%d" % (job.cluster, self.run_number)
        )
        os.makedirs(self.scratch, exist_ok=True)
        try:
            self._launch(job)
        except files.Held as held:
            changes.hold(job, *held.hold)

    def _launch(self, job):
        iwd = job["Iwd"]
        try:
            os.listdir(iwd)
        except OSError as error:
            raise files.Held(
                "Cannot access initial working directory %s: %s" % (iwd, error.strerror),
                14,
                error.errno,
            )
        program = job["Cmd"]
        if files.transfers(job):
            program = files.transfer_input(job, self.scratch)
        streams = files.open_streams(job)
        changes.executing(job, self.scratch)
        self.shown_at = 0.0
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "_CONDOR_SCRATCH_DIR": self.scratch,
            "_CONDOR_SLOT": changes.slot(job),
            "_CONDOR_JOB_IWD": self.scratch,
        }
        environment.update(environment_of(job))
        try:
            self.child = subprocess.Popen(
                [program] + arguments_of(job),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                cwd=self.scratch if files.transfers(job) else iwd,
                env=environment,
                start_new_session=True,
                preexec_fn=_unblock,
            )
        except OSError as error:
            raise files.Held(
                "Failed to execute '%s': (errno=%d: '%s')" % (program, error.errno, error.strerror),
                6,
                error.errno,
            )
        finally:
            for stream in streams:
                os.close(stream)

    def _finish(self, job):
        """The job's process is gone: output transfer, exit policies, the end."""
        exit_code, number = self.result
        self.result = None
        if files.transfers(job):
            try:
                files.transfer_output(job, self.scratch)
            except files.Held as held:
                job.set(ExitBySignal=number is not None)
                job.set(**({"ExitCode": exit_code} if number is None else {"ExitSignal": number}))
                changes.hold(job, *held.hold)
                return 0.0
        changes.ended(job, exit_code, number)
        return 0.0

    # -- processes

    def _pids(self):
        return process.descendants(os.getpid())

    def kill(self, number):
        """Send a signal to all processes of the job."""
        for pid in self._pids():
            process.send(pid, number)

    def _end_child(self, patience_s):
        """End a job that may not run any more."""
        self.kill(signal.SIGTERM)
        self.kill(signal.SIGCONT)
        deadline = time.time() + patience_s
        while self.child is not None and time.time() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.05)
            self._reap()
        self.kill(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()
        self.child = self.result = None

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.child is not None and pid == self.child.pid:
                self.child.returncode = 0  # reaped here, behind its back
                self.child = None
                self.kill(signal.SIGKILL)  # what the script left behind
                self.result = (
                    (os.WEXITSTATUS(status), None)
                    if os.WIFEXITED(status)
                    else (0, os.WTERMSIG(status))
                )


def _unblock():
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
