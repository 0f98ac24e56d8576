"""The frame around a command: hostile banners, cut answers, exit codes, dead shells."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import Any, Callable, Dict, List, Optional

import pytest
from galaxy.util.bunch import Bunch
from pulsar.managers.util.cli.shell.local import LocalShell

from pulsar_failure_reasons.errors import CommandNotFoundError, DrmUnreachableError
from pulsar_failure_reasons.managers.cli_shell import Link


class Shell:
    """A shell plugin whose login does odd things; ``twist`` gets stdout and stderr, as bytes."""

    def __init__(
        self,
        twist: Optional[Callable[[str, str], "tuple[str, str]"]] = None,
        program: str = "sh",
    ) -> None:
        self.twist = twist or (lambda out, err: (out, err))
        self.program = program
        self.commands: List[str] = []

    def execute(self, cmd: str, timeout: float = 60) -> Bunch:
        """Run as sshd does: the line is given to the login shell."""
        self.commands.append(cmd)
        done = subprocess.run(
            [self.program, "-c", cmd], capture_output=True, text=True, timeout=timeout, check=False
        )
        out, err = self.twist(done.stdout, done.stderr)
        return Bunch(stdout=out, stderr=err, returncode=0)


def link(shell: Any, timeout_s: float = 60) -> Link:
    """Return a link over one given shell."""
    return Link(lambda: shell, timeout_s, "the test's shell")


def local(timeout_s: float = 60) -> Link:
    """Return a link over Pulsar's own LocalShell."""
    return Link(LocalShell, timeout_s, "LocalShell")


BOTH = "printf 'one\\ntwo'; echo odd >&2; exit 3"
BANNER = "Welcome to login1!\nb=0123456789abcdef\no=1=0\ne=1\n\nJOBID ST\n1 R\n"


@pytest.mark.parametrize(
    "twist",
    [
        lambda out, err: (out, err),
        lambda out, err: (BANNER + out, err),
        lambda out, err: (BANNER.rstrip() + out, "Warning: Permanently added\n" + err),
        lambda out, err: (out + "logout\n" + BANNER, err + "Connection to x closed.\n"),
        lambda out, err: (out.replace("\n", "\r\n"), err),
    ],
    ids=["plain", "banner", "banner without a line end", "words after", "CR LF"],
)
def test_framed(twist: Any) -> None:
    """What a login prints before and after is no part of the answer, and the exit code is told."""
    result = link(Shell(twist)).run(["sh", "-c", BOTH])
    assert result == (3, "one\ntwo", "odd")


@pytest.mark.parametrize("echo", ["+ {}\n", "Running: {}\n", "{}\n"])
def test_a_shell_that_prints_the_command_it_runs(echo: str) -> None:
    """An echo of the command line, with the nonce in it, is no frame."""
    shell = Shell()
    shell.twist = lambda out, err: (echo.format(shell.commands[-1]) + out, err)
    assert link(shell).run(["echo", "answer"]).stdout == "answer\n"


@pytest.mark.parametrize("program", ["sh", "bash", "dash"])
def test_quoted_once(program: str) -> None:
    """Blanks, quotes, dollars and backslashes in an argument arrive as they are."""
    odd = "a  b'c\"d$HOME `id` \\n *; rm -rf x"
    assert link(Shell(program=program)).run(["printf", "%s", odd]).stdout == odd


def test_local_shell_tells_no_exit_code() -> None:
    """LocalShell gives 0 for every command, which is why the frame has the exit code."""
    assert LocalShell().execute("exit 3", timeout_check_interval=0.1).returncode == 0
    assert local().run(["sh", "-c", "exit 3"]).returncode == 3
    assert local().run(["sh", "-c", "exit 153"]).returncode == 153


def test_local_shell_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of 0.2 s, which stock's LocalShell sleeps 3 s over, is looked at all the time."""
    slept: List[float] = []

    def counted(seconds: float) -> None:
        slept.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr("pulsar.managers.util.cli.shell.local.sleep", counted)
    assert local().run(["sh", "-c", "sleep 0.2; echo done"]).stdout == "done\n"
    assert 0 < max(slept) <= 0.1


def test_much_on_stderr() -> None:
    """A command that says more on stderr than a pipe holds comes to its end by LocalShell."""
    result = local().run(["sh", "-c", "yes no | head -c 300000 >&2; echo out"])
    assert (result.returncode, result.stdout, len(result.stderr)) == (0, "out\n", 299999)


def test_several_at_once() -> None:
    """Several command lines go over the link in one go, each with its own result."""
    shell = Shell()
    lines = ["echo 1", "echo two >&2; exit 2", "cat", "exit 7"]
    assert link(shell).run_lines(lines) == [
        (0, "1\n", ""), (2, "", "two"), (0, "", ""), (7, "", ""),
    ]
    assert len(shell.commands) == 1


def test_an_exit_in_a_line_ends_that_line_alone() -> None:
    """A command line that leaves its shell does not take the others with it."""
    results = link(Shell()).run_lines(["exit 5", "echo on"])
    assert [r.returncode for r in results] == [5, 0]


def test_many_lines_are_sent_in_as_few_goes_as_fit() -> None:
    """One argument may hold 128 KiB: 2000 lines of 100 characters need a few goes."""
    shell = Shell()
    results = link(shell).run_lines([f": {n:096d}" for n in range(600)])
    assert len(results) == 600
    assert 2 <= len(shell.commands) <= 6
    assert max(map(len, shell.commands)) < 128 * 1024


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_cut_off(keep: float) -> None:
    """An answer whose end is missing is no answer, wherever it was cut."""
    shell = Shell(lambda out, err: (out[: int(len(out) * keep)], err))
    with pytest.raises(DrmUnreachableError, match="cut off|no command was run"):
        link(shell).run(["seq", "1000"])


