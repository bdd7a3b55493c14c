"""Contracts on disk: `progress-contracts/<id>.json` and its item log.

Every change is made under the contract's lock, so concurrent changes all count. The log is written
first and is authoritative. A contract file that is behind its log (after a crash), or that another
program wrote, is corrected by the next change, and in memory by a read.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.contracts.bulk_progress import (
    KEPT_ITEMS,
    WORDS,
    Contract,
    ContractNotFound,
    Forced,
    Note,
    Word,
    recorded,
)
from engine.contracts.contract_requests import Start, Update
from engine.ledger import journal, meta
from engine.ledger.files import MIB, READ_FLAGS, Folder, Unusable, writing
from engine.ledger.lock import TIMEOUT_S
from engine.ledger.record_store import RecordNotFound, RecordStore, RecordUnreadable, stage
from engine.model.records import CONTRACTS_FOLDER

# Item log: the latest state of every item, which keeps the counts exact.
#
# `<contract id>.items.jsonl` holds one line for each reported state, appended by one write before
# the contract file is replaced. After a crash between the two writes the next access sees that the
# summary is behind. In memory an item takes 16 bytes (a BLAKE2 digest of its text), so a million
# fit. Every call needs the contract's lock unless its docstring says otherwise.

LINE_CAP: Final = 64 * 1024  # an item has at most 2,048 characters
SLACK: Final = 1_000  # superseded lines below which the log is not rewritten
_HEAD_BYTES: Final = 256


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Log line: the log's own name (first line), a named item, or the state of an item.

    `lost` counts, by state, the items that another program had dropped from its lists.
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
    """Position of a summary: the log's name (new after each rewrite) and a byte offset."""

    log: str = ""
    bytes: int = 0


class ItemLog:
    """Item log of one contract; a kept instance reads only appended lines."""

    def __init__(self, contract_id: str) -> None:
        self.name = log_name(contract_id)
        self.mark = Mark()
        self.lost: dict[Word, int] = {}
        self._words: dict[bytes, Word] = {}
        self._lines = 0  # lines with a state

    def create(
        self, folder: Folder, items: Iterable[str] = (), lost: dict[Word, int] | None = None
    ) -> None:
        """Create the log with the named `items` and flush it. Raises FileExistsError, OSError."""
        lines = [_head(lost or {}), *(_line(wanted=item) for item in items)]
        folder.write_new(self.name, b"".join(lines))
        self.catch_up(folder)

    def catch_up(self, folder: Folder) -> None:
        """Read lines appended since the last call; after a rewrite the whole log."""
        head, size = _glimpse(folder, self.name)
        log = head.log or ""
        if log != self.mark.log or size < self.mark.bytes:
            self.mark, self._words, self._lines = Mark(log), {}, 0
            self.lost = head.lost or {}
        end = self.mark.bytes
        for line, end in _lines(folder, self.name, self.mark.bytes):  # noqa: B007 - used below
            if line.word is not None and line.item is not None:
                self._lines += 1
                self._words[_digest(line.item)] = line.word
        self.mark = Mark(log, end)

    def state_of(self, item: str) -> Word | None:
        """Return the latest state of `item`."""
        return self._words.get(_digest(item))

    def append(self, folder: Folder, notes: Iterable[Note]) -> None:
        """Append states by one write; rewrite the log first when most lines are superseded."""
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
        latest = [_encoded(line) for line in latest_lines(folder, self.name).values()]
        stage(folder, self.name, b"".join([_head(self.lost), *wanted, *latest]), durable=True)
        self.catch_up(folder)


def log_name(contract_id: str) -> str:
    return f"{contract_id}.items.jsonl"


def log_end(folder: Folder, name: str) -> tuple[Mark, dict[Word, int]]:
    """Return the log's current end and its lost counts; needs no lock."""
    head, size = _glimpse(folder, name)
    return Mark(head.log or "", size), head.lost or {}


