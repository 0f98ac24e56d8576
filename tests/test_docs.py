"""The documentation: generated pages, options, links, and the commands that it tells."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

import click
import pytest

from pulsar_failure_reasons.cli.commands import group
from pulsar_failure_reasons.drm.htcondor import HoldReasonCode
from pulsar_failure_reasons.managers import cli as cli_manager
from pulsar_failure_reasons.managers import htcondor, slurm
from tests import simulated_htcondor
from tools import generate_docs

PAGES = generate_docs.markdown_files()


class Manager(NamedTuple):
    """A manager whose page documents its options.

    ``value_by_option`` tells where a manager keeps the value of each option. ``choices`` take one
    word, ``lists`` several.
    """

    page: str
    make: Callable[..., Any]
    own_options: Tuple[str, ...]
    value_by_option: Mapping[str, Callable[[Any], Any]]
    choices: Tuple[str, ...] = ()
    lists: Tuple[str, ...] = ()


SHARED_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "status_poll_interval": lambda manager: manager._interval_s,
    "missing_grace": lambda manager: manager.graces.missing_s,
    "hold_grace": lambda manager: manager.graces.hold_s,
    "limit_with_zero_exit": lambda manager: manager.graces.limit_with_zero_exit,
    "observe_only": lambda manager: manager.observe_only,
}
SLURM = Manager(
    page="queued_slurm.md",
    make=slurm.SlurmQueueManager,
    own_options=slurm.OWN_OPTIONS,
    value_by_option={
        **SHARED_VALUES,
        "submit": lambda manager: manager._submit_by,
        "cluster": lambda manager: manager._cluster,
        "accounting": lambda manager: manager._accounting,
        "command_timeout": lambda manager: manager._command_timeout_s,
    },
    choices=("submit", "accounting", "limit_with_zero_exit"),
)
HTCONDOR = Manager(
    page="queued_htcondor_classified.md",
    make=htcondor.HTCondorQueueManager,
    own_options=htcondor.OWN_OPTIONS,
    value_by_option={
        **SHARED_VALUES,
        "schedd": lambda manager: manager._schedd_name,
        "pool": lambda manager: manager._pool,
        "command_timeout": lambda manager: manager._timeout_s,
        "user_hold_grace": lambda manager: manager._user_hold_grace_s,
        "hold_releases_max": lambda manager: manager._releases_max,
        "fail_at_once": lambda manager: {cause.value for cause in manager._fail_at_once},
        "wait_for_release": lambda manager: {cause.value for cause in manager._wait_for_release},
        "sigkill_means_memory": lambda manager: manager._sigkill_means_memory,
        "request_walltime": lambda manager: manager._read_limits(manager._limits).walltime_s,
        "request_memory": lambda manager: manager._read_limits(manager._limits).memory_bytes,
        "request_disk": lambda manager: manager._read_limits(manager._limits).disk_bytes,
    },
    choices=("limit_with_zero_exit",),
    lists=("fail_at_once", "wait_for_release"),
)
CLI = Manager(
    page="queued_cli_classified.md",
    make=partial(cli_manager.CliQueueManager, job_plugin="LSF"),
    own_options=cli_manager.OWN_OPTIONS,
    value_by_option={
        **SHARED_VALUES,
        "native_specification": lambda manager: manager.native_specification,
        "submit_native_specification": lambda manager: manager.native_specification,
        "accounting": lambda manager: manager._accounting,
        "command_timeout": lambda manager: manager._link._timeout_s,
    },
    choices=("accounting", "limit_with_zero_exit"),
)
MANAGERS = (SLURM, HTCONDOR, CLI)
EACH_MANAGER = pytest.mark.parametrize("manager", MANAGERS, ids=lambda manager: manager.page)
#: Programs of the host that the pages use; ours and pip's are looked at more closely.
HOST_COMMANDS = {
    "cat", "condor_history", "condor_q", "condor_qedit", "condor_release", "condor_rm", "git",
    "grep", "journalctl", "rsync", "sacct", "scontrol", "squeue", "systemctl",
}
PIP_COMMANDS = {"download", "install", "uninstall", "wheel"}


@pytest.fixture(scope="module")
def slurm_ends() -> str:
    """The page of Slurm's ends, as the code would write it."""
    return generate_docs.slurm_ends_page()


def test_generated_pages_are_up_to_date() -> None:
    """What the code says of causes and ends is what the pages say."""
    assert generate_docs.stale_pages() == {}, "run: make docs"


@pytest.mark.slow
def test_a_changed_page_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is missing or was edited is stale."""
    monkeypatch.setattr(generate_docs, "DOCS", tmp_path)
    (tmp_path / "slurm-ends.md").write_text(generate_docs.slurm_ends_page())
    (tmp_path / "reasons.md").write_text(generate_docs.reasons_page() + "edited\n")
    stale = set(generate_docs.stale_pages())
    assert {"htcondor-holds.md", "reasons.md"} <= stale
    assert "slurm-ends.md" not in stale


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


@pytest.fixture(scope="module")
def htcondor_holds() -> str:
    """The page of HTCondor's holds, as the code would write it."""
    return generate_docs.htcondor_holds_page()


