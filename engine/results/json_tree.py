"""One level of a JSON tree: the members of the object or array at a byte offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from engine.model.display import display
from engine.results.json_scan import Broken, Scan, unescaped

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
    first, start = scan.peek(), scan.place
    kind: Kind
    if first in _NESTS:
        kind, text = _NESTS[first], _trim(scan.start_of(_PREVIEW_CHARS))
    elif first == b'"':
        text = scan.start_of_text(_PREVIEW_CHARS)
        kind = "json" if text.lstrip()[:1] in ("{", "[") else "text"
    else:
        text = scan.start_of(_PREVIEW_CHARS)
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
