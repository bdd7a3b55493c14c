"""Windows that pages open in a headed browser, on a virtual screen."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.browser.chromium.browser_instance import Instance
from engine.browser.chromium.browser_options import InstanceOptions, Limits
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from tests.browser.conftest import Pages
from tests.support.engines import until


@asynccontextmanager
async def screen(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A display of its own; it says its number when it is ready."""
    if sys.platform != "linux" or shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb")
    ours, theirs = os.pipe()
    program = ("Xvfb", "-displayfd", str(theirs), "-screen", "0", "1400x1000x24")
    quiet = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*program, pass_fds=[theirs], stderr=quiet)
    os.close(theirs)
    try:
        async with asyncio.timeout(60):
            told = await asyncio.to_thread(os.read, ours, 16)
        monkeypatch.setenv("DISPLAY", f":{int(told)}")
        yield
    finally:
        os.close(ours)
        server.terminate()
        await server.wait()


@asynccontextmanager
async def headed(site: Any, allowed: str) -> AsyncIterator[Instance]:
    session = BrowserSession()
    try:
        options = InstanceOptions(policy=Policy(None, (allowed,)), headed=True)
        async with session.instance(options) as instance:
            yield instance
    finally:
        await session.aclose()


async def test_a_window_that_a_page_opens_is_judged_as_the_page_itself(
    site: Any, canary: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = site.url.partition("//")[2]
    async with screen(monkeypatch), headed(site, place) as instance:
        page = await instance.page()
        await page.goto(f"{site.url}/static/1")
        for features in ("", "noopener"):
            async with page.context.expect_page(timeout=60_000) as opened:
                await page.evaluate(
                    "([to, how]) => { onclick = () => open(to, '_blank', how) }",
                    [f"{site.url}/static/2", features],
                )
                await page.mouse.click(5, 5)
            window = await opened.value
            await window.wait_for_url(f"{site.url}/static/2", timeout=60_000)
            await window.close()
        async with page.context.expect_page(timeout=60_000) as opened:
            await page.evaluate("(to) => { onclick = () => open(to) }", canary.url)
            await page.mouse.click(5, 5)
        window = await opened.value
        await window.wait_for_load_state(timeout=60_000)
        assert not canary.hits


async def test_the_name_of_the_browser_stays_while_another_one_shows_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with screen(monkeypatch):
        session = BrowserSession()
        try:
            await session.warm()
            _, name, _ = session.status()
            async with session.instance(InstanceOptions(policy=Policy(None, ()), headed=True)):
                assert session.status() == ("ready", name, "")
        finally:
            await session.aclose()


@pytest.mark.thorough
async def test_a_browser_with_windows_ends_soon_after_its_last_use_and_its_driver_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with screen(monkeypatch):
        session = BrowserSession(limits=Limits(look_s=0.02, headed_idle_s=0.5))
        try:
            for _ in range(2):  # the next recording gets another one
                await _used_and_ended(session)
            assert session.starts == 2
        finally:
            await session.aclose()


async def _used_and_ended(session: BrowserSession) -> None:
    shown = InstanceOptions(policy=Policy(None, ()), headed=True)
    async with session.instance(shown) as instance:
        driver = session._driver
        assert driver is not None
        await asyncio.sleep(1.0)  # longer than the limit: it is in use
        assert instance.alive
    await until(lambda: not driver.alive)
    assert session._driver is None
    assert not any(one.alive for one in session._running.values())
