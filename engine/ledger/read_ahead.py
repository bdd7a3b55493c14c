"""Reading ahead of the first list of a large ledger, in a child process.

Opening and reading 100,000 records takes 0.9 s of the GIL, and the thread that reads and a window's
thread take turns at it. A child process takes that part over on another processor: it sends the
bytes of each meta.json, by ascending id. Only this process decodes and checks them, as those that
it reads itself. It never waits for the child: what has not arrived in time is read here.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from engine.ledger import listing
from engine.ledger.files import Folder, write_fully
from engine.model.program import apart, program_command

log = logging.getLogger(__name__)

HIDDEN_VERB: Final = "_read-ahead"
SENT_AT_ONCE: Final = 64  # tasks of one block
MOST_BYTES: Final = SENT_AT_ONCE * 4 * 1024  # of a block; longer records are read as fast here
PIPE_BYTES: Final = 1024 * 1024
MOST_READS: Final = 4  # of the pipe, for one part of the list
_SIZE, _ID = 4, 16  # bytes of a block's head: its size without the head, and its last id
_HEAD: Final = _SIZE + _ID
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, bytes]).decode


def send(root: Folder, first: str, out: int) -> None:
    """Send the records from id `first` on to the descriptor `out`: in the child.

    It ends early at records that are too long. Those above the size of a fast read are left out.

    Raises:
        OSError: the root cannot be read, or the receiver has ended.
    """
    assert root.fd is not None
    ids = sorted(task_id for task_id in listing.task_ids(root) if task_id >= first)
    for at in range(0, len(ids), SENT_AT_ONCE):
        part = ids[at : at + SENT_AT_ONCE]
        texts, _ = listing.texts(root.fd, part)
        block = packed_block(part[-1], ((one, data) for one, data in texts if is_whole(data)))
        if len(block) - _HEAD > MOST_BYTES:
            return
        write_fully(out, block)


def is_whole(data: bytes) -> bool:
    """Return whether the beginning of a file is all of it."""
    return len(data) < listing.SMALL_BYTES


def packed_block(last: str, texts: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the block of these bytes by id; `last` is the last id that was read for it."""
    data = _encode(dict(texts))
    return len(data).to_bytes(_SIZE, "little") + last.encode() + data


class ReadAhead:
    """The child process and what it has sent; for one thread, except `close`."""

    def __init__(self, root: Folder, first: str) -> None:
        """Start the child at id `first`. Raises OSError."""
        assert root.fd is not None
        self._root = _identity(root.fd)
        self._child: subprocess.Popen[bytes] | None = subprocess.Popen(
            [*program_command(), HIDDEN_VERB, str(root.fd), first],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=[root.fd],
            **apart(),
        )
        assert self._child.stdout is not None
        self._pipe = self._child.stdout.fileno()
        os.set_blocking(self._pipe, False)
        _enlarge(self._pipe)
        self._arrived = bytearray()
        self._texts: dict[str, bytes] = {}
        self._last = ""  # the last id that the child has read
        self._lock = threading.Lock()

    def take(self, root: Folder, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those of `ids` that have arrived.

        Ids ascend, also from call to call. Another `root` than that of the child ends it.
        """
        assert root.fd is not None
        last = ids[-1]
        with self._lock:
            if self._root != _identity(root.fd):
                self._end()
                self._texts.clear()
            for _ in range(MOST_READS):
                if self._last >= last or not self._receive(ids[0]):
                    break
        texts = self._texts
        found = {task_id: texts[task_id] for task_id in ids if task_id in texts}
        self._texts = {task_id: data for task_id, data in texts.items() if task_id > last}
        return found

    def _receive(self, wanted: str) -> bool:
        """Take in what has arrived from id `wanted` on; return whether anything has arrived."""
        if self._child is None:
            return False
        try:
            part = os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return False
        if not part:
            if not self._last:
                log.info("the process that reads ahead of the list ended without a record")
            self._end()
            return False
        self._arrived += part
        try:
            self._unpack(wanted)
        except ValueError:  # also of msgspec: not what `send` writes
            log.warning("the process that reads ahead of the list sent something else")
            self._end()
        return True

    def _unpack(self, wanted: str) -> None:
        """Move the complete blocks to `_texts`. Raises ValueError."""
        arrived, at = self._arrived, 0
        while len(arrived) >= (begin := at + _HEAD):
            size = int.from_bytes(arrived[at : at + _SIZE], "little")
            last = arrived[at + _SIZE : begin].decode("ascii")
            if size > MOST_BYTES or last <= self._last:
                raise ValueError(last)
            if len(arrived) < begin + size:
                break
            at = begin + size
            if last >= wanted:
                self._texts |= _decode(bytes(arrived[begin:at]))
            self._last = last
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
        # In a thread, because one that reads from a dead disk ends when that answers.
        threading.Thread(target=child.wait, name="end-of-read-ahead", daemon=True).start()


def _identity(fd: int) -> tuple[int, int]:
    facts = os.fstat(fd)
    return facts.st_dev, facts.st_ino


def _enlarge(pipe: int) -> None:
    """Let the child work on while this process decodes, where the system has that."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # not on Windows

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
