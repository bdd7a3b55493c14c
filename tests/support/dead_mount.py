"""A mount that never answers, like a network drive without its server."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_DETACH = 2
_HEADER = struct.Struct("<IIQQIIII")  # of a request: length, opcode, unique id, …
_INIT = 26


@contextmanager
def dead_mount(place: Path) -> Iterator[None]:
    """Mount over `place` until the block ends; skips the test where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("there is no FUSE on this machine")
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options.encode()):
        os.close(fd)
        pytest.skip("this user may not mount")
    try:
        _greet(fd)
        yield
    finally:
        with suppress(OSError):
            os.close(fd)  # whoever waits for an answer gets an error now
        libc.umount2(os.fsencode(place), _DETACH)


def _greet(fd: int) -> None:
    """Answer the kernel's first request, and none after it."""
    length, opcode, unique, *_ = _HEADER.unpack_from(os.read(fd, 1 << 17))
    assert opcode == _INIT, (length, opcode)
    said = struct.pack("<IIIIHHI", 7, 31, 1 << 16, 0, 16, 12, 1 << 16) + bytes(36)
    os.write(fd, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)
