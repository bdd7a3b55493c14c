"""Verification of the ledger on a user's machine: the steps of seed 000, with what was seen.

They use the sample site and a temporary folder, so no task of the user is read or changed. Each
step opens the ledger again, as another program does, and the crawls run in worker processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil

from engine.doctor import Finding
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower
from engine.model.program import program_command
from engine.model.records import LIVE, Status, TaskRecord, TaskView
from engine.sample.site import Site
from engine.service.engine import Engine
from engine.text.cli_messages import say

PAGES: Final = 500  # more than a crawl loads before it is cancelled or killed
SLOW_MS: Final = 200  # between two pages
STEP_S: Final = 120.0
CANCEL_S: Final = 2.0
LOOK_S: Final = 0.25
END_S: Final = 10.0
_TASK_ID: Final = re.compile("[0-9a-f]{16}")


async def verification(settings: Settings) -> AsyncGenerator[Finding]:
    """Run the steps, and yield what each saw; a step that fails is the last one.

    Without a browser only the first step fails, because the others need none.
    """
    prefix = "octask-verify-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder,
        Site(PAGES) as site,
    ):
        place = replace(
            Settings.at(home=Path(folder)),
            browser_path=settings.browser_path,
            environ=settings.environ,
            allow_private=(site.url.removeprefix("http://"),),
            route="cli",
            detached=True,
        )
        steps = _Steps(place, site.url)
        try:
            for subject, step in steps.all():
                found = await _finding(subject, step)
                yield found
                if found.state == "problem" and subject != "browser":
                    return
        finally:
            await steps.end()


async def _finding(subject: str, step: Callable[[], Awaitable[Finding]]) -> Finding:
    try:
        async with asyncio.timeout(STEP_S):
            return await step()
    except EngineError as error:
        return Finding(subject, "problem", str(error), error.advice)
    except (TimeoutError, subprocess.TimeoutExpired):
        return Finding(subject, "problem", say("verify.limit", limit_s=f"{STEP_S:.0f}"))


class _Steps:
    def __init__(self, settings: Settings, site: str) -> None:
        self._settings, self._site = settings, site
        self._started: list[str] = []
        self._engine = "static"

    def all(self) -> tuple[tuple[str, Callable[[], Awaitable[Finding]]], ...]:
        """Return the steps in order, each with its subject."""
        return (
            ("browser", self._browser),
            ("start", self._start),
            ("list", self._list),
            ("cancel", self._cancel),
            ("result", self._result),
            ("restart", self._restart),
            ("kill", self._kill),
            ("wait", self._wait),
        )

    async def end(self) -> None:
        """End what still runs, as after a failed step or Ctrl-C; its folder may be removed then.

        A worker process writes a little after its task has ended: its run, and its lock.
        """
        pids: set[object] = set()
        async with self._opened() as engine:
            for task_id in self._started:
                with suppress(EngineError):
                    await engine.commands.cancel(task_id)
                    await engine.tasks.wait(task_id, 10_000)
                with suppress(EngineError):
                    pids.add((await engine.tasks.meta(task_id)).get("pid"))
        await asyncio.to_thread(_wait_for_ends, pids)

    @property
    def _first(self) -> str:
        return self._started[0]

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Engine]:
        engine = Engine(self._settings, accepts=True)
        await engine.open()
        try:
            yield engine
        finally:
            await engine.close()

    async def _crawl(self, engine: Engine, /, **args: Any) -> TaskRecord:
        given = {"url": f"{self._site}/static/", "max_depth": 100, "delay_ms": SLOW_MS, **args}
        record = await engine.requests.start(link_follower(), given)
        self._started.append(record.task_id)
        return record

    async def _browser(self) -> Finding:
        began = time.monotonic()
        async with self._opened() as engine:
            answer = await engine.agents.call("navigate", {"url": self._site})
        self._engine = "browser"
        took = f"{time.monotonic() - began:.1f}"
        status = (answer.data or {}).get("status")
        return _seen("browser", status == 200, url=self._site, status=status, took_s=took)

    async def _start(self) -> Finding:
        async with self._opened() as engine:
            record = await self._crawl(engine, engine=self._engine, max_pages=PAGES)
        right = _TASK_ID.fullmatch(record.task_id) is not None and record.status in LIVE
        return _seen("start", right, task_id=record.task_id, status=record.status)

    async def _list(self) -> Finding:
        async with self._opened() as engine:
            views = await engine.tasks.list()
        found = [view.entry for view in views if view.task_id == self._first]
        status = found[0].status if found and isinstance(found[0], TaskRecord) else None
        return _seen("list", status in LIVE, count=len(views), status=status)

    async def _cancel(self) -> Finding:
        async with self._opened() as engine:
            done = await self._with_pages(engine, self._first)
            began = time.monotonic()
            await engine.commands.cancel(self._first)
            record = await engine.tasks.wait(self._first, 30_000)
            took_s = time.monotonic() - began
        right = record.status == Status.CANCELLED and took_s <= CANCEL_S
        return _seen("cancel", right, done=done, status=record.status, took_s=f"{took_s:.1f}")

    async def _result(self) -> Finding:
        async with self._opened() as engine:
            pages = await self._pages(engine, self._first)
        return _seen("result", pages > 0, pages=pages)

    async def _restart(self) -> Finding:
        command = [*program_command(), "list", "--json", "--home", str(self._settings.home)]
        ended = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, check=False, timeout=STEP_S / 2
        )
        listed = json.loads(ended.stdout or b"{}").get("tasks", []) if not ended.returncode else []
        status = {one["task_id"]: one["status"] for one in listed}.get(self._first)
        right = status == Status.CANCELLED
        return _seen("restart", right, status=status, code=ended.returncode)

    async def _kill(self) -> Finding:
        async with self._opened() as engine:
            task_id = (await self._crawl(engine, engine="static", max_pages=PAGES)).task_id
            await self._with_pages(engine, task_id)
            entry = (await engine.tasks.get(task_id)).entry
        pid = entry.pid if isinstance(entry, TaskRecord) and entry.is_live else None
        if not isinstance(pid, int) or pid <= 1 or pid == os.getpid():
            return _seen("kill.none", False, pid=pid)
        with suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        async with self._opened() as engine:
            while (await engine.tasks.meta(task_id))["status"] in LIVE:
                await asyncio.sleep(LOOK_S)  # a killed process needs a moment to be gone
                await engine.commands.reap()
            record = await engine.tasks.wait(task_id)
            pages = await self._pages(engine, task_id)
        code = record.error.code if record.error else None
        right = record.status == Status.FAILED and code == "orphaned"
        return _seen("kill", right, pid=pid, status=record.status, code=code, pages=pages)

    async def _wait(self) -> Finding:
        async with self._opened() as engine:
            record = await self._crawl(engine, engine="static", max_pages=2, delay_ms=0)
            record = await engine.tasks.wait(record.task_id, 30_000)
            late_ms = round(time.time() * 1_000 - (record.ended_at or 0))
        right = record.status == Status.COMPLETED
        return _seen("wait", right, status=record.status, late_ms=late_ms)

    async def _with_pages(self, engine: Engine, task_id: str) -> int:
        """Wait until a crawl has finished a page; return how many it has."""
        while True:
            view: TaskView = await engine.tasks.get(task_id)
            done = view.units.done if view.units else 0
            if done or not (isinstance(view.entry, TaskRecord) and view.entry.is_live):
                return done
            await asyncio.sleep(LOOK_S)

    async def _pages(self, engine: Engine, task_id: str) -> int:
        result = await engine.tasks.result(task_id)
        if result is None:
            return 0
        with result:
            return len(json.load(result)["pages"])


def _wait_for_ends(pids: Iterable[object]) -> None:
    """Wait until these processes have ended, each for 10 s at the most."""
    for pid in pids:
        if isinstance(pid, int) and pid > 1 and pid != os.getpid():
            with suppress(psutil.Error):
                psutil.Process(pid).wait(END_S)


def _seen(step: str, right: bool, **seen: object) -> Finding:
    """Return what a step saw; without what it should have seen, this is a problem."""
    told, subject = say(f"verify.{step}", **seen), step.partition(".")[0]
    if right:
        return Finding(subject, "ok", told)
    return Finding(subject, "problem", told, say(f"verify.{subject}.expected"))
