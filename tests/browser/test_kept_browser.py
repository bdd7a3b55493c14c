"""The browser that tests share is one process, and each test finds it empty."""

from __future__ import annotations

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from fixtures.site.site import Site
from tests.support.kept_browser import KeptSession, tasks

pytestmark = pytest.mark.usefixtures("kept_browser")


async def test_the_next_session_gets_the_same_process_without_what_a_page_left(site: Site) -> None:
    pids, cookies = [], []
    for _ in range(2):
        session = KeptSession()
        instance = await session.open_instance(InstanceOptions(Policy.for_start(site.url)))
        page = await instance.new_page()
        await page.goto(site.url)
        cookies.append(await page.evaluate("document.cookie"))
        await page.evaluate("document.cookie = 'left=1'")
        (chromium,) = session._running.values()
        assert chromium.family is not None
        pids.append(chromium.family.members()[0].pid)
        assert session.starts == 1
        await session.aclose()  # with the instance still open
        assert chromium.idle
    assert pids[0] == pids[1]
    assert "left" not in cookies[1]
    assert tasks()


async def test_a_browser_that_died_is_not_kept(site: Site) -> None:
    session = KeptSession()
    await session.warm()
    (chromium,) = session._running.values()
    await chromium.kill()
    await session.aclose()
    session = KeptSession()
    await session.warm()
    (fresh,) = session._running.values()
    assert fresh is not chromium
    assert fresh.alive
    await session.aclose()
