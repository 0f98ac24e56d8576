"""The sshd harness itself, with the real ssh and Pulsar's own shell plugins as clients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from tests.real.conftest import SshdFactory
from tests.real.processes import PATIENCE_S, HarnessError, process_start, wait_until
from tests.real.require import require_real
from tests.real.sshd import HOST, PLUGINS, PrivateSshd, why_missing

pytest.importorskip("pulsar")
from pulsar.managers.util.cli import CliInterface  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def shared(make_sshd: SshdFactory) -> PrivateSshd:
    """An sshd for the whole module, with variables for the commands."""
    return make_sshd(env={"PATH": "/opt/some where:/usr/bin:/bin", "FLAVOUR": "salt"})


@pytest.fixture
def sshd(shared: PrivateSshd) -> Iterator[PrivateSshd]:
    """The same, plain again after each test."""
    yield shared
    shared.thaw()
    shared.plain()


@pytest.fixture
def home() -> Iterator[Path]:
    """A path for one sshd; what runs in it at the end of the test is ended."""
    require_real("sshd", why_missing())
    folder = Path(f"/tmp/real-sshd-{os.geteuid()}-{os.getpid()}-x")
    yield folder
    PrivateSshd(folder).stop()
    subprocess.run(["rm", "-rf", str(folder)], timeout=60)


class Command:
    """A command over ssh in a thread of its own."""

    def __init__(self, sshd: PrivateSshd, command: str) -> None:
        self.done: List["subprocess.CompletedProcess[str]"] = []
        self.thread = threading.Thread(target=lambda: self.done.append(sshd.run(command)))
        self.thread.start()

    def result(self) -> "subprocess.CompletedProcess[str]":
        """Wait for its end and return it."""
        self.thread.join(PATIENCE_S)
        return self.done[0]


def plugin_shell(sshd: PrivateSshd, plugin: str, strict: bool = False) -> Any:
    """Return one of Pulsar's shells, made as a manager makes it of its options."""
    options = sshd.shell_options(plugin, strict)
    plain = {name.replace("shell_", "", 1): value for name, value in options.items()}
    return CliInterface().get_shell_plugin(plain)


class TestCommands:
    """What a command over ssh gets and gives."""

    def test_output_and_status(self, sshd: PrivateSshd) -> None:
        """Output, errors and status come back as they are, quotes survive."""
        done = sshd.run("""printf '%s\\n' "a  b"; echo no >&2; exit 3""")
        assert (done.returncode, done.stdout, done.stderr) == (3, "a  b\n", "no\n")

    def test_variables(self, sshd: PrivateSshd) -> None:
        """Commands find the given variables and a private home, and run as who started it."""
        done = sshd.run('echo "$PATH|$FLAVOUR|$HOME|$(id -u)"')
        wanted = f"/opt/some where:/usr/bin:/bin|salt|{sshd.home}/login|{os.geteuid()}\n"
        assert done.stdout == wanted

    def test_banner_and_login_text(self, sshd: PrivateSshd) -> None:
        """A banner comes on stderr, what ~/.bashrc prints before the output; both can be undone."""
        sshd.set_banner("Authorized users only\n")
        sshd.set_bashrc("echo Welcome")
        told = sshd.run("echo out")
        sshd.plain()
        silent = sshd.run("echo out")
        assert (told.stdout, told.stderr) == ("Welcome\nout\n", "Authorized users only\n")
        assert (silent.stdout, silent.stderr) == ("out\n", "")

    def test_a_wrapper_stands_between(self, sshd: PrivateSshd) -> None:
        """A wrapper runs instead of the command and knows it."""
        sshd.set_wrapper('echo "not allowed: $SSH_ORIGINAL_COMMAND" >&2; exit 126')
        done = sshd.run("sacct --noheader")
        assert (done.returncode, done.stderr) == (126, "not allowed: sacct --noheader\n")

    def test_commands_and_logins_are_counted(self, sshd: PrivateSshd) -> None:
        """commands tells what was asked for and connections how often, also of many lines."""
        before, logins = len(sshd.commands()), sshd.connections()
        sshd.run("echo one\necho two")
        sshd.run("true")
        assert sshd.commands()[before:] == ["echo one\necho two", "true"]
        assert sshd.connections() == logins + 2


