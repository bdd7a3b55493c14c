"""Updates: the question, the daily check, the banner, and the check by hand in About."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QCheckBox, QLabel, QWidget

from engine.model.build_info import BuildInfo
from gui.commands.help_dialog import About
from gui.commands.updates import (
    ASKED,
    CHECKED_AT,
    DAY_S,
    KEY,
    SKIPPED,
    STARTED,
    CheckNow,
    UpdateNotices,
)
from gui.context.preferences import Memory
from gui.settings.settings_dialog import SettingsDialog
from tests.gui.windows import opened, press
from tests.support.engines import until
from tests.support.far_limits import FAR_S
from tests.support.update_server import PAGE, certificate, update_server


@pytest.fixture(scope="module")
def certificate_file(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(certificate_file, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_file))
    monkeypatch.setattr("engine.service.update_check.LIMIT_S", FAR_S)
    with update_server(certificate_file) as seen:
        yield seen


@pytest.fixture
def build(server, monkeypatch):
    """A function that makes this program one of a build."""

    def pretend(**facts):
        found = BuildInfo(
            **{"version": "0.1.0", "channel": "zip", "updates_url": server.url} | facts
        )
        for module in (
            "engine.model.build_info",
            "gui.commands.help_dialog",
            "gui.commands.updates",
            "gui.settings.setting_pages",
            "gui.startup.window_builder",
        ):
            monkeypatch.setattr(f"{module}.build_info", lambda: found)

    pretend()
    return pretend


@pytest.fixture
def pages_opened(monkeypatch):
    pages = []

    def open_url(url):
        pages.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    return pages


def memory_of(tmp_path, **texts):
    memory = Memory(tmp_path / "window.ini")
    for key, value in texts.items():
        memory.keep_text(key, value)
    memory.save()
    return memory


def started_before(tmp_path):
    memory = memory_of(tmp_path)
    memory.keep_flag(STARTED, True)
    memory.save()


def notices(session) -> UpdateNotices:
    (found,) = session.window.findChildren(UpdateNotices)
    return found


def title(session) -> str:
    return notices(session).bar.title


async def test_the_first_start_asks_nothing_and_sends_nothing(tmp_path, build, server):
    async with opened(tmp_path / "home") as session:
        assert title(session) == ""
        assert session.window.memory.flag(STARTED, False)
    assert server.requests == []


async def test_the_second_start_asks_and_sends_nothing_before_the_answer(tmp_path, build, server):
    started_before(tmp_path)
    async with opened(tmp_path / "home") as session:
        assert title(session) == "Check for new versions once a day?"
        assert server.requests == []
        said = " ".join(one.text() for one in notices(session).bar.findChildren(QLabel))
        assert f"127.0.0.1:{server.port}" in said


async def test_yes_checks_at_once_and_shows_the_newer_version(
    tmp_path, build, server, pages_opened
):
    started_before(tmp_path)
    async with opened(tmp_path / "home") as session:
        press(notices(session).bar, "Yes")
        await until(lambda: title(session) == "Version 99.1 is available")
        assert session.window.preferences.get(KEY, bool)
        assert len(server.requests) == 1
        press(notices(session).bar, "Open page")
        assert pages_opened == [PAGE]


@pytest.mark.parametrize("answer", ["No", ""])
async def test_no_and_a_closed_question_are_not_asked_again(tmp_path, build, server, answer):
    started_before(tmp_path)
    async with opened(tmp_path / "home") as session:
        if answer:
            press(notices(session).bar, answer)
        else:
            notices(session).bar._close.click()
        assert title(session) == ""
        assert not session.window.preferences.get(KEY, bool)
    async with opened(tmp_path / "home") as session:
        assert title(session) == ""
    assert server.requests == []


async def test_a_question_without_an_answer_is_asked_at_the_next_start(tmp_path, build):
    started_before(tmp_path)
    for _ in range(2):
        async with opened(tmp_path / "home") as session:
            assert title(session) == "Check for new versions once a day?"


async def test_a_check_is_made_once_a_day(tmp_path, build, server):
    memory_of(tmp_path, **{CHECKED_AT: str(int(time.time()) - DAY_S // 2)})
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set(KEY, True)
        notices(session).check_if_due()
        assert server.requests == []
        session.window.memory.keep_text(CHECKED_AT, str(int(time.time()) - DAY_S))
        notices(session).check_if_due()
        notices(session).check_if_due()
        await until(lambda: title(session))
    assert len(server.requests) == 1


@pytest.mark.parametrize("stored", ["", "no number", "99999999999"])
async def test_a_date_that_cannot_be_right_does_not_end_the_checks(tmp_path, build, server, stored):
    memory_of(tmp_path, **{CHECKED_AT: stored})
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set(KEY, True)
        await until(lambda: title(session) == "Version 99.1 is available")


async def test_a_skipped_version_is_not_shown_again(tmp_path, build, server):
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set(KEY, True)
        await until(lambda: title(session))
        press(notices(session).bar, "Skip this version")
        assert title(session) == ""
        assert session.window.memory.text(SKIPPED) == "99.1"
        await check_again(session, server)
        assert title(session) == ""
        server.body = server.body.replace(b"99.1", b"99.2")
        await check_again(session, server)
        await until(lambda: title(session) == "Version 99.2 is available")


async def check_again(session, server):
    """Make the check of the next day, and wait until it has ended."""
    session.window.memory.keep_text(CHECKED_AT, "0")
    number = len(server.requests)
    notices(session).check_if_due()
    await until(lambda: len(server.requests) > number and not running())


def running():
    return [one for one in asyncio.all_tasks() if one.get_name().startswith("check for updates")]


async def test_a_failed_daily_check_says_nothing(tmp_path, build, server, caplog):
    server.status = 500
    with caplog.at_level("INFO"):
        async with opened(tmp_path / "home") as session:
            session.window.preferences.set(KEY, True)
            await until(lambda: "HTTP 500" in caplog.text)
            assert title(session) == ""
            assert session.window.banner.title == ""


async def test_switching_it_off_ends_the_checks(tmp_path, build, server):
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set(KEY, True)
        await until(lambda: title(session))
        session.window.preferences.set(KEY, False)
        assert not notices(session)._timer.isActive()
        session.window.memory.keep_text(CHECKED_AT, "0")


@pytest.mark.parametrize(
    "facts", [{"channel": "deb"}, {"channel": "rpm"}, {"channel": "", "updates_url": ""}]
)
async def test_where_the_package_has_other_updates_none_are_offered(tmp_path, build, server, facts):
    build(**facts)
    started_before(tmp_path)
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set(KEY, True)
        assert session.window.findChildren(UpdateNotices) == []
        session.window.acts["settings"].trigger()
        dialog = session.window.findChildren(SettingsDialog)[-1]
        assert "Check once a day" not in [one.text() for one in dialog.findChildren(QCheckBox)]
        dialog.accept()
        assert about(session).findChildren(CheckNow) == []
        about(session).accept()
    assert server.requests == []


async def test_the_setting_is_on_the_general_page(tmp_path, build, server):
    started_before(tmp_path)
    async with opened(tmp_path / "home") as session:
        session.window.acts["settings"].trigger()
        dialog = session.window.findChildren(SettingsDialog)[-1]
        (box,) = (one for one in dialog.findChildren(QCheckBox) if one.text() == "Check once a day")
        box.click()
        await until(lambda: title(session) == "Version 99.1 is available")
        assert session.window.memory.flag(ASKED, False)
        dialog.accept()


def about(session) -> About:
    shown = [one for one in session.window.findChildren(About) if one.isVisible()]
    if not shown:
        session.window.acts["about"].trigger()
        shown = [one for one in session.window.findChildren(About) if one.isVisible()]
    return shown[-1]


def cut_off(dialog: QWidget) -> list[str]:
    labels = [one for one in dialog.findChildren(QLabel) if one.isVisible() and one.wordWrap()]
    return [one.text() for one in labels if one.height() < one.heightForWidth(one.width())]


def said(widget: QWidget) -> str:
    return "\n".join(one.text() for one in widget.findChildren(QLabel) if not one.isHidden())


async def test_about_checks_at_once_and_opens_the_page(tmp_path, build, server, pages_opened):
    async with opened(tmp_path / "home") as session:
        dialog = about(session)
        press(dialog, "Check for a new version")
        await until(lambda: "Version 99.1 is available" in said(dialog))
        await until(lambda: not cut_off(dialog))
        press(dialog, "Open page")
        assert pages_opened == [PAGE]
        dialog.accept()
    assert len(server.requests) == 1


async def test_about_says_that_there_is_none_or_why_the_check_failed(tmp_path, build, server):
    async with opened(tmp_path / "home") as session:
        dialog = about(session)
        server.body = server.body.replace(b"99.1", b"0.1.0")
        press(dialog, "Check for a new version")
        await until(lambda: "There is no newer version." in said(dialog))
        server.status = 404
        press(dialog, "Check for a new version")
        await until(lambda: "the server answered with HTTP 404" in said(dialog))
        dialog.accept()


async def test_closing_about_ends_a_check_that_gets_no_answer(tmp_path, build, server):
    server.held = threading.Event()
    try:
        async with opened(tmp_path / "home") as session:
            dialog = about(session)
            press(dialog, "Check for a new version")
            await until(lambda: server.requests)
            dialog.accept()
            await until(lambda: not running())
    finally:
        server.held.set()


async def test_about_names_channel_and_commit(tmp_path, build):
    build(commit="0123456789abcdef", channel="appimage")
    async with opened(tmp_path / "home") as session:
        assert "OpenChrome Monitor 0.1.0 (appimage, 0123456789ab)" in said(about(session))
        about(session).accept()
