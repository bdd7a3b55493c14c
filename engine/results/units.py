"""Finished unit of a task as a row with its outcome, and the differences between two runs.

Pure rules over unit records; long texts are cut, so that 100,000 rows fit into memory. The whole
unit is read again when it is opened.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from engine.ledger import journal
from engine.ledger.json_stream import Damaged
from engine.ledger.reader import LedgerReader
from engine.model.display import ELLIPSIS, display
from engine.model.errors import TaskUnreadable
from engine.model.records import ENVELOPE, PAGES_NAME, TaskRecord
from engine.results.action_words import action_words
from engine.results.evidence_documents import compared_text, part_file
from engine.results.findings import Findings
from engine.text.messages import say

ROBOTS: Final = "Blocked by robots.txt"  # as a crawl words it: the site refused, nothing failed
_NAMES: Final = ("url", "intention", "part", "name", "selector", "file", "kind")
_TITLES: Final = ("title", "tool_name", "type", "role")
_CHARS: Final = 300
CONSENT_RESULTS: Final = ("opted_out", "hidden", "failed")
_MOST_EARLIER: Final = 20  # attempts
_MOST_TYPES: Final = 20  # of structured data
_SHARED_CHARS: Final = 100  # of texts that most pages of a site have in common
_STATES: Final[Mapping[str, str]] = {
    "success": "done",
    "error": "failed",
    "skipped": "skipped",
    "pending": "waiting",
    "running": "running",
}


class UnitState(StrEnum):
    """Outcome of a unit. REFUSED: the site or our own rules did not allow it."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    WAITING = "waiting"
    RUNNING = "running"


class PageFacts(msgspec.Struct, frozen=True, gc=False):
    """Facts of a crawled page (docs/ledger.md), as texts that are safe to show and as numbers.

    A text is empty and a number None where the page does not have it. `structured_data` holds the
    types in one text.
    """

    content_type: str = ""
    charset: str = ""
    language: str = ""
    canonical: str = ""
    description: str = ""
    robots: str = ""
    h1: str = ""
    structured_data: str = ""
    content_hash: str = ""
    h1_count: int | None = None
    words: int | None = None
    links_internal: int | None = None
    links_external: int | None = None
    links_nofollow: int | None = None
    images: int | None = None
    images_without_alt: int | None = None


NO_FACTS: Final = PageFacts()


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Summary of one unit. `number` counts from 0; `at` is its line's byte, -1 in a result.

    `failure` distinguishes two sorts of failed pages, where known: `http` (the site answered with
    an error) and `not_loaded`. `remark` marks a stored page that may be incomplete: `empty`,
    `unsettled` or `unloaded`. `attempts` is how often a page was requested, where it was more than
    once, and `earlier` lists the errors of the earlier attempts; `redacted` counts the redactions
    in its content, `links_over` the links beyond the limit of a page, `redirects` the redirects on
    the way to it; `facts` are None for a unit without, `fields` its custom fields in one line;
    `consent` names the consent manager of its banner, and the result of its dismissal; `worker` is
    that of a cluster.
    Times in ms, sizes in bytes; None where unknown. All texts are safe to show.
    """

    number: int
    state: str
    name: str
    title: str = ""
    reason: str = ""
    code: int | None = None
    failure: str = ""
    depth: int | None = None
    response_ms: float | None = None
    render_ms: float | None = None
    size_bytes: int | None = None
    shot: str = ""
    remark: str = ""
    attempts: int = 0
    earlier: tuple[str, ...] = ()
    redacted: int = 0
    links_over: int = 0
    redirects: int | None = None
    transferred_bytes: int | None = None
    links_found: int | None = None
    facts: PageFacts | None = None
    fields: str = ""
    consent: tuple[str, str] = ("", "")
    worker: str = ""
    at: int = -1

    @property
    def answer(self) -> str:
        """Status class `2xx` to `5xx` of a response, else the unit's state."""
        if self.code is not None and 100 <= self.code < 600:
            return f"{self.code // 100}xx"
        return self.state

    @property
    def remark_words(self) -> str:
        """Remark as display text; empty without one."""
        return say(f"page.{self.remark}") if self.remark else ""

    @property
    def consent_words(self) -> str:
        """Consent banner and its end as display text; empty without one."""
        name, result = self.consent
        return say(f"consent.{result}", name=name) if result in CONSENT_RESULTS else ""

    @property
    def address(self) -> str:
        """The web address of its page, maybe its start only; empty without one."""
        web = ("http://", "https://")
        return next((one for one in (self.name, self.title) if one.startswith(web)), "")

    @property
    def is_cut(self) -> bool:
        """Whether `name` is the start of a longer one."""
        return self.name.endswith(ELLIPSIS)


