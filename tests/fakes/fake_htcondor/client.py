"""Schedd and Collector over a state folder, with the traps of the real bindings (htcondor 25.14.1).

``bind`` makes them for the classes they have to return: those of the wheel where it is there, else
``small``'s.
"""

import re
import time

from fake_drm import process
from fake_htcondor import changes, expressions, runner, submit
from fake_htcondor.store import Job, open_store

IDS = re.compile(r"\d+\.\d+")
SPOOL_REASON = "Spooling input data files"
SPOOLED_LEAVES = (
    "JobStatus == 4 && (time() - (CompletionDate ?: time())) < 864000 && "
    "(StageOutFinish ?: 0) < EnteredCurrentStatus"
)


def bind(kit):
    """Return (Schedd, Collector) that use the ClassAd, ExprTree, JobAction ... of ``kit``."""

    class Collector:
        """Knows one schedd, whatever pool is asked for."""

        def __init__(self, pool=None):
            self._store = open_store()

        def locate(self, daemon_type, name=None):
            """Return the location of the schedd, or None for an unknown name."""
            if not isinstance(daemon_type, kit.DaemonType):
                raise TypeError("daemon_type must be a DaemonType")
            settings = self._store.settings()
            if settings["collector"] == "down" or (name is None and settings["schedd"] == "down"):
                raise kit.HTCondorException("Unable to locate local daemon.")
            if daemon_type != kit.DaemonType.Schedd or name not in (None, settings["schedd_name"]):
                return None
            return _classad(kit, _location(settings))

        def locateAll(self, daemon_type):
            """Return the locations of all daemons of a type."""
            return self.query(daemon_type)

        def query(self, ad_type=None, constraint="true", projection=()):
            """Return what the collector knows of a type (None: all): the schedd's ad."""
            settings = self._store.settings()
            if settings["collector"] == "down":
                raise kit.HTCondorException("Failed communication with collector.")
            wanted = _condition(kit, constraint, "Failed to parse constraint")
            if ad_type not in (None, kit.DaemonType.Schedd) or not wanted(_location(settings)):
                return []
            return [_classad(kit, _location(settings), projection)]

    class Schedd:
        """The schedd of the state folder, at the address it had when this object was made."""

        def __init__(self, location=None):
            if location is None:
                location = Collector().locate(kit.DaemonType.Schedd)
            if not isinstance(location, kit.ClassAd):
                raise TypeError("location must be a ClassAd")
            self._addr = location["MyAddress"]
            self._version = location["CondorVersion"]
            self._store = open_store()

        def _reach(self, failure):
            """Raise if this address has no schedd now."""
            settings = self._store.settings()
            if settings["schedd"] == "down" or self._addr != changes.host(settings):
                raise kit.HTCondorException(failure.replace("ADDRESS", self._addr))
            return settings

        def query(self, constraint="True", projection=[], callback=None, limit=-1, opts=None):
            """Return the ads of the jobs in the queue that match."""
            int(opts or 0)
            self._reach(
                "Failed to fetch ads from schedd, errmsg=CEDAR:6001:Failed to connect to ADDRESS"
            )
            wanted = _condition(kit, constraint, "Failed to fetch ads from schedd, errmsg=")
            found = []
            with self._store.look() as queue:
                for job in queue.jobs():
                    if 0 <= limit <= len(found):
                        break
                    if wanted(job.ad):
                        found.append(_classad(kit, job.ad, projection, server_time=True))
            if callback is None:
                return found
            return [one for one in map(callback, found) if one is not None]

        def history(self, constraint, projection=[], match=-1, **_):
            """Return the ads of the jobs that have left the queue, the newest first."""
            self._reach("Failed to connect to ADDRESS")
            wanted = _condition(kit, constraint, "Failed to parse constraint")
            found = []
            with self._store.look() as queue:
                for job in queue.history():
                    if 0 <= match <= len(found):
                        break
                    if wanted(job.ad):
                        found.append(_classad(kit, job.ad, projection))
            return found

        def act(self, action, job_spec, reason=None):
            """Hold, release, remove ... jobs; return totals. A plain string as reason is lost."""
            if not isinstance(action, kit.JobAction):
                raise TypeError("action must be a JobAction")
            text, code = None, None
            if reason is None:
                text = "Python-initiated action"
            elif isinstance(reason, tuple):
                text, code = reason
            by_id, matches = _selection(kit, job_spec)
            self._reach("Error when performing action on the schedd.")
            totals = dict.fromkeys(("Success", "NotFound", "BadStatus", "AlreadyDone"), 0)
            with self._store.change() as queue:
                jobs = list(queue.jobs())
                chosen = [job for job in jobs if matches(job)]
                totals["NotFound"] = len(by_id) - len(chosen) if by_id else 0
                if text is not None:
                    text += " (by user %s)" % queue.settings()["owner"]
                for job in chosen:
                    totals[_act_on(queue, job, action.name, text, code)] += 1
            for job in chosen:
                _wake(self._store, job.cluster, job.proc)
            return _totals(kit, totals, len(jobs))

        def edit(self, job_spec, attr, value, flags=None):
            """Set an attribute (an expression's text); return how many jobs it was set in."""
            _, matches = _selection(kit, job_spec)
            self._reach(
                "Failed to connect to schedd, errmsg=CEDAR:6001:Failed to connect to ADDRESS"
            )
            with self._store.change() as queue:
                chosen = [job for job in queue.jobs() if matches(job)]
                if not chosen:
                    raise kit.HTCondorException("Unable to edit jobs matching constraint")
                for job in chosen:
                    job.ad[attr] = str(value)
                queue.put(*chosen)
            for job in chosen:
                _wake(self._store, job.cluster, job.proc)
            return len(chosen)

        def submit(self, description, count=0, spool=False, itemdata=None, queue=None):
            """Queue jobs and start them; return a SubmitResult."""
            settings = self._reach(
                "Failed to connect to schedd, errmsg=CEDAR:6001:Failed to connect to ADDRESS"
            )
            if not isinstance(description, kit.Submit):
                raise TypeError("description must be a Submit object")
            if settings["owner"] == "root":
                raise kit.HTCondorException(
                    'Unable to commit transaction, SCHEDD:2:Setting job owner to "root" is '
                    "not permitted"
                )
            commands = {name.lower(): description[name] for name in description.keys()}
            items = (
                [
                    dict((key.lower(), submit.item_value(value)) for key, value in item.items())
                    for item in itemdata
                ]
                if itemdata is not None
                else [{}]
            )
            items = [item for item in items for _ in range(count or 1)]
            with self._store.change() as open_queue:
                cluster = open_queue.new_cluster()
                try:
                    jobs = [
                        Job(cluster, proc, submit.job_ad(commands, cluster, proc, settings, item))
                        for proc, item in enumerate(items)
                    ]
                except submit.SubmitError as error:
                    raise kit.HTCondorException(
                        "Failed to create job ad, errmsg=Submit:-1:%s" % error
                    ) from None
                for job in jobs:
                    job.set(TotalSubmitProcs=len(jobs))
                    if spool:
                        job.set(JobStatus=5, HoldReason=SPOOL_REASON, HoldReasonCode=16)
                        job.ad["LeaveJobInQueue"] = SPOOLED_LEAVES
                open_queue.put(*jobs)
            for job in jobs:
                changes.submitted(job, settings)
                if job.status == changes.IDLE:
                    runner.spawn(self._store, job.cluster, job.proc)
            return kit.SubmitResult(cluster, 0, len(jobs), _classad(kit, jobs[0].ad), None)

        def spool(self, result):
            """Send the input files of a job submitted with spool=True: its hold 16 ends."""
            self._reach("Failed to connect to ADDRESS")
            with self._store.change() as queue:
                jobs = [job for job in queue.jobs() if job.cluster == result.cluster()]
                for job in jobs:
                    changes.spooled(job)
                queue.put(*jobs)
            for job in jobs:
                _wake(self._store, job.cluster, job.proc)

        def retrieve(self, job_spec):
            """Fetch the output (it is in place already): a spooled job may leave the queue now."""
            _, matches = _selection(kit, job_spec)
            self._reach("Failed to connect to ADDRESS")
            with self._store.change() as queue:
                jobs = [job for job in queue.jobs() if matches(job)]
                for job in jobs:
                    job.set(StageOutFinish=int(time.time()))
                queue.put(*jobs)

        def reschedule(self):
            """Ask for a negotiation cycle: there is none to wait for."""

    return Schedd, Collector


