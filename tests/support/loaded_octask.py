"""`octask`, loaded once and forked for each call: real processes, exit codes and terminals, fast.

    python -m tests.support.loaded_octask      (reads a call a line, writes an answer a line)

A call that takes longer than its limit is killed, and its exit code is None.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

REPO = Path(__file__).resolve().parents[2]
FAR_LIMITS = "FAR_LIMITS"  # a variable of a call's environment: no browser is given up as hung
CAN_FORK = hasattr(os, "fork") and hasattr(os, "openpty")


@dataclass(frozen=True)
class Answer:
    """What a call came to; on a terminal both streams are in `out`."""

    code: int | None
    out: bytes
    err: bytes
    seconds: float

    @property
    def said(self) -> str:
        return (self.out + self.err).decode("utf-8", "replace")


class Loaded:
    """The program with a home of its own, ready to be called; ended with the block."""

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="oc-tests-", ignore_cleanup_errors=True)
        home = dict.fromkeys(("HOME", "USERPROFILE"), self._home.name)
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.support.loaded_octask"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPO,
            env={**os.environ, **home, "PYTHONWARNINGS": "error", "TERM": "dumb", "COLUMNS": "200"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.stdout.close()
        self._program.wait(timeout=60)
        self._home.cleanup()

    def __call__(
        self,
        *words: str | bytes,
        terminal: bool = False,
        given: bytes = b"",
        limit_s: float = 150.0,
        environment: dict[str, str] | None = None,
    ) -> Answer:
        """Call `octask` with these words, `given` on its standard input and the output captured.

        Args:
            terminal: both output streams are a terminal, and there is no input.
            environment: in the place of this process' environment at the program's start.
        """
        encoded = [base64.b64encode(os.fsencode(word)).decode() for word in words]
        call = {"words": encoded, "terminal": terminal, "limit_s": limit_s}
        call |= {"environment": environment, "folder": os.getcwd(), "umask": _umask()}
        call["given"] = base64.b64encode(given).decode()
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(call).encode() + b"\n")
        self._program.stdin.flush()
        got = json.loads(self._program.stdout.readline())
        out, err = (base64.b64decode(got[name]) for name in ("out", "err"))
        return Answer(got["code"], out, err, got["seconds"])


def _umask() -> int:
    """The mask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def serve() -> None:
    """Answer every call on standard input. Nothing of an earlier call is left for a later one."""
    import click

    import engine.cli.__main__
    import engine.service.running_parts
    from engine.cli.octask import octask

    assert engine.cli.__main__
    assert engine.service.running_parts
    for name in [*octask.commands]:  # they are loaded on use
        octask.get_command(click.Context(octask), name)
    with os.fdopen(os.dup(1), "wb") as answers:
        for line in sys.stdin.buffer:
            answers.write(json.dumps(_answered(json.loads(line))).encode() + b"\n")
            answers.flush()


def _answered(call: dict[str, Any]) -> dict[str, Any]:
    words = [os.fsdecode(base64.b64decode(word)) for word in call["words"]]
    began = time.monotonic()
    os.chdir(call["folder"])
    os.umask(call["umask"])
    if call["environment"] is not None:
        os.environ.clear()
        os.environ.update(call["environment"])
    if call["terminal"]:
        code, out, err = _on_terminal(words, call["limit_s"])
    else:
        code, out, err = _in_files(words, base64.b64decode(call["given"]), call["limit_s"])
    said = {name: base64.b64encode(data).decode() for name, data in (("out", out), ("err", err))}
    return {"code": code, "seconds": time.monotonic() - began, **said}


def _in_files(words: list[str], given: bytes, limit_s: float) -> tuple[int | None, bytes, bytes]:
    open_file = tempfile.TemporaryFile
    with open_file() as source, open_file() as out, open_file() as err:
        source.write(given)
        source.seek(0)
        child = os.fork()
        if not child:
            _become(words, source.fileno(), out.fileno(), err.fileno())
        code = _ended(child, limit_s)
        return code, _whole(out), _whole(err)


def _on_terminal(words: list[str], limit_s: float) -> tuple[int | None, bytes, bytes]:
    import tty

    ours, theirs = os.openpty()
    tty.setraw(theirs)  # what is written arrives as it was written
    child = os.fork()
    if not child:
        os.close(ours)
        _become(words, os.open(os.devnull, os.O_RDONLY), theirs, theirs)
    os.close(theirs)
    out, until = bytearray(), time.monotonic() + limit_s
    try:
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([ours], [], [], left)
            data = os.read(ours, 65_536) if ready else b""
            out += data
            if not data:
                break
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(ours)
    return _ended(child, max(1.0, until - time.monotonic())), bytes(out), b""


def _become(words: list[str], source: int, out: int, err: int) -> None:
    """The child: `octask` with these words, and no way back."""
    code = 70
    try:
        os.setsid()
        for number, fd in enumerate((source, out, err)):
            os.dup2(fd, number)
        encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
        for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            mode = "r" if fd == 0 else "w"
            stream = open(fd, mode, encoding=encoding, closefd=False)  # noqa: SIM115 - for good
            setattr(sys, name, stream)
        sys.argv = ["octask", *words]
        from tests.support.far_limits import is_patient, stay_patient

        if os.environ.pop(FAR_LIMITS, "") or is_patient({**os.environ}):
            stay_patient()
        from engine.cli.__main__ import guarded
        from engine.cli.streams import repair_streams

        repair_streams()
        code = guarded()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _ended(child: int, limit_s: float) -> int | None:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)  # no event to wait for: another process changes it
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _whole(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


if __name__ == "__main__":
    serve()
