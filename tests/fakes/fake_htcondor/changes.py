"""What happens to a job: the change in its ad, and the events in its log, in HTCondor's order.

Called by the client's ``act`` (users), by the runner (policies, ends) and by what is played;
always with the job's Queue open for change.
"""

import time

from fake_htcondor import events

IDLE, RUNNING, REMOVED, COMPLETED, HELD = 1, 2, 3, 4, 5
ADDRESS = "<127.0.0.1:9618?addrs=127.0.0.1-9618&alias=localhost&noUDP&sock=%s>"
STARTD = ADDRESS % "startd_1_fake"
# How a hold of a running job looks, by its code: policies leave nothing but JOB_HELD, a user's hold
# kills the job first, and what the execute side or the file transfer found is told by REMOTE_ERROR.
POLICY_HOLDS = (3, 5, 26, 27, 46, 47)
USER_HOLDS = (1,)
BEFORE_EXECUTE = (7, 8, 10, 13, 19)  # the starter's, before the job's own process
WITHOUT_STARTER = (
    14,
    15,
    16,
    20,
    22,
    32,
)  # the shadow's or the schedd's, before there is a starter


def log(job, event, when=None):
    """Write an event into the job's log, if it has one that can be written."""
    path = job["UserLog"]
    if path:
        events.append(path, job.cluster, job.proc, event, when)


def slot(job):
    """The name of the job's slot."""
    return "slot1_%d@localhost" % (1 + job.cluster % 16)


