"""JSON scanner over bytes read on demand: locates values without decoding them.

Unlike `ledger.json_stream`, which decodes values, this one only finds them, so that a tree of a
file larger than memory can be opened anywhere. Long operations are iterators that pause (yield
None) at each block, so that the caller may stop in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

BLOCK: Final = 256 * 1024

Read = Callable[[int], bytes]  # returns the block from this byte; empty at the end

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_IN_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Up to the next bracket, over whole strings: one match for most of a page.
_FLAT = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+', re.DOTALL)
_LITERAL = re.compile(rb'[^\s,:"\[\]{}]*+')


class Broken(ValueError):
    """The text is no JSON from byte `at` on."""

    def __init__(self, at: int) -> None:
        super().__init__(f"it is no JSON at byte {at:,}")
        self.at = at


class Scan:
    """Cursor at byte `place`. Raises Broken where the text breaks off."""

    def __init__(self, read: Read, place: int = 0) -> None:
        self._read = read
        self._base = place
        self._data = b""
        self._at = 0

    @property
    def place(self) -> int:
        return self._base + self._at

    def peek(self) -> bytes:
        """Next byte behind blanks; empty at the end."""
        while True:
            self._at = _end(_BLANKS, self._data, self._at)
            if self._at < len(self._data) or not self.more():
                return self._data[self._at : self._at + 1]

    def step(self) -> None:
        """Skip the byte that `peek` returned."""
        self._at += 1

    def skip(self) -> Iterator[None]:
        """Skip the next value, however large; pauses at each block."""
        match self.peek():
            case b'"':
                yield from self._skip_text()
            case b"{" | b"[":
                yield from self._skip_nest()
            case _:
                if not self.literal():
                    raise Broken(self.place)

    def literal(self) -> bytes:
        """Read a whole number or word."""
        while True:
            end = _end(_LITERAL, self._data, self._at)
            if end < len(self._data) or not self.more():
                found, self._at = self._data[self._at : end], end
                return found

    def text(self, most: int) -> bytes | None:
        """Read the next string with its quotes; None, without moving, when longer than `most`
        bytes."""
        while True:
            found = _TEXT.match(self._data, self._at)
            if found is not None:
                self._at = found.end()
                return found[0]
            if len(self._data) - self._at > most:
                return None
            if not self.more():
                raise Broken(self.place)

    def nest(self, most: int) -> bytes | None:
        """Read the next object or array.

        None, without moving, when it is longer than `most` bytes or breaks off.
        """
        depth, ahead = 0, 0
        while True:
            at = _end(_FLAT, self._data, self._at + ahead)
            mark = self._data[at : at + 1]
            ahead = at + 1 - self._at
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
                if not depth:
                    found, self._at = self._data[self._at : at + 1], at + 1
                    return found
            else:
                ahead -= 1  # the end, or a string that continues in the next block
                if len(self._data) - self._at > most or not self.more():
                    return None

    def start_of_text(self, chars: int) -> str:
        """First `chars` characters of the next string; the cursor does not move."""
        wanted = 6 * chars + 16
        while len(self._data) - self._at < wanted and self.more():
            pass
        end = _end(_IN_TEXT, self._data, self._at + 1)
        return unescaped(self._data[self._at + 1 : min(end, self._at + wanted)])[:chars]

    def start_of(self, chars: int) -> str:
        """First `chars` characters of the next value as written; the cursor does not move."""
        while len(self._data) - self._at < 4 * chars and self.more():
            pass
        return self._data[self._at : self._at + 4 * chars].decode("utf-8", "replace")[:chars]

    def line(self) -> Iterator[None]:
        """Skip the rest of this line."""
        while (end := self._data.find(b"\n", self._at)) < 0:
            self._at = len(self._data)
            if not self.more():
                return
            yield None
        self._at = end + 1

    def more(self) -> bool:
        """Read one more block; False at the end."""
        block = self._read(self._base + len(self._data))
        if not block:
            return False
        self._base += self._at
        self._data = self._data[self._at :] + block
        self._at = 0
        return True

    def _skip_text(self) -> Iterator[None]:
        self._at += 1
        while True:
            self._at = _end(_IN_TEXT, self._data, self._at)
            if self._data[self._at : self._at + 1] == b'"':
                self._at += 1
                return
            if not self.more():
                raise Broken(self.place)
            yield None

    def _skip_nest(self) -> Iterator[None]:
        depth = 0
        while True:
            self._at = _end(_FLAT, self._data, self._at)
            match self._data[self._at : self._at + 1]:
                case b"{" | b"[":
                    depth += 1
                    self._at += 1
                case b"}" | b"]":
                    depth -= 1
                    self._at += 1
                    if not depth:
                        return
                case b'"':  # a string that continues in the next block
                    yield from self._skip_text()
                case _:
                    if not self.more():
                        raise Broken(self.place)
                    yield None


def unescaped(inside: bytes) -> str:
    """Unescape the inside of a string; half an escape at its end is dropped."""
    text = inside.decode("utf-8", "replace")
    for cut in range(13):
        try:
            return str(json.loads(f'"{text[: len(text) - cut]}"', strict=False))
        except ValueError:
            continue
    return text


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found is not None else at