def test_nothing_came() -> None:
    """A link that is dead says so in its own words."""
    shell = Shell(lambda out, err: ("", "ssh: connect to host login1 port 22: No route to host\n"))
    with pytest.raises(DrmUnreachableError, match="No route to host"):
        link(shell).run(["squeue"])


def test_only_a_banner_came() -> None:
    """A login that refuses with words on stdout has run nothing."""
    shell = Shell(lambda out, err: ("This account is currently not available.\n", ""))
    with pytest.raises(DrmUnreachableError, match="account is currently not available"):
        link(shell).run(["squeue"])


def test_command_missing_there() -> None:
    """A command that is not there is told from one that failed."""
    with pytest.raises(CommandNotFoundError, match="cannot run nosuchcommand.*PATH"):
        link(Shell()).run(["nosuchcommand", "-x"])
    assert link(Shell()).run(["sh", "-c", "echo out; exit 127"]).returncode == 127


def test_hangs() -> None:
    """A command that does not end is given up after the timeout, and its shell not used again."""
    made: List[LocalShell] = []

    def make() -> LocalShell:
        made.append(LocalShell())
        return made[-1]

    slow = Link(make, 0.5, "LocalShell")
    with pytest.raises(DrmUnreachableError, match="did not answer within 0.5 s"):
        slow.run(["sleep", "30"])
    slow._timeout_s = 60
    assert slow.run(["echo", "on"]).stdout == "on\n"


def test_a_plugin_that_hangs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin whose execute never returns is given up too, its connection closed."""
    monkeypatch.setattr("pulsar_failure_reasons.managers.cli_shell._TO_GIVE_UP_S", 0.1)
    stop, closed = threading.Event(), threading.Event()

    class Hung:
        """Like ParamikoShell on a link that died silently: no timeout holds there."""

        ssh = Bunch(close=closed.set)

        def execute(self, cmd: str, timeout: float = 60) -> Any:
            """Wait for an exit code that never comes."""
            stop.wait(30)

    try:
        with pytest.raises(DrmUnreachableError, match="did not answer within 0.2 s"):
            link(Hung(), 0.2).run(["squeue"])
        assert closed.is_set()
    finally:
        stop.set()


def test_a_plugin_that_raises_is_made_anew() -> None:
    """Whatever a plugin raises is an outage; the next command gets a new shell."""
    shells: List[Any] = [Bunch(execute=lambda *a, **k: 1 / 0), Shell()]
    one = Link(lambda: shells.pop(0), 60, "x")
    with pytest.raises(DrmUnreachableError, match="ZeroDivisionError"):
        one.run(["echo"])
    assert one.run(["echo", "on"]).stdout == "on\n"


def test_a_connection_that_cannot_be_made() -> None:
    """A plugin that connects when it is made, and cannot, is an outage."""

    def make() -> Any:
        raise OSError("Connection refused")

    with pytest.raises(DrmUnreachableError, match="Connection refused"):
        Link(make, 60, "ParamikoShell to login1").run(["squeue"])


def test_bytes_that_are_no_text() -> None:
    """One job named in Latin-1 does not blind LocalShell, which decodes strictly."""
    one = local()
    script = r"printf 'Fran\347ois \303\251'; printf '\377' >&2; exit 4"
    assert one.run(["sh", "-c", script]) == (4, "Fran\ufffdois \xe9", "\ufffd")
    assert one.run(["echo", "next"]).stdout == "next\n"


def test_a_login_that_prints_such_bytes() -> None:
    """What cannot be helped is said, with what to do."""

    class Latin(LocalShell):
        """A login shell with a French greeting in Latin-1."""

        def execute(self, cmd: str, **kwds: Any) -> Any:
            """Greet first."""
            return super().execute(rf"printf 'Bient\364t\n'; {cmd}", **kwds)

    with pytest.raises(DrmUnreachableError, match="login shell prints bytes that are no UTF-8"):
        link(Latin()).run(["squeue"])


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment there is cleaned for questions, and left alone for submissions."""
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")

    def clean(env: Any) -> Dict[str, str]:
        return {**{k: v for k, v in env.items() if not k.startswith("SQUEUE_")}, "LC_ALL": "C"}

    show = ["sh", "-c", "echo ${SQUEUE_FORMAT-unset} ${SLURM_CONF-unset} ${LC_ALL-unset}"]
    shell = Shell()
    one = link(shell)
    assert one.run(show, clean).stdout == "unset /etc/slurm.conf C\n"
    assert one.run(show).stdout.startswith("%i /etc/slurm.conf")
    # Its variables are asked for once.
    assert one.run(show, clean).stdout == "unset /etc/slurm.conf C\n"
    assert len(shell.commands) == 4


def test_user_and_has() -> None:
    """Who we are there is asked once; a command that is there is looked for once."""
    shell = Shell()
    one = link(shell)
    me = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert (one.user(), one.user()) == (me, me)
    assert (one.has("sh"), one.has("sh"), one.has("nosuchcommand")) == (True, True, False)
    assert len(shell.commands) == 3


def test_no_stdin() -> None:
    """A command that reads its input finds none, rather than Pulsar's."""
    assert link(Shell()).run(["cat"]).stdout == ""


def test_one_answer_for_another() -> None:
    """A frame with another nonce, as of an answer that was kept, is none."""
    kept: List[str] = []

    def twist(out: str, err: str) -> "tuple[str, str]":
        kept.append(out)
        return kept[0], err

    one = link(Shell(twist))
    assert one.run(["echo", "1"]).stdout == "1\n"
    with pytest.raises(DrmUnreachableError):
        one.run(["echo", "2"])
