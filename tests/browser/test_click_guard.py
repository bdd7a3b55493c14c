"""While links are clicked, no part of the page sends anything: neither frames nor workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.browser.chromium import launch
from engine.browser.page import click_links
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages
from tests.support.engines import until
from tests.support.far_limits import FAR_S
from tests.support.serving import running

CLICKING = PageOptions(timeout_ms=100_000, click_links="button", settle_ms=500)
SENDS = (
    "onmessage = async ({ data }) => { await fetch(`/read/${data}`);"
    " await fetch(`/sent/${data}`, { method: 'POST', body: 'x' }) };"
)
OTHERWISE = "onmessage = async ({ data }) => { await fetch(`/read/${data}`); SEND }"
FORM = "<form action=/sent/1 method=post><input name=a></form>"
FRAMES = {
    "page": f"<script>{SENDS}</script>",
    "worker": "<script>const worker = new Worker('/worker.js');"
    "onmessage = ({ data }) => worker.postMessage(data)</script>",
    "beacon": f"<script>{OTHERWISE}</script>".replace("SEND", "navigator.sendBeacon('/sent/1')"),
    "form": f"{FORM}<script>{OTHERWISE}</script>".replace("SEND", "document.forms[0].submit()"),
}
# Leads on as soon as it is told to, so that nothing of a click comes too late for it.
PAGE = """<p>here</p>PART<script>
const isTold = async () => await (await fetch('/told', { cache: 'no-store' })).text() === 'yes';
const leave = async () => {
  while (!await isTold()) await new Promise((then) => setTimeout(then, 50));
  history.pushState(0, '', '/a');
};
</script><button onclick="tell(); leave()">go</button>"""
WORKER = "<script>const worker = new Worker('/worker.js'); const tell = () => {TELL}</script>"
FRAME = "<iframe src='FRAME'></iframe><script>const tell = () => {TELL}</script>"
SCRIPT = Answer(SENDS.encode(), content_type="text/javascript")


@pytest.fixture(autouse=True)
def isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each site a process of its own, as browsers with a window do."""
    monkeypatch.setattr(launch, "FLAGS", (*launch.FLAGS, "--site-per-process"))
    for limit in ("CLICK_S", "OPEN_S", "CLOSE_S"):
        monkeypatch.setattr(click_links, limit, FAR_S)


@pytest.fixture
def told_of_refusals(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell the page as soon as a request was refused."""
    run = click_links.ClickLinks.run

    async def telling(clicks: click_links.ClickLinks, *given: Any) -> None:
        async def tell() -> None:
            await until(lambda: clicks.refused or (clicks._filter and clicks._filter.withheld))
            pages["/told"] = Answer(b"yes")

        task = asyncio.create_task(tell())
        try:
            await run(clicks, *given)
        finally:
            task.cancel()

    monkeypatch.setattr(click_links.ClickLinks, "run", telling)


@pytest.mark.thorough("*localhost")
@pytest.mark.own_browser
@pytest.mark.usefixtures("told_of_refusals")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("sender", list(FRAMES))
async def test_a_frame_and_its_worker_send_nothing_for_a_click(
    browsing: Making, pages: Pages, host: str, sender: str
) -> None:
    with running(Pages()) as inner:
        inner["/worker.js"] = SCRIPT
        inner["/"] = "framed" + FRAMES[sender]
        place = f"{host}:{inner.server.port}"
        pages["/"] = PAGE.replace("PART", FRAME.replace("FRAME", f"http://{place}/")).replace(
            "TELL", "frames[0].postMessage(1, '*')"
        )
        async with browsing(pages.url, allow_private=[place]) as made:
            page = await made.fetcher.fetch(pages.url, CLICKING)
        assert [one.url for one in page.clicked] == [f"{pages.url}/a"]
        assert inner.hits["/read/1"] == 1
        assert inner.hits["/sent/1"] == 0
    assert page.clicks_refused == 1


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.usefixtures("told_of_refusals")
async def test_a_worker_sends_nothing_for_a_click(browsing: Making, pages: Pages) -> None:
    pages["/worker.js"] = SCRIPT
    pages["/"] = PAGE.replace("PART", WORKER).replace("TELL", "worker.postMessage(1)")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, CLICKING)
    assert [one.url for one in page.clicked] == [f"{pages.url}/a"]
    assert pages.hits["/read/1"] == 1
    assert pages.hits["/sent/1"] == 0
    assert page.clicks_refused == 1


@pytest.mark.own_browser
async def test_a_frame_of_another_tab_sends_what_it_wants(browsing: Making, pages: Pages) -> None:
    with running(Pages()) as inner:
        inner["/"] = f"<script>{SENDS} onmessage({{ data: 2 }})</script>"
        place = f"localhost:{inner.server.port}"
        pages["/other"] = f"<p>other</p><iframe src='http://{place}/'></iframe>"
        pages["/"] = PAGE.replace("PART", "").replace("tell(); leave()", "leave()")
        async with browsing(pages.url, allow_private=[place], pages=2) as made:
            clicking = asyncio.create_task(made.fetcher.fetch(pages.url, CLICKING))
            await until(lambda: pages.hits["/told"])
            await made.fetcher.fetch(f"{pages.url}/other", PageOptions(timeout_ms=100_000))
            await until(lambda: inner.hits["/sent/2"] == 1)
            assert not clicking.done()
            pages["/told"] = Answer(b"yes")
            assert (await clicking).clicks_refused == 0
