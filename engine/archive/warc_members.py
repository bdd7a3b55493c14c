"""Gzip members of a WARC file, each with the beginning of its record.

A killed program may leave a cut last member, which is left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final, NamedTuple

BLOCK: Final = 64 * 1024
HEAD_BYTES: Final = 256 * 1024  # of a record: its headers, and the body of a small request
_GZIP: Final = zlib.MAX_WBITS + 16
_END: Final = b"\r\n\r\n"


class Member(NamedTuple):
    """One member: its place in the file, and the first bytes of what it holds."""

    offset: int
    length: int
    head: bytes

    @property
    def end(self) -> int:
        return self.offset + self.length


class Record(NamedTuple):
    """The headers of a WARC record by their lower-case names, and the beginning of its block."""

    headers: Mapping[str, str]
    block: bytes


def members(file: BinaryIO) -> Iterator[Member]:
    """Yield the whole members of `file`, up to the first one that is cut or damaged."""
    file.seek(0)
    offset, data, head = 0, b"", bytearray()
    unpacker = zlib.decompressobj(_GZIP)
    while data or (data := file.read(BLOCK)):
        try:
            unpacked = unpacker.decompress(data)
        except zlib.error:
            return
        if len(head) < HEAD_BYTES:
            head += unpacked[: HEAD_BYTES - len(head)]
        data = b""
        if unpacker.eof:
            data = unpacker.unused_data
            end = file.tell() - len(data)
            yield Member(offset, end - offset, bytes(head))
            offset, head = end, bytearray()
            unpacker = zlib.decompressobj(_GZIP)


def whole_size(file: BinaryIO) -> int:
    """Return the number of bytes up to the end of the last whole member."""
    size = 0
    for member in members(file):
        size = member.end
    return size


def record_of(member: Member) -> Record | None:
    """Read the headers of a record; None if it is none."""
    if not member.head.startswith(b"WARC/"):
        return None
    head, _, block = member.head.partition(_END)
    return Record(fields_of(head), block)


def fields_of(head: bytes) -> dict[str, str]:
    """Return the fields behind the first line, by their lower-case names; the first one counts."""
    found: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        found.setdefault(name.strip().lower(), value.strip())
    return found
