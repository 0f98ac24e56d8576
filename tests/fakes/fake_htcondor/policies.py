"""Periodic expressions of the job and the site, and the limits of the pool itself.

Each function returns True if it changed the job.
"""

import time

from fake_htcondor import changes, expressions, files


def apply_periodic(job, settings):
    """Apply periodic expressions; True if one of them changed the job."""
    if job.status == changes.HELD:
        for name in ("PeriodicRelease", "system_periodic_release"):
            if _is_true(job, settings, name):
                changes.release(job, _because(job, settings, name))
                return True
    else:
        for name, code in (("PeriodicHold", 3), ("system_periodic_hold", 26)):
            if _is_true(job, settings, name):
                own, subcode = _own_words(job, settings, name)
                changes.hold(job, own or _because(job, settings, name), code, subcode)
                return True
    for name in ("PeriodicRemove", "system_periodic_remove"):
        if _is_true(job, settings, name):
            changes.remove(job, _because(job, settings, name), evicts=False)
            return True
    return False


def _is_true(job, settings, name):
    text = settings[name] if name.startswith("system") else job.ad.get(name, "")
    return bool(text) and expressions.truth(expressions.evaluate(text, job.ad)) is True


def _because(job, settings, name):
    if name.startswith("system"):
        macro = name.upper()
        return "The system macro %s expression '%s' evaluated to TRUE" % (macro, settings[name])
    return "The job attribute %s expression '%s' evaluated to TRUE" % (name, job.ad[name])


def _own_words(job, settings, name):
    if name.startswith("system"):
        return settings[name + "_reason"], int(settings[name + "_subcode"])
    reason, subcode = job[name + "Reason"], job[name + "SubCode"]
    return reason if isinstance(reason, str) else "", subcode if isinstance(subcode, int) else 0


def apply_limits(job, settings):
    """The limits of the pool itself; True if one of them held the job."""
    now = time.time()
    lasted = now - job.extra["executed_at"] if job.extra.get("executing") else 0
    allowed = job["AllowedExecuteDuration"]
    fires = files.transfers(job) or not settings["execute_duration_needs_transfer"]
    if allowed is not None and fires and lasted > allowed:
        changes.hold(job, "The job exceeded allowed execute duration of %s" % _clock(allowed), 47)
        return True
    allowed = job["AllowedJobDuration"]
    if allowed is not None and now - job["JobCurrentStartDate"] > allowed + 1:
        changes.hold(job, "The job exceeded allowed job duration of %s" % _clock(allowed), 46)
        return True
    limit = settings["startd_hold_runtime"]
    if limit and lasted > limit:
        changes.hold(job, "runtime exceeded maximum (%d seconds)" % limit, 21, 103)
        return True
    return False


def apply_memory_limit(job, settings, rss_kb):
    """The execute side's rules on memory."""
    limit_mb = int(job["RequestMemory"] or 0)
    if not limit_mb or rss_kb <= limit_mb * 1024:
        return False
    if settings["startd_hold_memory"]:
        changes.hold(job, "memory usage exceeded request_memory", 21, 102)
        return True
    if settings["cgroup_memory"]:
        text = (
            "Job has gone over cgroup memory limit of %d megabytes. "
            "Last measured usage: %d megabytes.  "
            "Consider resubmitting with a higher request_memory." % (limit_mb, rss_kb // 1024)
        )
        changes.hold(job, text, 34, 102 if settings["cgroup_memory"] == "25" else 0)
        return True
    return False


def _clock(seconds):
    return "%02d:%02d" % (seconds // 60, seconds % 60)
