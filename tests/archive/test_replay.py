"""ReplayWeb.page shows an archived page with its text, pictures, styles and data, offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.export.exporter import Order
from tests.archive.replaying import missing, replayed
from tests.archive.rich_site import rich_site
from tests.archive.test_archived_crawl import crawled
from tests.support.engines import opened

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "it is there"),
    pytest.mark.own_browser,
]
LOOKS = """() => ({
  text: document.body.innerText,
  colour: getComputedStyle(document.body).backgroundColor,
  picture: document.querySelector('#pic').naturalWidth,
})"""


async def test_a_replay_shows_what_the_page_showed(home: Path, tmp_path: Path) -> None:
    wacz, folder = tmp_path / "crawl.wacz", tmp_path / "site"
    folder.mkdir()
    with rich_site() as rich:
        async with opened(home) as engine:
            task = await crawled(engine, f"{rich.url}/")
            await engine.exports.to_file(Order(task.task_id, "wacz"), wacz)
        url = f"{rich.url}/"
    # The site is gone now.
    async with replayed(wacz, url, folder) as (page, frame):
        await frame.wait_for_function("document.body.innerText.includes('answer to')")
        found = await frame.evaluate(LOOKS)
        for words in ("quick brown text", "words that a script loaded", '"query":"wren"'):
            assert words in found["text"]
        assert found["colour"] == "rgb(1, 120, 60)"
        assert found["picture"] == 64
        inner = next(one for one in page.frames if one.url.endswith("/frame"))
        assert "Text of the frame" in await inner.inner_text("body")
