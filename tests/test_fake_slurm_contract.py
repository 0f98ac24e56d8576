"""The simulated Slurm answers as a real one did: one scenario, recorded on Slurm 22.05.8, played
again here."""

import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fakes"))

import contract  # noqa: E402
from fake_slurm import control  # noqa: E402

with open(os.path.join(HERE, "data", "slurm", "fake_contract", "scenario.jsonl")) as recording:
    RECORDED = [json.loads(line) for line in recording]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The scenario's answers from the simulated Slurm, masked as the recorded ones."""
    state = control.create(
        tmp_path_factory.mktemp("state"), node_memory_mb=4096, kill_wait=60, min_job_age=36000
    )
    workdir = str(tmp_path_factory.mktemp("work"))
    env = dict(os.environ, FAKE_SLURM_AS="root:0", **control.environment(state))

    def run(argv):
        done = subprocess.run(
            argv,
            cwd=workdir,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=contract.PATIENCE_S,
            universal_newlines=True,
        )
        return done.stdout, done.stderr, done.returncode

    try:
        answers = contract.play(run, workdir)
    finally:
        control.stop_all(state)
    for answer in answers:
        for stream in ("stdout", "stderr"):
            answer[stream] = contract.normalise(answer[stream], workdir, "node1")
    return answers


@pytest.mark.parametrize(
    "number", range(len(RECORDED)), ids=lambda n: "%d_%s" % (n, " ".join(RECORDED[n]["argv"])[:60])
)
def test_same_answer_as_real_slurm(played, number):
    """A command's stdout, stderr and return code are those of the real one."""
    assert played[number] == RECORDED[number]


def test_scenario_is_the_recorded_one(played):
    """The recording and the scenario have the same commands, so that no answer goes unchecked."""
    assert [answer["argv"] for answer in played] == [answer["argv"] for answer in RECORDED]
