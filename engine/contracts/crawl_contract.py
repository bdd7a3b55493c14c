"""Contract of a crawl: its pages are the items, recorded as they finish.

A fetched page is completed, a failed page is failed, a page blocked by robots.txt is skipped. A
crawl whose queue is exhausted, and that was not cut off, sets `stop_satisfied` itself; a crawl that
met a page with more links than the limit does not. Source: seed 001 ("one representative
long-running tool path").
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from engine.contracts import contract_requests
from engine.contracts.bulk_progress import Note
from engine.contracts.completing import Completing
from engine.contracts.contract_requests import REASON, TEXT, Start, Update
from engine.contracts.contract_store import Contracts
from engine.ledger.changes import BULK_INCOMPLETE
from engine.ledger.lock import TIMEOUT_S
from engine.model import redact
from engine.model.addresses import address_of
from engine.model.blocked_places import BY_ROBOTS
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerWriteFailed,
    LockTimeout,
    Problem,
)
from engine.model.kind_traits import traits_of
from engine.model.records import ErrorInfo, Units

if TYPE_CHECKING:
    from engine.kinds.context import StopReason

log = logging.getLogger(__name__)

SHORT_S: Final = 0.25  # a stopped crawl has to end within 2 s
PASSING: Final = (LockTimeout, LedgerWriteFailed)  # errors that a later attempt may not meet
_OVER: Final = "{0} links of pages with too many were not followed."
NOTHING: Final[Mapping[str, Any]] = {}


def contract_problems(kind: str, given: Mapping[str, Any] | None) -> tuple[Problem, ...]:
    """Validate the contract of a new task, with paths below `contract`."""
    if given is None:
        return ()
    if not traits_of(kind).contract:
        said = "only crawls and tasks that are driven from outside can carry a contract"
        return (Problem("contract", "not_for_this_kind", said),)
    try:
        start_for(kind, given)
    except InvalidArguments as error:
        return contract_requests.below("contract", error.problems)
    return ()


def start_for(kind: str, given: Mapping[str, Any]) -> Start:
    """Return the terms of a task's contract; items are normalised as the crawl normalises
    addresses.

    Raises:
        InvalidArguments: with every mistake.
    """
    crawls = traits_of(kind).crawls
    terms: dict[str, Any] = {"scope": "crawl", "item_key": "url"} if crawls else {}
    if isinstance(given, Mapping):
        terms.update(given)
    if crawls and isinstance(terms.get("items"), list):
        terms["items"] = list({_key(item): _normalised(item) for item in terms["items"]}.values())
    start = contract_requests.start_of(terms if isinstance(given, Mapping) else given)
    if start.fields.get("run_id") is not None:
        problem = Problem("run_id", "not_here", "the contract of a task belongs to it alone")
        raise InvalidArguments((problem,))
    return start


def _normalised(item: object) -> object:
    address = address_of(item) if isinstance(item, str) else None
    return item if address is None else address.page("routes").url


class PageState(NamedTuple):
    """State of a page, and its redirect target, which may be an item as well."""

    note: Note
    landed: str


class ContractCompanion:
    """Task observer that records one running crawl in its contract.

    A failed write (full disk, held lock) is retried with the next page, so that no crawl waits for
    its contract. Where the contract names all its items, only those are recorded.
    """

    def __init__(
        self, contracts: Contracts, completing: Completing, contract_id: str, task_id: str
    ) -> None:
        self._contracts = contracts
        self._completing = completing
        self._contract_id = contract_id
        self._task_id = task_id
        self._waiting: list[PageState] = []
        self._turn = threading.Lock()
        self._named: dict[object, str] | None = None
        self._refusal: ErrorInfo | None = None

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        self._waiting.extend(_page_states(unit))
        self._record(SHORT_S)
        return ""

    def on_carried(self, units: Iterable[Mapping[str, Any]]) -> None:
        self._waiting.extend(state for unit in units for state in _page_states(unit))
        self._record(TIMEOUT_S)

    def on_tick(self) -> StopReason:
        if self._waiting:
            self._record(SHORT_S)
        return ""

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Return the guard's refusal as the error of the task; computed once, kept for a retry."""
        if self._refusal is None:
            over = _over_limit(head)
            whole = _visited_all(head) and not over
            self._record(TIMEOUT_S, {"stop_satisfied": True} if whole else {})
            link = {"task_id": self._task_id, "engine": {"contract_id": self._contract_id}}
            error = self._completing.guards(link)
            if isinstance(error, PASSING):
                raise error
            if error is not None:
                message = " ".join((_sentence(error), *([_OVER.format(over)] if over else [])))
                self._refusal = ErrorInfo(message=message, code=BULK_INCOMPLETE)
        return self._refusal

    def on_end(self) -> None:
        """Record the remaining pages before the guard is checked."""
        self._record(SHORT_S)

    def on_result(self) -> None:
        """Do nothing: the contract holds every page already."""

    def _record(self, wait_s: float, fields: Mapping[str, Any] = NOTHING) -> None:
        with self._turn:
            told = len(self._waiting)
            notes = self._items(self._waiting[:told]) if told else ()
            if notes or fields:
                moved = {"cursor": notes[-1].item} if notes else {}
                with self._contracts.hold(self._contract_id, wait_s=wait_s) as held:
                    held.apply(Update(notes, {**moved, **fields}))
            del self._waiting[:told]

    def _items(self, pages: Iterable[PageState]) -> tuple[Note, ...]:
        """Map `pages` to the contract's spelling of addresses; drop pages that are no items."""
        if self._named is None:
            self._named = {_key(item): item for item in self._contracts.names(self._contract_id)}
        named = self._named
        if not named:
            return tuple(said.note for said in pages)
        return tuple(
            msgspec.structs.replace(said.note, item=named[key])
            for said in pages
            for item in (said.landed, said.note.item)  # redirect targets are not crawled again
            if (key := _key(item)) in named
        )


def _page_states(unit: Mapping[str, Any]) -> Iterator[PageState]:
    """Yield the state of a page unit; nothing for other units."""
    url, landed, error = unit.get("url"), unit.get("final_url"), unit.get("error")
    if not isinstance(url, str):
        return
    item, reason = redact.text(url)[:TEXT], redact.text(str(error or ""))[:REASON]
    to = redact.text(landed)[:TEXT] if isinstance(landed, str) else ""
    if not reason:
        yield PageState(Note("completed", item), to)
    else:
        yield PageState(Note("skipped" if reason == BY_ROBOTS else "failed", item, reason), to)


def _key(item: object) -> object:
    """Return the key that two spellings of one address share."""
    address = address_of(item) if isinstance(item, str) else None
    return str(item) if address is None else address.own.key


def _visited_all(head: Mapping[str, Any] | None) -> bool:
    summary = (head or {}).get("summary")
    return isinstance(summary, Mapping) and summary.get("stopped_by") == "frontier"


def _over_limit(head: Mapping[str, Any] | None) -> int:
    """Return the number of links that were not followed because their page has too many."""
    summary = (head or {}).get("summary")
    count = summary.get("links_over_limit") if isinstance(summary, Mapping) else 0
    return count if isinstance(count, int) else 0


def _sentence(error: EngineError) -> str:
    return f"{error} {error.advice}".strip()
