"""First read of a large ledger: from the first id on in this process, and in a child from the last.

Opening and reading 100,000 records takes 0.9 s of the GIL, and the thread that reads and a window's
thread take turns at it; from a disk they take 14 s, one after the other. A child process reads on
another processor, several files at once from a disk, and sends the bytes of each meta.json. Only
this process decodes and checks them, as those that it reads itself. It never waits for the child:
where nothing has arrived, it reads the next records itself, until both have met.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from engine.ledger import listing
from engine.ledger.files import HAS_DIR_FD, Folder, write_fully
from engine.model.control_groups import processors
from engine.model.program import apart, program_command
from engine.model.records import TaskId

log = logging.getLogger(__name__)

HIDDEN_VERB: Final = "_read-ahead"
SENT_AT_ONCE: Final = 64  # tasks of one block
MOST_BYTES: Final = SENT_AT_ONCE * 4 * 1024  # of a block; longer records are read as fast here
PIPE_BYTES: Final = 1024 * 1024
SLOW_S: Final = 0.004  # for one block: 0.6 ms from memory, 9 ms from a disk
THREADS: Final = 8
READ_AT_ONCE: Final = 32  # blocks, after a slow one
_SIZE, _ID = 4, 16  # bytes of a block's head: its size without the head, and its lowest id
_HEAD: Final = _SIZE + _ID
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[TaskId, bytes]).decode


def send(root: Folder, out: int) -> None:
    """Send the records from the last id down to the descriptor `out`: in the child.

    It ends early at records that are too long. Those above the size of a fast read are left out.

    Raises:
        OSError: the root cannot be read, or the receiver has ended.
    """
    ids = sorted(listing.task_ids(root), reverse=True)
    parts = [ids[at : at + SENT_AT_ONCE] for at in range(0, len(ids), SENT_AT_ONCE)]
    with ThreadPoolExecutor(THREADS) as pool:
        read, at, is_slow = partial(_read, root), 0, False
        while some := parts[at : at + (READ_AT_ONCE if is_slow else 1)]:
            began_s = time.perf_counter()
            blocks = list(pool.map(read, some) if is_slow else map(read, some))
            # Several at once only after a slow one: from memory, that takes three times as long.
            is_slow = not is_slow and time.perf_counter() - began_s > SLOW_S
            at += len(some)
            for block in blocks:
                if len(block) - _HEAD > MOST_BYTES:
                    return
                write_fully(out, block)


def _read(root: Folder, ids: list[TaskId]) -> bytes:
    assert root.fd is not None
    texts, _ = listing.texts(root.fd, ids)
    return packed_block(ids[-1], ((one, data) for one, data in texts if is_whole(data)))


def is_whole(data: bytes) -> bool:
    """Return whether the beginning of a file is all of it."""
    return len(data) < listing.SMALL_BYTES


def packed_block(lowest: str, texts: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the block of these bytes by id; `lowest` is the last id that was read for it."""
    data = _encode(dict(texts))
    return len(data).to_bytes(_SIZE, "little") + lowest.encode() + data


