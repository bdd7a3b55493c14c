"""The static engine's text equals a browser's `innerText`."""

from __future__ import annotations

import pytest

from engine.pages.fetch import PageOptions
from tests.bench.rendered_text import AIM, compare
from tests.browser.conftest import Making, Pages
from tests.work.random_pages import static_text


async def test_pages_made_at_random_have_the_browsers_words_on_the_browsers_lines() -> None:
    found = await compare(first=5_000, pages=120, show=0)
    assert found["same"] + found["lines"] >= AIM * 120, found


ROW, CELL = "style='display: table-row'", "style='display: table-cell'"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<table style='display: block'><thead><tr><th>a<th>b</thead>"
            "<tr><td>c<td>d<tr><td>e<td>f</table>",
            "a\tb\nc\td\ne\tf",
        ),
        (f"<p>t</p><i {ROW}><b {CELL}>a</b></i> <i {ROW}><b {CELL}>b</b></i>", "t\n\na\nb"),
        (
            f"<pre><code style='display: table'><i {ROW}><b {CELL}>1</b><i><i>let</i><i> </i>"
            f"<i>x</i> <i>=</i> 2</i></i><i {ROW}><b {CELL}>2</b><i>y</i><i>z</i></i></code></pre>",
            "1\tlet x = 2\n2\tyz",
        ),
    ],
)
async def test_rows_without_a_table_and_text_without_a_cell_are_kept_apart(
    browsing: Making, pages: Pages, html: str, text: str
) -> None:
    """As of documentation whose style sheet makes tables blocks, and lines of code rows."""
    pages["/"] = html
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    assert static_text(html) == page.text == text


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
