"""Command lines for Slurm, what sbatch prints, and what failed commands say."""

from __future__ import annotations

from typing import List, Optional, Type

import pytest

from pulsar_failure_reasons.drm.slurm import (
    clean_environment,
    error_from_command,
    parse_submission,
    sacct_command,
    sbatch_command,
    scancel_command,
    scontrol_show_command,
    squeue_command,
)
from pulsar_failure_reasons.errors import (
    AccountingDisabledError,
    DrmError,
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from tests.drm.slurm_data import DATA

SEPARATOR = "@f3a9c1@"


def test_squeue_asks_for_one_user_once() -> None:
    """By user, all states and partitions, each field followed by the separator."""
    command = squeue_command("galaxy", SEPARATOR)
    assert command[:4] == ["squeue", "--all", "--states=all", "--user=galaxy"]
    (columns,) = command[4:]
    assert columns.startswith("--Format=ArrayJobID:@f3a9c1@,ArrayTaskID:@f3a9c1@,JobID:@f3a9c1@,")
    assert columns.endswith(",Name:@f3a9c1@")
    assert squeue_command("1000", SEPARATOR, "east")[4] == "--clusters=east"


def test_sacct_asks_for_ids_once() -> None:
    """Each job once, whole arrays where more than one task is meant, no option from an id."""
    ids = ["12", "12.east", "13_4", "13_[5-9%2]", "14+1"]
    command = sacct_command(ids, SEPARATOR, "east")
    assert command[:4] == ["sacct", "--parsable", "--delimiter=@f3a9c1@", "--clusters=east"]
    assert command[-1] == "--jobs=12,13_4,13,14"


@pytest.mark.parametrize(
    "external_id, shown",
    [
        ("12", "12"), ("12.east", "12"), ("13_4", "13_4"), ("13_[5-6,8-10%3]", "13_[5-6,8-10]"),
        ("13_[1-9:2]", "13_[1-9:2]"), ("14+1", "14+1"), ("13_[7]", "13_7"),
    ],
)
def test_ids_for_scontrol_and_scancel(external_id: str, shown: str) -> None:
    """The cluster and the task limit are left out: neither is part of an id for Slurm."""
    assert scontrol_show_command(external_id) == [
        "scontrol", "--oneliner", "show", "job", shown
    ]
    assert scancel_command([external_id, "1"], "east") == [
        "scancel", "--clusters=east", shown, "1"
    ]


@pytest.mark.parametrize("bad", ["-u root", "--help", "", "all", "1 2", "1;id", "1,2"])
def test_no_id_can_be_an_option(bad: str) -> None:
    """An external id from a file that somebody edited is refused before it is a command."""
    for build in (
        lambda: sacct_command([bad], SEPARATOR),
        lambda: scancel_command([bad]),
        lambda: scontrol_show_command(bad),
    ):
        with pytest.raises(OutputParseError):
            build()


def test_mistakes_of_ours_are_value_errors() -> None:
    """Nothing to ask for, and words that would change the meaning of a command."""
    for build in (
        lambda: sacct_command([], SEPARATOR),
        lambda: scancel_command([]),
        lambda: squeue_command("", SEPARATOR),
        lambda: squeue_command("a,b", SEPARATOR),
        lambda: squeue_command("a", "|"),
        lambda: squeue_command("a", "@a,b12@"),
        lambda: squeue_command("a", "7abcdef@"),
        lambda: squeue_command("a", SEPARATOR, "--help"),
        lambda: squeue_command("a", SEPARATOR, ""),
    ):
        with pytest.raises(ValueError):
            build()


def test_sbatch() -> None:
    """The operator's options may change name and folder, but not where the messages go."""
    command = sbatch_command(
        "/j/script.sh",
        job_name="pulsar_1",
        stdout="/j/100%/out",
        stderr="/j/err",
        workdir="/j/w",
        native_specification=["--time=10", "-e", "/dev/null", "--job-name=mine"],
        cluster="east",
    )
    assert command == [
        "sbatch", "--parsable", "--job-name=pulsar_1", "--chdir=/j/w", "--clusters=east",
        "--time=10", "-e", "/dev/null", "--job-name=mine",
        "--output=/j/100%%/out", "--error=/j/err", "/j/script.sh",
    ]


@pytest.mark.parametrize(
    "text, external_id",
    [
        pytest.param("123\n", "123", id="parsable"),
        pytest.param("123;east\n", "123.east", id="cluster"),
        pytest.param("  123;east  \r\n", "123.east", id="blanks"),
        pytest.param(
            "Welcome to the 9 node system\n--> 2 of 3 checks passed\n123\n", "123", id="banner"
        ),
        pytest.param("99\nNo reservation for this job\n123;c-1\n\n", "123.c-1", id="last_line"),
        pytest.param("123\nHave fun on 5 nodes\n", "123", id="trailer"),
        pytest.param("Submitted batch job 123\n", "123", id="wrapper_without_parsable"),
        pytest.param("Submitted batch job 123 on cluster east\n", "123.east", id="on_cluster"),
    ],
)
def test_submission(text: str, external_id: str) -> None:
    """The id is the last line of its form, as slurm-drmaa would store it."""
    assert parse_submission(text) == external_id


@pytest.mark.parametrize(
    "text", ["", "\n", "ok\n", "123 jobs\n", "-5\n", "0\n", "12.5\n", "123;\n", "123;-x\n", "१२३\n"]
)
def test_no_submission(text: str) -> None:
    """No id is invented from a banner."""
    with pytest.raises(OutputParseError):
        parse_submission(text)


def test_environment() -> None:
    """What changes the commands' output is left out; where the cluster is stays."""
    kept = clean_environment(
        {
            "PATH": "/bin", "HOME": "/h", "SLURM_CONF": "/etc/slurm.conf", "SLURM_JWT": "t",
            "SQUEUE_FORMAT": "%i", "SQUEUE_FORMAT2": "x", "SQUEUE_STATES": "R",
            "SACCT_FORMAT": "JobID", "SACCT_FEDERATION": "1", "SLURM_TIME_FORMAT": "relative",
            "SLURM_CLUSTERS": "east", "SCONTROL_FEDERATION": "1", "SBATCH_PARTITION": "p",
            "SLURM_BITSTR_LEN": "8", "LANG": "de_DE.UTF-8", "LC_MESSAGES": "de_DE",
            "LANGUAGE": "de", "LANGUID": "kept",
        }
    )
    assert kept == {
        "PATH": "/bin", "HOME": "/h", "SLURM_CONF": "/etc/slurm.conf", "SLURM_JWT": "t",
        "LANGUID": "kept", "LC_ALL": "C", "SLURM_BITSTR_LEN": "0",
    }


MISC: List["tuple[str, Optional[Type[DrmError]]]"] = [
    ("ctld_down_sbatch", DrmUnreachableError),
    ("ctld_down_scancel", DrmUnreachableError),
    ("ctld_down_scontrol", DrmUnreachableError),
    ("ctld_down_squeue", DrmUnreachableError),
    ("dbd_down_sacct", DrmUnreachableError),
    ("munge_down_sacct", DrmUnreachableError),
    ("munge_down_sbatch", DrmUnreachableError),
    ("munge_down_scontrol", DrmUnreachableError),
    ("noconf_scontrol", DrmUnreachableError),
    ("noconf_unset_scontrol", DrmUnreachableError),
    ("sacct_bad_text", DrmUnreachableError),
    ("scontrol_bad_text", None),
    ("scontrol_two_ids", DrmUnreachableError),
]


@pytest.mark.parametrize("version", ["22.05", "24.11"])
@pytest.mark.parametrize("name, kind", MISC, ids=[row[0] for row in MISC])
def test_captured_failures(version: str, name: str, kind: Optional[Type[DrmError]]) -> None:
    """Each captured failure of a command is an outage, but for an unknown id, an answer."""
    folder = DATA / "captures" / version / "misc"
    words = (folder / f"{name}.cmd").read_text().split()
    argv = words[next(i for i, w in enumerate(words) if w.startswith("s")):]
    returncode = int((folder / f"{name}.rc").read_text())
    error = error_from_command(argv, returncode, (folder / f"{name}.err").read_text())
    assert (type(error) if error else None) is kind


@pytest.mark.parametrize(
    "command, returncode, stderr, kind, words",
    [
        pytest.param("squeue", 0, "", None, "", id="well"),
        pytest.param(
            "squeue", 0, "squeue: error: Invalid user: galaxy\n", DrmUnreachableError,
            "Invalid user", id="user_unknown_to_the_host_with_rc_0",
        ),
        pytest.param(
            "scontrol", 1, "slurm_load_jobs error: Invalid job id specified\n", None, "",
            id="unknown_job",
        ),
        pytest.param("scontrol", 1, "\nJob 47_7 not found\n", None, "", id="unknown_task"),
        pytest.param(
            "scancel", 1,
            "scancel: error: Kill job error on job id 3: Job/step already completing or "
            "completed\n",
            None, "", id="cancelled_what_has_ended",
        ),
        pytest.param(
            "sacct", 1, "Slurm accounting storage is disabled\n", AccountingDisabledError,
            "disabled", id="accounting_off",
        ),
        pytest.param("sacct", 1, "", DrmUnreachableError, "exit code 1", id="no_words"),
        pytest.param("squeue", -9, "", DrmUnreachableError, "signal 9", id="killed"),
        pytest.param(
            "/usr/bin/squeue", 1, "slurm_load_jobs error: Socket timed out on send/recv operation",
            DrmUnreachableError, "timed out", id="timed_out",
        ),
        pytest.param(
            "squeue", 1,
            "squeue: error: 'nope' can't be reached now, or it is an invalid entry for --cluster.",
            DrmUnreachableError, "can't be reached", id="unknown_cluster",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission "
            "failed: Job violates accounting/QOS policy (job submit limit, user's size and/or "
            "time limits)\n",
            SubmissionRefusedError, "a limit of the QOS or the association", id="qos_limit",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: "
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time "
            "limits)\n",
            SubmissionRefusedError, "a limit of the QOS or the association", id="assoc_limit",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: Batch job submission failed: Invalid account or account/partition "
            "combination specified\n",
            SubmissionRefusedError, "the account is not usable", id="bad_account",
        ),
        pytest.param(
            "sbatch", 1, "sbatch: error: Batch job submission failed: Invalid qos specification\n",
            SubmissionRefusedError, "the QOS is not usable", id="bad_qos",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job "
            "submission failed: Invalid partition name specified\n",
            SubmissionRefusedError, "the partition is not usable", id="bad_partition",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job "
            "submission failed: Requested node configuration is not available\n",
            SubmissionRefusedError, "the requested resources do not exist", id="too_much",
        ),
        pytest.param(
            "sbatch", 255, "sbatch: unrecognized option '--nope'\n", SubmissionRefusedError,
            "an option is not valid", id="bad_option",
        ),
        pytest.param(
            "sbatch", 1, "sbatch: error: Batch job submission failed: Job dependency problem\n",
            SubmissionRefusedError, "Job dependency problem", id="any_other_no",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
            "(connect failure)\n",
            DrmUnreachableError, "Unable to contact", id="not_refused_but_unreachable",
        ),
        pytest.param(
            "sbatch", 1,
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            DrmUnreachableError, "timed out", id="may_have_been_submitted",
        ),
    ],
)
def test_failures(
    command: str, returncode: int, stderr: str, kind: Optional[Type[DrmError]], words: str
) -> None:
    """An answer, an outage, accounting that is off, or a refusal, in Slurm's own words."""
    error = error_from_command([command, "x"], returncode, stderr)
    assert (type(error) if error else None) is kind
    assert words in str(error or "")


def test_words_are_cleaned() -> None:
    """Slurm's prefixes, repeated lines and control characters do not reach a person."""
    stderr = "sbatch: error: a\x07b\nsbatch: error: a\x07b\nsbatch: fatal: c\n" + "x" * 9000
    error = error_from_command(["sbatch"], 1, stderr)
    assert error is not None
    assert "a b; c; x" in str(error) and len(str(error)) < 500
