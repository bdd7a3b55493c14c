"""Browser instances: allowed addresses, refusals, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest
from playwright.async_api import Error

from engine.browser.chromium import browser_instance
from engine.browser.chromium import browser_instance as instances
from engine.browser.chromium.browser_instance import Instance
from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page.crawl_tab import BLANK, leave_page
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserGone
from tests.support.far_limits import FAR_S


@asynccontextmanager
async def opened(site: Any) -> AsyncIterator[tuple[BrowserSession, Instance]]:
    session = BrowserSession()
    try:
        policy = Policy.for_start(site.url)
        async with session.instance(InstanceOptions(policy=policy)) as instance:
            yield session, instance
    finally:
        await session.aclose()


async def test_an_instance_opens_what_its_policy_allows_and_nothing_else(site: Any) -> None:
    async with opened(site) as (_, instance):
        page = await instance.page()
        response = await page.goto(site.url)
        assert response is not None
        assert response.ok
        assert instance.refused(page) is None
        with pytest.raises(Exception, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto("http://127.0.0.1:9/")
        refused = instance.refused(page)
        assert refused is not None
        assert "private address" in str(refused)
        instance.clear(page)
        assert instance.refused(page) is None


async def test_a_page_cannot_open_a_window_where_nobody_looks_on(site: Any) -> None:
    async with opened(site) as (_, instance):
        page = await instance.page()
        await page.goto(site.url)
        assert await page.evaluate("() => window.open(location.href) === null")
        assert instance.pages == [page]


@pytest.mark.thorough
async def test_a_page_is_left_while_earlier_attempts_to_leave_it_arrive(site: Any) -> None:
    async def earlier(page: Any) -> None:
        with contextlib.suppress(Error):  # the next one cancels it, or follows it
            await page.goto(BLANK)

    async with opened(site) as (_, instance):
        page = await instance.page()
        for delay_ms in (*range(10), *range(10)):  # in some they interrupt each other
            await page.goto(site.url)
            async with asyncio.TaskGroup() as attempts:
                for _ in range(2):
                    attempts.create_task(earlier(page))
                await asyncio.sleep(delay_ms / 1000)
                await leave_page(page, instance.wire(page))
            response = await page.goto(site.url)
            assert response is not None
            assert response.ok


async def test_a_dialog_does_not_hold_the_page_up(site: Any) -> None:
    async with opened(site) as (_, instance):
        page = await instance.page()
        await page.goto(site.url)
        assert await page.evaluate("() => confirm('go on?')") is False


async def test_an_instance_knows_at_once_that_its_browser_died(site: Any) -> None:
    async with opened(site) as (_, instance):
        await instance.page()
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.Error):  # one of an earlier test that is just ending
                if "--headless" in " ".join(child.cmdline()):
                    child.kill()
        async with asyncio.timeout(60):
            await instance.gone.wait()
        assert not instance.alive
        with pytest.raises(BrowserGone):
            await instance.new_page()


async def test_two_instances_share_a_browser_but_no_cookies(site: Any) -> None:
    async with opened(site) as (session, one):
        options = InstanceOptions(policy=Policy.for_start(site.url))
        async with session.instance(options) as two:
            here, there = await one.page(), await two.page()
            await here.goto(site.url)
            await there.goto(site.url)
            await here.evaluate("() => { document.cookie = 'a=1'; }")
            assert await there.evaluate("() => document.cookie") == ""
            assert session.starts == 1
            assert one.id != two.id


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes the Linux way")
async def test_closing_an_instance_leaves_the_browser_for_the_next(site: Any) -> None:
    async with opened(site) as (session, instance):
        await instance.page()
        await instance.close()
        await instance.close()
        assert not instance.alive
        again = await session.open_instance(InstanceOptions(policy=Policy.for_start(site.url)))
        assert (await (await again.page()).goto(site.url)) is not None
        assert session.starts == 1
        await again.close()


async def test_a_slow_close_delays_no_other(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(site) as (session, stays):
        page = await stays.page()
        leaves = await session.open_instance(stays.options)
        left = await leaves.page()
        monkeypatch.setattr(instances, "CLOSE_S", 0.0)
        for room, limit in ((instances, "LATE_S"), (browser_instance, "CALM_S")):
            monkeypatch.setattr(room, limit, FAR_S)  # it is slow, and does not hang
        await leaves.close()
        async with asyncio.timeout(60):
            while not left.is_closed():
                await asyncio.sleep(0.02)
        assert stays.alive
        assert await page.evaluate("1 + 1") == 2


@pytest.mark.parametrize("how", ["closed", "dropped"])
async def test_a_call_in_progress_ends_with_its_instance(site: Any, how: str) -> None:
    """Playwright never answers what it asked of a page that closes meanwhile."""
    async with opened(site) as (_, instance):

        async def ask() -> None:
            async with instance.within(10 * FAR_S):
                await asyncio.Event().wait()

        asking = asyncio.create_task(ask())
        await asyncio.sleep(0)
        await (instance.close() if how == "closed" else instance.context.close())
        with pytest.raises(TimeoutError):
            await asking
        assert not instance.alive


async def test_a_second_close_keeps_the_cookies_that_the_first_one_reads(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[dict[str, Any]] = []
    asked = asyncio.Event()
    sign_in = SimpleNamespace(renew=lambda cookies, _: renewed.extend(cookies))
    async with opened(site) as (_, instance):
        await instance.context.add_cookies([{"name": "a", "value": "1", "url": site.url}])
        read = instance.context.cookies

        async def cookies() -> Any:
            asked.set()
            await asyncio.sleep(0)
            return await read()

        monkeypatch.setattr(instance.context, "cookies", cookies)
        monkeypatch.setattr(
            instance, "options", msgspec.structs.replace(instance.options, sign_in=sign_in)
        )
        closing = asyncio.create_task(instance.close())
        await asked.wait()
        await instance.close()
        await closing
        assert [each["value"] for each in renewed] == ["1"]