@pytest.mark.parametrize(
    "row",
    [
        "| 1 | UserRequest |  | held | unknown | `unknown_error` "
        "| a person's hold: stays `queued` |",
        "|  |  | subcode 46001 | walltime | job | `walltime_reached` | at once |",
        "| 16 | SpoolingInput |  |  |  |  | no failure: ends by itself |",
        "| 26 | SystemPolicy |  | held | unknown | `unknown_error` | after `hold_grace` |",
        "|  |  | subcode 103 | walltime | job | `walltime_reached` | at once |",
        "|  |  | subcode 104 | disk | job | `unknown_error` | at once |",
        "| 46 | JobDurationExceeded |  | walltime | job | `walltime_reached` | at once |",
        "| 47 | JobExecuteExceeded |  | walltime | job | `walltime_reached` | at once |",
        "| removed by a person (`condor_rm`) | any | `failed` | cancelled | user "
        "| `unknown_error` |",
        "| suspended | `running` |",
    ],
)
def test_rows_of_the_page_of_holds(htcondor_holds: str, row: str) -> None:
    """The tables of holds and ends say what HTCondor's manual and the design say."""
    assert row in htcondor_holds.splitlines()


def test_every_hold_code_is_in_the_table_of_holds(htcondor_holds: str) -> None:
    """No code of HTCondor's header is left out, and no other is told."""
    numbers = re.findall(r"^\| (\d+) \| \w+", htcondor_holds, re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(50))
    assert len(HoldReasonCode) == 50


def documented_options(manager: Manager) -> Dict[str, Tuple[str, str]]:
    """Return (default, allowed) by option, from the table of the manager's page."""
    text = (generate_docs.DOCS / manager.page).read_text()
    table = text.partition("## Options")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", table, re.MULTILINE)
    return {name: (default.replace("`", ""), allowed) for name, default, allowed in rows}


@EACH_MANAGER
def test_every_option_is_documented(manager: Manager) -> None:
    """The table of options holds exactly the manager's own options."""
    options = documented_options(manager)
    assert set(options) == set(manager.own_options) == set(manager.value_by_option)


@EACH_MANAGER
def test_documented_defaults_hold(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manager without options has the values that the table calls defaults."""
    made = start(manager, tmp_path, monkeypatch)
    for option, (documented, _) in documented_options(manager).items():
        value = manager.value_by_option[option](made)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert float(documented) == value, option
        elif isinstance(value, set):
            assert set(documented.split(", ")) - {"none"} == value, option
        else:
            assert documented == {None: "none"}.get(value, str(value).lower()), option


@pytest.mark.parametrize(
    "manager, option",
    [(manager, option) for manager in MANAGERS for option in manager.choices + manager.lists],
    ids=lambda value: getattr(value, "page", value),
)
def test_documented_words_are_taken(
    manager: Manager, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each word of the column "allowed" is taken, another is refused with the same words."""
    words = re.findall(r"`(\w+)`", documented_options(manager)[option][1])
    assert words
    for word in words:
        value = manager.value_by_option[option](
            start(manager, tmp_path, monkeypatch, **{option: word})
        )
        assert value == ({word} if option in manager.lists else word)
    with pytest.raises(Exception, match=": " + ", ".join(words) + "$"):
        start(manager, tmp_path, monkeypatch, **{option: "other"})


def start(
    manager: Manager, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> Any:
    """Return a manager of an application that has no more than its constructor asks for."""
    simulated_htcondor.load(monkeypatch, folder / "pool")
    app = SimpleNamespace(
        staging_directory=str(folder),
        persistence_directory=None,
        authorizer=None,
        job_metrics=None,
        dependency_manager=None,
        object_store=None,
        user_auth_manager=None,
    )
    return manager.make("_default_", app, **options)


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
    for name in ("install", "queued_slurm", "slurm-ends", "queued_htcondor_classified",
                 "htcondor-holds", "fake-htcondor2", "queued_cli_classified", "lsf-ends",
                 "pbs-ends", "gridengine-ends", "reasons", "how-it-works", "rollback",
                 "troubleshooting", "adding-a-drm", "mirror", "tools"):
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
        check_our_command(arguments)
    else:
        assert name in HOST_COMMANDS, argv


def check_our_command(arguments: List[str]) -> None:
    """Parse the arguments as the command would, without running it."""
    if not arguments[0].startswith("-") and arguments[0] != "run":
        command = group.get_command(click.Context(group), arguments[0])
        assert command is not None, arguments
        command.make_context(arguments[0], arguments[1:])


def test_our_commands_in_running_text_exist() -> None:
    """`pulsar-failure-reasons ...` is written only with subcommands that there are."""
    for page in PAGES:
        for arguments in re.findall(r"pulsar-failure-reasons (run [^`\n|]+)`", page.read_text()):
            check_command(["pulsar-failure-reasons", *arguments.split()])


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