def _location(settings):
    values = {
        "MyType": "Scheduler",
        "Name": settings["schedd_name"],
        "Machine": "localhost",
        "MyAddress": changes.host(settings),
        "CondorVersion": "$CondorVersion: %s 2024-06-01 $" % settings["version"],
    }
    return {name: expressions.literal(value) for name, value in values.items()}


def _classad(kit, ad, projection=(), server_time=False):
    """Return a ClassAd object of a dict of expression texts."""
    if projection:
        wanted = {name.lower() for name in projection}
        ad = {name: text for name, text in ad.items() if name.lower() in wanted}
    if server_time:
        ad = dict(ad, ServerTime=str(int(time.time())))
    return kit.ClassAd("[%s]" % "; ".join("%s = %s" % item for item in ad.items()))


def _condition(kit, constraint, failure):
    """Return a function that tells whether an ad matches a constraint."""
    text = str(constraint)
    try:
        parsed = expressions.parse(text)
    except expressions.ParseError as error:
        raise kit.HTCondorException(failure) from error
    return lambda ad: expressions.truth(parsed(expressions.Scope(ad))) is True


def _selection(kit, spec):
    """Return (ids or None, function that tells whether a job is meant) of a job_spec."""
    if isinstance(spec, list):
        if not all(isinstance(one, str) for one in spec):
            raise TypeError("All elements of the job_spec list must be strings.")
        if not all(re.fullmatch(r"\d+(\.\d+)?", one) for one in spec):
            raise ValueError(
                "All elements of the job_spec list must be strings of the form clusterID[.procID]"
            )
        names = set(spec)
        by_id = spec if all(IDS.fullmatch(one) for one in spec) else None
        return by_id, lambda job: bool(
            names & {"%d.%d" % (job.cluster, job.proc), str(job.cluster)}
        )
    if isinstance(spec, str) and IDS.fullmatch(spec):
        return [spec], lambda job: "%d.%d" % (job.cluster, job.proc) == spec
    if isinstance(spec, int) or (isinstance(spec, str) and re.fullmatch(r"\d+", spec)):
        return None, lambda job: job.cluster == int(spec)
    if not isinstance(spec, (str, kit.ExprTree)):
        raise TypeError("The job_spec must be list of strings, a string, an int, or an ExprTree.")
    try:
        parsed = expressions.parse(str(spec))
    except expressions.ParseError:
        raise ValueError(
            "The job_spec string must be a clusterID[.procID] or the string form of an ExprTree."
        ) from None
    return None, lambda job: expressions.truth(parsed(expressions.Scope(job.ad))) is True


