"""What a task came to: a crawl's summary, counted page by page so that pages can stay on disk.

Also under which name each kind's units stand in its result.json, and what can be said of a
task whose process was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

StoppedBy = Literal["frontier", "max_pages", "cancelled", "failed", "budget", "forced", "stopped"]

UNITS_KEY: Final[Mapping[str, str]] = {
    "crawl": "pages",
    "crawl_sitemap": "pages",
    "recording": "actions",
    "oc_evidence_bundle": "parts",
    "oc_session_snapshot": "tabs",
    "commands": "commands",
}
OTHER_UNITS: Final = "pages"  # of a kind that is not ours


_SELDOM: Final = (
    "http_errors",
    "not_loaded",
    "retried",
    "redacted",
    "compared",
    "empty_pages",
    "unsettled_pages",
)


class CrawlOutcome(msgspec.Struct, frozen=True):
    """The `summary` of result.json. `left_out` counts links that were not followed, by reason;
    `redacted` what was taken out of pages' content.
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
    left_out: Mapping[str, int] = {}

    def summary(self) -> dict[str, Any]:
        told = msgspec.structs.asdict(self)
        del told["first_error"]  # it stands with its page
        left_out = told.pop("left_out")
        counts = {name: told.pop(name) for name in _SELDOM}
        return {**told, **{name: count for name, count in counts.items() if count}, **left_out}


class Tally:
    """Counts pages as they are kept; also reads a killed crawl's pages.jsonl again."""

    def __init__(self, pages: Iterable[Mapping[str, Any]] = ()) -> None:
        self.total = 0
        self.failed = 0
        self.http_errors = 0
        self.retried = 0
        self.compared = 0
        self.empty = 0
        self.unsettled = 0
        self.deepest = 0
        self.first_error = ""
        self.redacted = 0
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
        self.first_error = self.first_error or str(page.get("error", ""))
        redacted = page.get("redacted")
        self.redacted += redacted if isinstance(redacted, int) else 0
        depth = page.get("depth")
        if isinstance(depth, int):
            self.deepest = max(self.deepest, depth)

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
        )


def killed_head(
    kind: str, task_id: str, units: Iterable[Mapping[str, Any]], scope: str, lasted_ms: int
) -> dict[str, Any]:
    """The head of result.json for a task whose process died: what its units on disk tell."""
    if kind == "commands":
        return {}
    if kind == "recording":
        pictures = (unit.get("screenshot") for unit in units)
        kept = [{"path": path, "kind": "screenshot"} for path in pictures if isinstance(path, str)]
        return {**own_id(kind, task_id), "artifacts": kept}
    if kind in _OWN_IDS:
        return own_id(kind, task_id)
    return {"summary": Tally(units).outcome(scope, lasted_ms, "failed").summary()}


_OWN_IDS: Final[Mapping[str, tuple[str, str]]] = {
    "recording": ("recording_id", "rec"),
    "oc_evidence_bundle": ("bundle_id", "bundle"),
    "oc_session_snapshot": ("snapshot_id", "snap"),
}


def own_id(kind: str, task_id: str) -> dict[str, Any]:
    """The id by which the results of some kinds are known, made from the task's."""
    if kind not in _OWN_IDS:
        return {}
    name, prefix = _OWN_IDS[kind]
    return {name: f"{prefix}-{task_id}"}
