"""A ``drmaa`` module over whatever Slurm commands are on PATH, as slurm-drmaa 1.1.4 behaves.

Only what Pulsar uses of it. Its traits, measured on a real slurm-drmaa: TIMEOUT, OUT_OF_MEMORY,
NODE_FAIL, PREEMPTED, BOOT_FAIL, DEADLINE and CANCELLED are one FAILED; a job that slurmctld has
forgotten is DONE; a dead controller raises; ending a job that has ended raises; ``--time=1`` is
rejected while ``--time=00:01:00`` works; ids are ``123``, or ``123.cluster`` with ``-M``.
"""

import re
import shlex
import subprocess


class DrmaaException(Exception):
    """Base of all errors."""


class DeniedByDrmException(DrmaaException):
    """Slurm did not take the job."""


class InvalidAttributeValueException(DrmaaException):
    """The native specification cannot be read."""


class InvalidJobException(DrmaaException):
    """There is no such job any more."""


class DrmCommunicationException(DrmaaException):
    """slurmctld does not answer."""


class JobControlAction:
    """What can be done to a job."""

    TERMINATE = "terminate"


class JobState:
    """What a job can be."""

    UNDETERMINED = "undetermined"
    QUEUED_ACTIVE = "queued_active"
    SYSTEM_ON_HOLD = "system_on_hold"
    USER_ON_HOLD = "user_on_hold"
    USER_SYSTEM_ON_HOLD = "user_system_on_hold"
    RUNNING = "running"
    SYSTEM_SUSPENDED = "system_suspended"
    USER_SUSPENDED = "user_suspended"
    USER_SYSTEM_SUSPENDED = "user_system_suspended"
    DONE = "done"
    FAILED = "failed"


_STATES = {
    "PENDING": JobState.QUEUED_ACTIVE,
    "CONFIGURING": JobState.QUEUED_ACTIVE,
    "RUNNING": JobState.RUNNING,
    "COMPLETING": JobState.RUNNING,
    "SUSPENDED": JobState.USER_SUSPENDED,
    "COMPLETED": JobState.DONE,
}


class JobTemplate:
    """A bag of attributes."""

    remoteCommand = jobName = outputPath = errorPath = workingDirectory = ""
    nativeSpecification = ""


class Session:
    """One connection to Slurm."""

    def __init__(self):
        self._open = False

    def initialize(self):
        """Open it."""
        self._open = True

    def exit(self):
        """Close it."""
        self._open = False

    def createJobTemplate(self):
        """Return an empty template."""
        return JobTemplate()

    def deleteJobTemplate(self, template):
        """Nothing is kept of a template."""

    def runJob(self, template):
        """Submit; return the job's id."""
        native = shlex.split(template.nativeSpecification or "")
        if any(re.fullmatch(r"--time=\d+", option) for option in native):
            raise InvalidAttributeValueException("Invalid native specification: %s" % native)
        done = self._run(
            "sbatch",
            "--parsable",
            "--job-name=%s" % template.jobName,
            "--output=%s" % template.outputPath.lstrip(":"),
            "--error=%s" % template.errorPath.lstrip(":"),
            "--chdir=%s" % template.workingDirectory,
            *native,
            template.remoteCommand,
        )
        if done.returncode != 0:
            raise DeniedByDrmException("code 17: slurm_submit_batch_job: " + done.stderr.strip())
        return done.stdout.strip().replace(";", ".")

    def control(self, job_id, action):
        """End a job."""
        assert action == JobControlAction.TERMINATE
        if self._slurm_state(job_id) not in _STATES or self.jobStatus(job_id) == JobState.DONE:
            raise InvalidJobException("code 18: job %s has ended" % job_id)
        done = self._run("scancel", *_target(job_id))
        if done.returncode != 0:
            raise DrmCommunicationException("code 2: " + done.stderr.strip())

    def jobStatus(self, job_id):
        """Return one of JobState's words."""
        state = self._slurm_state(job_id)
        return JobState.DONE if state is None else _STATES.get(state, JobState.FAILED)

    def _slurm_state(self, job_id):
        """Return Slurm's word for the job's state, None for a job that is forgotten."""
        number, _, cluster = job_id.partition(".")
        cluster_option = ["-M", cluster] if cluster else []
        done = self._run("scontrol", *cluster_option, "-o", "show", "job", number)
        if done.returncode != 0:
            if "Invalid job id" in done.stderr:
                return None
            raise DrmCommunicationException("code 2: " + done.stderr.strip())
        return re.search(r" JobState=(\S+) Reason=", done.stdout).group(1)

    def _run(self, *argv):
        if not self._open:
            raise DrmaaException("code 5: no active session")
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=60,
        )


def _target(job_id):
    number, _, cluster = job_id.partition(".")
    return ["-M", cluster, number] if cluster else [number]
