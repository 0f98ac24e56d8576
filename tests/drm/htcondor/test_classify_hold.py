"""Why a job is held: one row, one situation."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.htcondor import HoldKind, classify_hold, classify_removal, name_hold
from pulsar_failure_reasons.reason import Cause, Confidence

FAILURE, PERSON = HoldKind.FAILURE, HoldKind.PERSON
TRANSIENT, VACATE = HoldKind.TRANSIENT, HoldKind.VACATE
CGROUP = "Error from slot1@n1: Job has gone over cgroup memory limit of 2048 megabytes."
NO_SPACE = "Error from slot1@n1: failed to write to file /x: (errno 28) No space left on device"
URL_TIMEOUT = "FILETRANSFER:1:non-zero exit (28) from curl_plugin. |Error: Timeout (https://h/f)"

# (id, code, subcode, reason, kind, cause)
HOLDS = [
    ("no_code_in_the_log", 0, 0, "Reason unspecified", FAILURE, Cause.UNKNOWN),
    ("no_code_but_words", 0, 0, CGROUP, FAILURE, Cause.MEMORY),
    ("nothing_at_all", None, None, None, FAILURE, Cause.UNKNOWN),
    ("user", 1, 0, "via condor_hold (by user alice)", PERSON, Cause.HELD),
    ("user_with_free_subcode", 1, 102, "maintenance (by user root)", PERSON, Cause.HELD),
    ("user_reason_lost_by_bindings", 1, 0, None, PERSON, Cause.HELD),
    ("user_names_a_limit", 1, 0, "memory exceeded (by user op)", PERSON, Cause.HELD),
    ("gram", 2, 17, "GRAM", FAILURE, Cause.HELD),
    ("own_walltime", 3, 46001, "anything", FAILURE, Cause.WALLTIME),
    ("own_memory", 3, 46002, "anything", FAILURE, Cause.MEMORY),
    ("own_disk", 3, 46003, "anything", FAILURE, Cause.DISK),
    ("own_cpu_time", 3, 46004, "anything", FAILURE, Cause.CPU_TIME),
    ("job_policy_walltime_text", 3, 42, "Job exceeded its walltime of 3 seconds", FAILURE,
     Cause.WALLTIME),
    ("job_policy_subcode_is_free", 3, 102, "start too late", FAILURE, Cause.HELD),
    ("credential", 4, 0, "x509 proxy expired", FAILURE, Cause.LAUNCH_ERROR),
    ("policy_undefined", 5, 0, "PeriodicHold evaluated to UNDEFINED", FAILURE, Cause.HELD),
    ("executable_missing", 6, 2, "Failed to execute '/x'", FAILURE, Cause.LAUNCH_ERROR),
    ("oom_before_start", 6, 666670, "Job was OOM killed", FAILURE, Cause.MEMORY),
    ("oom_before_start_by_text", 6, 0,
     "Job was OOM killed by cgroup memory limit before it could start.", FAILURE, Cause.MEMORY),
    ("stdout", 7, 2, "Failed to open '/x' as standard output", FAILURE, Cause.DISK),
    ("stdin", 8, 2, "Failed to open '/x' as standard input", FAILURE, Cause.LAUNCH_ERROR),
    ("stdin_quota", 8, 122, "Failed to open '/x'", FAILURE, Cause.DISK),
    ("stdout_stream", 9, 13, "", FAILURE, Cause.DISK),
    ("stdin_stream", 10, 13, "", FAILURE, Cause.LAUNCH_ERROR),
    ("transfer_ack", 11, 0, "", FAILURE, Cause.STAGE_ERROR),
    ("output_transfer", 12, 2, "(errno 2) No such file", FAILURE, Cause.STAGE_ERROR),
    ("output_transfer_enospc", 12, 28, "writing", FAILURE, Cause.DISK),
    ("output_transfer_edquot", 12, 122, "writing", FAILURE, Cause.DISK),
    ("input_transfer", 13, 2, "(errno 2) No such file", FAILURE, Cause.STAGE_ERROR),
    ("input_transfer_full_by_text", 13, 0, NO_SPACE, FAILURE, Cause.DISK),
    ("plugin_exit_code_is_no_errno", 13, 28, URL_TIMEOUT, FAILURE, Cause.STAGE_ERROR),
    ("iwd", 14, 2, "Cannot access initial working directory", FAILURE, Cause.LAUNCH_ERROR),
    ("iwd_full", 14, 28, "", FAILURE, Cause.DISK),
    ("submitted_on_hold", 15, None, "submitted on hold at user's request", PERSON, Cause.HELD),
    ("spooling_is_no_periodic_hold", 16, None, "Spooling input data files", TRANSIENT, Cause.HELD),
    ("shadow_mismatch", 17, 0, "", FAILURE, Cause.HELD),
    ("transfer_go_ahead", 18, 0, "", FAILURE, Cause.STAGE_ERROR),
    ("prepare_hook", 19, 1, "", FAILURE, Cause.LAUNCH_ERROR),
    ("deferral", 20, 0, "", FAILURE, Cause.HELD),
    ("startd_cpus", 21, 101, "CPU usage exceeded request_cpus", FAILURE, Cause.HELD),
    ("startd_memory", 21, 102, "", FAILURE, Cause.MEMORY),
    ("startd_runtime", 21, 103, "", FAILURE, Cause.WALLTIME),
    ("startd_disk", 21, 104, "", FAILURE, Cause.DISK),
    ("startd_other_rule_by_text", 21, 7, "disk usage exceeded", FAILURE, Cause.DISK),
    ("startd_other_rule", 21, 7, "node wanted back", FAILURE, Cause.HELD),
    ("user_log", 22, 13, "", FAILURE, Cause.LAUNCH_ERROR),
    ("account", 23, 0, "", FAILURE, Cause.LAUNCH_ERROR),
    ("no_shadow", 24, 0, "", FAILURE, Cause.HELD),
    ("cron", 25, 0, "", FAILURE, Cause.HELD),
    ("site_rule_upper_case_memory", 26, 0, "MEMORY EXCEEDED", FAILURE, Cause.MEMORY),
    ("site_rule_is_not_memory_as_such", 26, 0, "", FAILURE, Cause.HELD),
    ("site_rule_too_little_memory", 26, 0,
     "Job Is Wasting Memory using less than 20 percent of requested Memory", FAILURE, Cause.HELD),
    ("site_rule_walltime", 26, 99, "ran longer than the queue allows", FAILURE, Cause.WALLTIME),
    ("site_uses_our_subcode", 26, 46002, "xyz", FAILURE, Cause.MEMORY),
    ("site_policy_undefined", 27, 0, "", FAILURE, Cause.HELD),
    ("glexec_to_user", 28, 0, "", FAILURE, Cause.HELD),
    ("privsep_to_user", 29, 0, "", FAILURE, Cause.HELD),
    ("glexec_to_condor", 30, 0, "", FAILURE, Cause.HELD),
    ("privsep_to_condor", 31, 0, "", FAILURE, Cause.HELD),
    ("input_too_big", 32, 0, "TransferInputSizeMB (4) is greater", FAILURE, Cause.STAGE_ERROR),
    ("output_too_big", 33, 0, "max total download bytes exceeded", FAILURE, Cause.STAGE_ERROR),
    ("resources_memory", 34, 102, "", FAILURE, Cause.MEMORY),
    ("resources_disk", 34, 104, "", FAILURE, Cause.DISK),
    ("resources_old_memory", 34, 0, CGROUP, FAILURE, Cause.MEMORY),
    ("resources_old_docker", 34, 0, "Docker job has gone over memory limit of 10 Mb", FAILURE,
     Cause.MEMORY),
    ("resources_old_disk", 34, 0, "Job has exceeded request_disk (10.00 GB).", FAILURE,
     Cause.DISK),
    ("resources_old_no_words", 34, 0, None, FAILURE, Cause.MEMORY),
    ("resources_new_subcode", 34, 199, "too many sockets", FAILURE, Cause.HELD),
    ("docker_image", 35, 0, "", FAILURE, Cause.LAUNCH_ERROR),
    ("checkpoint", 36, 1, "", FAILURE, Cause.HELD),
    *[(f"ec2_{code}", code, 0, "", FAILURE, Cause.HELD) for code in range(37, 43)],
    ("pre_script", 43, 1, "", FAILURE, Cause.LAUNCH_ERROR),
    ("post_script", 44, 1, "", FAILURE, Cause.HELD),
    ("singularity", 45, 0, "", FAILURE, Cause.LAUNCH_ERROR),
    ("job_duration", 46, 0, "", FAILURE, Cause.WALLTIME),
    ("execute_duration", 47, 0, "", FAILURE, Cause.WALLTIME),
    ("execute_duration_any_subcode", 47, 12, "", FAILURE, Cause.WALLTIME),
    ("shadow_hook", 48, 0, "", FAILURE, Cause.LAUNCH_ERROR),
    ("primary_group", 49, 0, "", FAILURE, Cause.LAUNCH_ERROR),
    ("newer_code", 50, 0, "memory limit exceeded", FAILURE, Cause.UNKNOWN),
    ("negative_code", -3, 0, "", FAILURE, Cause.UNKNOWN),
    ("vacate", 1014, 0, "draining", VACATE, Cause.PREEMPTED),
    ("vacate_by_subcode", 34, -1000, CGROUP, VACATE, Cause.PREEMPTED),
    ("hook_killed_by_signal_is_no_vacate", 19, -9, "", FAILURE, Cause.LAUNCH_ERROR),
]


@pytest.mark.parametrize("code, subcode, reason, kind, cause", [
    pytest.param(*row[1:], id=row[0]) for row in HOLDS
])
def test_classify_hold(code, subcode, reason, kind, cause):
    """Code, subcode and words together give the cause."""
    finding = classify_hold(code, subcode, reason)
    assert (finding.kind, finding.cause) == (kind, cause)


def test_detail_is_htcondors_own_words():
    """The message gets the reason without the slot in front of it."""
    assert classify_hold(21, 102, "Error from slot1@n1: memory usage exceeded").detail == (
        "memory usage exceeded"
    )


def test_detail_of_a_person_names_them():
    """A person's hold says whose it is."""
    finding = classify_hold(1, 5, "maintenance (by user alice@site)")
    assert (finding.held_by, finding.detail) == (
        "alice", "held by alice (maintenance (by user alice@site))"
    )