def latest_lines(folder: Folder, name: str) -> dict[str, Line]:
    """Return the latest line of each item, in log order; needs no lock."""
    found: dict[str, Line] = {}
    for line, _ in _lines(folder, name, 0):
        if line.word is not None and line.item is not None:
            found.pop(line.item, None)
            found[line.item] = line
    return found


def named(folder: Folder, name: str) -> Iterator[str]:
    """Return the items that the contract names; needs no lock."""
    return (line.wanted for line, _ in _lines(folder, name, 0) if line.wanted is not None)


def note_of(line: Line) -> Note:
    """Convert a line with a state to a note."""
    return Note(line.word or WORDS[0], line.item or "", line.reason, line.retryable)


def _lines(folder: Folder, name: str, offset: int) -> Iterator[tuple[Line, int]]:
    for found, at in journal.lines(folder, name, offset, cap=LINE_CAP):
        try:
            line = _decoder.decode(found) if found else Line()
        except _REFUSED:
            line = Line()  # torn by a crash: its write was never acknowledged
        yield line, at


def _glimpse(folder: Folder, name: str) -> tuple[Line, int]:
    """Read the log's first line and its size; an empty line and 0 if there is no log."""
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


CAP: Final = 16 * MIB  # three lists of 500 entries with 3,072 characters each, all escaped
OURS: Final = "engine"  # key of this program's fields
MISSING_NAMED: Final = 100
KEPT_LOGS: Final = 32  # in memory: a log of a million items takes about 100 MB

Clock = Callable[[], int]


class Summary(msgspec.Struct, frozen=True):
    """Log position that a contract file includes, and the time of our last write."""

    log: str = ""
    log_bytes: int = 0
    written_at: int | float = 0

    def is_current(self, contract: Contract, mark: Mark) -> bool:
        """Return whether the file is in step with its log."""
        return self.is_ours(contract) and (self.log, self.log_bytes) == (mark.log, mark.bytes)

    def is_ours(self, contract: Contract) -> bool:
        return bool(self.log) and self.written_at == contract.updated_at


