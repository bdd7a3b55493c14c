"""Page counts of a crawl's summary, and result heads of killed tasks.

Pages are counted one by one, so that they can stay on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from engine.model.kind_traits import traits_of

Limit = Literal["max_pages", "max_minutes", "max_bytes"]
LIMITS: Final = frozenset(get_args(Limit))
StoppedBy = (
    Limit | Literal["frontier", "cancelled", "failed", "budget", "forced", "stopped", "host_errors"]
)

_MOST_WORKERS: Final = 1_000
_MOST_NAME_CHARS: Final = 64
_SELDOM: Final = (
    "http_errors",
    "not_loaded",
    "retried",
    "redacted",
    "compared",
    "empty_pages",
    "unsettled_pages",
    "unloaded_pages",
)


class CrawlOutcome(msgspec.Struct, frozen=True):
    """The `summary` of result.json.

    `left_out` counts links that were not followed, by reason; `redacted` the secrets removed from
    page contents; `workers` the pages by the worker of a cluster that loaded them.
    """

    total_pages: int
    succeeded: int
    failed: int
    max_depth_reached: int
    duration_ms: int
    scope: str
    stopped_by: StoppedBy
    first_error: str = ""
    http_errors: int = 0
    not_loaded: int = 0
    retried: int = 0
    redacted: int = 0
    compared: int = 0
    empty_pages: int = 0
    unsettled_pages: int = 0
    unloaded_pages: int = 0  # pages that may have more than was loaded of them
    left_out: Mapping[str, int] = {}
    workers: Mapping[str, int] = {}
    hosts_given_up: tuple[str, ...] = ()
    host_error: str = ""  # the last one of these hosts

    def summary(self) -> dict[str, Any]:
        told = msgspec.structs.asdict(self)
        del told["first_error"], told["host_error"]  # it is stored with its page
        given_up = list(told.pop("hosts_given_up"))
        left_out, workers = told.pop("left_out"), told.pop("workers")
        counts = {name: told.pop(name) for name in _SELDOM}
        told |= {name: count for name, count in counts.items() if count}
        told |= left_out
        told |= {"workers": workers} if workers else {}
        return told | ({"hosts_given_up": given_up} if given_up else {})


class Tally:
    """Count pages as they are stored; also recounts the pages.jsonl of a killed crawl."""

    def __init__(self, pages: Iterable[Mapping[str, Any]] = ()) -> None:
        self.total = 0
        self.failed = 0
        self.http_errors = 0
        self.retried = 0
        self.compared = 0
        self.empty = 0
        self.unsettled = self.unloaded = 0
        self.deepest = 0
        self.first_error = ""
        self.redacted = 0
        self.workers: Counter[str] = Counter()
        for page in pages:
            self.add(page)

    def add(self, page: Mapping[str, Any]) -> None:
        self.total += 1
        self.failed += "error" in page
        self.http_errors += page.get("error_code") == "http"
        self.retried += "attempts" in page
        self.compared += page.get("compared") is True
        self.empty += page.get("empty") is True
        self.unsettled += page.get("settled") is False and "error" not in page
        is_cut = page.get("loads_cut") is True or page.get("clicks_cut") is True
        self.unloaded += is_cut and "error" not in page
        self.first_error = self.first_error or str(page.get("error", ""))
        redacted = page.get("redacted")
        self.redacted += redacted if isinstance(redacted, int) else 0
        self._add_worker(page.get("worker"))
        depth = page.get("depth")
        if isinstance(depth, int):
            self.deepest = max(self.deepest, depth)

    def _add_worker(self, name: object) -> None:
        """Count a page of a worker; other programs may have written the name."""
        if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME_CHARS:
            return
        if name in self.workers or len(self.workers) < _MOST_WORKERS:
            self.workers[name] += 1

    def outcome(self, scope: str, duration_ms: int, stopped_by: StoppedBy) -> CrawlOutcome:
        return CrawlOutcome(
            total_pages=self.total,
            succeeded=self.total - self.failed,
            failed=self.failed,
            max_depth_reached=self.deepest,
            duration_ms=duration_ms,
            scope=scope,
            stopped_by=stopped_by,
            first_error=self.first_error,
            http_errors=self.http_errors,
            not_loaded=self.failed - self.http_errors,
            retried=self.retried,
            redacted=self.redacted,
            compared=self.compared,
            empty_pages=self.empty,
            unsettled_pages=self.unsettled,
            unloaded_pages=self.unloaded,
            workers=dict(sorted(self.workers.items())),
        )


def killed_head(
    kind: str, task_id: str, units: Iterable[Mapping[str, Any]], scope: str, lasted_ms: int
) -> dict[str, Any]:
    """Build the head of result.json for a task whose process died, from its units on disk."""
    known = traits_of(kind)
    if known.summary:
        return {"summary": Tally(units).outcome(scope, lasted_ms, "failed").summary()}
    head: dict[str, Any] = own_id(kind, task_id)
    if known.unit_screenshots:
        pictures = (unit.get("screenshot") for unit in units)
        kept = [{"path": path, "kind": "screenshot"} for path in pictures if isinstance(path, str)]
        head["artifacts"] = kept
    return head


def own_id(kind: str, task_id: str) -> dict[str, Any]:
    """Build the result id that some kinds have, from the task's id."""
    own = traits_of(kind).own_id
    return {} if own is None else {own[0]: f"{own[1]}-{task_id}"}
