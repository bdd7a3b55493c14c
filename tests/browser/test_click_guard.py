"""While links are clicked, no part of the page sends anything: neither frames nor workers."""

from __future__ import annotations

import asyncio

import pytest

from engine.browser.chromium import launch
from engine.pages.fetch import PageOptions
from engine.sample.server import Answer
from tests.browser.conftest import Making, Pages
from tests.support.engines import until
from tests.support.serving import running

CLICKING = PageOptions(timeout_ms=20_000, click_links="button", settle_ms=500)
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
PAGE = """<p>here</p>PART<script>
const leave = () => setTimeout(() => history.pushState(0, '', '/a'), 500);
</script><button onclick="tell(); leave()">go</button>"""
WORKER = "<script>const worker = new Worker('/worker.js'); const tell = () => {TELL}</script>"
FRAME = "<iframe src='FRAME'></iframe><script>const tell = () => {TELL}</script>"
MORE = "".join(f"<button onclick='fetch(`/slow`)'>{n}</button>" for n in range(6))
SCRIPT = Answer(SENDS.encode(), content_type="text/javascript")


@pytest.fixture(autouse=True)
def isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each site a process of its own, as browsers with a window do."""
    monkeypatch.setattr(launch, "FLAGS", (*launch.FLAGS, "--site-per-process"))


@pytest.mark.own_browser
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


@pytest.mark.own_browser
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
        pages["/"] = PAGE.replace("PART", "").replace("tell(); leave()", "fetch('/slow')") + MORE
        pages["/slow"] = Answer(b"{}", content_type="application/json", delay_s=20)
        async with browsing(pages.url, allow_private=[place], pages=2) as made:
            clicking = asyncio.create_task(made.fetcher.fetch(pages.url, CLICKING))
            await until(lambda: pages.hits["/slow"] == 1)
            await made.fetcher.fetch(f"{pages.url}/other", PageOptions(timeout_ms=20_000))
            await until(lambda: inner.hits["/sent/2"] == 1)
            assert not clicking.done()
            assert (await clicking).clicks_refused == 0
