"""Units that a task found, from whichever file has them, streamed.

`pages.jsonl` comes first (a running task has it, and a killed one), then `result.json`, as we write
it or as OpenChrome does: JSON inside a string at `content[0].text`. An envelope has no units, only
its calls: its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec

from engine.ledger import journal
from engine.ledger.json_stream import Damaged, JsonText, decoded
from engine.ledger.meta import without_surrogates
from engine.ledger.reader import LedgerReader
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE, EVENTS_NAME, PAGES_NAME, RESULT_NAME

Row = dict[str, Any]

BLOCK: Final = 256 * 1024
TEXT_CHARS: Final = 256 * 1024  # of a result that is plain text


class Findings:
    """Units of one task as rows, with the reading progress.

    `place` is their source file, empty while the task has none; `size` is its size in bytes and
    `done` the bytes that `rows` has read; `lost` counts the lines that it could not read.
    """

    def __init__(self, ledger: LedgerReader, task_id: str, kind: str) -> None:
        self._ledger = ledger
        self._task_id = task_id
        self._key = traits_of(kind).result_key or None
        self.key = self._key or "units"
        self.place = self._source(kind)
        self.size = ledger.file_size(task_id, self.place) if self.place else 0
        self.done = 0
        self.lost = 0

    def _source(self, kind: str) -> str:
        if next(self._ledger.raw_pages(self._task_id), None) is not None:
            return PAGES_NAME
        if self._ledger.has_result(self._task_id):
            return RESULT_NAME
        return EVENTS_NAME if kind == ENVELOPE else ""

    def rows(self) -> Iterator[Row]:
        """Yield each unit, safe to show. Raises TaskUnreadable; Damaged for a broken result."""
        self.done = self.lost = 0
        match self.place:
            case name if name == PAGES_NAME:
                return self._pages()
            case name if name == RESULT_NAME:
                return self._result()
            case name if name == EVENTS_NAME:
                return self._events()
        return iter(())

    def head(self) -> Row:
        """Members of result.json before its units (a summary); empty if it cannot be read."""
        found: Row = {}
        if not self._ledger.has_result(self._task_id):
            return found
        with self._ledger.open_result(self._task_id) as file:
            try:
                for name, text in _members(JsonText(decoded(_blocks(file)))):
                    if text.peek() == "[" and name in (self._key, ""):
                        break
                    _note(found, name, text)
            except Damaged:
                pass  # the head is optional; `rows` reports the damage
        # `without_surrogates` keeps the shape: an object stays an object.
        return without_surrogates(found)  # type: ignore[no-any-return]

    def _pages(self) -> Iterator[Row]:
        for line in self._ledger.raw_pages(self._task_id, on_lost=self._lose):
            self.done += len(line) + 1
            yield journal.page(line)

    def _lose(self) -> None:
        self.lost += 1

    def _result(self) -> Iterator[Row]:
        with self._ledger.open_result(self._task_id) as file:
            for row in unit_rows(self._counted(file), self._key):
                yield without_surrogates(row)

    def _counted(self, file: BinaryIO) -> Iterator[bytes]:
        for block in _blocks(file):
            self.done += len(block)
            yield block

    def _events(self) -> Iterator[Row]:
        while True:
            part = self._ledger.read_events(self._task_id, self.done)
            for event in part.events:
                yield without_surrogates(msgspec.to_builtins(event))
            if part.next_offset == self.done:
                return
            self.done = part.next_offset


def unit_rows(blocks: Iterator[bytes], key: str | None) -> Iterator[Row]:
    """Yield the rows of a result: the array under `key` (None: the first one), else the result.

    Raises Damaged.
    """
    rest: Row = {}
    found = False
    for name, text in _members(JsonText(decoded(blocks))):
        if text.peek() == "[" and not found and (key is None or name in (key, "")):
            found = True
            yield from _objects(text)
        elif found:
            text.skip()
        else:
            _note(rest, name, text)
    if rest and not found:
        yield rest


def is_json(file: BinaryIO) -> bool:
    """Return whether the whole of `file` is one JSON value, read in blocks from its beginning."""
    text = JsonText(decoded(_blocks(file), strict=True))
    try:
        text.skip()
        text.end()
    except Damaged:
        return False
    return True


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _members(text: JsonText) -> Iterator[tuple[str, JsonText]]:
    """Yield each member of a result, unwrapped: its name, and the cursor at its value."""
    if text.peek() != "{":
        if text.peek():
            yield "", text
        return
    for name in text.members():
        if name == "content" and text.peek() == "[":
            yield from _wrapped(text)
        else:
            yield name, text


def _wrapped(text: JsonText) -> Iterator[tuple[str, JsonText]]:
    for _ in text.items():
        if text.peek() != "{":
            text.skip()
            continue
        for name in text.members():
            if name == "text" and text.peek() == '"':
                yield from _unwrapped(text.string())
            else:
                text.skip()


def _unwrapped(pieces: Iterator[str]) -> Iterator[tuple[str, JsonText]]:
    inner = JsonText(pieces)
    if inner.peek() in ("{", "["):
        yield from _members(inner)
    elif inner.peek():  # plain text becomes a JSON string
        encoded = msgspec.json.encode(without_surrogates(inner.remaining(TEXT_CHARS))).decode()
        yield "text", JsonText(iter([encoded]))
    for _ in pieces:
        pass


def _objects(text: JsonText) -> Iterator[Row]:
    for _ in text.items():
        value = text.value()
        yield value if isinstance(value, dict) else {"value": value}


def _note(found: Row, name: str, text: JsonText) -> None:
    """Store a small member; skip a list, which may be of any length."""
    if text.peek() == "[":
        text.skip()
        return
    found[name or "value"] = text.value()