def whole_name(row: Mapping[str, Any]) -> str:
    """Return the name of a unit as stored, however long."""
    if said := _action(row):
        return said
    return next((one for name in _NAMES if isinstance(one := row.get(name), str) and one), "")


def unit_of(row: Mapping[str, Any], number: int, at: int = -1) -> Unit:
    """Summarise one unit from any writer."""
    reason, action = _reason(row.get("error")), _action(row)
    name = display(action, _CHARS) or _first(row, _NAMES)
    title = _first(row, _NAMES[:1] if action else _TITLES)
    return Unit(
        number=number,
        state=_state(row, reason),
        name=name,
        title=title,
        reason=reason,
        code=integer_of(row.get("status")),
        failure=_failure(row, reason),
        depth=integer_of(row.get("depth")),
        response_ms=float_of(row.get("response_ms")),
        render_ms=float_of(row.get("render_ms")),
        size_bytes=integer_of(row.get("bytes")),
        shot=_shot(row),
        remark="" if reason else _remark(row),
        consent=_consent(row.get("consent")),
        worker=_shared(row.get("worker")),
        attempts=integer_of(row.get("attempts")) or 0,
        earlier=_earlier(row.get("earlier_errors")),
        redacted=integer_of(row.get("redacted")) or 0,
        links_over=integer_of(row.get("links_over_limit")) or 0,
        redirects=_redirects(row),
        transferred_bytes=integer_of(row.get("transferred_bytes")),
        links_found=integer_of(row.get("links_found")),
        facts=_facts_of(row.get("facts"), name, title),
        fields=display(custom_fields(row), _CHARS),
        at=at,
    )


def _facts_of(facts: object, name: str, title: str) -> PageFacts | None:
    """Summarise the facts of a page; texts equal to its name or title are the same object."""
    if not isinstance(facts, Mapping) or not facts:
        return None
    get = facts.get
    types = get("structured_data")
    canonical, h1 = _text(get("canonical")), _text(get("h1"))
    return PageFacts(
        content_type=_shared(get("content_type")),
        charset=_shared(get("charset")),
        language=_shared(get("language")),
        canonical=name if canonical == name else canonical,
        description=_text(get("description")),
        robots=_shared(get("robots")),
        h1=title if h1 == title else h1,
        structured_data=_shared(_joined(types)) if isinstance(types, list) else "",
        content_hash=_text(get("content_hash")),
        h1_count=integer_of(get("h1_count")),
        words=integer_of(get("words")),
        links_internal=integer_of(get("links_internal")),
        links_external=integer_of(get("links_external")),
        links_nofollow=integer_of(get("links_nofollow")),
        images=integer_of(get("images")),
        images_without_alt=integer_of(get("images_without_alt")),
    )


def _text(value: object) -> str:
    return display(value, _CHARS) if isinstance(value, str) else ""


def _joined(values: list[object]) -> str:
    return ", ".join(one for one in values[:_MOST_TYPES] if isinstance(one, str))


def _shared(value: object) -> str:
    """Return the text as one object for all pages that have it, while it is short."""
    is_short = isinstance(value, str) and len(value) <= _SHARED_CHARS
    return _interned(value) if is_short else _text(value)


@lru_cache(maxsize=1024)  # unlike `sys.intern` it forgets texts of tasks that are closed
def _interned(text: str) -> str:
    return display(text, _CHARS)


def _action(row: Mapping[str, Any]) -> str:
    """Return the action of a recording in words; "" for other units, which have no such number."""
    return action_words(row) if "n" in row else ""


def _state(row: Mapping[str, Any], reason: str) -> str:
    if reason.startswith(ROBOTS):
        return UnitState.REFUSED
    if "error" in row and row["error"] is not None:
        return UnitState.FAILED
    status = row.get("status")
    return _STATES.get(status, UnitState.DONE) if isinstance(status, str) else UnitState.DONE


def custom_fields(row: Mapping[str, Any]) -> str:
    """Return the custom fields of a page, `price: 12 · tags: red, blue`; "" without any."""
    given = row.get("fields")
    if not isinstance(given, dict):
        return ""
    return " · ".join(f"{name}: {said}" for name, value in given.items() if (said := _said(value)))


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _consent(given: object) -> tuple[str, str]:
    if not isinstance(given, Mapping):
        return "", ""
    return _text(given.get("cmp")), _text(given.get("result"))