class Contracts:
    """Contracts of one home; see the module. Thread-safe.

    Every call may raise ContractNotFound, RecordUnreadable and NotAnId; writing calls also
    LockTimeout, LedgerReadOnly and LedgerWriteFailed.
    """

    def __init__(self, home: Path, now_ms: Clock) -> None:
        self.record_store = RecordStore(home / CONTRACTS_FOLDER, "contract", cap=CAP)
        self._now_ms = now_ms
        self._logs: dict[str, ItemLog] = {}
        self._guard = threading.Lock()

    def start(self, start: Start, **links: str | None) -> Contract:
        """Create a contract and flush it; `links` are its run_id or task_id."""
        now = self._now_ms()
        times = {"last_progress_at": now, "created_at": now, "updated_at": now}
        contract_id = secrets.token_hex(8)
        fields = {**start.fields, **links, **times, "contract_id": contract_id}
        contract = Contract(**fields)
        with self._found(), self.record_store.hold(contract_id, make=True) as folder:
            log = self._log(contract_id)
            try:
                log.create(folder, (start.items or ())[:KEPT_ITEMS])
                self.record_store.put(
                    folder, contract_id, _written({}, contract, log.mark), durable=True
                )
            except BaseException:  # a failed start must leave no files
                _remove(folder, contract_id)
                raise
        return contract

    def ids(self) -> list[str]:
        return self.record_store.ids()

    def read(self, contract_id: str) -> Contract:
        """Read a contract; recount it in memory where its file is behind. Writes nothing."""
        name = log_name(contract_id)
        with self._found():
            contract, summary = _parsed(
                self.record_store, self.record_store.read(contract_id), contract_id
            )
            with self.record_store.open_folder() as folder:
                mark, lost = log_end(folder, name)
                if summary.is_current(contract, mark):
                    return contract
                words = map(note_of, latest_lines(folder, name).values())
                theirs = () if summary.is_ours(contract) else _listed_items(contract)
                return _counted(contract, (*words, *theirs), lost or _dropped(contract, mark))

    def stamp(self, contract_id: str) -> tuple[int, ...]:
        """Return file times and sizes, which change with the contract; cheaper than reading it."""
        self.record_store.check(contract_id)
        names = (f"{contract_id}.json", log_name(contract_id))
        with self._found(), self.record_store.open_folder() as folder:
            facts = [folder.facts(name) for name in names if folder.has(name)]
        return tuple(number for one in facts for number in (one.st_mtime_ns, one.st_size))

    def items(self, contract_id: str) -> tuple[list[str], list[str]]:
        """Return the named items, and the first 100 of them without a state."""
        wanted, missing = self._named(contract_id)
        return wanted, missing[:MISSING_NAMED]

    def missing(self, contract_id: str) -> list[str]:
        """Return all named items that have no state."""
        return self._named(contract_id)[1]

    def _named(self, contract_id: str) -> tuple[list[str], list[str]]:
        name = log_name(contract_id)
        with self._found(), self.record_store.open_folder() as folder:
            wanted = list(named(folder, name))
            said = latest_lines(folder, name) if wanted else {}
        return wanted, [item for item in wanted if item not in said]

    def names(self, contract_id: str) -> tuple[str, ...]:
        """Return the named items if they are all expected items, else ()."""
        with self._found():
            expected = _parsed(self.record_store, self.record_store.read(contract_id), contract_id)[
                0
            ]
            with self.record_store.open_folder() as folder:
                wanted = tuple(named(folder, log_name(contract_id)))
        return wanted if len(wanted) == expected.expected_total else ()

    @contextmanager
    def hold(self, contract_id: str, *, wait_s: float = TIMEOUT_S) -> Iterator[LockedContract]:
        """Lock one contract and bring it in step with its log; LockTimeout after `wait_s`."""
        with self._found(), self.record_store.hold(contract_id, wait_s=wait_s) as folder:
            raw = self.record_store.read_in(folder, contract_id)
            contract, summary = _parsed(self.record_store, raw, contract_id)
            held = LockedContract(
                self.record_store, folder, raw, contract, self._log(contract_id), self._now_ms
            )
            held.synchronise(summary)
            yield held

    def forget(self, contract_id: str) -> None:
        """Delete a contract whose task was refused."""
        with self._found(), self.record_store.hold(contract_id) as folder:
            _remove(folder, contract_id)
        self.release(contract_id)

    def release(self, contract_id: str) -> None:
        """Drop the cached item log of a contract."""
        with self._guard:
            self._logs.pop(contract_id, None)

    def _log(self, contract_id: str) -> ItemLog:
        """Return the cached item log; the least recently used ones are evicted."""
        with self._guard:
            log = self._logs.pop(contract_id, None) or ItemLog(contract_id)
            self._logs[contract_id] = log
            while len(self._logs) > KEPT_LOGS:
                del self._logs[next(iter(self._logs))]
            return log

    @contextmanager
    def _found(self) -> Iterator[None]:
        try:
            with writing(str(self.record_store.folder)):
                yield
        except RecordNotFound as error:
            raise ContractNotFound(**error.fields) from error


