"""A recording that runs in an engine, and the operator who drives its browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.context import Clock
from engine.model.config import Settings
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from tests.support.far_limits import be_patient
from tests.support.line_files import whole_lines

WAIT_S = 120.0


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch, kept_browser: object) -> None:
    be_patient(monkeypatch)


async def until(true: Callable[[], Any]) -> Any:
    """What `true` says as soon as it says anything."""
    async with asyncio.timeout(WAIT_S):
        while not (found := true()):
            await asyncio.sleep(0.02)
    return found


async def until_scrolled(page: Any, to: int) -> None:
    """Wait until the page has come to `to`, and the browser has told it so."""
    await page.wait_for_function("(to) => Math.round(scrollY) === to", arg=to, timeout=60_000)
    frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    await page.evaluate(frames)


class Operator:
    """Drives the recorded page by mouse and keys, and sees what has been written down."""

    def __init__(self, page: Any, actions: Callable[[], list[dict[str, Any]]]) -> None:
        self.page = page
        self.actions = actions

    async def recorded(self, kind: str, times: int = 1) -> dict[str, Any]:
        """Wait until so many actions of this type are on disk; the last of them."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.actions() if one["type"] == kind]

        await until(lambda: len(found()) >= times)
        return found()[times - 1]

    async def click(self, selector: str) -> None:
        await self.page.locator(selector).first.click(timeout=WAIT_S * 1000)

    async def type(self, selector: str, text: str) -> None:
        await self.click(selector)
        await self.page.keyboard.type(text)

    async def heard(self) -> None:
        """Wait until all that was done so far is told of: another key, and its action on disk."""
        before = sum(one["type"] == "key" for one in self.actions())
        await self.page.keyboard.press("F9")  # means nothing to any page or field
        await self.recorded("key", before + 1)

    async def comes_to(self, words: str) -> None:
        """Wait until a page with this heading is there."""
        await self.page.locator("h1", has_text=words).wait_for(timeout=WAIT_S * 1000)


class Running:
    """One recording in progress."""

    def __init__(self, engine: Engine, record: TaskRecord, home: Path) -> None:
        self.engine = engine
        self.task_id = record.task_id
        self.folder = home / "tasks" / record.task_id
        self.operator: Operator = None  # type: ignore[assignment]  # set before any use

    def actions(self) -> list[dict[str, Any]]:
        return whole_lines(self.folder / "pages.jsonl")

    async def ready(self) -> None:
        """The first page is there and listened to."""
        await until(lambda: self.actions() or self._ended())
        assert self.actions(), (self.folder / "meta.json").read_text()
        instance = self.engine.instances.living()[-1]
        page = instance.pages[0]
        page.context.set_default_timeout(WAIT_S * 1000)  # of what the operator does
        self.operator = Operator(page, self.actions)

    def _ended(self) -> bool:
        return '"ended_at"' in (self.folder / "meta.json").read_text()

    async def stop(self) -> TaskRecord:
        await self.engine.commands.stop(self.task_id)
        return await self.engine.tasks.wait(self.task_id, timeout_ms=round(WAIT_S * 1000))

    def result(self) -> dict[str, Any]:
        return json.loads((self.folder / "result.json").read_text())


@pytest.fixture
def recording(home: Path) -> Callable[..., Any]:
    """`async with recording(url, …) as running:` on real Chromium, headless unless asked."""

    @asynccontextmanager
    async def begin(url: str, **args: Any) -> AsyncIterator[Running]:
        allowed = args.pop("allow_files", None)
        settings = Settings(home=home, root=home / "tasks", allow_files=allowed)
        engine = Engine(settings, accepts=True, clock=args.pop("clock", Clock()))
        await engine.open()
        try:
            given = {"url": url, "headless": True, "screenshots": "none", **args}
            running = Running(engine, await engine.requests.start("recording", given), home)
            await running.ready()
            yield running
        finally:
            await engine.close()

    return begin


Script = Callable[[Operator], Awaitable[None]]
