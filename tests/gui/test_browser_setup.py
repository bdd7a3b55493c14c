"""A window without a browser: download, choose or use one, without a restart."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QCheckBox, QFileDialog, QProgressBar, QPushButton

from engine.browser.chromium import browser_download, locate
from engine.model.records import Health
from gui.commands.browser_setup import BrowserSetup
from gui.settings.setting_controls import BrowserTest
from gui.settings.settings_dialog import SettingsDialog
from gui.startup.session import Session
from gui.style.questions import Question
from tests.gui.live_tasks import ended
from tests.gui.windows import appearing, dialog_by_act, heard, opened, press, until
from tests.support.download_server import (
    DEBIAN,
    SHELL,
    DownloadServer,
    hide_browsers,
    packed_folder,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the archives are of Linux"),
    pytest.mark.usefixtures("patient_browser"),
]
real = pytest.mark.skipif(not DEBIAN.exists(), reason="needs the headless shell of Debian")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return hide_browsers(monkeypatch, tmp_path / "data")


@pytest.fixture
def server(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DownloadServer]:
    with DownloadServer().running() as server:
        monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", server.url)
        yield server


@asynccontextmanager
async def without_browser(tmp_path: Path, **more: str) -> AsyncIterator[Session]:
    """A window whose banner says that there is no browser."""
    async with opened(tmp_path / "home", **more) as session:
        session.bridge.warm()
        await until(lambda: "browser" in session.window.banner.title, session.bridge.health)
        yield session


def setup_of(session: Session) -> BrowserSetup:
    (found,) = session.window.findChildren(BrowserSetup)
    return found


def buttons(session: Session) -> list[str]:
    return [one.text() for one in session.window.banner.findChildren(QPushButton)]


def state(session: Session) -> str:
    return session.bridge.look_at_health().browser


async def when(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(90):
        while not condition():
            await asyncio.sleep(0.02)  # the driver, another process, changes it


async def begin_download(session: Session) -> None:
    with appearing(Question) as asked:
        press(session.window.banner, "Download Chromium…")
        question = await asked
    press(question, "Download")
    await when(setup_of(session).bar.isVisible)


@pytest.mark.thorough
@real
@pytest.mark.own_browser
async def test_a_downloaded_browser_is_used_at_once(tmp_path: Path, server: DownloadServer) -> None:
    server.archives[SHELL] = await asyncio.to_thread(packed_folder, SHELL, DEBIAN)
    async with without_browser(tmp_path) as session:
        await begin_download(session)
        assert session.window.banner.title == ""
        await until(lambda: state(session) == "ready", session.bridge.health)
        assert session.window.banner.title == ""
        assert not setup_of(session).bar.isVisible()
        assert "is installed" in session.window.context.news_bar.title


@pytest.mark.thorough
@real
@pytest.mark.own_browser
async def test_a_download_replaces_a_wrong_setting(tmp_path: Path, server: DownloadServer) -> None:
    server.archives[SHELL] = await asyncio.to_thread(packed_folder, SHELL, DEBIAN)
    async with without_browser(tmp_path, browser_path="/nowhere/chromium") as session:
        await begin_download(session)
        await until(lambda: state(session) == "ready", session.bridge.health)
        assert session.bridge.engine.settings.browser_path is None


async def test_the_sample_crawl_needs_no_browser(tmp_path: Path, data: Path) -> None:
    async with without_browser(tmp_path) as session:
        await until(lambda: state(session) == "missing", session.bridge.health)
        told = heard(session.bridge.started)
        session.window.acts["sample"].trigger()
        (record,) = await told
        assert await ended(session, record.task_id) == "COMPLETED"


async def test_the_window_shows_the_bytes_and_a_cancel_leaves_nothing(
    tmp_path: Path, data: Path, server: DownloadServer
) -> None:
    server.hold()
    async with without_browser(tmp_path) as session:
        await begin_download(session)
        bar = setup_of(session).bar
        await when(lambda: bar.text == "Downloading Chromium: 2.0 MB of 4.0 MB")
        (meter,) = bar.findChildren(QProgressBar)
        assert 480 < meter.value() < 520
        assert not session.window.acts["download_browser"].isEnabled()
        press(bar, "Cancel")
        await when(lambda: not bar.isVisible())
        assert session.window.acts["download_browser"].isEnabled()
        assert session.window.banner.title == "No browser was found"
        assert os.listdir(data) == [browser_download.LOCK]
        assert not psutil.Process().children(recursive=True)


async def test_a_failed_download_says_why_and_can_be_repeated(
    tmp_path: Path, server: DownloadServer
) -> None:
    server.status = 404
    async with without_browser(tmp_path) as session:
        await begin_download(session)
        banner = session.window.banner
        await when(lambda: banner.title == "The server refused the download")
        assert "HTTP 404" in banner.accessibleName()
        assert "Download Chromium…" in buttons(session)
        banner._close.click()
        assert banner.title == "No browser was found"


async def test_a_window_that_closes_ends_its_download(
    tmp_path: Path, data: Path, server: DownloadServer
) -> None:
    server.hold()
    async with without_browser(tmp_path) as session:
        await begin_download(session)
        await when(server.in_the_middle.is_set)
    assert os.listdir(data) == [browser_download.LOCK]
    assert not psutil.Process().children(recursive=True)


async def test_escape_downloads_nothing(tmp_path: Path, server: DownloadServer) -> None:
    async with without_browser(tmp_path) as session:
        with appearing(Question) as asked:
            press(session.window.banner, "Download Chromium…")
            question = await asked
        question.reject()
        assert not setup_of(session).bar.isVisible()
        assert not server.asked


@pytest.mark.thorough
async def test_with_a_shell_the_download_is_for_recordings(
    tmp_path: Path, server: DownloadServer
) -> None:
    await browser_download.install_browser(full=False, report=lambda _: None)
    async with opened(tmp_path / "home") as session:
        question = await dialog_by_act(session.window, "download_browser", Question)
        (box,) = question.findChildren(QCheckBox)
        assert box.isChecked()
        press(question, "Download")
        await when(lambda: "is installed" in session.window.context.news_bar.title)
        assert locate.locate(headless=False)
        assert "headless-shell" not in server.asked[-1]


async def test_with_chrome_the_small_download_is_the_default(
    tmp_path: Path, server: DownloadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    chrome = tmp_path / "chrome"
    chrome.write_text("#!/bin/sh\n")
    chrome.chmod(0o755)
    monkeypatch.setattr(locate, "_installed", lambda: iter([("Chrome", str(chrome))]))
    async with opened(tmp_path / "home") as session:
        question = await dialog_by_act(session.window, "download_browser", Question)
        (box,) = question.findChildren(QCheckBox)
        assert not box.isChecked()
        press(question, "Not now")


@real
@pytest.mark.own_browser
async def test_a_recording_without_a_browser_with_windows_leads_to_one(
    tmp_path: Path, server: DownloadServer
) -> None:
    server.archives[SHELL] = await asyncio.to_thread(packed_folder, SHELL, DEBIAN)
    await browser_download.install_browser(full=False, report=lambda _: None)
    async with opened(tmp_path / "home") as session:
        session.bridge.warm()
        await until(lambda: state(session) == "ready", session.bridge.health)
        session.bridge.start("recording", {"url": "http://127.0.0.1:9/"})
        banner = session.window.banner
        await when(lambda: banner.title == "No browser was found")
        assert state(session) == "ready"  # for all other tasks
        assert "Download Chromium…" in buttons(session)


@real
@pytest.mark.own_browser
async def test_a_chosen_program_is_started_and_kept(tmp_path: Path, data: Path) -> None:
    async with without_browser(tmp_path) as session:
        with appearing(QFileDialog) as shown:
            press(session.window.banner, "Choose a browser…")
            dialog = await shown
        dialog.fileSelected.emit(str(DEBIAN))
        dialog.reject()
        await until(lambda: state(session) == "ready", session.bridge.health)
        assert session.window.preferences.get("browser.path", str) == str(DEBIAN)
        assert session.window.banner.title == ""


async def test_a_chosen_file_that_is_no_browser_is_refused(tmp_path: Path, data: Path) -> None:
    other = tmp_path / "no-browser"
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)
    async with without_browser(tmp_path) as session:
        setup_of(session).use(str(other))
        banner = session.window.banner
        await when(lambda: banner.title == "The browser does not start")
        assert "is no Chromium" in banner.accessibleName()
        assert session.window.preferences.get("browser.path", str) == ""
        assert state(session) == "missing"


@real
@pytest.mark.own_browser
async def test_an_installed_chrome_is_offered_where_the_setting_is_wrong(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "_installed", lambda: iter([("Chrome", str(DEBIAN))]))
    async with without_browser(tmp_path, browser_path="/nowhere/chromium") as session:
        await when(lambda: "Use Chrome" in buttons(session))
        press(session.window.banner, "Use Chrome")
        await until(lambda: state(session) == "ready", session.bridge.health)
        assert session.bridge.engine.settings.browser_path == str(DEBIAN)


async def test_a_closed_banner_stays_closed_for_this_session(tmp_path: Path, data: Path) -> None:
    async with without_browser(tmp_path) as session:
        trouble, banner = session.window.trouble, session.window.banner
        banner._close.click()
        trouble.show_health(Health(root="/x", browser="idle"))
        trouble.show_health(Health(root="/x", browser="missing"))
        assert banner.title == ""


async def test_the_settings_lead_to_the_download(tmp_path: Path, server: DownloadServer) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = await dialog_by_act(session.window, "settings", SettingsDialog)
        (part,) = dialog.findChildren(BrowserTest)
        with appearing(Question) as asked:
            press(part, "Download Chromium…")
            question = await asked
        press(question, "Not now")
        assert not server.asked
