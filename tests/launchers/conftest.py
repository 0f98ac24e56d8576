"""Environments that several launcher tests share."""

from __future__ import annotations

import pathlib
from typing import Callable, Dict, Tuple

import pytest

from . import environments
from .environments import Environment

MakeEnvironment = Callable[..., Environment]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A wheel of this checkout."""
    return environments.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def make_environment(
    tmp_path_factory: pytest.TempPathFactory, wheel: pathlib.Path
) -> MakeEnvironment:
    """Make a fresh environment with a stock Pulsar, our package and the stub manager."""
    def make(pulsar: str = environments.NEWEST, editable: bool = False) -> Environment:
        environment = environments.layered(tmp_path_factory.mktemp("env") / "venv", pulsar)
        package = ["--editable", str(environments.ROOT)] if editable else [str(wheel)]
        environments.pip_install(environment, *package)
        environments.add_distribution(
            environment, "stub-managers", environments.STUB_ENTRY_POINTS)
        return environment

    return make


@pytest.fixture(scope="session")
def shared_environment(make_environment: MakeEnvironment) -> MakeEnvironment:
    """Like `make_environment`, but one environment per kind: for tests that change nothing."""
    made: Dict[Tuple[str, str], Environment] = {}

    def share(kind: str, pulsar: str = environments.NEWEST) -> Environment:
        if (kind, pulsar) not in made:
            made[kind, pulsar] = make_environment(pulsar, editable=kind == "editable")
            if kind == "no_pth":
                environments.forbid_startup_files(made[kind, pulsar])
        return made[kind, pulsar]

    return share
