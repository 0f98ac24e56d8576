"""A host behind one of Pulsar's shell plugins, told apart from what stands in its way.

Pulsar's shells say little of what happened: LocalShell and the ssh shells give 0 for every exit
code, and a dead link, a time-out and a job that is not there are all an empty text. So every
command line is sent inside a frame::

    <banner of a login shell>
    b=<nonce>
    <what the command printed>
    o=<nonce>=<exit code>
    <what it printed on stderr>
    e=<nonce>

A frame that is not there, or not to its end, is no answer. The nonce is random for each command,
and the command line itself does not hold the framing lines (it prints them with ``printf``), so
neither a banner nor a shell that echoes its commands can be taken for a frame.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shlex
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence

from pulsar.managers.util.cli.shell.local import TIMEOUT_ERROR_MESSAGE, LocalShell
from pulsar.managers.util.retry import RetryActionExecutor

from ..drm.argv import ROOM_FOR_IDS
from ..errors import CommandNotFoundError, DrmUnreachableError
from ..execute import CommandResult
from ..reason import clean_text
from .commands import CleanEnvironment

log = logging.getLogger("pulsar.failure_reasons.cli")

#: How long a shell may take beyond its own timeout: LocalShell ends a process group in up to 2 s.
_TO_GIVE_UP_S = 5.0
#: LocalShell sleeps 0.1 s, looks, and sleeps this long; stock's 3 s make 3.1 s of any command.
_CHECK_INTERVAL_S = 0.1
_LOCAL_SHELL_SLEEPS_S = 0.1
#: An answer over one ssh channel beyond this is never read by ParamikoShell (it waits for the
#: exit code first); paramiko's own default is 2 MiB.
_PARAMIKO_WINDOW = 64 * 1024 * 1024
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


@dataclass
class _Words:
    """What a shell plugin returned, unframed."""

    stdout: str = ""
    stderr: str = ""


class Link:
    """Commands by way of a shell plugin (see :class:`.commands.Commands`).

    The shell is made when it is first needed, and anew in a forked process and after a failure.

    Args:
        make_shell: Makes the plugin; may connect, and raise anything.
        timeout_s: How long a command may take, the connection included.
        where: What the messages call the other side: ``SecureShell to login1``.
    """

    def __init__(self, make_shell: Callable[[], Any], timeout_s: float, where: str) -> None:
        self._make_shell = make_shell
        self._timeout_s = timeout_s
        self.where = where
        self._lock = threading.Lock()
        self._shell: Any = None
        self._shell_pid = 0
        self._user: Optional[str] = None
        self._variables: Optional[FrozenSet[str]] = None
        self._present: Dict[str, bool] = {}
        self._answers_in_hex = False

    # ---- what sources and managers ask for --------------------------------------------------

    def run(self, argv: Sequence[str], clean: Optional[CleanEnvironment] = None) -> CommandResult:
        """See :class:`.commands.Commands`.

        Raises:
            CommandNotFoundError: the other side has no such command, or may not run it.
            DrmUnreachableError: there was no answer.
        """
        return self.run_all([argv], clean)[0]

    def run_all(
        self, commands: Sequence[Sequence[str]], clean: Optional[CleanEnvironment] = None
    ) -> List[CommandResult]:
        """Run several commands in one go; see :meth:`run`."""
        before = "" if clean is None else self._cleaning(clean)
        results = self.run_lines([shlex.join(argv) for argv in commands], before)
        for argv, result in zip(commands, results):
            self._check_that_it_ran(argv[0], result)
        return results

    def run_line(self, line: str) -> CommandResult:
        """Run a shell's command line as a job plugin made it, quoted already.

        Raises:
            DrmUnreachableError: there was no answer.
        """
        return self.run_lines([line])[0]

    def run_lines(self, lines: Sequence[str], before: str = "") -> List[CommandResult]:
        """Run several command lines, in as few goes as the length of a command line allows.

        Raises:
            DrmUnreachableError: there was no answer.
        """
        results: List[CommandResult] = []
        for some in _chunks(lines):
            results.extend(self._exchange(some, before))
        return results

    def has(self, command: str) -> bool:
        """See :class:`.commands.Commands`; what was there once is not looked for again."""
        if not self._present.get(command):
            found = self.run_line(f"command -v {shlex.quote(command)}")
            self._present[command] = found.returncode == 0
        return self._present[command]

    def user(self) -> str:
        """See :class:`.commands.Commands`: the login name there; its number where it has none."""
        if self._user is None:
            told = self.run_line("id -un 2>/dev/null || id -u")
            name = told.stdout.strip()
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?", name):
                raise DrmUnreachableError(
                    f"{self.where}: id told no user but {clean_text(told.stdout + told.stderr)!r}"
                )
            self._user = name
        return self._user

    # ---- the frame --------------------------------------------------------------------------

    def _cleaning(self, clean: CleanEnvironment) -> str:
        """Return statements that make the environment there the one that the parsers expect."""
        if self._variables is None:
            told = self.run_line(r"env | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p'")
            self._variables = frozenset(told.stdout.split())
        kept = clean(dict.fromkeys(self._variables, ""))
        unset = sorted(self._variables - set(kept))
        given = {name: value for name, value in clean({}).items()}
        statements = [f"unset {' '.join(unset)}"] if unset else []
        statements += [f"export {name}={shlex.quote(value)}" for name, value in given.items()]
        return "".join(f"{statement}; " for statement in statements)

    def _exchange(self, lines: Sequence[str], before: str) -> List[CommandResult]:
        try:
            return self._sent(lines, before)
        except UnicodeDecodeError:
            # LocalShell decodes strictly: one job named in Latin-1 would blind us to all.
            self._answers_in_hex = True
        try:
            return self._sent(lines, before)
        except UnicodeDecodeError as error:
            raise DrmUnreachableError(
                f"{self.where}: its login shell prints bytes that are no UTF-8 ({error}); make it "
                "print nothing where it is not interactive"
            ) from error

    def _sent(self, lines: Sequence[str], before: str) -> List[CommandResult]:
        nonces = [secrets.token_hex(16) for _ in lines]
        frames = "; ".join(_framed(line, nonce) for line, nonce in zip(lines, nonces))
        script = f"{before}exec 3>&1 </dev/null; {frames}"
        hex_nonce = secrets.token_hex(16) if self._answers_in_hex else None
        if hex_nonce:
            script = (
                f"printf '\\n%s=%s\\n' x {hex_nonce}; {{ {script}; }} | od -A n -v -t x1"
            )
        words = self._execute(shlex.join(["sh", "-c", script]))
        text = words.stdout.replace("\r\n", "\n")
        if hex_nonce:
            text = _unhexed(text, hex_nonce)
        return [self._result(text, nonce, words) for nonce in nonces]

    def _result(self, text: str, nonce: str, words: _Words) -> CommandResult:
        begin, middle, end = f"\nb={nonce}\n", f"\no={nonce}=", f"\ne={nonce}\n"
        if begin not in text:
            said = clean_text("; ".join(
                part for part in (words.stderr.strip(), words.stdout.strip()[-300:]) if part
            ))
            raise DrmUnreachableError(
                f"{self.where}: no command was run there: {said or 'no word of why'}"
            )
        body = text[text.index(begin) + len(begin):]
        if text.count(begin) != 1 or body.count(middle) > 1 or body.count(end) > 1:
            raise DrmUnreachableError(f"{self.where}: the answer came twice")
        match = re.search(re.escape(middle) + r"([0-9]{1,3})\n", body)
        if match is None or end not in body[match.end() - 1:]:
            said = clean_text(words.stderr)
            raise DrmUnreachableError(
                f"{self.where}: the answer was cut off after {len(body)} characters"
                f"{': ' + said if said else ''}"
            )
        # The frame puts a line end of its own behind each text.
        stderr = body[match.end():body.index(end, match.end() - 1)]
        return CommandResult(int(match.group(1)), body[:match.start()], stderr)

    def _check_that_it_ran(self, command: str, result: CommandResult) -> None:
        if result.returncode in (_NOT_FOUND, _NOT_EXECUTABLE) and not result.stdout.strip():
            self._present.pop(command, None)
            raise CommandNotFoundError(
                f"{self.where}: cannot run {command}: {clean_text(result.stderr)}; put it on the "
                "PATH of a shell that is not interactive"
            )

    # ---- the shell --------------------------------------------------------------------------

    def _execute(self, command_line: str) -> _Words:
        """Let the plugin run a line, in a thread: not all of them end by themselves."""
        done: Dict[str, Any] = {}

        def execute() -> None:
            try:
                done["shell"] = shell = self._made_shell()
                done["answer"] = _call(shell, command_line, self._timeout_s)
            except BaseException as error:  # whatever a plugin raises is told to the caller
                done["error"] = error

        thread = threading.Thread(target=execute, name="failure-reasons-shell", daemon=True)
        thread.start()
        thread.join(self._timeout_s + _TO_GIVE_UP_S)
        if thread.is_alive():
            self._drop_shell(done.get("shell"))
            raise DrmUnreachableError(self._no_answer_in_time())
        error = done.get("error")
        if isinstance(error, UnicodeDecodeError):
            raise error
        if error is not None:
            self._drop_shell(done.get("shell"))
            said = clean_text(f"{type(error).__name__}: {error}")
            raise DrmUnreachableError(f"{self.where}: {said}") from error
        answer = done["answer"]
        if answer.stderr == TIMEOUT_ERROR_MESSAGE:
            raise DrmUnreachableError(self._no_answer_in_time())
        return _Words(answer.stdout or "", answer.stderr or "")

    def _no_answer_in_time(self) -> str:
        return f"{self.where} did not answer within {self._timeout_s:g} s"

    def _made_shell(self) -> Any:
        with self._lock:
            if self._shell is None or self._shell_pid != os.getpid():
                self._shell = _prepared(self._make_shell())
                self._shell_pid = os.getpid()
            return self._shell

    def _drop_shell(self, shell: Any) -> None:
        """Forget a shell that failed, with its connection: the next command makes another."""
        if self._shell is shell:
            self._shell = None
        connection = getattr(shell, "ssh", None)
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


def _framed(line: str, nonce: str) -> str:
    # stderr travels in the frame too: LocalShell reads its pipe only when the command has ended,
    # which a command that says more than 64 KiB there then never does.
    return (
        f"printf '\\n%s=%s\\n' b {nonce}; e=$({{ {line}; }} 2>&1 >&3 3>&-); "
        f"printf '\\n%s=%s=%s\\n%s\\n%s=%s\\n' o {nonce} $? \"$e\" e {nonce}"
    )


def _unhexed(text: str, nonce: str) -> str:
    """Return what stands behind the mark in od's hexadecimal; all of the text without it."""
    before, mark, dumped = text.partition(f"\nx={nonce}\n")
    if not mark:
        return text
    match = re.match(r"[0-9a-f \n]*", dumped)
    digits = re.sub(r"\s", "", match.group() if match else "")
    return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8", "replace")


