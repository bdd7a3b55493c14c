"""What the static engine makes of compressed answers, and of cookies between redirects."""

from __future__ import annotations

import gzip

import pytest

from engine.archive.exchange import Exchange
from engine.egress.egress_policy import Policy
from engine.model.errors import PageError
from engine.pages.fetch import Fetched, PageOptions
from engine.pages.static_engine import open_static
from engine.sample.site import Answer, Request
from tests.support.serving import served

PAGE = b"<!doctype html><title>t</title><p>" + b"These words were sent. " * 40


async def fetched(answer: Answer, options: PageOptions | None = None) -> Fetched:
    with served(lambda _: answer) as url:
        async with open_static(Policy.for_start(url)) as fetcher:
            return await fetcher.fetch(url, options or PageOptions())


def coded(body: bytes, *codings: str) -> Answer:
    return Answer(body, headers=tuple(("Content-Encoding", one) for one in codings))


@pytest.mark.parametrize(
    ("codings", "times"),
    [
        (("x-gzip",), 1),
        (("gzip, gzip, gzip, gzip",), 4),
        (("gzip, gzip",), 2),
        (("gzip", "gzip"), 2),
        (("GZIP",), 1),
        (("odd",), 0),
    ],
)
async def test_a_page_is_decompressed_as_often_as_its_header_says(
    codings: tuple[str, ...], times: int
) -> None:
    sent = PAGE
    for _ in range(times):
        sent = gzip.compress(sent)
    found = await fetched(coded(sent, *codings))
    assert (found.html.encode(), found.bytes, found.truncated) == (PAGE, len(PAGE), False)


async def test_a_page_that_cannot_be_decompressed_is_no_page() -> None:
    with pytest.raises(PageError, match="damaged"):
        await fetched(coded(PAGE, "x-gzip"))
    with pytest.raises(PageError, match="damaged"):  # no page is compressed that often
        await fetched(coded(PAGE, ", ".join(["gzip"] * 100)))


async def test_an_archive_has_the_page_without_its_coding(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []

    class Archive:
        async def record(self, exchange: Exchange) -> None:
            kept.append(exchange.body)

    with served(lambda _: coded(gzip.compress(PAGE), "x-gzip")) as url:
        async with open_static(Policy.for_start(url)) as fetcher:
            monkeypatch.setattr(fetcher, "archive", Archive())
            await fetcher.fetch(url, PageOptions())
    assert kept == [PAGE]  # its records have no `Content-Encoding`


async def test_a_compressed_page_is_cut_at_the_limit() -> None:
    found = await fetched(
        coded(gzip.compress(PAGE * 10_000), "x-gzip"), PageOptions(max_bytes=100_000)
    )
    assert (found.bytes, found.truncated) == (100_000, True)


async def test_a_cookie_that_a_redirect_sets_is_sent_to_its_target() -> None:
    heard: list[str] = []

    def answer(request: Request) -> Answer:
        if request.path == "/here":
            return Answer(b"", 302, headers=(("Location", "/there"), ("Set-Cookie", "seen=1")))
        heard.append(request.headers.get("cookie", ""))
        return Answer(PAGE)

    with served(answer) as url:
        async with open_static(Policy.for_start(url)) as fetcher:
            await fetcher.fetch(f"{url}/here", PageOptions())
    assert heard == ["seen=1"]