def _redirects(row: Mapping[str, Any]) -> int | None:
    """Return the number of redirects; None where an older record tells only that there were any."""
    given = row.get("redirects")
    if isinstance(given, list):
        return len(given)
    return 0 if "url" in row and row.get("final_url") == row["url"] else None


def _remark(row: Mapping[str, Any]) -> str:
    if row.get("empty") is True:
        return "empty"
    if row.get("settled") is False:
        return "unsettled"
    is_cut = row.get("loads_cut") is True or row.get("clicks_cut") is True
    return "unloaded" if is_cut else ""


def _failure(row: Mapping[str, Any], reason: str) -> str:
    code = row.get("error_code")
    if not isinstance(code, str):  # an older record has only the sentence
        return "http" if reason.startswith("HTTP ") else ""
    return "http" if code == "http" else "not_loaded"


def _reason(error: object) -> str:
    if isinstance(error, Mapping):
        said = [error.get("message"), error.get("code")]
        error = next((one for one in said if isinstance(one, str) and one), "")
    return display(error, _CHARS) if isinstance(error, str) else ""


def _earlier(errors: object) -> tuple[str, ...]:
    given = errors[:_MOST_EARLIER] if isinstance(errors, list) else ()
    return tuple(display(one, _CHARS) for one in given if isinstance(one, str) and one)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value:
            return display(value, _CHARS)
    return ""


def _shot(row: Mapping[str, Any]) -> str:
    """Name of the screenshot among the task's artifacts, without its folder."""
    parts = [row, row.get("failure"), row.get("result")]
    named = [part for part in parts if isinstance(part, Mapping)]
    given = next((part["screenshot"] for part in named if part.get("screenshot")), None)
    if given is None and isinstance(parts[-1], Mapping):
        given = parts[-1].get("path")
    if given is None and row.get("part") == "screenshot":
        given = part_file(row)
    return given.rpartition("/")[2] if isinstance(given, str) else ""


def integer_of(value: object) -> int | None:
    """Return an untrusted value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def float_of(value: object) -> float | None:
    """Return an untrusted value if it is a number of a sensible size."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e15 else None


PART_S: Final = 0.03  # of one part in a thread; the GUI thread runs in between
PART_UNITS: Final = 2_000
Placed = tuple[dict[str, Any], int]


class UnitPart(msgspec.Struct, frozen=True):
    """Part of the units, in order.

    `done` of `size` bytes are read; `resume` is the offset of future units (-1: there will be
    none). `lost` lines between these units could not be read.
    """

    units: tuple[Unit, ...]
    done: int = 0
    size: int = 0
    resume: int = -1
    last: bool = False
    lost: int = 0


class UnitReader:
    """Reader of pages.jsonl from byte `since`, with units numbered from `number`.

    Without that file it reads a whole result. Every call may wait for a disk.
    """

    def __init__(self, reader: LedgerReader, task_id: str, since: int = 0, number: int = 0) -> None:
        entry = reader.read(task_id)
        kind = entry.kind if isinstance(entry, TaskRecord) else ""
        self._reader, self._task_id = reader, task_id
        self._findings = Findings(reader, task_id, kind)
        self._in_lines = self._findings.place == PAGES_NAME
        self._more = isinstance(entry, TaskRecord) and entry.is_live
        self._number, self._at, self._lost = number, since, 0
        self._lost_since = 0  # behind the last unit
        self._rows = self._placed(since) if self._in_lines or since == 0 else iter(())

    def part(self) -> UnitPart:
        """Read the next units. Raises TaskUnreadable where a result breaks off."""
        units: list[Unit] = []
        last, until = False, time.perf_counter() + PART_S
        while len(units) < PART_UNITS and time.perf_counter() < until:
            found = self._next()
            if found is None:
                last = True
                break
            units.append(unit_of(found[0], self._number, found[1]))
            self._number += 1
        done = self._at if self._in_lines else self._findings.done
        resume = self._at if self._more and (self._in_lines or not self._findings.place) else -1
        lost, self._lost = self._lost, 0
        return UnitPart(tuple(units), done, self._findings.size, resume, last, lost)

    @property
    def place(self) -> int:
        """The byte behind the units read so far; 0 where they are not in lines."""
        return self._at if self._in_lines else 0

    def rows(self) -> Iterator[Placed]:
        """Yield the units themselves, each with its offset."""
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> Placed | None:
        try:
            return next(self._rows, None)
        except Damaged as error:
            reason = f"{self._findings.place}: {error}"
            path = str(self._reader.root / self._task_id / self._findings.place)
            raise TaskUnreadable(task_id=self._task_id, reason=reason, path=path) from error

    def _placed(self, since: int) -> Iterator[Placed]:
        if not self._in_lines:
            yield from ((row, -1) for row in self._findings.rows())
            return
        for line, behind in self._reader.placed_pages(self._task_id, since, self._lose):
            self._at = behind
            self._count_lost()
            yield journal.page(line), behind - len(line) - 1
        if not self._more:  # else they are read again, from the last unit on
            self._count_lost()

    def _lose(self) -> None:
        self._lost_since += 1

    def _count_lost(self) -> None:
        self._lost += self._lost_since
        self._lost_since = 0


