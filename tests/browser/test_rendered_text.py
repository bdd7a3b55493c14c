"""The static engine's text equals a browser's `innerText`."""

from __future__ import annotations

from engine.pages.fetch import PageOptions
from tests.bench.rendered_text import AIM, compare
from tests.browser.conftest import Making, Pages


async def test_pages_made_at_random_have_the_browsers_words_on_the_browsers_lines() -> None:
    found = await compare(first=5_000, pages=120, show=0)
    assert found["same"] + found["lines"] >= AIM * 120, found


async def test_the_markdown_contains_only_visible_text(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<p>seen</p><textarea>gone</textarea><video>gone</video><canvas>gone</canvas>"
        "<audio controls>gone</audio><meter>gone</meter><progress>gone</progress>"
        "<datalist><option>gone</datalist><ruby>x<rp>gone</rp></ruby>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    assert "seen" in page.html
    assert "gone" not in page.html