def provisioned(job):
    """What the slot gives: (cpus, disk KB, memory MB), rounded up as a partitionable slot does."""
    cpus, disk, memory = requested(job)
    return cpus, disk + 1024, max(128, -(-memory // 128) * 128)


def requested(job):
    """What the job asked for: (cpus, disk KB, memory MB)."""
    return tuple(int(job[name] or 0) for name in ("RequestCpus", "RequestDisk", "RequestMemory"))


def table(job, executed=True):
    """The usage table for the job's log."""
    seconds = int(time.time()) - int(job["JobCurrentStartDate"] or time.time())
    memory = job["MemoryUsage"] if executed else None
    return events.usage_table(
        requested(job),
        provisioned(job),
        int(job["DiskUsage"] or 1),
        memory,
        seconds if executed else None,
    )


def host(settings):
    """The schedd's address."""
    return ADDRESS % ("schedd_1_%04d" % settings["generation"])


def submitted(job, settings):
    """The job is in the queue."""
    log(job, events.submit(host(settings)))


def matched(job):
    """A shadow starts for the job; its process does not run yet."""
    now = int(time.time())
    job.enter(RUNNING)
    job.set(
        JobStartDate=int(job["JobStartDate"] or now),
        JobCurrentStartDate=now,
        RemoteHost=slot(job),
        NumShadowStarts=job["NumShadowStarts"] + 1,
        NumJobMatches=job["NumJobMatches"] + 1,
        JobRunCount=(job["JobRunCount"] or 0) + 1,
        ShadowBday=now,
        LastMatchTime=now,
    )
    job.extra["run"] = job.extra.get("run", 0) + 1
    job.extra["executing"] = False


def executing(job, scratch):
    """The job's process runs."""
    cpus, disk, memory = provisioned(job)
    log(job, events.execute(STARTD, slot(job), scratch, cpus, disk, memory))
    job.set(JobCurrentStartExecutingDate=int(time.time()))
    job.extra.update(executing=True, executed_at=time.time())


def measured(job, rss_kb, show):
    """The memory in use; it is told in the log with ``show``."""
    job.set(
        ResidentSetSize_RAW=rss_kb,
        ResidentSetSize=-(-rss_kb // 250) * 250,
        ImageSize_RAW=rss_kb,
        ImageSize=-(-rss_kb // 2500) * 2500,
    )
    job.ad["MemoryUsage"] = "((ResidentSetSize + 1023) / 1024)"
    if show:
        log(job, events.image_size(rss_kb, (rss_kb + 1023) // 1024, rss_kb))


def stopped(job, killed=True):
    """The pool ends the job's run: what every such end leaves in the ad.

    ``killed`` is false where the starter gave up by itself: it then reports no end of a process.
    """
    now = int(time.time())
    killed = killed and job.extra.get("executing", False)
    if killed:
        job.set(ExitBySignal=True, ExitSignal=15, ExitReason="died on signal 15 (Terminated)")
        job.ad["ToE"] = (
            '[ How = "DEACTIVATE_CLAIM"; Who = "<127.0.0.1:9618>"; When = %d; HowCode = 1 ]' % now
        )
    _run_is_over(job, now)
    job.set(VacateReason="", VacateReasonCode=0, VacateReasonSubCode=0, LastVacateTime=now)
    job.extra["killed_at"] = now if killed else None


def _run_is_over(job, now):
    lasted = float(now - int(job["JobCurrentStartDate"] or now))
    job.set(
        LastRemoteHost=slot(job),
        LastRemoteWallClockTime=lasted,
        NumJobStarts=job["NumJobStarts"] + 1,
        RemoteWallClockTime=(job["RemoteWallClockTime"] or 0.0) + lasted,
        JobLastStartDate=job["JobCurrentStartDate"],
    )
    job.drop("RemoteHost", "ShadowBday")


def hold(job, reason, code, subcode=0, remote_message=None, remote_code=None):
    """The job is held. ``remote_message``: the starter's own text where REMOTE_ERROR differs."""
    if job.status == RUNNING:
        executed = job.extra.get("executing", False)
        usage = table(job, executed)
        stopped(job, killed=code in POLICY_HOLDS + USER_HOLDS)
        if code in USER_HOLDS:
            log(job, events.evicted("", usage))
        elif code not in POLICY_HOLDS + WITHOUT_STARTER:
            message = remote_message or reason
            if remote_message is None:
                reason = "Error from %s: %s" % (slot(job), reason)
            log(job, events.remote_error(slot(job), message, remote_code or code, subcode))
            log(job, events.evicted(reason.replace("\n", "|"), usage))
    log(job, events.held(reason, code, subcode))
    job.enter(HELD)
    job.set(
        HoldReason=reason or "",
        HoldReasonCode=code,
        HoldReasonSubCode=subcode,
        NumHolds=job["NumHolds"] + 1,
    )


def release(job, reason):
    """A held job may run again. ``reason`` None: the client lost it."""
    in_cluster_ad = job["HoldReasonCode"] == 15
    _forget_hold(job)
    if in_cluster_ad:  # it can only be overridden there
        job.ad.update(HoldReason="undefined", HoldReasonCode="undefined")
    if reason is not None:
        job.set(ReleaseReason=reason)
    job.enter(IDLE)
    log(job, events.released(reason))


def _forget_hold(job):
    for name in ("HoldReason", "HoldReasonCode", "HoldReasonSubCode"):
        if name in job.ad:
            job.ad["Last" + name] = job.ad.pop(name)


def spooled(job):
    """The input files have come: the hold ends without an event, its attributes UNDEFINED."""
    _forget_hold(job)
    job.ad.update(HoldReason="undefined", HoldReasonCode="undefined")
    job.set(ReleaseReason="Data files spooled", StageInFinish=int(time.time()))
    job.enter(IDLE)


def remove(job, reason, evicts=True):
    """The job is removed. Policies leave no JOB_EVICTED (``evicts=False``)."""
    if job.status == RUNNING:
        mark_removed(job, reason)
        finish_removal(job, evicts)
        return
    log(job, events.aborted(reason, job.extra.get("killed_at")))
    job.enter(REMOVED)
    if reason is not None:
        job.set(RemoveReason=reason)


def mark_removed(job, reason):
    """A running job is to go: JobStatus is 3 until its processes are gone."""
    job.extra["removal"] = reason
    job.enter(REMOVED)
    if reason is not None:
        job.set(RemoveReason=reason)


def finish_removal(job, evicts=True):
    """The processes of a job that was marked are gone, and so is the job."""
    reason, usage = job.extra.pop("removal"), table(job)
    executed = job.extra.get("executing")
    stopped(job)
    if executed and evicts:
        log(job, events.evicted("", usage))
    log(job, events.aborted(reason, job.extra["killed_at"]))


def remove_at_once(job, reason):
    """RemoveX: a job that was removed goes whether its processes are gone or not."""
    job.extra.pop("removal", None)
    if reason is not None:
        job.set(RemoveReason=reason)
    log(job, events.aborted(reason))


def put_back(job, *told):
    """A running job goes back to idle; ``told`` are the events that say why."""
    for event in told:
        log(job, event)
    if job.status == RUNNING:
        stopped(job)
    job.enter(IDLE)


def ended(job, exit_code, signal):
    """The job's process ended by itself: False if the job is held or runs again for it."""
    now = int(time.time())
    job.set(ExitBySignal=signal is not None, NumJobCompletions=job["NumJobCompletions"] + 1)
    if signal is None:
        job.set(ExitCode=exit_code, ExitStatus=exit_code)
    else:
        job.set(ExitSignal=signal, ExitReason="died on signal %d" % signal)
    inner = (
        "ExitCode = %d; ExitBySignal = false" % exit_code
        if signal is None
        else "ExitSignal = %d; ExitBySignal = true" % signal
    )
    job.ad["ToE"] = '[ How = "OF_ITS_OWN_ACCORD"; Who = "itself"; When = %d; HowCode = 0; %s ]' % (
        now,
        inner,
    )
    usage = table(job)
    _run_is_over(job, now)
    if job["OnExitHold"] is True:
        text = (
            "The job attribute OnExitHold expression '%s' evaluated to TRUE" % job.ad["OnExitHold"]
        )
        reason, subcode = job["OnExitHoldReason"] or text, job["OnExitHoldSubCode"] or 0
        job.extra["executing"] = False
        job.enter(IDLE)  # its run is over: what follows is the hold of a job that does not run
        hold(job, reason, 3, subcode)
        return False
    if "OnExitRemove" in job.ad and job["OnExitRemove"] is False:
        text = (
            "The job attribute OnExitRemove expression '%s' evaluated to FALSE"
            % job.ad["OnExitRemove"]
        )
        log(job, events.requeued(exit_code, signal, text))
        job.enter(IDLE)
        return False
    log(job, events.terminated(exit_code, signal, usage, now))
    job.set(CompletionDate=now, JobFinishedHookDone=now, TerminationPending=True)
    job.enter(COMPLETED)
    return True