def whole_unit(
    reader: LedgerReader, task_id: str, unit: Unit, stop: threading.Event
) -> dict[str, Any] | None:
    """Read the whole of one unit; None where it no longer exists (or `stop` is set)."""
    if unit.at >= 0:
        found = next(reader.placed_pages(task_id, unit.at), None)
        return None if found is None else journal.page(found[0])
    units = UnitReader(reader, task_id)
    for number, (row, _) in enumerate(units.rows()):
        if number == unit.number:
            return row
        if stop.is_set():
            break
    return None


class ResultPart(msgspec.Struct, frozen=True):
    """Part of a result: its `head`, some whole units under `key`, and where to go on.

    `first` is the number of the first unit. A `live` task may find more, also behind the last
    `cursor`. A unit that is larger than the limit has its longest
    texts cut, and is listed in `cut`. `cursor` is empty behind the last unit.
    """

    head: dict[str, Any]
    key: str
    units: tuple[dict[str, Any], ...]
    first: int = 0
    cursor: str = ""
    cut: tuple[int, ...] = ()
    live: bool = False


_CURSOR: Final = re.compile(r"([0-9]{1,15})(?::([0-9]{1,15}))?", re.ASCII)
_LEAST_TEXT: Final = 200


def read_result(
    reader: LedgerReader, task_id: str, cursor: str, most: int, most_bytes: int
) -> ResultPart | None:
    """Read at most `most` units, together about `most_bytes` of JSON, from `cursor` on.

    Returns None without a result. The first unit is always read.

    Raises:
        ValueError: `cursor` is none that a part returned.
    """
    found = _CURSOR.fullmatch(cursor or "0")
    if found is None:
        raise ValueError("must be a cursor that an answer before gave")
    first, at = int(found[1]), int(found[2] or 0)
    entry = reader.read(task_id)
    kind = entry.kind if isinstance(entry, TaskRecord) else ""
    findings = Findings(reader, task_id, kind)
    if kind == ENVELOPE or not findings.place:
        return None
    units = UnitReader(reader, task_id, at, first if at else 0)
    rows = units.rows() if at else islice(units.rows(), first, None)
    live = isinstance(entry, TaskRecord) and entry.is_live
    taken: list[dict[str, Any]] = []
    cut: list[int] = []

    def found_part(cursor: str) -> ResultPart:
        head, key = findings.head(), findings.key
        return ResultPart(head, key, tuple(taken), first, cursor, (*cut,), live)

    size = 0
    for whole, place in rows:
        length = len(msgspec.json.encode(whole))
        if taken and (len(taken) == most or size + length > most_bytes):
            number = first + len(taken)
            resume = f"{number}:{place}" if place >= 0 else str(number)
            return found_part(resume)
        if length > most_bytes:
            cut.append(first + len(taken))
        size += length
        taken.append(_shortened(whole, most_bytes) if length > most_bytes else whole)
    number = first + len(taken)
    return found_part((f"{number}:{units.place}" if units.place else str(number)) if live else "")


def _shortened(row: dict[str, Any], most_bytes: int) -> dict[str, Any]:
    """Return the row with its texts and lists cut until it fits."""
    limit = most_bytes
    while limit > _LEAST_TEXT:
        limit //= 2
        short = {name: _cut(value, limit) for name, value in row.items()}
        if len(msgspec.json.encode(short)) <= most_bytes:
            return short
    return {name: _cut(value, _LEAST_TEXT) for name, value in row.items()}


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + "…"
    encoded = msgspec.json.encode(value)
    return value if len(encoded) <= limit else {"_truncated": True, "_bytes": len(encoded)}


