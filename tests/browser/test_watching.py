"""The live view shows a task's page without typed text, and costs nothing when closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Error
from PySide6.QtGui import QColor, QImage

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.recording.live_view import LiveFrame, LiveViews, MaskedContent
from engine.egress.egress_policy import Policy
from engine.ledger.reader import LedgerReader
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.support.engines import until
from tests.support.kept_browser import KeptSession

pytestmark = pytest.mark.usefixtures("kept_browser")

TASK = "00000000000000aa"
LIMIT_S = 100.0
COVER = QColor("#888888")


@asynccontextmanager
async def on_stage(
    site: Any, masked: MaskedContent | None = None
) -> AsyncIterator[tuple[LiveViews, Any]]:
    """A task with one page open, as `LiveViews` knows it, and that page."""
    session = KeptSession()
    try:
        options = InstanceOptions(policy=Policy.for_start(site.url), width=600, height=400)
        async with session.instance(options) as instance:
            page = await instance.page()
            showing = LiveViews()
            showing.begin(TASK)
            showing.show(TASK, instance, masked)
            yield showing, page
    finally:
        await session.aclose()


async def first_picture(showing: LiveViews, number: int = 0) -> LiveFrame:
    async with asyncio.timeout(LIMIT_S), aclosing(showing.watch(TASK, number)) as sights:
        async for sight in sights:
            if sight.picture:
                return sight
    raise AssertionError("nothing was to be seen")


def colour_at(picture: bytes, x: int, y: int) -> QColor:
    image = QImage.fromData(picture)
    assert not image.isNull()
    return image.pixelColor(x, y)


async def test_a_running_crawl_can_be_watched_until_it_ends(tmp_path: Path, pages: Any) -> None:
    pages["/"] = "<body style='background:#00ff00'>slow<script>fetch('/wait')</script>"
    engine = Engine(Settings.at(home=tmp_path), accepts=True)
    await engine.open()
    try:
        asked = {
            "url": pages.url,
            "maxPages": 1,
            "engine": "browser",
            "wait_for": "#never",
            "timeout_ms": 100_000,
        }
        record = await engine.requests.start("crawl", asked)
        ledger = LedgerReader(engine.settings.root)
        await until(lambda: getattr(ledger.read(record.task_id), "status", "") == "RUNNING")
        shown, painted = list[LiveFrame](), False
        watched = engine.live_views.watch(record.task_id)
        async with asyncio.timeout(LIMIT_S), aclosing(watched) as sights:
            async for sight in sights:
                if sight.picture and colour_at(sight.picture, 300, 300).green() > 200:
                    painted = True
                # The first picture may arrive before the browser reports its address.
                if painted and not shown and sight.address == f"{pages.url}/":
                    shown.append(sight)
                    await engine.commands.cancel(record.task_id)
        assert [one.number for one in shown[0].pages] == [shown[0].page]
        assert engine.live_views.pages(record.task_id) == ()
    finally:
        await engine.close()


async def test_a_task_that_does_not_run_shows_nothing() -> None:
    showing = LiveViews()
    showing.show(TASK, object())  # type: ignore[arg-type]  # any object serves as a page
    assert [sight async for sight in showing.watch(TASK)] == []
    assert showing.pages(TASK) == ()


async def test_what_is_seen_follows_the_page_from_one_address_to_the_next(site: Any) -> None:
    async with on_stage(site) as (showing, page):
        await page.goto(f"{site.url}/page/1")
        first = await first_picture(showing)
        await page.goto(f"{site.url}/page/2")
        assert first.address.endswith("/page/1")
        assert (await first_picture(showing)).address.endswith("/page/2")


async def test_one_of_several_pages_can_be_chosen_and_a_closed_one_is_left(site: Any) -> None:
    async with on_stage(site) as (showing, page):
        await page.goto(f"{site.url}/page/1")
        other = await page.context.new_page()
        await other.close()
        one = showing.pages(TASK)[0]
        assert (await first_picture(showing, one.number)).page == one.number
        assert (await first_picture(showing, one.number + 99)).page == one.number


async def test_stopping_a_view_leaves_nothing(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(site) as (showing, page):
        await page.goto(site.url)
        opened: list[Any] = []
        really = page.context.new_cdp_session

        async def noted(of: Any) -> Any:
            opened.append(await really(of))
            return opened[-1]

        monkeypatch.setattr(page.context, "new_cdp_session", noted)
        await first_picture(showing)
        assert opened
        for wire in opened:  # on a busy machine it may take more than one to get a picture
            with pytest.raises(Error):
                await wire.send("Page.enable")


@pytest.mark.parametrize(
    "masked", [MaskedContent(values=["geheim123"]), MaskedContent(fields=["#f"])]
)
async def test_what_was_typed_is_painted_over(site: Any, masked: MaskedContent) -> None:
    field = "position:fixed;left:100px;top:100px;width:200px;height:40px;background:#ff0000"
    async with on_stage(site, masked) as (showing, page):
        await page.goto(site.url)
        await page.set_content(f"<input id=f style='{field}'>")
        await page.fill("#f", "geheim123")
        picture = (await first_picture(showing)).picture
        assert colour_at(picture, 280, 130) == COVER
        assert colour_at(picture, 400, 300) == QColor("white")


@pytest.mark.parametrize("values", [[], ["typed before"]])
async def test_typed_text_is_masked_in_the_live_view(site: Any, values: list[str]) -> None:
    typed = [*values]
    async with on_stage(site, MaskedContent(typed)) as (showing, page):
        await page.goto(site.url)
        await page.set_content("<p style='position:fixed;left:0;top:0;background:#ff0000'>x</p>")
        async with asyncio.timeout(LIMIT_S), aclosing(showing.watch(TASK)) as sights:
            async for sight in sights:
                if not sight.picture:
                    continue
                if "geheim123" not in typed:
                    typed.append("geheim123")
                    await page.evaluate("document.querySelector('p').textContent = 'geheim123'")
                    continue
                assert colour_at(sight.picture, 4, 26) == COVER
                break


async def test_the_address_is_told_without_what_was_typed(site: Any) -> None:
    async with on_stage(site, MaskedContent(["geheim123"])) as (showing, page):
        await page.goto(f"{site.url}/page/1?q=geheim123")
        assert "geheim123" not in showing.pages(TASK)[0].address
