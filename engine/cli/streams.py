"""Standard streams that accept every text, and whose closed reader ends no task."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any


class _DroppingFile(io.FileIO):
    """Descriptor that drops what cannot be written; `failed` is the first error."""

    failed: OSError | None = None

    def write(self, data: Any, /) -> int:
        if self.failed is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failed = error
        return memoryview(data).nbytes


def repair_streams() -> None:
    """Make the standard streams accept every text, and replace missing ones by the null device.

    Progress goes to standard error: a task must not end because nobody reads it.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            flags = os.O_RDONLY if name == "stdin" else os.O_WRONLY
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
        elif isinstance(stream, io.TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="backslashreplace")  # a code page may lack the character
    _drop_failed_writes("stderr")


def is_interactive() -> bool:
    """Return whether a user can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def keep_task_without_reader() -> None:
    """Let standard output drop what cannot be written, for commands whose task must go on."""
    _drop_failed_writes("stdout")


def _drop_failed_writes(name: str) -> None:
    stream = getattr(sys, name)
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # unbuffered streams have no other
    if type(raw) is not io.FileIO:  # a console of Windows, which no reader closes
        return
    stream.flush()
    file = io.BufferedWriter(_DroppingFile(raw.fileno(), "w", closefd=False))
    text = io.TextIOWrapper(
        file, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering
    )
    setattr(sys, name, text)


def lost_output() -> OSError | None:
    """Error for which output was dropped; None for a closed reader, which wants no more."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failed = raw.failed if isinstance(raw, _DroppingFile) else None
    return None if failed is None or failed.errno == errno.EPIPE else failed


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's final flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