class LockedContract:
    """Contract whose lock is held: reads, then changes."""

    def __init__(
        self,
        record_store: RecordStore,
        folder: Folder,
        raw: dict[str, Any],
        contract: Contract,
        log: ItemLog,
        now_ms: Clock,
    ) -> None:
        self.contract = contract
        self._record_store, self._folder, self._raw = record_store, folder, raw
        self._log, self.now_ms = log, now_ms

    def synchronise(self, summary: Summary) -> None:
        """Bring the contract in step with its log, and adopt changes of another program."""
        log, folder, contract = self._log, self._folder, self.contract
        log.catch_up(folder)
        if summary.is_current(contract, log.mark):
            return
        if not log.mark.log:
            log.create(folder, lost=_dropped(contract, log.mark))
        if not summary.is_ours(contract):
            log.append(
                folder,
                [one for one in _listed_items(contract) if log.state_of(one.item) != one.word],
            )
        words = latest_lines(folder, log.name).values()
        self.contract = _counted(contract, map(note_of, words), log.lost)

    def preview(self, update: Update) -> Contract:
        """Return the contract as `update` would leave it; writes nothing."""
        changed = recorded(self.contract, update.notes, self._log.state_of)
        return msgspec.structs.replace(changed, **update.fields)

    def apply(self, update: Update) -> Contract:
        """Apply item states and changed fields; writes the log first, then the file."""
        now = self.now_ms()
        changed = self.preview(update)
        if update.notes or "cursor" in update.fields:
            changed = msgspec.structs.replace(changed, last_progress_at=now)
        if update.notes:
            self._log.append(self._folder, update.notes)
        return self._put(changed, now)

    def force(self, reason: str, by: str) -> Contract:
        """Record the override of the guard with user, reason and time; flushed."""
        now = self.now_ms()
        forced = Forced(reason, by, now)
        changed = msgspec.structs.replace(self.contract, forced=forced)
        return self._put(changed, now, durable=True)

    def restore(self, contract: Contract) -> None:
        """Restore the previous contract after its change failed."""
        self._put(contract, self.now_ms(), durable=True)

    def _put(self, contract: Contract, now: int, *, durable: bool = False) -> Contract:
        self.contract = msgspec.structs.replace(contract, updated_at=now)
        raw = _written(self._raw, self.contract, self._log.mark)
        self._record_store.put(self._folder, contract.contract_id, raw, durable=durable)
        return self.contract


def _remove(folder: Folder, contract_id: str) -> None:
    folder.remove(f"{contract_id}.json")
    folder.remove(log_name(contract_id))


def _parsed(
    record_store: RecordStore, raw: dict[str, Any], contract_id: str
) -> tuple[Contract, Summary]:
    try:
        known = meta.without_surrogates({**raw, "contract_id": contract_id})
        contract = msgspec.convert(known, Contract)
    except (msgspec.ValidationError, RecursionError) as error:
        path = str(record_store.folder / f"{contract_id}.json")
        raise RecordUnreadable(
            noun=record_store.noun, id=contract_id, reason=str(error), path=path
        ) from error
    try:
        return contract, msgspec.convert(raw.get(OURS), Summary)
    except msgspec.ValidationError:
        return contract, Summary()


def _written(raw: dict[str, Any], contract: Contract, mark: Mark) -> dict[str, Any]:
    """Build the whole file: unknown fields are kept, None fields omitted."""
    ours = {"log": mark.log, "log_bytes": mark.bytes, "written_at": contract.updated_at}
    fields = {**msgspec.to_builtins(contract), OURS: ours}
    kept = {name: value for name, value in raw.items() if name not in fields}
    return {**{name: value for name, value in fields.items() if value is not None}, **kept}


def _listed_items(contract: Contract) -> tuple[Note, ...]:
    """Convert the lists to notes, failures first.

    OpenChrome leaves an old failure in its list after a successful retry.
    """
    return (
        *(Note("failed", one.item, one.reason, one.retryable) for one in contract.failed),
        *(Note("skipped", one.item, one.reason) for one in contract.skipped),
        *(Note("completed", item) for item in contract.completed),
    )


def _dropped(contract: Contract, mark: Mark) -> dict[Word, int]:
    """Count items that a contract without a log no longer lists; their names are unknown."""
    if mark.log:
        return {}
    counts: dict[Word, int] = {
        "completed": contract.completed_truncated,
        "failed": contract.failed_truncated,
    }
    return {word: count for word, count in counts.items() if count > 0}


def _counted(contract: Contract, words: Iterable[Note], lost: dict[Word, int]) -> Contract:
    """Rebuild lists and counts of `contract` from all states, in order."""
    empty = msgspec.structs.replace(
        contract,
        completed=(),
        failed=(),
        skipped=(),
        completed_total=lost.get("completed", 0),
        failed_total=lost.get("failed", 0),
        skipped_total=lost.get("skipped", 0),
    )
    return recorded(empty, words, lambda _: None)
