"""docs/tools.md: what it shows is what the commands print."""

from __future__ import annotations

import re

import pytest

from pulsar_failure_reasons.cli.commands import COMMANDS
from tools import generate_docs


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print() -> None:
    """Each command is run again, and prints what the page says."""
    assert generate_docs.stale_pages(generate_docs.RUN_PAGES) == {}, "run: make docs"


def test_every_command_is_shown() -> None:
    """No command is left out, and each is shown with its output."""
    page = (generate_docs.DOCS / "tools.md").read_text()
    assert set(COMMANDS) == set(re.findall(r"^\$ pulsar-failure-reasons (\w+)", page, re.MULTILINE))


def test_the_page_has_nothing_of_the_host_that_made_it() -> None:
    """No folder of a checkout, of a user or of a temporary file got into it."""
    page = (generate_docs.DOCS / "tools.md").read_text()
    for place in (str(generate_docs.ROOT), "/tmp", "/root", "/home", ".env"):
        assert place not in page
