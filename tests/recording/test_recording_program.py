"""Recordings as a user has them: a real process, a real window, Ctrl-C, and a sudden death."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.async_api import TimeoutError as NoPicture
from PySide6.QtGui import QImage

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserFailed
from engine.model.records import Status
from tests.support.line_files import whole_lines
from tests.support.octask import Octask, only_task, until
from tests.support.screens import screen_of_its_own


def begin(octask: Octask, url: str, *words: str) -> tuple[subprocess.Popen[str], Path]:
    """A recording in the foreground of its own process, and its folder once it has begun."""
    program = octask.start("start", "recording", url, "--headless", *words)
    folder = octask.home / "tasks" / only_task(octask)
    until(lambda: bool(whole_lines(folder / "pages.jsonl")))
    return program, folder


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_recording_in_good_order(octask: Octask, site: Any) -> None:
    program, folder = begin(octask, f"{site.url}/shop/", "--label", "by hand")
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=90)
    assert program.returncode == 0, out + err
    assert "Stopping the recording; its actions are kept" in err
    assert "COMPLETED: 1 action in " in out
    assert f"Go to {site.url}/shop/" in err
    result = json.loads((folder / "result.json").read_text())
    assert (result["stopped_by"], result["label"]) == ("stopped", "by hand")


def test_stop_ends_a_recording_of_another_process_in_good_order(octask: Octask, site: Any) -> None:
    program, folder = begin(octask, f"{site.url}/shop/")
    assert "asked to stop; its actions are kept" in octask("stop", folder.name)
    program.communicate(timeout=90)
    assert program.returncode == 0
    assert octask.tasks()[0]["status"] == "COMPLETED"
    assert "has ended: COMPLETED" in octask("stop", folder.name)
    assert "There is no task" in octask("stop", "00000000000000ab", code=4)


def test_a_killed_recording_is_exportable(octask: Octask, site: Any, tmp_path: Path) -> None:
    program, folder = begin(octask, f"{site.url}/shop/")
    actions = whole_lines(folder / "pages.jsonl")
    children = psutil.Process(program.pid).children(recursive=True)
    program.kill()
    program.communicate(timeout=90)
    octask("reap")
    assert psutil.wait_procs(children, timeout=60)[1] == []
    result = json.loads((folder / "result.json").read_text())
    assert result["actions"] == actions
    assert result["recording_id"] == f"rec-{folder.name}"
    assert octask.tasks()[0]["status"] == "FAILED"
    octask("recording", "export", folder.name, "-o", str(tmp_path / "task.json"))
    task = json.loads((tmp_path / "task.json").read_text())
    assert task["commands"][0]["args"]["url"] == f"{site.url}/shop/"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--duration-ms", "5"], "duration_ms: must be between 100"),
        (["--screenshots", "some"], "screenshots: must be one of each, navigation, none"),
        (["--args", '{"headed": true}'], "headed: contradicts headless"),
        (["--args", '{"keep_text": "yes"}'], "keep_text: must be true or false"),
        (["--args", '{"lable": "x"}'], "did you mean label?"),
    ],
)
def test_all_argument_mistakes_are_named(octask: Octask, words: list[str], problem: str) -> None:
    given = ["start", "recording", "http://a.example/", "--headless", *words]
    assert problem in octask(*given, code=2)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a program may have no screen")
def test_windows_need_a_screen(octask: Octask, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    said = octask("start", "recording", f"{site.url}/shop/", code=1)
    assert "needs a screen" in said
    assert "Record without a window (--headless)" in said


@pytest.mark.skipif(sys.platform != "linux", reason="only there a program may have no screen")
async def test_headless_browsers_start_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    browser = BrowserSession()
    try:
        with pytest.raises(BrowserFailed):
            await browser.open_instance(InstanceOptions(policy=Policy(None), headed=True))
        async with browser.instance(InstanceOptions(policy=Policy(None))) as instance:
            assert instance.alive
            with pytest.raises(BrowserFailed):
                await browser.open_instance(InstanceOptions(policy=Policy(None), headed=True))
            assert browser.status()[0] == "ready"
    finally:
        await browser.aclose()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with screen_of_its_own(monkeypatch) as number:
        yield number


async def test_closing_the_window_ends_a_recording(screen: str, recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order", headless=False) as running:
        await running.operator.click("text=By bird")
        await running.operator.recorded("check")
        await running.operator.page.close()
        record = await running.engine.tasks.wait(running.task_id)
        assert record.status == Status.COMPLETED
        result = running.result()
        assert (result["stopped_by"], result["headed"]) == ("closed", True)
        assert [one["type"] for one in result["actions"]] == ["navigate", "check"]


async def test_actions_of_a_second_window_name_tab(screen: str, recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/", headless=False) as running:
        instance = running.engine.instances.living()[-1]
        second = await instance.new_page()
        await second.goto(f"{site.url}/shop/order")
        await running.operator.recorded("navigate", 2)
        await second.get_by_label("As a gift").click()
        checked = await running.operator.recorded("check")
        assert checked["tab"] == 1


async def until_signed(page: Any, picture: Any) -> None:
    """Wait until the line stands along the top of the window, whose repaint nothing tells of.

    A window on a busy machine may draw no frame for a picture that was asked for before its
    first one; the next picture gets it.
    """
    async with asyncio.timeout(150):
        while True:
            with suppress(NoPicture):
                if is_signed(await page.screenshot(path=picture, timeout=10_000)):
                    return
            await page.wait_for_timeout(20)


def is_signed(png: bytes) -> bool:
    image = QImage.fromData(png)
    return {image.pixelColor(x, 1).name() for x in range(image.width())} == {"#dc2626"}


async def test_every_page_of_a_recorded_window_has_a_sign_that_lets_clicks_through(
    screen: str, recording: Any, site: Any
) -> None:
    """The tests' own screenshots show the line, as a person sees it."""
    async with recording(f"{site.url}/shop/", headless=False) as running:
        page, picture = running.operator.page, running.folder / "seen.png"
        await until_signed(page, picture)
        await page.goto("data:text/html,<h1>Another process</h1>")  # which loses the line
        await until_signed(page, picture)
        await page.evaluate("addEventListener('mousedown', (event) => { y = event.clientY })")
        await page.mouse.click(300, 1)
        await page.wait_for_function("y === 1", timeout=60_000)


async def test_no_picture_of_a_recording_shows_the_sign(
    screen: str, recording: Any, site: Any
) -> None:
    async with recording(f"{site.url}/shop/order", headless=False, screenshots="each") as running:
        page, picture = running.operator.page, running.folder / "seen.png"
        await until_signed(page, picture)
        await running.operator.click("text=By bird")
        kept = await running.operator.recorded("check")
        assert not is_signed((running.folder / kept["screenshot"]).read_bytes())
        await until_signed(page, picture)


async def test_a_recording_without_a_window_has_no_sign(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        await running.operator.click("a")
        await running.operator.recorded("navigated")
        assert not is_signed(await running.operator.page.screenshot(timeout=120_000))
