"""A browser start that is called off, fails or hangs leaves nothing running, and says why."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.async_api import Error

from engine.browser.chromium import browser_session, launch
from engine.browser.chromium import driver as drivers
from engine.browser.chromium.browser_options import BrowserVariant
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import Driver, alive
from engine.browser.chromium.locate import locate
from engine.browser.chromium.navigation_filter import NavigationFilter
from engine.egress.proxy import Proxy
from engine.model.config import Settings
from engine.model.errors import BrowserFailed
from engine.model.records import Status
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.browser.conftest import command
from tests.support.engines import until

pytestmark = pytest.mark.usefixtures("through_playwright")
SHELL = pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
# The driver's first message has no line's end: `read` waits for as long as the pipe is open.
HANGS = "read line; read line"
ENDS = "exit 3"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`node(script)`: that shell script instead of Node.js; None: there is none."""

    def put(script: str | None) -> Path:
        program = tmp_path / "node"
        if script is not None:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(program))
        return program

    return put


def left(before: set[psutil.Process]) -> list[psutil.Process]:
    """What was started since `before` and runs."""
    new = [one for one in psutil.Process().children(recursive=True) if one not in before]
    return [one for one in new if alive(one)]


async def none_left(before: set[psutil.Process], limit_s: float = 60.0) -> bool:
    """Has everything ended? What was killed needs a moment for it."""
    until = time.monotonic() + limit_s
    while left(before) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not left(before)


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.1, 0.2])
async def test_a_cancelled_start_ends_its_process_and_its_tasks(after_s: float) -> None:
    before = set(psutil.Process().children(recursive=True))
    start = asyncio.create_task(Driver.start())
    await asyncio.sleep(after_s)  # anywhere in the start
    start.cancel()
    await asyncio.wait({start})
    if not start.cancelled():  # it was ready before the cancel reached it
        await start.result().stop(5)
    assert await none_left(before)


@SHELL
async def test_a_driver_that_cannot_run_says_what_it_lacks(node: Any) -> None:
    lacks = "error while loading shared libraries: libatomic.so.1: no such file"
    node(f"echo '{lacks}' >&2; exit 127")
    with pytest.raises(BrowserFailed, match=lacks):
        await Driver.start(60)


@SHELL
async def test_a_silent_driver_is_ended(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    node(HANGS)
    before = set(psutil.Process().children(recursive=True))
    monkeypatch.setattr(drivers, "START_S", 1_000.0)  # the usual limit, which does not count here
    with pytest.raises(BrowserFailed, match="its driver does not start: no answer within 1 s"):
        await Driver.start(1)
    assert await none_left(before)


@SHELL
async def test_a_start_that_never_answers_can_be_called_off(node: Any) -> None:
    node(HANGS)
    before = set(psutil.Process().children(recursive=True))
    start = asyncio.create_task(Driver.start())
    while not left(before):
        await asyncio.sleep(0.01)
    start.cancel()
    done, _ = await asyncio.wait({start}, timeout=60)
    assert done
    assert start.cancelled()
    assert await none_left(before)


@SHELL
async def test_a_start_that_is_called_off_again_and_again_leaves_nothing_behind(node: Any) -> None:
    node(HANGS)
    before, tasks = set(psutil.Process().children(recursive=True)), asyncio.all_tasks()
    start = asyncio.create_task(Driver.start())
    while not left(before):
        await asyncio.sleep(0.01)
    for _ in range(20):
        start.cancel()
        await asyncio.sleep(0.05)
    done, _ = await asyncio.wait({start}, timeout=60)
    assert done
    assert start.cancelled()
    assert await none_left(before)
    async with asyncio.timeout(60):  # the pipe's own task ends with the pipe
        while not asyncio.all_tasks() <= tasks:
            await asyncio.sleep(0.02)


@SHELL
@pytest.mark.parametrize("script", [None, ENDS])
async def test_a_missing_driver(node: Any, home: Path, site: Site, script: str | None) -> None:
    program = node(script)
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        args = {"url": site.url, "engine": "browser", "respect_robots": False, "max_pages": 1}
        task_id = (await engine.requests.start("crawl", args)).task_id
        record = await engine.tasks.wait(task_id, timeout_ms=90_000)
        await engine.tasks.join(task_id)
        assert engine.health().browser == "failed"
    finally:
        await engine.close()
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "browser_failed"
    reason = "Connection closed" if script else f"{program} is not a program that can be run"
    assert reason in record.error.message


@SHELL
async def test_a_hung_driver_does_not_block_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(psutil.Process().children(recursive=True))
    browser = BrowserSession()
    await browser.warm()
    monkeypatch.setattr(browser_session, "START_S", 1.0)
    driver = next(one for one in left(before) if "run-driver" in command(one))
    driver.suspend()
    with pytest.raises(BrowserFailed, match="not ready within 1 s"):
        await browser._chromium(BrowserVariant(lean=False))
    assert browser.status()[0] == "failed"
    await browser.aclose()
    assert await none_left(before)


async def test_an_unexpected_error_ends_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str | None, *, headless: bool) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(browser_session, "locate", broken)
    browser = BrowserSession()
    with pytest.raises(PermissionError):
        await browser.warm()
    assert browser.status()[0] == "idle"


@pytest.mark.parametrize("slow", [True, False])
async def test_an_unfiltered_browser_closes(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    opened = []

    async def shut(browser: Any, *, without_media: bool) -> NavigationFilter:
        opened.append(browser)
        if slow:
            await asyncio.Event().wait()
        raise Error("no session")

    monkeypatch.setattr(NavigationFilter, "open", shut)

    async def started(*given: Any, **more: Any) -> Any:
        browser = await start(*given, **more)
        if slow:  # the start itself needs its time; only the gate's is cut short
            monkeypatch.setattr(launch, "LAUNCH_S", 1.0)
        return browser

    start = launch._browser
    monkeypatch.setattr(launch, "_browser", started)
    driver, proxy = await Driver.start(), Proxy()
    try:
        with pytest.raises(BrowserFailed):
            await launch.launch(driver, locate(), proxy, BrowserVariant(lean=True))
        assert len(opened) == (1 if slow else launch.TRIES)
        # They were told to close; a busy browser needs its time for it.
        await until(lambda: not any(browser.is_connected() for browser in opened))
    finally:
        await driver.stop(5)
        await proxy.close()
