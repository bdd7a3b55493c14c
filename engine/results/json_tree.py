"""JSON files for display: one level of the tree at a byte offset, and text search in the whole.

Unlike `ledger.json_stream`, which decodes values, `Scan` only finds them, so that a tree of a file
larger than memory can be opened anywhere. Long operations are iterators that pause (yield None) at
each block, so that the caller may stop in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Literal

import msgspec

from engine.ledger.holes import is_hole
from engine.model.display import display

BLOCK: Final = 256 * 1024

Read = Callable[[int], bytes]  # returns the block from this byte; empty at the end
Behind = Callable[[int], int]  # returns the first byte behind a hole

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

    def __init__(self, read: Read, place: int = 0, behind: Behind = lambda at: at) -> None:
        self._read = read
        self._behind = behind
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
            self._base, self._at = self._base + len(self._data), 0
            self._data = self._read(self._base)
            if not self._data:
                return
            if is_hole(self._data):
                self._base, self._data = self._behind(self._base + len(self._data)), b""
            yield None
        self._at = end + 1

    def more(self) -> bool:
        """Read one more block; False at the end. Raises Broken in a hole."""
        block = self._read(self._base + len(self._data))
        if not block:
            return False
        if self._data[-1:] == b"\0" and is_hole(block):  # it may be 100 GB, and is no JSON
            raise Broken(self._base + len(self._data))
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


Kind = Literal["object", "array", "text", "json", "number", "word", "lines"]
Step = str | int

MOST_KEY: Final = 64 * 1024  # bytes of a name that is read whole
_KEY_CHARS, _PREVIEW_CHARS = 1_000, 200
_NESTS: Final[dict[bytes, Kind]] = {b"{": "object", b"[": "array"}


class Node(msgspec.Struct, frozen=True, gc=False):
    """Value in a file: its name or index, its offset, and its preview.

    `json` is a string that contains JSON (a result as OpenChrome writes it). `start` is a byte of
    the file, or of the innermost such string; `inside` lists the offsets of those strings.
    """

    step: Step
    kind: Kind
    start: int
    preview: str
    inside: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it has members."""
        return self.kind in ("object", "array", "json", "lines")


class Rest(msgspec.Struct, frozen=True, gc=False):
    """Marker for more members: the next one is number `number`, at byte `start`."""

    number: int
    start: int


def members(
    scan: Scan, kind: Kind, number: int, most: int, inside: tuple[int, ...] = ()
) -> Iterator[Node | Rest | None]:
    """Yield up to `most` members from the position of `scan` (behind the bracket).

    Each one comes as soon as its beginning is known; a Rest at the end if there are more. Pauses
    with None. Raises Broken.
    """
    given = 0
    while not _at_end(scan, kind):
        if given == most:
            yield Rest(number, scan.place)
            return
        step: Step = _key(scan) if kind == "object" else number
        yield _node(scan, step, inside)
        yield from scan.line() if kind == "lines" else scan.skip()
        number, given = number + 1, given + 1


def _at_end(scan: Scan, kind: Kind) -> bool:
    found = scan.peek()
    if kind == "lines":
        return not found
    while found == b",":
        scan.step()
        found = scan.peek()
    if not found:
        raise Broken(scan.place)
    return found in b"}]"


def _key(scan: Scan) -> str:
    if scan.peek() != b'"':
        raise Broken(scan.place)
    raw = scan.text(MOST_KEY)
    if raw is None or scan.peek() != b":":
        raise Broken(scan.place)
    scan.step()
    return unescaped(raw[1:-1])[:_KEY_CHARS]


def _node(scan: Scan, step: Step, inside: tuple[int, ...]) -> Node:
    first, start = scan.peek(), scan.place  # one character more tells that a preview is cut
    kind: Kind
    if first in _NESTS:
        kind, text = _NESTS[first], _trim(scan.start_of(_PREVIEW_CHARS + 1))
    elif first == b'"':
        text = scan.start_of_text(_PREVIEW_CHARS + 1)
        kind = "json" if text.lstrip()[:1] in ("{", "[") else "text"
    else:
        text = scan.start_of(_PREVIEW_CHARS + 1)
        for mark in ",}]\n\r\t ":
            text = text.partition(mark)[0]
        kind = "number" if text[:1] in "-0123456789" else "word"
    return Node(step, kind, start, display(text, _PREVIEW_CHARS), inside)


def _trim(text: str) -> str:
    """Cut text behind the value's end from a short preview."""
    data = text.encode()
    short = Scan(lambda at: data[at:])
    try:
        for _ in short.skip():
            pass
    except Broken:
        return text
    return data[: short.place].decode()


def path_of(steps: tuple[Step, ...]) -> str:
    """Build the JSONPath of a value: `$.pages[3].title`."""
    found = "$"
    for step in steps:
        if isinstance(step, int):
            found += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            found += f".{step}"
        else:
            quoted = step.replace("\\", "\\\\").replace("'", "\\'")
            found += f"['{quoted}']"
    return found


