"""Reading ahead of the first read of a large ledger, in a child process.

Opening and reading 100,000 records takes 0.9 s of the GIL, and the thread that reads and a window's
thread take turns at it. A child process takes that part over on another processor: it sends the
bytes of each meta.json, by ascending id. Only this process decodes and checks them, as those that
it reads itself. It never waits for the child: what has not arrived in time is read here, so a child
that is slow, ends or does not start costs nothing but its help.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from engine.ledger import listing
from engine.ledger.files import Folder, write_fully
from engine.model.program import apart, program_command

HIDDEN_VERB: Final = "_read-ahead"
SENT_AT_ONCE: Final = 64  # tasks of one block: about 50 KB, at most 1 MB
MOST_BYTES: Final = 2 * SENT_AT_ONCE * listing.SMALL_BYTES  # of a block
PIPE_BYTES: Final = 1024 * 1024  # the most that the child is ahead
END_S: Final = 1.0  # for the end of a killed child; one that reads a dead disk ends later
_HEAD: Final = 4  # bytes of a block's length
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, bytes]).decode


def send(root: Path, out: int) -> None:
    """Send the beginning of each meta.json below `root` to the descriptor `out`: in the child.

    Raises:
        OSError: the root cannot be read, or the receiver has ended.
    """
    with Folder.at(str(root)) as folder:
        assert folder.fd is not None
        ids = sorted(listing.task_ids(folder))
        for first in range(0, len(ids), SENT_AT_ONCE):
            texts, _ = listing.texts(folder.fd, ids[first : first + SENT_AT_ONCE])
            block = _encode(dict(texts))
            write_fully(out, len(block).to_bytes(_HEAD, "little") + block)


class ReadAhead:
    """The child process and what it has sent; for one thread, except `close`."""

    def __init__(self, root: Path) -> None:
        """Start the child. Raises OSError."""
        self._child: subprocess.Popen[bytes] | None = subprocess.Popen(
            [*program_command(), HIDDEN_VERB, str(root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            **apart(),
        )
        assert self._child.stdout is not None
        self._pipe = self._child.stdout.fileno()
        os.set_blocking(self._pipe, False)
        with suppress(AttributeError, OSError):  # Linux alone; others take turns more often
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._arrived = bytearray()
        self._texts: dict[str, bytes] = {}
        self._last = ""  # the greatest id that has arrived
        self._lock = threading.Lock()

    def take(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those of `ids` that have arrived; ids ascend from call to call."""
        with self._lock:
            while self._last < ids[-1] and self._receive():
                pass
        texts, last = self._texts, ids[-1]
        found = {task_id: texts[task_id] for task_id in ids if task_id in texts}
        self._texts = {task_id: data for task_id, data in texts.items() if task_id > last}
        return found

    def _receive(self) -> bool:
        """Take in what has arrived; return whether that was anything."""
        if self._child is None:
            return False
        try:
            part = os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return False
        if not part:
            self._end()
            return False
        self._arrived += part
        try:
            self._unpack()
        except ValueError:  # also of msgspec: not what `send` writes
            self._end()
        return True

    def _unpack(self) -> None:
        """Move the complete blocks to `_texts`. Raises ValueError."""
        arrived, at = self._arrived, 0
        while len(arrived) >= (begin := at + _HEAD):
            size = int.from_bytes(arrived[at:begin], "little")
            if size > MOST_BYTES:
                raise ValueError(size)
            if len(arrived) < begin + size:
                break
            texts = _decode(bytes(arrived[begin : begin + size]))
            self._texts |= texts
            self._last = max(self._last, *texts, "")
            at = begin + size
        del arrived[:at]

    def close(self) -> None:
        """End the child. Idempotent, from any thread."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdout is not None
        child.kill()
        child.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(END_S)
