"""JSON text that is not trusted: the limit of its nesting, and a streaming cursor.

A parser survives deeper nesting than the code behind it: the redactor, or an encoder with indents,
would exhaust Python's stack, whose size differs between versions. So the limit is checked in bytes
before parsing and in values after.

A result may be larger than memory, a member of it may not. `JsonText` is a cursor on one JSON text;
`members` and `items` iterate over an object or an array. Between two steps the caller consumes
exactly one value, by `value`, `skip`, `string` or a nested iteration.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from engine.ledger.holes import HOLE_REASON, is_hole

MAX_DEPTH: Final = 64
# A whole string, or one bracket outside of strings.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', re.DOTALL)


def may_be_deep(data: bytes) -> bool:
    """Return whether this JSON text has enough brackets to be too deep; two passes, nearly free."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH


def is_deep_text(data: bytes) -> bool:
    """Return whether this JSON text is nested deeper than `MAX_DEPTH`, ignoring brackets in
    strings."""
    if not may_be_deep(data):
        return False
    depth = 0
    # Not all at once: a million tokens would block the GUI thread.
    for found in _TOKEN.finditer(data):
        first = found[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > MAX_DEPTH:
            return True
    return False


def is_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Return whether this value has more than `most` levels; iterative, so it uses no stack."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            inner for each in level for inner in _parts(each) if isinstance(inner, dict | list)
        ]
    return bool(level)


def _parts(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value


MAX_CHARS: Final = 32 * 1024 * 1024  # of one value that is read whole; a page has 4 MiB of content


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)
_BLANKS = re.compile(r"[ \t\r\n]*")
# The part of a string that is whole: no half of an escape or of a surrogate pair.
_RUN = re.compile(
    r'(?:[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])++"
)
_DIGITS = re.compile(r"[-+.eE0-9]*")
_LONE = re.compile(r"\\u[0-9a-fA-F]{4}(?=[^\\]|\\[^u])")


class Damaged(ValueError):
    """The text is no JSON, or one value in it is too large; `str()` gives the reason."""


def decoded(blocks: Iterable[bytes], *, strict: bool = False) -> Iterator[str]:
    """Decode blocks of a file; invalid UTF-8 becomes U+FFFD, or with `strict` raises Damaged.

    A hole raises Damaged in any case: the rest of it, which may be 100 GB, is not read.
    """
    made = codecs.getincrementaldecoder("utf-8" if strict else "utf-8-sig")
    decoder = made("strict" if strict else "replace")
    try:
        for block in blocks:
            if is_hole(block):
                raise Damaged(HOLE_REASON)
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise Damaged("it is not valid UTF-8") from None


class JsonText:
    """Cursor on a JSON text given in `pieces`; see the module. Raises Damaged."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._offset = 0
        self._exhausted = False
        self._depth = 0

    def peek(self) -> str:
        """First character of the next token; empty at the end of the text."""
        while True:
            found = _BLANKS.match(self._text, self._offset)
            self._offset = found.end() if found else self._offset
            if self._offset < len(self._text) or not self._more():
                return self._text[self._offset : self._offset + 1]

    def value(self) -> Any:
        """Decode the next value, whole."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._offset)
            except RecursionError:
                raise Damaged("it is nested too deeply") from None
            except ValueError:
                if self._grow():
                    continue
                raise Damaged("it is not valid JSON") from None
            # A number at the end of this piece may continue in the next one ("1" then ".5").
            if not _DIGITS.fullmatch(self._text, end) or not self._more():
                self._offset = end
                if is_deep(found, MAX_DEPTH - self._depth):
                    raise Damaged("it is nested too deeply")
                return found

    def skip(self) -> None:
        """Skip the next value, however large."""
        match self.peek():
            case "{":
                for _ in self.members():
                    self.skip()
            case "[":
                for _ in self.items():
                    self.skip()
            case '"':
                for _ in self.string():
                    pass
            case _:
                self.value()

    def members(self) -> Iterator[str]:
        """Yield the member names of an object; the caller consumes each value first."""
        for _ in self._entries("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise Damaged("it is not valid JSON")
            self._expect(":")
            yield name

    def items(self) -> Iterator[int]:
        """Yield the indexes of an array; the caller consumes each value before the next."""
        yield from self._entries("[", "]")

    def string(self) -> Iterator[str]:
        """Yield a string in pieces, unescaped."""
        self._expect('"')
        while True:
            found = _RUN.match(self._text, self._offset)
            if found:
                self._offset = found.end()
                yield _unescaped(found[0])
            elif self._text[self._offset : self._offset + 1] == '"':
                self._offset += 1
                return
            elif lone := self._lone_surrogate():
                yield lone
            elif len(self._text) - self._offset > 12 or not self._more():
                raise Damaged("it ends in the middle of a text")

    def remaining(self, limit: int) -> str:
        """Return the rest of the text, at most `limit` characters of it."""
        while len(self._text) - self._offset < limit and self._more():
            pass
        return self._text[self._offset : self._offset + limit]

    def end(self) -> None:
        """Verify that nothing follows."""
        if self.peek():
            raise Damaged("something follows behind its end")

    def _lone_surrogate(self) -> str:
        """Consume half of a surrogate pair, which `_RUN` does not match."""
        found = _LONE.match(self._text, self._offset)
        if found is None:
            return ""
        self._offset = found.end()
        return "\ufffd"

    def _entries(self, opening: str, closing: str) -> Iterator[int]:
        self._expect(opening)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Damaged("it is nested too deeply")
        number = 0
        while self.peek() != closing:
            if number:
                self._expect(",")
                self.peek()
            yield number
            number += 1
        self._expect(closing)
        self._depth -= 1

    def _expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise Damaged("it ends in the middle" if not self.peek() else "it is not valid JSON")
        self._offset += 1

    def _more(self) -> bool:
        """Read one more piece; False at the end of the text."""
        while not self._exhausted:
            piece = next(self._pieces, None)
            if piece is None:
                self._exhausted = True
            elif piece:
                self._text = self._text[self._offset :] + piece
                self._offset = 0
                return True
        return False

    def _grow(self) -> bool:
        """At least double the buffer, so that retries do not cost quadratic time."""
        wanted = 2 * (len(self._text) - self._offset)
        if wanted > 2 * MAX_CHARS:
            return False
        parts, size = [self._text[self._offset :]], len(self._text) - self._offset
        while size < max(wanted, 1):
            piece = next(self._pieces, None) if not self._exhausted else None
            if piece is None:
                self._exhausted = True
                break
            parts.append(piece)
            size += len(piece)
        grew = size > len(parts[0])
        self._text, self._offset = "".join(parts), 0
        return grew


def _unescaped(run: str) -> str:
    try:
        return str(_DECODER.decode(f'"{run}"'))
    except ValueError:
        raise Damaged("it is not valid JSON") from None
