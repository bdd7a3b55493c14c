"""ReplayWeb.page in a real browser, from a local server: nothing of it comes from elsewhere.

`REPLAY_PACKAGE` names the folder of the npm package `replaywebpage` (with `ui.js` and `sw.js`), as
`npm pack replaywebpage` and an unpacking make it; nothing of it is part of this repository.
"""

from __future__ import annotations

import http.server
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Frame, Page, async_playwright

from engine.browser.chromium.locate import locate
from tests.recording.trap_pages import listening

FILES = ("ui.js", "sw.js")
WAIT_MS = 90_000


def missing() -> str:
    """Why nothing can be replayed here; empty where it can."""
    given = os.environ.get("REPLAY_PACKAGE", "")
    if not given:
        return "REPLAY_PACKAGE names no folder of the npm package replaywebpage"
    lacking = [name for name in FILES if not (Path(given) / name).is_file()]
    return f"REPLAY_PACKAGE lacks {', '.join(lacking)}" if lacking else ""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@asynccontextmanager
async def replayed(wacz: Path, url: str, folder: Path) -> AsyncIterator[tuple[Page, Frame]]:
    """The page with the replay of `url`, and the frame in which the archived page is."""
    package = Path(os.environ["REPLAY_PACKAGE"])
    for name in FILES:
        shutil.copy(package / name, folder / name)
    shutil.copy(wacz, folder / "crawl.wacz")
    (folder / "replay").mkdir()
    (folder / "replay" / "sw.js").write_text("importScripts('/sw.js');")
    (folder / "index.html").write_text(
        "<!doctype html><meta charset=utf-8><script src=/ui.js></script>"
        "<style>body{margin:0} replay-web-page{display:block;height:90vh}</style>"
        f'<replay-web-page source="/crawl.wacz" url="{url}" replaybase="/replay/" embed="default">'
        "</replay-web-page>"
    )
    with listening(partial(_Quiet, directory=str(folder))) as place:
        async with async_playwright() as playwright:
            found = locate(None, headless=True)
            browser = await playwright.chromium.launch(executable_path=str(found.path))
            page = await browser.new_page(viewport={"width": 1100, "height": 750})
            await page.goto(f"{place}/index.html")
            frame = await _archived(page, url)
            yield page, frame
            await browser.close()


async def _archived(page: Page, url: str) -> Frame:
    """Wait for the frame of the archived page."""
    for _ in range(WAIT_MS // 100):
        for frame in page.frames:
            if frame.url.endswith(url) and "mp_/" in frame.url:
                return frame
        await page.wait_for_timeout(100)
    raise AssertionError([frame.url for frame in page.frames])
