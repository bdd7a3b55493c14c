"""Bytes through a descriptor, all of them: the system may take or give fewer at a time."""

from __future__ import annotations

import os


def read_fully(fd: int, size: int) -> bytes:
    """`size` bytes from where `fd` stands, or fewer at the end of the file."""
    data = os.read(fd, size + 1)
    if len(data) >= size:
        return data[:size]
    parts = [data]
    left = size - len(data)
    while left and (more := os.read(fd, left)):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def write_fully(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def last_byte(fd: int, size: int) -> bytes:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1)
