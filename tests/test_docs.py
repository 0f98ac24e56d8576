"""The documentation: generated pages, options, links, and the commands that it tells."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple

import pytest

from pulsar_failure_reasons.cli import _parser
from pulsar_failure_reasons.managers.slurm import OWN_OPTIONS, SlurmQueueManager
from tools import generate_docs

PAGES = generate_docs.markdown_files()

#: Where a manager without options keeps the value of each option.
VALUE_BY_OPTION = {
    "submit": lambda manager: manager._submit_by,
    "cluster": lambda manager: manager._cluster,
    "status_poll_interval": lambda manager: manager._interval_s,
    "accounting": lambda manager: manager._accounting,
    "missing_grace": lambda manager: manager.graces.missing_s,
    "hold_grace": lambda manager: manager.graces.hold_s,
    "limit_with_zero_exit": lambda manager: manager.graces.limit_with_zero_exit,
    "command_timeout": lambda manager: manager._command_timeout_s,
    "observe_only": lambda manager: manager.observe_only,
}
#: Programs of the host that the pages use; ours and pip's are looked at more closely.
HOST_COMMANDS = {
    "cat", "git", "grep", "journalctl", "rsync", "sacct", "scontrol", "squeue", "systemctl",
}
PIP_COMMANDS = {"download", "install", "uninstall", "wheel"}


@pytest.fixture(scope="module")
def slurm_ends() -> str:
    """The page of Slurm's ends, as the code would write it."""
    return generate_docs.slurm_ends_page()


def test_generated_pages_are_up_to_date() -> None:
    """What the code says of causes and ends is what the pages say."""
    assert generate_docs.stale_pages() == [], "run: make docs"


def test_a_changed_page_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is missing or was edited is stale."""
    monkeypatch.setattr(generate_docs, "DOCS", tmp_path)
    (tmp_path / "slurm-ends.md").write_text(generate_docs.slurm_ends_page())
    (tmp_path / "reasons.md").write_text(generate_docs.reasons_page() + "edited\n")
    assert generate_docs.stale_pages() == ["reasons.md"]


@pytest.mark.parametrize(
    "row",
    [
        "| `TIMEOUT` | absent or not 0 | `failed` | walltime | job | `walltime_reached` |",
        "| `CANCELLED` | any | `failed` | cancelled | user | `unknown_error` |",
        "| `COMPLETED` | absent | after `missing_grace`: `failed` | lost | infrastructure "
        "| `unknown_error` |",
        "| `SPECIAL_EXIT` | after `hold_grace`: `failed` |",
        "| `COMPLETING` | as before |",
        "| any other word | as before |",
    ],
)
def test_rows_of_the_table_of_ends(slurm_ends: str, row: str) -> None:
    """The table of ends says what the design says."""
    assert row in slurm_ends.splitlines()


def test_every_state_of_slurm_is_in_the_table_of_ends(slurm_ends: str) -> None:
    """No job state is left out; these are those of Slurm's manual that sites ask about most."""
    for state in (
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "CONFIGURING", "DEADLINE",
        "NODE_FAIL", "OUT_OF_MEMORY", "PENDING", "PREEMPTED", "REQUEUED", "REQUEUE_HOLD",
        "RESV_DEL_HOLD", "REVOKED", "RUNNING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
        "SUSPENDED", "TIMEOUT",
    ):
        assert f"| `{state}` |" in slurm_ends
    assert "## FAILED" in slurm_ends


def documented_options() -> Dict[str, Tuple[str, str]]:
    """Return (default, allowed) by option, from the table of queued_slurm.md."""
    text = (generate_docs.DOCS / "queued_slurm.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| ([^|]*) \|", text, re.MULTILINE)
    return {name: (default.strip("`"), allowed) for name, default, allowed in rows}


def test_every_option_is_documented() -> None:
    """The table of options holds exactly the manager's own options."""
    table = {name for name in documented_options() if name in VALUE_BY_OPTION}
    assert table == set(OWN_OPTIONS) == set(VALUE_BY_OPTION)


@pytest.mark.parametrize("option", OWN_OPTIONS)
def test_documented_defaults_hold(option: str, tmp_path: Path) -> None:
    """A manager without options has the values that the table calls defaults."""
    value = VALUE_BY_OPTION[option](manager(tmp_path))
    documented = documented_options()[option][0]
    if isinstance(value, float):
        assert float(documented) == value
    else:
        assert documented == {None: "none"}.get(value, str(value).lower())