def _act_on(queue, job, action, reason, code):
    """Do one action to one job; return which total it counts in."""
    status = job.status
    if action == "RemoveX":
        if status != changes.REMOVED:
            return "BadStatus"
        changes.remove_at_once(job, reason)
        queue.leave(job)
        return "Success"
    if action == "Remove":
        if status == changes.REMOVED:
            return "AlreadyDone"
        if status == changes.RUNNING and process.alive(job.extra.get("runner")):
            changes.mark_removed(job, reason)
            queue.put(job)
        else:
            changes.remove(job, reason)
            queue.leave(job)
        return "Success"
    if action == "Hold":
        if status == changes.HELD:
            return "AlreadyDone"
        if status in (changes.REMOVED, changes.COMPLETED):
            return "BadStatus"
        changes.hold(job, reason, 1, int(code or 0))
    elif action == "Release":
        if status != changes.HELD or job["HoldReasonCode"] == 16:
            return "BadStatus"
        changes.release(job, reason)
    elif action in ("Vacate", "VacateFast"):
        if status != changes.RUNNING:
            return "BadStatus"
        changes.put_back(job, changes.events.evicted("", changes.table(job)))
    elif action in ("Suspend", "Continue"):
        if status != changes.RUNNING:
            return "BadStatus"
        suspended = action == "Suspend"
        job.extra["suspended"] = suspended
        changes.log(job, changes.events.suspended(1) if suspended else changes.events.unsuspended())
    else:
        return "BadStatus"
    queue.put(job)
    return "Success"


def _totals(kit, totals, jobs):
    ad = kit.ClassAd()
    ad["TotalError"] = 0
    for name, number in totals.items():
        ad["Total" + name] = number
    ad["TotalPermissionDenied"] = 0
    ad["TotalJobAds"] = jobs
    ad["TotalChangedAds"] = 1 if totals["Success"] else 0
    return ad


def _wake(store, cluster, proc):
    """Tell a job's runner to look, or start one where the job needs it."""
    with store.look() as queue:
        job = queue.get(cluster, proc)
    if job is None:
        return
    if process.alive(job.extra.get("runner")):
        process.wake(job.extra["runner"])
    else:
        runner.spawn(store, cluster, proc)
