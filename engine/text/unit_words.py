"""How far a task has come, in words: its units by the noun of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.model.records import ENVELOPE, TASK_RUN, Units
from engine.text.catalogue import count, say

UNIT_NOUNS: Final = {
    "crawl": "pages",
    "crawl_sitemap": "pages",
    "recording": "actions",
    "oc_evidence_bundle": "parts",
    "oc_session_snapshot": "tabs",
    "commands": "commands",
    ENVELOPE: "calls",
    TASK_RUN: "items",
}
REMARKS: Final = ("empty", "unsettled")  # of pages that were kept
SITEMAP_LIMITS: Final = ("files", "bytes", "addresses")  # of all sitemaps that a task reads
LEFT_OUT: Final = ("redacted", "links_over_limit", "links_fragments", "windows_refused")


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """What a crawl's summary says of pages that were kept and may not be what they should, and of
    what was taken out of them or not followed; of a recording, which windows never opened.
    """
    counted = {f"pages.{kind}": f"{kind}_pages" for kind in REMARKS}
    counted |= {f"left_out.{name}": name for name in LEFT_OUT}
    told = ((message, summary.get(key)) for message, key in counted.items())
    limit = summary.get("sitemap_limit")
    return [
        *(
            say(f"{message}.one" if number == 1 else message, count=count(number))
            for message, number in told
            if isinstance(number, int) and number > 0
        ),
        *([say(f"sitemap_limit.{limit}")] if limit in SITEMAP_LIMITS else []),
    ]


def unit_word(kind: str, number: int) -> str:
    """What one unit of this kind is called, for `number` of them."""
    noun = UNIT_NOUNS.get(kind, "units")
    return say(f"unit.{noun}.{'one' if number == 1 else 'many'}")


def progress(kind: str, units: Units | None) -> str:
    """`41/120`, `137 pages` while the total is not known; nothing before the first word."""
    if units is None:
        return ""
    if units.total is not None and units.total > 0:
        said = say("progress.known", done=count(units.done), total=count(units.total))
    else:
        said = say("progress.open", done=count(units.done), unit=unit_word(kind, units.done))
    if units.failed:
        said = say("progress.failed", progress=said, failed=count(units.failed))
    return said


def progress_spoken(kind: str, units: Units) -> str:
    """`41 of 120 pages`, `137 pages, 2 failed`."""
    if units.total is None or units.total <= 0:
        said = say("progress.open", done=count(units.done), unit=unit_word(kind, units.done))
    else:
        unit = unit_word(kind, units.total)
        done, total = count(units.done), count(units.total)
        said = say("progress.of", done=done, total=total, unit=unit)
    if units.failed:
        said = say("progress.failed.spoken", progress=said, failed=count(units.failed))
    return said


def failures_text(summary: Mapping[str, Any]) -> str:
    """`3 answered with an error, 2 not loaded` of a crawl's summary; empty without any."""
    parts = (("http_errors", "failures.http"), ("not_loaded", "failures.not_loaded"))
    found = [(summary.get(name), message) for name, message in parts]
    told = (say(message, count=count(n)) for n, message in found if isinstance(n, int) and n > 0)
    return ", ".join(told)
