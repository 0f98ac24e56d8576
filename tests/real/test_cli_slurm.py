"""The ends of ``test_slurm_ends`` by ``queued_cli_classified``: here, and over ssh."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

from tests.real.site import Site
from tests.real.slurm import PrivateSlurm
from tests.real.sshd import PrivateSshd
from tests.real.test_slurm_ends import (  # noqa: F401  (run here again)
    pytestmark,
    test_out_of_memory_by_cgroup,
    test_scancel_of_a_running_job,
    test_success,
    test_timeout,
    test_tool_exit_3,
)


@pytest.fixture(scope="module", params=["LocalShell", "SecureShell", "ParamikoShell"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
    real_slurm: PrivateSlurm, make_sshd: Callable[..., PrivateSshd],
) -> Iterator[Site]:
    """A real Slurm behind each of Pulsar's shells."""
    options: Any = {"type": "queued_cli_classified", "job_plugin": "Slurm"}
    if request.param != "LocalShell":
        options.update(make_sshd(env=real_slurm.env).shell_options(request.param))
    with Site(real_slurm, tmp_path_factory.mktemp("pulsar"), **options) as made:
        yield made
