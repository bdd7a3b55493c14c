"""The same coroutine serves a direct call and a task: with one clock, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.support.memory_context import MemoryContext, direct_result
from tests.support.ticking import ticking

ARGS = {"respect_robots": False, "delay_ms": 0, "concurrency": 1, "max_pages": 6}
MEASURED = ("response_ms", "render_ms")  # by the browser's own clock


def level(data: bytes, engine: str) -> bytes:
    """`data`, without the durations that a browser measured itself."""
    result = msgspec.json.decode(data)
    for page in result["pages"] if engine == "browser" else ():
        page.update(dict.fromkeys(MEASURED))
    return msgspec.json.encode(result) if engine == "browser" else data


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_a_direct_crawl_and_a_task_give_the_same_bytes(
    home: Path, site: Any, engine: str
) -> None:
    args = {**ARGS, "url": site.url, "engine": engine}
    settings = Settings(home=home, root=home / "tasks")
    kind = KINDS["crawl"]
    clock = ticking()
    context = MemoryContext(now_ms=clock.now_ms, monotonic=clock.monotonic)
    browser = BrowserSession()
    try:
        head = await kind.body(kind.parse(args), context, Tools(settings, browser))
    finally:
        await browser.aclose()
    direct = direct_result(kind, head, map(msgspec.json.encode, context.pages))

    running = Engine(settings, accepts=True, clock=ticking())
    await running.open()
    try:
        record = await running.requests.start("crawl", args)
        await running.tasks.wait(record.task_id)
    finally:
        await running.close()
    task = (home / "tasks" / record.task_id / "result.json").read_bytes()
    assert level(direct, engine) == level(task, engine)
    assert len(msgspec.json.decode(task)["pages"]) == 6
