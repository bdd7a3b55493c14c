"""Every item's latest word, on disk beside its contract: what keeps the counts exact.

`<contract id>.items.jsonl` holds one line for each word that was said, appended by one write
before the contract's own file is replaced: the log is the truth, the file its summary. So a
sudden death between the two costs nothing: who comes next sees that the summary is behind.
In memory an item is 16 bytes (a BLAKE2 digest of its text), so that a million fit.
All calls are made by the holder of the contract's lock, but those that say otherwise.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

from engine.contracts.bulk_progress import WORDS, Note, Word
from engine.ledger import journal
from engine.ledger.files import READ_FLAGS, Folder, Unusable
from engine.ledger.record_store import stage

LINE_CAP: Final = 64 * 1024  # an item has at most 2,048 characters
SLACK: Final = 1_000  # superseded lines that are not worth a rewrite
_HEAD_BYTES: Final = 256


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: the log's own name (the first), an item named beforehand, or a word on one.

    `lost` counts, by word, what the lists of another program had dropped before we came.
    """

    log: str | None = None
    lost: dict[Word, int] | None = None
    wanted: str | None = None
    word: Word | None = None
    item: str | None = None
    reason: str | None = None
    retryable: bool | None = None


_decoder = msgspec.json.Decoder(Line)
_REFUSED: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class Mark(msgspec.Struct, frozen=True):
    """How far a summary goes: the log's name (new after each rewrite) and a byte offset."""

    log: str = ""
    bytes: int = 0


class ItemLog:
    """The log of one contract. Kept by a process, it reads only what others appended."""

    def __init__(self, contract_id: str) -> None:
        self.name = log_name(contract_id)
        self.mark = Mark()
        self.lost: dict[Word, int] = {}
        self._words: dict[bytes, Word] = {}
        self._lines = 0  # that have a word

    def create(
        self, folder: Folder, items: Iterable[str] = (), lost: dict[Word, int] | None = None
    ) -> None:
        """Begin a log that names `items`, and flush it. Raises FileExistsError, OSError."""
        lines = [_head(lost or {}), *(_line(wanted=item) for item in items)]
        folder.write_new(self.name, b"".join(lines))
        self.catch_up(folder)

    def catch_up(self, folder: Folder) -> None:
        """Read what others appended since the last call; all of it after a rewrite."""
        head, size = _glimpse(folder, self.name)
        log = head.log or ""
        if log != self.mark.log or size < self.mark.bytes:
            self.mark, self._words, self._lines = Mark(log), {}, 0
            self.lost = head.lost or {}
        end = self.mark.bytes
        for line, end in _lines(folder, self.name, self.mark.bytes):  # noqa: B007 - the last counts
            if line.word is not None and line.item is not None:
                self._lines += 1
                self._words[_digest(line.item)] = line.word
        self.mark = Mark(log, end)

    def was(self, item: str) -> Word | None:
        """The last word on `item`."""
        return self._words.get(_digest(item))

    def append(self, folder: Folder, notes: Iterable[Note]) -> None:
        """Add words by one write; the log is rewritten first when most of it is superseded."""
        if self._lines > 2 * len(self._words) + SLACK:
            self._rewrite(folder)
        data = b"".join(
            _line(word=one.word, item=one.item, reason=one.reason, retryable=one.retryable)
            for one in notes
        )
        folder.append(self.name, data, heal=True)
        self.catch_up(folder)

    def _rewrite(self, folder: Folder) -> None:
        wanted = [_line(wanted=item) for item in named(folder, self.name)]
        latest = [_encoded(line) for line in last_words(folder, self.name).values()]
        stage(folder, self.name, b"".join([_head(self.lost), *wanted, *latest]), durable=True)
        self.catch_up(folder)


def log_name(contract_id: str) -> str:
    return f"{contract_id}.items.jsonl"


def stands_at(folder: Folder, name: str) -> tuple[Mark, dict[Word, int]]:
    """How long the log is now, and what was lost before it; needs no lock."""
    head, size = _glimpse(folder, name)
    return Mark(head.log or "", size), head.lost or {}


def last_words(folder: Folder, name: str) -> dict[str, Line]:
    """The latest line of each item, in the order of these lines; needs no lock."""
    found: dict[str, Line] = {}
    for line, _ in _lines(folder, name, 0):
        if line.word is not None and line.item is not None:
            found.pop(line.item, None)
            found[line.item] = line
    return found


def named(folder: Folder, name: str) -> Iterator[str]:
    """The items that the contract named beforehand; needs no lock."""
    return (line.wanted for line, _ in _lines(folder, name, 0) if line.wanted is not None)


def note_of(line: Line) -> Note:
    """A line with a word as what was noted."""
    return Note(line.word or WORDS[0], line.item or "", line.reason, line.retryable)


def _lines(folder: Folder, name: str, offset: int) -> Iterator[tuple[Line, int]]:
    for found, at in journal.lines(folder, name, offset, cap=LINE_CAP):
        try:
            line = _decoder.decode(found) if found else Line()
        except _REFUSED:
            line = Line()  # torn by a sudden death: nobody was told that it counted
        yield line, at


def _glimpse(folder: Folder, name: str) -> tuple[Line, int]:
    """The log's first line and its size; an empty one and 0 where there is no log."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return Line(), 0
    with open(fd, "rb", buffering=0) as file:
        head = file.read(_HEAD_BYTES) or b""
        size = file.seek(0, 2)
    try:
        return _decoder.decode(head.partition(b"\n")[0]), size
    except _REFUSED:
        raise Unusable(f"{name} is no log of items") from None


def _head(lost: dict[Word, int]) -> bytes:
    return _line(log=secrets.token_hex(8), lost=lost or None)


def _line(**fields: Any) -> bytes:
    return _encoded(Line(**fields))


def _encoded(line: Line) -> bytes:
    return journal.line(msgspec.to_builtins(line))


def _digest(item: str) -> bytes:
    return blake2b(item.encode("utf-8", "surrogatepass"), digest_size=16).digest()