MOST_TEXT: Final = 8 * 1024 * 1024  # bytes of one string that is searched
MOST_NEST: Final = 1024 * 1024  # bytes of an object that is searched at once
_PAUSE: Final = 200  # values between two pauses
_AROUND: Final = 60
_ESCAPED_PLAIN = re.compile(
    rb"\\u00[2-7]"
)  # an escaped character that could have been written directly


class Hit(msgspec.Struct, frozen=True, gc=False):
    """Value that matches, or whose name does, and the path to it."""

    steps: tuple[Step, ...]
    preview: str


class Search:
    """Search whose `hits` yields Hit and, at pauses, None; `place` is the current byte.

    `passed_over` counts strings that were too long to be searched.
    """

    def __init__(self, scan: Scan, needle: str, *, lines: bool = False) -> None:
        self._scan = scan
        self._needle = needle.casefold()
        # Text without escapes, so that bytes can be searched before decoding.
        plain = self._needle.isascii() and not set(self._needle) & set('"\\/')
        self._bytes = self._needle.encode() if plain and self._needle.isprintable() else b""
        self._lines = lines
        self._stack: list[Step] = []
        self._nests: list[bool] = []  # True for an object
        self._seen = 0
        self.passed_over = 0

    @property
    def place(self) -> int:
        return self._scan.place

    def hits(self) -> Iterator[Hit | None]:
        """Yield every hit in the order of the file. Raises Broken where it is no JSON."""
        if not self._lines:
            yield from self._value()
            return
        number = 0
        while self._scan.peek():
            self._stack, self._nests = [number], []
            with suppress(Broken):  # a torn line: the next one may be whole
                yield from self._value()
            yield from self._scan.line()
            number += 1

    def _value(self) -> Iterator[Hit | None]:
        """Search one value iteratively, because its depth is untrusted."""
        floor = len(self._nests)
        while True:
            yield from self._search_value()
            while len(self._nests) > floor and not self._next_member():
                self._nests.pop()
                self._stack.pop()
            if len(self._nests) == floor:
                return
            if self._nests[-1]:
                yield from self._key()

    def _search_value(self) -> Iterator[Hit | None]:
        self._seen += 1
        if self._seen % _PAUSE == 0:
            yield None
        first = self._scan.peek()
        if first in (b"{", b"["):
            whole = self._scan.nest(MOST_NEST) if self._bytes else None
            if whole is not None:
                yield from self._search_nested(whole)
                return
            self._scan.step()
            self._nests.append(first == b"{")
            self._stack.append(-1)
        elif first == b'"':
            yield from self._text()
        else:
            text = self._scan.literal().decode("utf-8", "replace")
            if not text:
                raise Broken(self._scan.place)
            yield from self._match(text)

    def _search_nested(self, whole: bytes) -> Iterator[Hit | None]:
        """Search an object or array only if its bytes may match.

        Nearly all are skipped whole, which takes a tenth of the time.
        """
        if self._bytes not in whole.lower() and not _ESCAPED_PLAIN.search(whole):
            return
        inner = Search(Scan(lambda at: whole[at:]), self._needle)
        inner._bytes = b""
        for hit in inner.hits():
            steps = () if hit is None else (*self._stack, *hit.steps)
            yield None if hit is None else Hit(steps, hit.preview)

    def _next_member(self) -> bool:
        """Move to the next member of the innermost container; False at its end."""
        found = self._scan.peek()
        if found == b",":
            self._scan.step()
            found = self._scan.peek()
        if not found:
            raise Broken(self._scan.place)
        if found in (b"}", b"]"):
            self._scan.step()
            return False
        last = self._stack[-1]
        self._stack[-1] = last + 1 if isinstance(last, int) and not self._nests[-1] else last
        return True

    def _key(self) -> Iterator[Hit | None]:
        raw = self._scan.text(BLOCK) if self._scan.peek() == b'"' else None
        if raw is None or self._scan.peek() != b":":
            raise Broken(self._scan.place)
        self._scan.step()
        self._stack[-1] = name = unescaped(raw[1:-1])
        if self._needle in name.casefold():
            yield Hit(tuple(self._stack), display(name, 2 * _AROUND))

    def _text(self) -> Iterator[Hit | None]:
        raw = self._scan.text(MOST_TEXT)
        if raw is None:
            self.passed_over += 1
            yield from self._scan.skip()
            return
        if len(raw) > BLOCK:
            yield None
        text = raw[1:-1]
        yield from self._match(
            unescaped(text) if b"\\" in text else text.decode("utf-8", "replace")
        )

    def _match(self, text: str) -> Iterator[Hit]:
        found = text.casefold().find(self._needle)
        if found >= 0:
            around = text[max(0, found - _AROUND) : found + len(self._needle) + _AROUND]
            yield Hit(tuple(self._stack), display(around, 3 * _AROUND))