@pytest.mark.parametrize("option", ["submit", "accounting", "limit_with_zero_exit"])
def test_documented_words_are_taken(option: str, tmp_path: Path) -> None:
    """Each word of the column "allowed" is taken, another is refused with the same words."""
    words = re.findall(r"`(\w+)`", documented_options()[option][1])
    for word in words:
        assert VALUE_BY_OPTION[option](manager(tmp_path, **{option: word})) == word
    with pytest.raises(Exception, match=", ".join(words)):
        manager(tmp_path, **{option: "other"})


def manager(folder: Path, **options: Any) -> SlurmQueueManager:
    """Return a manager of an application that has no more than its constructor asks for."""
    app = SimpleNamespace(
        staging_directory=str(folder),
        persistence_directory=None,
        authorizer=None,
        job_metrics=None,
        dependency_manager=None,
        object_store=None,
        user_auth_manager=None,
    )
    return SlurmQueueManager("_default_", app, **options)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each link to a file or heading of the checkout finds it."""
    assert generate_docs.broken_links([page]) == []


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to no file, and one to no heading, are told; an address elsewhere is not."""
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](none.md) [b](#two) [c](#one) [d](https://example.org/none.md)\n")
    assert generate_docs.broken_links([page]) == [
        "page.md: nothing at none.md", "page.md: nothing at #two",
    ]


def test_every_page_is_reached_from_the_readme() -> None:
    """The README links each page of docs/ that an operator reads."""
    readme = (generate_docs.ROOT / "README.md").read_text()
    for name in ("install", "queued_slurm", "slurm-ends", "reasons", "how-it-works", "rollback",
                 "troubleshooting"):
        assert f"(docs/{name}.md)" in readme


def snippets(page: Path, *languages: str) -> List[str]:
    """Return the texts of a page's code blocks, also of blocks inside list items."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for _, language, text in found if language in languages]


def shell_lines(page: Path) -> List[str]:
    """Return the commands of a page: its sh blocks, and the indented blocks of the README."""
    lines = [line.strip() for text in snippets(page, "sh") for line in text.splitlines()]
    if page.name in ("README.md", "CONTRIBUTING.md"):
        lines += re.findall(r"^    ((?:make|/path|systemctl) .*)$", page.read_text(), re.MULTILINE)
    return [line for line in lines if line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Each command of a shell snippet is a program, target or subcommand that is there."""
    for line in shell_lines(page):
        check_command(shlex.split(line, comments=True))


def check_command(argv: List[str]) -> None:
    """Fail unless the command is one that we know to be there."""
    name, *arguments = argv
    program = Path(name).name
    if program == "make":
        makefile = (generate_docs.ROOT / "Makefile").read_text()
        assert re.search(rf"^{arguments[0]}:.*##", makefile, re.MULTILINE), argv
    elif program == "pip":
        assert arguments[0] in PIP_COMMANDS, argv
    elif program == "python":
        compile(arguments[arguments.index("-c") + 1], " ".join(argv), "exec")
    elif program == "pulsar-failure-reasons":
        _parser().parse_args(arguments)
    else:
        assert name in HOST_COMMANDS, argv


def test_our_commands_in_running_text_exist() -> None:
    """`pulsar-failure-reasons ...` is written only with subcommands that there are."""
    for page in PAGES:
        for arguments in re.findall(r"pulsar-failure-reasons (run [^`\n|]+)`", page.read_text()):
            check_command(["pulsar-failure-reasons", *arguments.split()])
        assert "pulsar-failure-reasons check" not in page.read_text()


def test_the_check_for_the_seams_says_what_the_pages_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The one-line check of install.md prints what the page shows."""
    install = generate_docs.DOCS / "install.md"
    (line,) = {line for line in shell_lines(install) if "active_seams" in line}
    exec(shlex.split(line)[2], {})
    shown = [text for text in snippets(install, "") if "manager_factory" in text]
    assert [capsys.readouterr().out] == shown


def test_json_examples_are_json() -> None:
    """What the pages show as JSON can be read, and the payload of the README has the three keys."""
    for page in PAGES:
        for text in snippets(page, "json"):
            json.loads(text)
    payload = json.loads(snippets(generate_docs.ROOT / "README.md", "json")[0])
    assert list(payload)[-3:] == ["runner_state", "runner_state_message", "failure_reason"]
