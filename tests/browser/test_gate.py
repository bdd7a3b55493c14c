"""No document is loaded from an address that the task may not reach, however it is led there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.model.errors import AddressBlocked, PageError
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages
from tests.support.engines import until
from tests.support.far_limits import wait_for_answers

OPTIONS = PageOptions(timeout_ms=100_000)


def moved(status: int) -> Callable[[str], str | Answer]:
    return lambda url: Answer(b"", status, "", (("Location", url),))


AWAY: dict[str, Callable[[str], str | Answer]] = {
    **{f"redirect {status}": moved(status) for status in (301, 302, 303, 307, 308)},
    "meta refresh": lambda url: f"<meta http-equiv=refresh content='0;url={url}'>",
    "refresh header": lambda url: Answer(b"<p>x</p>", headers=(("Refresh", f"0;url={url}"),)),
    "script": lambda url: f"<script>location = '{url}'</script>",
    "script after load": lambda url: (
        f"<script>onload = () => setTimeout(() => location.replace('{url}'), 20)</script>"
    ),
    "form": lambda url: f"<form id=f method=post action='{url}'></form><script>f.submit()</script>",
    "click": lambda url: f"<a id=a href='{url}'>x</a><script>a.click()</script>",
}
BESIDE: dict[str, Callable[[str], str]] = {
    "iframe": lambda url: f"<iframe src='{url}'></iframe>",
    "object": lambda url: f"<object data='{url}' type='text/html'></object>",
    "embed": lambda url: f"<embed src='{url}' type='text/html'>",
    "frame that goes on": lambda url: (
        f"<iframe srcdoc=\"<script>location = '{url}'</script>\"></iframe>"
    ),
    "frame in a frame": lambda url: (
        f"<iframe srcdoc='<iframe srcdoc=&quot;<iframe src={url}>"
        "</iframe>&quot;></iframe>'></iframe>"
    ),
    "window": lambda url: f"<script>open('{url}')</script>",
    "window without opener": lambda url: f"<script>open('{url}', '_blank', 'noopener')</script>",
    "link to a new window": lambda url: (
        f"<a id=a target=_blank rel=noopener href='{url}'>x</a><script>a.click()</script>"
    ),
}


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_that_leads_to_a_private_address_is_refused_before_the_connection(
    browsing: Making,
    pages: Pages,
    canary: Pages,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    wait_for_answers(monkeypatch)
    pages["/ok"] = "<p>fine</p>"
    async with browsing(pages.url) as made:
        for number, way in enumerate(AWAY):  # at paths of their own: a browser keeps redirects
            with subtests.test(way=way):
                pages[f"/{number}"] = AWAY[way](f"{canary.url}/secret")
                with pytest.raises(AddressBlocked) as refused:
                    await made.fetcher.fetch(f"{pages.url}/{number}", OPTIONS)
                assert str(refused.value) == "blocked: private address"
                assert refused.value.url == f"{canary.url}/secret"
                assert (await made.fetcher.fetch(f"{pages.url}/ok", OPTIONS)).text == "fine"
                assert not canary.hits
    assert not canary.hits


@pytest.mark.timeout(900)  # many cases in one browser
async def test_frames_and_windows_of_a_page_are_refused_and_the_page_stands(
    browsing: Making, pages: Pages, canary: Pages, subtests: pytest.Subtests
) -> None:
    async with browsing(pages.url) as made:
        for number, way in enumerate(BESIDE):
            with subtests.test(way=way):
                pages[f"/{number}"] = "<p>page</p>" + BESIDE[way](f"{canary.url}/secret")
                page = await made.fetcher.fetch(f"{pages.url}/{number}", OPTIONS)
                assert "page" in page.text
                await made.fetcher.fetch(f"{pages.url}/{number}", OPTIONS)
                assert not canary.hits
    assert not canary.hits


async def test_each_redirect_hop_is_checked(browsing: Making, pages: Pages, canary: Pages) -> None:
    pages["/"] = Answer(b"", 302, "", (("Location", "/next"),))
    pages["/next"] = Answer(b"", 307, "", (("Location", f"{canary.url}/x"),))
    async with browsing(pages.url) as made:
        with pytest.raises(AddressBlocked):
            await made.fetcher.fetch(pages.url, OPTIONS)
    assert pages.hits["/next"] == 1
    assert not canary.hits


async def test_a_frame_of_the_start_itself_is_loaded(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<iframe src='/inner'></iframe>"
    pages["/inner"] = "<iframe src='/innermost'></iframe>"
    pages["/innermost"] = "deep"
    async with browsing(pages.url) as made:
        await made.fetcher.fetch(pages.url, OPTIONS)
    assert pages.hits["/inner"] == 1
    assert pages.hits["/innermost"] == 1


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "playwright"])
async def test_a_tab_that_does_not_answer_holds_up_no_frame_of_another(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/leaving"] = "<p>page</p><script>location = '/never'</script>"
    pages["/never"] = Answer(b"", delay_s=600.0)
    pages["/"] = "<iframe src='/inner'></iframe>"
    pages["/inner"] = "within"
    async with browsing(pages.url, direct=direct, pages=2) as made:
        # Chromium tells no frames of a tab while it waits for the next document.
        leaving = asyncio.create_task(made.fetcher.fetch(f"{pages.url}/leaving", OPTIONS))
        await until(lambda: pages.hits["/never"])
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=30_000))
        assert not leaving.done()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    assert (page.text, page.settled) == ("within", True)


async def test_remote_frames_are_checked(browsing: Making, pages: Pages, canary: Pages) -> None:
    # `localhost` is another site than `127.0.0.1`: Chromium gives that frame its own process.
    other = f"http://localhost:{pages.server.port}/frame"
    pages["/"] = f"<p>page</p><iframe src='{other}'></iframe>"
    pages["/frame"] = f"<script>setTimeout(() => location = '{canary.url}/x', 10)</script>"
    allowed = (f"localhost:{pages.server.port}",)
    async with browsing(pages.url, allow_private=allowed) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(settle_ms=500))
        assert "page" in page.text
    assert pages.hits["/frame"] == 1
    assert not canary.hits


async def test_crawls_share_no_allowlist(pages: Pages, canary: Pages, browsing: Making) -> None:
    from engine.browser.chromium.browser_options import FetcherOptions
    from engine.egress.egress_policy import Policy

    canary["/"] = "<p>inside</p>"
    pages["/"] = f"<p>page</p><iframe src='{canary.url}/'></iframe>"
    async with browsing(pages.url) as made:
        session: BrowserSession = made.session
        inside = FetcherOptions(policy=Policy.for_start(canary.url), pages=1)
        async with session.fetcher(inside) as other:
            assert (await other.fetch(canary.url, OPTIONS)).text == "inside"
            assert canary.hits["/"] == 1
            assert "page" in (await made.fetcher.fetch(pages.url, OPTIONS)).text
            with pytest.raises(AddressBlocked):
                await made.fetcher.fetch(canary.url, OPTIONS)
    assert canary.hits["/"] == 1


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "view-source:http://a.example/"]
)
async def test_non_web_addresses_are_not_opened(browsing: Making, pages: Pages, url: str) -> None:
    async with browsing(pages.url) as made:
        with pytest.raises(PageError, match="only http and https"):
            await made.fetcher.fetch(url, OPTIONS)
        pages["/"] = f"<p>x</p><script>location = '{url}'</script>"
        assert "x" in (await made.fetcher.fetch(pages.url, OPTIONS)).text