class TestLink:
    """What the harness does to the link."""

    def test_cut_in_the_middle_of_an_answer(self, sshd: PrivateSshd) -> None:
        """A cut connection leaves half an answer and ssh's 255; the next one works."""
        sshd.stall_output(after_bytes=5)
        with subprocess.Popen(
            [str(sshd.ssh), HOST, "seq 100"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as command:
            assert command.stdout is not None
            assert command.stdout.read(5) == "1\n2\n3"  # what has not come here a cut may lose
            sshd.wait_stalled()
            sshd.cut()
            more, error = command.communicate(timeout=PATIENCE_S)
        assert (command.returncode, more) == (255, "")
        assert error.strip() == "Connection to 127.0.0.1 closed by remote host."
        sshd.plain()
        assert sshd.run("seq 2").stdout == "1\n2\n"

    def test_a_cut_of_nothing_is_an_error(self, sshd: PrivateSshd) -> None:
        """Where no connection lives, cut says so."""
        wait_until(lambda: not sshd.sessions(), PATIENCE_S, "the end of all connections")
        with pytest.raises(HarnessError, match="no connection"):
            sshd.cut()

    def test_down_and_up(self, sshd: PrivateSshd) -> None:
        """down refuses connections, up takes them again on the same port."""
        sshd.down()
        try:
            refused = sshd.run("true")
        finally:
            sshd.up()
        assert refused.returncode == 255
        assert "Connection refused" in refused.stderr
        assert sshd.run("true").returncode == 0

    def test_frozen_connections_hang(self, sshd: PrivateSshd) -> None:
        """Nothing comes over a frozen link until it is thawed."""
        sshd.freeze()
        command = Command(sshd, "echo out")
        command.thread.join(1)
        assert command.done == []
        sshd.thaw()
        assert command.result().stdout == "out\n"


@pytest.mark.filterwarnings("ignore:Unknown ssh-ed25519 host key")
class TestPulsarsPlugins:
    """The options for Pulsar's shell plugins; their peculiarities, which ours has to bear."""

    @pytest.mark.parametrize("plugin", PLUGINS)
    def test_each_plugin_gets_through(self, sshd: PrivateSshd, plugin: str) -> None:
        """A shell made of shell_options runs a command there."""
        before = len(sshd.commands())
        shell = plugin_shell(sshd, plugin)
        # LocalShell and its heirs look each 3 s whether the command has ended, unless told
        often = {} if plugin == "ParamikoShell" else {"timeout_check_interval": 0.1}
        assert shell.execute("echo out; exit 3", **often).stdout == "out\n"
        assert sshd.commands()[before:] == ["echo out; exit 3"]

    def test_the_host_key_can_be_checked(self, sshd: PrivateSshd) -> None:
        """With strict, ssh knows the host and warns of nothing."""
        shell = plugin_shell(sshd, "SecureShell", strict=True)
        done = shell.execute("echo out", timeout_check_interval=0.1)
        assert (done.stdout, done.stderr) == ("out\n", "")

    def test_a_refused_link_looks_like_a_success(self, sshd: PrivateSshd) -> None:
        """SecureShell of Pulsar 0.16 loses ssh's 255: status 0, no output, the error on stderr."""
        shell = plugin_shell(sshd, "SecureShell")
        sshd.down()
        try:
            done = shell.execute("echo out", timeout_check_interval=0.1)
        finally:
            sshd.up()
        assert (done.returncode, done.stdout) == (0, "")
        assert "Connection refused" in done.stderr

    def test_paramiko_after_a_cut(self, sshd: PrivateSshd) -> None:
        """ParamikoShell gives -1 and half an answer for a command whose link is cut."""
        shell = plugin_shell(sshd, "ParamikoShell")
        sshd.stall_output(after_bytes=5)
        done: List[Any] = []
        thread = threading.Thread(target=lambda: done.append(shell.execute("seq 100")))
        thread.start()
        sshd.wait_stalled()
        channels = shell.ssh.get_transport()._channels
        # what has not come here a cut may lose
        came = "half an answer"
        wait_until(lambda: any(c.recv_ready() for c in channels.values()), PATIENCE_S, came)
        sshd.cut()
        thread.join(PATIENCE_S)
        assert (done[0].returncode, done[0].stdout) == (-1, "1\n2\n3")


class TestNothingIsLeft:
    """No process outlives its sshd."""

    def test_stop_ends_connections_and_commands(self, home: Path) -> None:
        """After stop neither sshd nor a command is left, even one whose link was cut before."""
        sshd = PrivateSshd(home)
        sshd.start()
        first = Command(sshd, "trap '' HUP TERM; sleep 600")
        wait_until(lambda: len(sshd.commands()) == 1, PATIENCE_S, "the first command")
        sshd.cut()
        second = Command(sshd, "sleep 600")
        wait_until(lambda: len(sshd.commands()) == 2, PATIENCE_S, "the second command")
        before = [*sshd.sessions(), *sshd.commands_running()]
        assert len(before) >= 3
        sshd.stop()
        assert [pid for pid, start in before if process_start(pid) == start] == []
        assert [first.result().returncode, second.result().returncode] == [255, 255]

    def test_a_crashed_run_is_cleaned_by_the_next(self, home: Path) -> None:
        """An sshd that a killed test run left is ended by the next start in the same folder."""
        text = (
            "import os, signal, sys; from tests.real.sshd import PrivateSshd; "
            "s = PrivateSshd(sys.argv[1]); s.start(); print(s.daemons.pid('sshd'), flush=True); "
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        crashed = subprocess.run(
            [sys.executable, "-c", text, str(home)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
        )
        assert crashed.returncode == -signal.SIGKILL
        old = int(crashed.stdout)
        assert process_start(old) is not None
        with PrivateSshd(home) as again:
            assert process_start(old) is None
            assert again.run("true").returncode == 0


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """A home that holds somebody's files is not emptied but refused."""
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(HarnessError, match="holds files that are not a private sshd's"):
        PrivateSshd(tmp_path).start()
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_value_that_sshd_config_cannot_hold_is_refused(home: Path) -> None:
    """A variable with a quote or a line end in its value is named in the error."""
    with pytest.raises(HarnessError, match="values of QUOTED"):
        PrivateSshd(home, env={"QUOTED": 'say "hi"'}).start()