def _chunks(lines: Sequence[str]) -> List[List[str]]:
    chunks: List[List[str]] = []
    room = 0
    for line in lines:
        # Quoted once more as a whole, and framed.
        need = len(line.encode("utf-8", "replace")) + 4 * line.count("'") + 300
        if need > room:
            chunks.append([])
            room = ROOM_FOR_IDS
        chunks[-1].append(line)
        room -= need
    return chunks


def _prepared(shell: Any) -> Any:
    """Return a new shell, mended where it would hang."""
    if hasattr(shell, "retry_action_executor"):
        # ParamikoShell's tries a dead link a hundred times, for hours: the observer does that.
        shell.retry_action_executor = RetryActionExecutor(should_retry=lambda _: False)
    connection = getattr(shell, "ssh", None)
    if connection is not None and hasattr(connection, "get_transport"):
        transport = connection.get_transport()
        if hasattr(transport, "default_window_size"):
            transport.default_window_size = _PARAMIKO_WINDOW
    return shell


def _call(shell: Any, command_line: str, timeout_s: float) -> Any:
    if not isinstance(shell, LocalShell):
        return shell.execute(command_line, timeout=timeout_s)
    # It counts looks and not seconds, and forgets what it sleeps before each of them.
    looks_s = timeout_s * _CHECK_INTERVAL_S / (_CHECK_INTERVAL_S + _LOCAL_SHELL_SLEEPS_S)
    return shell.execute(
        command_line,
        timeout=max(looks_s, _CHECK_INTERVAL_S),
        timeout_check_interval=_CHECK_INTERVAL_S,
    )
