"""A real ledger to export from and to prune, and the shapes that results come in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.ledger.ledger import Ledger
from engine.ledger.result_assembly import assemble
from engine.model.records import ErrorInfo, Status
from tests.support.owned_ledger import lease, ledger, root

__all__ = ["lease", "ledger", "root"]

PAGE: dict[str, Any] = {
    "url": "http://site.test/",
    "final_url": "http://site.test/",
    "status": 200,
    "title": "Field notes",
    "content": "Text of the page",
    "depth": 0,
    "links_found": 3,
    "response_ms": 1.5,
    "render_ms": 0.0,
    "bytes": 120,
    "engine_used": "static",
    "settled": True,
}


def page(number: int, **fields: Any) -> dict[str, Any]:
    return {**PAGE, "url": f"http://site.test/{number}", "depth": number % 3, **fields}


@pytest.fixture
def crawled(ledger: Ledger) -> Callable[..., str]:
    """Makes a crawl with these pages that ended so (None: it is still running); its id."""

    def make(
        *pages: dict[str, Any],
        status: Status | None = Status.COMPLETED,
        kind: str = "crawl",
        args: dict[str, Any] | None = None,
        head: dict[str, Any] | None = None,
    ) -> str:
        task_id = ledger.create(kind, args or {"url": "http://site.test/"}).task_id
        ledger.claim(task_id)
        for one in pages:
            ledger.append_page(task_id, one)
        if status is not None:
            told = head or {"summary": {"total_pages": len(pages)}}
            ledger.write_result(task_id, assemble(told, "pages", ledger.raw_pages(task_id)))
            error = ErrorInfo(message="it broke", code="broken")
            ledger.finish(task_id, status, error=error if status == Status.FAILED else None)
        return task_id

    return make


@pytest.fixture
def with_result(ledger: Ledger) -> Callable[[str, bytes], str]:
    """Makes a COMPLETED task of a kind with these bytes as its result.json, and no pages.jsonl."""

    def make(kind: str, result: bytes) -> str:
        task_id = ledger.create(kind, {}).task_id
        ledger.claim(task_id)
        ledger.write_result(task_id, [result])
        ledger.finish(task_id, Status.COMPLETED)
        return task_id

    return make


def wrapped(value: Any, indent: int | None = 2) -> bytes:
    """A result as OpenChrome writes it: JSON inside a text."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps({"content": [{"type": "text", "text": text}]}, indent=indent).encode()