def test_unknown_code_is_told_with_its_number():
    """A code that we do not know stands in the message, with the reason."""
    assert classify_hold(77, 3, "new thing").detail == (
        "hold reason code 77/3 (unknown): new thing"
    )


def test_expression_alone_is_inferred():
    """A policy's bare expression is weaker evidence than a reason in words."""
    reason = (
        "The job attribute PeriodicHold expression 'JobStatus == 2 && "
        "(time() - JobCurrentStartDate) > 3' evaluated to TRUE"
    )
    finding = classify_hold(3, 0, reason)
    assert (finding.cause, finding.confidence) == (Cause.WALLTIME, Confidence.INFERRED)


@pytest.mark.parametrize("code, subcode, name", [
    (34, 102, "34/102 JobOutOfResources"),
    (46, None, "46 JobDurationExceeded"),
    (1014, 0, "1014/0 StartdDraining"),
    (77, 0, "77/0 (unknown)"),
    (None, None, "no code"),
])
def test_name_hold(code, subcode, name):
    """Evidence shows the numbers and HTCondor's name for them."""
    assert name_hold(code, subcode) == name


MEMORY_HOLD = classify_hold(34, 0, CGROUP)

# (id, reason, hold it was in, cause, by)
REMOVALS = [
    ("condor_rm", "via condor_rm (by user alice)", None, Cause.CANCELLED, "alice"),
    ("no_reason", None, None, Cause.CANCELLED, None),
    ("own_policy", "The job attribute PeriodicRemove expression 'JobStatus == 2 && (time() - "
     "JobCurrentStartDate) > 3' evaluated to TRUE", None, Cause.CANCELLED, "PeriodicRemove"),
    ("site_policy", "The system macro SYSTEM_PERIODIC_REMOVE expression 'JobRunCount > 3' "
     "evaluated to TRUE", None, Cause.CANCELLED, "SYSTEM_PERIODIC_REMOVE"),
    ("policy_reason_memory", "Removed due to memory use", None, Cause.MEMORY, None),
    ("policy_reason_walltime", "Removed due to wall clock limit", None, Cause.WALLTIME, None),
    ("policy_reason_idle", "Removed due to idle time limit", None, Cause.CANCELLED, None),
    ("usegalaxy_eu_text", "Galaxy job 7 is running out of memory (by user condor)", None,
     Cause.MEMORY, "condor"),
    ("after_memory_hold", "via condor_rm (by user root)", MEMORY_HOLD, Cause.MEMORY, "root"),
    ("after_old_hold_of_a_person", "via condor_rm (by user root)",
     classify_hold(1, 0, "via condor_hold (by user alice)"), Cause.CANCELLED, "root"),
    ("after_site_hold_without_limit", "via condor_rm (by user root)",
     classify_hold(26, 0, "too many starts"), Cause.CANCELLED, "root"),
    ("after_cpu_time_hold", None, classify_hold(3, 46004, ""), Cause.CPU_TIME, None),
    ("after_stage_hold", None, classify_hold(12, 2, ""), Cause.STAGE_ERROR, None),
]


@pytest.mark.parametrize("reason, hold, cause, by", [
    pytest.param(*row[1:], id=row[0]) for row in REMOVALS
])
def test_classify_removal(reason, hold, cause, by):
    """A removal is a cancellation, unless a limit stands behind it."""
    removal = classify_removal(reason, hold)
    assert (removal.cause, removal.by) == (cause, by)
