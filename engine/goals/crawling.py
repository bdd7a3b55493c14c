"""A crawl that carries a contract: its pages are the items, recorded as they finish.

A page that was taken is completed, one that failed is failed, one that robots.txt keeps back
is skipped. A crawl that has visited all that it found, and was not cut off, says itself that
its stop condition is met. Source: seed 001 ("one representative long-running tool path").
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from engine import redact
from engine.bulk import Note
from engine.errors import EngineError, InvalidArguments, Problem
from engine.goals import requests
from engine.goals.completing import ENVELOPE, Completing
from engine.goals.contracts import Contracts
from engine.goals.requests import REASON, TEXT, Start, Update
from engine.records import ErrorInfo, Units
from engine.store.changes import BULK_INCOMPLETE
from engine.work.addresses import address_of
from engine.work.context import StopReason
from engine.work.robots import BLOCKED

log = logging.getLogger(__name__)

KINDS: Final = frozenset({"crawl", "crawl_sitemap"})


def contract_problems(kind: str, given: Mapping[str, Any] | None) -> tuple[Problem, ...]:
    """What is wrong with the contract of a start, each with its path below `contract`."""
    if given is None:
        return ()
    if kind not in (*KINDS, ENVELOPE):
        said = "only crawls and tasks that are driven from outside can carry a contract"
        return (Problem("contract", "not_for_this_kind", said),)
    try:
        start_for(kind, given)
    except InvalidArguments as error:
        return requests.below("contract", error.problems)
    return ()


def start_for(kind: str, given: Mapping[str, Any]) -> Start:
    """The terms of a task's contract; what a crawl is to visit is written as the crawl will.

    Raises:
        InvalidArguments: with every mistake.
    """
    terms: dict[str, Any] = {"scope": "crawl", "item_key": "url"} if kind in KINDS else {}
    if isinstance(given, Mapping):
        terms.update(given)
    if kind in KINDS and isinstance(terms.get("items"), list):
        terms["items"] = [_levelled(item) for item in terms["items"]]
    start = requests.start_of(terms if isinstance(given, Mapping) else given)
    if start.fields.get("run_id") is not None:
        problem = Problem("run_id", "not_here", "the contract of a task belongs to it alone")
        raise InvalidArguments((problem,))
    return start


def _levelled(item: object) -> object:
    address = address_of(item) if isinstance(item, str) else None
    return item if address is None else address.url


class ContractCompanion:
    """Goes along with one running crawl; see `run.companion`.

    What could not be recorded (a full disk, a lock) is tried again with the next page.
    """

    def __init__(
        self, contracts: Contracts, completing: Completing, contract_id: str, task_id: str
    ) -> None:
        self._contracts = contracts
        self._completing = completing
        self._contract_id = contract_id
        self._task_id = task_id
        self._waiting: list[Note] = []
        self._refusal: ErrorInfo | None = None

    def kept(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        note = _note(unit)
        if note is not None:
            self._waiting.append(note)
            self._record({"cursor": note.item})
        return ""

    def tick(self) -> StopReason:
        if self._waiting:
            self._record({})
        return ""

    def refuses(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """The guard's word, as the error of the task; said once, and kept for a second try."""
        if self._refusal is None:
            self._record({"stop_satisfied": True} if _visited_all(head) else {})
            link = {"task_id": self._task_id, "engine": {"contract_id": self._contract_id}}
            error = self._completing.guards(link)
            if error is not None:
                self._refusal = ErrorInfo(message=_sentence(error), code=BULK_INCOMPLETE)
        return self._refusal

    def ended(self) -> None:
        pass  # the log of items is still needed: the guard speaks after this

    def _record(self, fields: Mapping[str, Any]) -> None:
        notes = tuple(self._waiting)
        if not notes and not fields:
            return
        with self._contracts.hold(self._contract_id) as held:
            held.take(Update(notes, dict(fields)))
        del self._waiting[: len(notes)]


def _note(unit: Mapping[str, Any]) -> Note | None:
    url = unit.get("url")
    if not isinstance(url, str):
        return None
    item, error = redact.text(url)[:TEXT], unit.get("error")
    if not error:
        return Note("completed", item)
    reason = redact.text(str(error))[:REASON]
    return Note("skipped" if reason == BLOCKED else "failed", item, reason)


def _visited_all(head: Mapping[str, Any] | None) -> bool:
    summary = (head or {}).get("summary")
    return isinstance(summary, Mapping) and summary.get("stopped_by") == "frontier"


def _sentence(error: EngineError) -> str:
    return f"{error} {error.advice}".strip()
