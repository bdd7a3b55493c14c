"""Each kind that opens pages shows its device, in what it stores, too."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from engine.sample.site import Answer
from tests.support.engines import opened, until

PHONE = {"device": "Pixel 7", "timezone": "Asia/Tokyo", "locale": "de-DE"}
WIDE = b"<title>wide</title><div style='width:900px;height:2000px'>wide</div>"
FITTING = b"<meta name=viewport content='width=device-width'><title>t</title>fits"
SAYS = b"""<meta name=viewport content='width=device-width'><title>t</title><p id=p></p><script>
p.textContent = [innerWidth, navigator.language,
  Intl.DateTimeFormat().resolvedOptions().timeZone].join(" ")</script>"""

pytestmark = pytest.mark.usefixtures("kept_browser")


async def result_of(home: Path, kind: str, args: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    async with opened(home) as engine:
        started = await engine.requests.start(kind, args)
        await engine.tasks.join(started.task_id)
    folder = home / "tasks" / str(started.task_id)
    found: dict[str, Any] = json.loads((folder / "result.json").read_text("utf-8"))
    return folder, found


def size_of(png: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    return width, height


@pytest.mark.parametrize("markup", [WIDE, FITTING])
async def test_a_picture_of_evidence_has_the_size_of_the_device(
    home: Path, site: Any, markup: bytes
) -> None:
    site.answers["/p"] = Answer(markup)
    args = {"url": f"{site.url}/p", "include": ["screenshot"], "full_page": False, **PHONE}
    folder, _ = await result_of(home, "oc_evidence_bundle", args)
    assert size_of(folder / "artifacts" / "screenshot.png") == (412, 839)


async def test_a_viewport_takes_precedence_over_the_device(home: Path, site: Any) -> None:
    site.answers["/p"] = Answer(FITTING)
    args = {"url": f"{site.url}/p", "include": ["screenshot"], "viewport": "500x600", **PHONE}
    folder, _ = await result_of(home, "oc_evidence_bundle", args)
    assert size_of(folder / "artifacts" / "screenshot.png") == (500, 600)


async def test_a_crawl_reads_what_the_device_shows(home: Path, site: Any) -> None:
    site.answers["/p"] = Answer(SAYS)
    args = {"url": f"{site.url}/p", "max_pages": 1, "delay_ms": 0, **PHONE}
    _, result = await result_of(home, "crawl", args)
    assert "412 de-DE Asia/Tokyo" in result["pages"][0]["content"]


async def test_a_snapshot_opens_its_tabs_as_the_device(home: Path, site: Any) -> None:
    site.answers["/p"] = Answer(SAYS.replace(b"p.textContent", b"document.title"))
    args = {"objective": "x", "visit": True, "tabs": [f"{site.url}/p"], **PHONE}
    folder, result = await result_of(home, "oc_session_snapshot", args)
    assert result["tabs"][0]["title"] == "412 de-DE Asia/Tokyo"
    assert size_of(folder / "artifacts" / "tab-001.png") == (412, 839)


async def test_a_recording_has_the_window_of_the_device(home: Path, site: Any) -> None:
    site.answers["/p"] = Answer(SAYS)
    async with opened(home) as engine:
        asked = {"url": f"{site.url}/p", "headless": True, **PHONE}
        started = await engine.requests.start("recording", asked)
        folder = home / "tasks" / started.task_id
        await until(lambda: any((folder / "artifacts").glob("*.png")))
        await engine.commands.stop(started.task_id)
        await engine.tasks.join(started.task_id)
    result = json.loads((folder / "result.json").read_text("utf-8"))
    assert result["viewport"] == {"width": 412, "height": 839}
    (picture, *_) = sorted((folder / "artifacts").glob("*.png"))
    assert size_of(picture) == (412, 839)