Change = Literal["added", "removed", "changed"]
KEPT: Final = 20_000  # differences that are stored; further ones are only counted
_PROGRESS_EVERY: Final = 500

Run = tuple[LedgerReader, str]  # a task and the reader of its ledger
Facts = tuple[str, str, bytes]  # the response, the title, a hash of the text
FoundFacts = tuple[Facts, Unit]  # with a unit by which the record is found again
COMPARED: Final = 5_000  # lines of a text that are compared
_AROUND: Final = 2  # equal lines around a different one


class Difference(msgspec.Struct, frozen=True, gc=False):
    """Differing unit, with its old and new state in words ("404", a title).

    Of one with another text, `units` are the old and the new one, for `changed_lines`.
    """

    change: Change
    name: str
    before: str = ""
    after: str = ""
    units: tuple[Unit, Unit] | None = None


class Differences(msgspec.Struct, frozen=True):
    """All differences between two runs (at most 20,000), and the count of each sort."""

    found: tuple[Difference, ...]
    added: int
    removed: int
    changed: int
    same: int


def differences(
    before: Run, after: Run, on_progress: Callable[[int], None], stop: threading.Event
) -> Differences:
    """Compare run `before` with run `after`, unit by unit, by their addresses.

    `on_progress` is called with the number of units read. The result is incomplete once `stop`
    is set.
    """
    found: list[Difference] = []
    counts = {"added": 0, "removed": 0, "changed": 0, "same": 0}

    def note(one: Difference) -> None:
        counts[one.change] += 1
        if len(found) < KEPT:
            found.append(one)

    known = dict(_facts(before, on_progress, stop))
    read = len(known)
    for name, (facts, unit) in _facts(after, lambda more: on_progress(read + more), stop):
        old, earlier = known.pop(name, (None, unit))
        if old is None:
            note(Difference("added", display(name, 500), "", _facts_text(facts)))
        elif old == facts:
            counts["same"] += 1
        else:
            both_words = _facts_text(old), _facts_text(facts)
            both = (earlier, unit) if old[2] != facts[2] else None
            note(Difference("changed", display(name, 500), *both_words, both))
    for name, (old, _) in known.items():
        note(Difference("removed", display(name, 500), _facts_text(old), ""))
    return Differences(tuple(found), **counts)


def changed_lines(before: str, after: str) -> tuple[str, ...]:
    """Return the lines that differ, after `+` or `-`, with some equal ones around them.

    `@@` stands between places that are apart. Of longer texts the first 5,000 lines count.
    """
    old, new = (text.splitlines()[:COMPARED] for text in (before, after))
    found = islice(difflib.unified_diff(old, new, lineterm="", n=_AROUND), 2, None)  # no names
    return tuple(line if not line.startswith("@@") else "@@" for line in islice(found, COMPARED))


def text_of_unit(reader: LedgerReader, task_id: str, row: Mapping[str, Any] | None) -> str:
    """Return the text of a unit by which runs are compared; structured content as JSON."""
    found = compared_text(reader, task_id, row or {})
    if found is not None:
        return found
    content = (row or {}).get("content", (row or {}).get("result", ""))
    if isinstance(content, str):
        return content
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode("utf-8", "replace")


def _facts(
    run: Run, on_progress: Callable[[int], None], stop: threading.Event
) -> Iterator[tuple[str, FoundFacts]]:
    seen: set[str] = set()
    for number, (row, at) in enumerate(UnitReader(*run).rows()):
        if stop.is_set():
            return
        if number % _PROGRESS_EVERY == 0:
            on_progress(number)
        unit = unit_of(row, number, at)
        if unit.name in seen:
            continue
        seen.add(unit.name)
        answer = str(unit.code) if unit.code is not None else unit.reason or unit.state
        text = compared_text(*run, row)
        if text is None:
            text = str(row.get("content", row.get("result", "")))
        encoded = text.encode("utf-8", "replace")
        facts = (answer, unit.title, hashlib.blake2b(encoded, digest_size=8).digest())
        yield unit.name, (facts, Unit(number, unit.state, unit.name, at=at))


def _facts_text(facts: Facts) -> str:
    return " · ".join(filter(None, facts[:2]))