class ReadAhead:
    """The tasks that are not read yet, and the child process that reads some of them.

    For one thread, except `close`.
    """

    def __init__(self, task_ids: Collection[TaskId]) -> None:
        self._ids = _sorted(task_ids)
        self._front, self._back = 0, len(self._ids)  # between them none was read
        self._omitted: list[TaskId] = []  # ids behind them that the child has not sent
        self._child: _Child | None = None
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """The number of tasks that are not taken yet."""
        return self._back - self._front + len(self._omitted)

    def start(self, root: Folder) -> None:
        """Start the child, where one helps: not on Windows, and not with one processor."""
        if not HAS_DIR_FD or processors() < 2:
            return
        try:
            self._child = _Child(root)
        except OSError as error:
            log.warning("no process to read ahead of the list: %s", error)

    def take(self, root: Folder, most: int) -> tuple[dict[TaskId, bytes], list[TaskId]]:
        """Return a block that has arrived, by id, or else at most `most` ids to read here.

        Both are empty at the end. Another `root` than that of the child ends it.
        """
        if self._child is not None and not self._child.is_of(root):
            self.close()
        with self._lock:
            block = None if self._child is None else self._child.receive()
        if block is not None:
            lowest, texts = block
            begin = max(self._front, bisect_left(self._ids, lowest))
            part, self._back = self._ids[begin : self._back], begin
            self._omitted += [one for one in part if one not in texts]
            # Its tasks may be newer than the list, or the two may have met.
            if found := {one: texts[one] for one in part if one in texts}:
                return found, []
        if part := self._omitted[-most:]:
            del self._omitted[-most:]
        else:
            part = self._ids[self._front : min(self._front + most, self._back)]
            self._front += len(part)
        return {}, part

    def close(self) -> None:
        """End the child. Idempotent, from any thread."""
        with self._lock:
            if self._child is not None:
                self._child.end()


class _Child:
    """The child process of one root, and what it has sent."""

    def __init__(self, root: Folder) -> None:
        """Start it. Raises OSError."""
        assert root.fd is not None
        self._root = _identity(root.fd)
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [*program_command(), HIDDEN_VERB, str(root.fd)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=[root.fd],
            **apart(),
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        _enlarge(self._pipe)
        self._arrived = bytearray()
        self._lowest = "g"  # above all ids

    def is_of(self, root: Folder) -> bool:
        """Return whether it reads this folder."""
        return root.fd is not None and self._root == _identity(root.fd)

    def receive(self) -> tuple[str, dict[TaskId, bytes]] | None:
        """Return the lowest id and the bytes of the next block, or None if none has arrived."""
        if self._process is None:
            return None
        try:
            return self._block() or (self._block() if self._read() else None)
        except ValueError:  # also of msgspec: not what `send` writes
            log.warning("the process that reads ahead of the list sent something else")
            self.end()
            return None

    def _read(self) -> bool:
        """Take in what has arrived; return whether that was anything."""
        try:
            part = os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return False
        self._arrived += part
        if not part:
            self.end()
        return bool(part)

    def _block(self) -> tuple[str, dict[TaskId, bytes]] | None:
        """Remove the next block, if it is complete. Raises ValueError."""
        arrived = self._arrived
        if len(arrived) < _HEAD:
            return None
        end = _HEAD + int.from_bytes(arrived[:_SIZE], "little")
        lowest = arrived[_SIZE:_HEAD].decode("ascii")
        if end > _HEAD + MOST_BYTES or lowest >= self._lowest:
            raise ValueError(lowest)
        if len(arrived) < end:
            return None
        texts = _decode(bytes(arrived[_HEAD:end]))
        del arrived[:end]
        self._lowest = lowest
        return lowest, texts

    def end(self) -> None:
        """Kill it, without waiting. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdout is not None
        process.kill()
        process.stdout.close()
        # In a thread, because one that reads from a dead disk ends when that answers.
        with suppress(RuntimeError):  # no thread can start
            threading.Thread(target=process.wait, name="end-of-read-ahead", daemon=True).start()


def _sorted(task_ids: Collection[TaskId]) -> list[TaskId]:
    """Sort in parts: all of 100,000 ids at once hold up other threads for 36 ms."""
    parts: defaultdict[str, list[TaskId]] = defaultdict(list)
    for task_id in task_ids:
        parts[task_id[:2]].append(task_id)
    return [task_id for start in sorted(parts) for task_id in sorted(parts[start])]


def _identity(fd: int) -> tuple[int, int]:
    facts = os.fstat(fd)
    return facts.st_dev, facts.st_ino


def _enlarge(pipe: int) -> None:
    """Let the child work on while this process decodes, where the system has that."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # not on Windows

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
