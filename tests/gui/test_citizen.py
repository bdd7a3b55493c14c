"""A window as a good citizen: how it is left, its tray, pop-ups on a real bus, and no sleep."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QProcess, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QPushButton, QSystemTrayIcon

from engine.model.records import Health
from fixtures.site.site import Site
from gui.desktop import keep_awake
from gui.desktop.bus import SessionBus
from gui.desktop.integration import DesktopIntegration
from gui.desktop.keep_awake import KeepAwake, keeper_for
from gui.desktop.notifications import News, Popup
from gui.desktop.tray_presence import Popups
from gui.startup.session import Session
from tests.gui.desktop_services import Desktop, a_bus, needs_bus
from tests.gui.live_tasks import running
from tests.gui.windows import WAIT_S, dialog_of, heard, opened, press, until

ROOT = Path(__file__).resolve().parents[2]
POWER = "org.freedesktop.PowerManagement"
NOTES = "org.freedesktop.Notifications"


def citizen(session: Session) -> DesktopIntegration:
    found = session.window.findChild(DesktopIntegration)
    assert found is not None
    return found


@pytest.fixture
def tray_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A desktop with a tray: the invisible screen of tests has none."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    monkeypatch.setattr(QSystemTrayIcon, "show", lambda self: None)


def choices(session: Session) -> list[str]:
    return [button.text() for button in dialog_of(session).findChildren(QPushButton)]


async def test_without_a_tray_nobody_is_offered_to_hide_in_it(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        session.window.acts["quit"].trigger()
        finish, *others = choices(session)
        assert others == ["Cancel tasks and quit", "Don’t quit"]
        assert finish == "Finish them, then quit"


@pytest.mark.usefixtures("tray_there")
async def test_work_goes_on_in_the_tray_and_the_window_comes_back(home: Path, site: Site) -> None:
    async with opened(home) as session:
        tray = citizen(session).presence.tray
        tray.show()
        await running(session, f"{site.url}/hang")
        session.window.close()
        press(dialog_of(session), "Keep running in background")
        assert not session.window.isVisible()
        assert session.window.memory.flag("told-tray", False)  # it was said where it went
        assert len(session.bridge.own_tasks) == 1
        session.called({"raise": True})  # a second start always is a way back
        assert session.window.isVisible()


@pytest.mark.usefixtures("tray_there")
async def test_what_is_chosen_for_every_time_is_not_asked_again(home: Path, site: Site) -> None:
    async with opened(home) as session:
        citizen(session).presence.tray.show()
        await running(session, f"{site.url}/hang")
        session.window.close()
        (always,) = dialog_of(session).findChildren(QCheckBox)
        always.setChecked(True)
        press(dialog_of(session), "Keep running in background")
        session.window.show()
        session.window.acts["quit"].trigger()
        assert not session.window.isVisible()
        assert session.window.desk.preferences.get("desktop.quit_with_tasks", str) == "keep"


async def test_enter_and_escape_never_end_work(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        leaving = asyncio.ensure_future(session.ended())
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
            session.window.close()
            QTest.keyClick(dialog_of(session), key)
            await asyncio.sleep(0)
            assert not leaving.done()
        leaving.cancel()


async def test_a_session_that_ends_asks_nothing(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        leaving = asyncio.ensure_future(session.ended())
        session.window.close()
        dialog_of(session)
        session.leaving.end_session()
        session.leaving.obey()
        assert await leaving is None


async def test_the_end_of_the_session_ends_the_window(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        leaving = asyncio.ensure_future(session.ended())
        session.leaving.end_session()
        session.leaving.obey()
        assert await leaving is None


async def test_quit_from_the_dock_still_asks_for_running_work(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        session.leaving.obey()
        assert "1 task of this window" in dialog_of(session).accessibleName()
        press(dialog_of(session), "Don’t quit")


async def test_a_tray_that_goes_away_gives_the_window_back(
    home: Path, monkeypatch: pytest.MonkeyPatch, tray_there: None
) -> None:
    async with opened(home) as session:
        tray = citizen(session).presence.tray
        tray.show()
        assert tray.hide_window()
        monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: False))
        back = heard(tray.came_back)
        tray._looking.setInterval(1)
        await back
        assert session.window.isVisible()
        assert not tray.hide_window()


@pytest.mark.usefixtures("tray_there")
async def test_the_sign_says_how_much_runs_and_needs_a_person(home: Path) -> None:
    async with opened(home) as session:
        tray = citizen(session).presence.tray
        tray.show()
        session.bridge.health.emit(Health(root="/r", running=3))
        session.window.model.counts_changed.emit({"attention": 2})
        assert tray.words.endswith("3 running here\n2 need attention")


@asynccontextmanager
async def a_desktop(folder: Path, session: Session, *names: str) -> AsyncIterator[tuple]:
    """A bus with a desktop on it, and the window's line to it."""
    async with a_bus(folder) as address, Desktop.on(address, *names) as desktop:
        line = SessionBus(session.bridge.spawn, session.window, address)
        try:
            yield desktop, line
        finally:
            line.close()


@needs_bus
async def test_a_click_on_a_notification_selects_its_tasks(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session, a_desktop(tmp_path, session, NOTES) as (desktop, line):
        desktop.answers["GetCapabilities"] = lambda _: ("as", (["body", "body-markup"],))
        desktop.answers["Notify"] = lambda _: ("u", (7,))
        popups = Popups(line, lambda: None, session.window)
        clicked = heard(popups.clicked)
        popups.show(Popup("1 & <b>2</b>", "<img src='file:///x'> & more", ("a", "b"), urgent=True))
        call = await desktop.called("Notify")
        name, replaces, _, title, body, actions, hints, _ = call.body
        assert (call.signature, replaces) == ("susssasa{sv}i", 0)
        assert (name, title) == (QGuiApplication.applicationDisplayName(), "1 & <b>2</b>")
        assert body == "&lt;img src='file:///x'&gt; &amp; more"
        assert actions == ["default", "Show"]
        assert (hints["urgency"].value, hints["suppress-sound"].value) == (2, True)
        await until_shown(popups, 7)
        desktop.answers["Notify"] = lambda _: ("u", (9,))
        popups.show(Popup("calm", sound=True))
        calm = (await desktop.called("Notify", 2)).body[6]
        assert (calm["urgency"].value, calm["suppress-sound"].value) == (1, False)
        await desktop.ring(NOTES, "ActivationToken", "us", 7, "leave")
        await desktop.ring(NOTES, "ActionInvoked", "us", 8, "default")  # another program's
        await desktop.ring(NOTES, "ActionInvoked", "us", 7, "default")
        assert await clicked == (("a", "b"), "leave")


async def test_a_desktop_without_notices_shows_them_beside_the_tray(
    home: Path, monkeypatch: pytest.MonkeyPatch, tray_there: None
) -> None:
    shown: list[tuple[object, ...]] = []
    monkeypatch.setattr(QSystemTrayIcon, "supportsMessages", staticmethod(lambda: True))
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _, *said: shown.append(said[:3]))
    async with opened(home) as session:
        presence = citizen(session).presence
        presence.tray.show()
        news = session.window.findChild(News)
        assert news is not None
        signs = QSystemTrayIcon.MessageIcon
        for popup in (Popup("1 failed", "<b>x</b>", ("a",), urgent=True), Popup("1 completed")):
            news.told.emit(popup)
        async with asyncio.timeout(WAIT_S):
            while len(shown) < 2:
                await asyncio.sleep(0)
        assert shown == [
            ("1 failed", "<b>x</b>", signs.Warning),
            ("1 completed", "", signs.Information),
        ]


def tell_nothing(session: Session) -> None:
    """Keep back the engine's own health: that nothing runs would end what a test holds."""
    session.bridge.show_health = lambda: None  # type: ignore[method-assign]  # of this window


async def until_shown(popups: Popups, number: int) -> None:
    while number not in popups._shown:
        await asyncio.sleep(0)


@needs_bus
async def test_the_machine_is_kept_awake_while_tasks_run(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session, a_desktop(tmp_path, session, POWER) as (desktop, line):
        desktop.answers["Inhibit"] = lambda _: ("u", (42,))
        desktop.answers["UnInhibit"] = lambda _: ("", ())
        tell_nothing(session)
        awake = KeepAwake(session.window.context, keeper_for("linux", line))
        awake._linger.setInterval(1)
        session.bridge.health.emit(Health(root="/r", queued=1))
        session.bridge.health.emit(Health(root="/r", running=1))
        assert (await desktop.called("Inhibit")).body[1] == "Tasks are running"
        session.bridge.health.emit(Health(root="/r"))
        assert (await desktop.called("UnInhibit")).body == [42]
        assert [one.member for one in desktop.calls] == ["Inhibit", "UnInhibit"]
        session.window.desk.preferences.set("desktop.keep_awake", False)
        session.bridge.health.emit(Health(root="/r", running=1))
        assert not awake.held


@needs_bus
async def test_who_holds_no_sleep_off_is_not_told_to_let_it_go(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session, a_desktop(tmp_path, session, POWER) as (desktop, line):
        desktop.answers["Inhibit"] = lambda _: ("u", (42,))
        desktop.answers["UnInhibit"] = lambda _: ("", ())
        keeper = keeper_for("linux", line)
        keeper.release()
        await asyncio.sleep(0)  # it looks, and has nothing to do
        for _ in range(3):
            keeper.hold("Tasks are running")
        assert (await desktop.called("Inhibit")).body[1] == "Tasks are running"
        keeper.release()
        await desktop.called("UnInhibit")
        assert [one.member for one in desktop.calls] == ["Inhibit", "UnInhibit"]


@needs_bus
async def test_gnomes_inhibitor_is_the_fallback(home: Path, tmp_path: Path) -> None:
    gnome = "org.gnome.SessionManager"
    async with opened(home) as session, a_desktop(tmp_path, session, gnome) as (desktop, line):
        desktop.answers["Inhibit"] = lambda _: ("u", (1,))
        tell_nothing(session)
        KeepAwake(session.window.context, keeper_for("linux", line))
        session.bridge.health.emit(Health(root="/r", running=1))
        call = await desktop.called("Inhibit")
        assert (call.interface, call.signature, call.body[3]) == (gnome, "susu", 4)


@pytest.mark.skipif(sys.platform == "win32", reason="imitates macOS with a POSIX program")
async def test_on_macos_a_new_request_right_after_the_release_keeps_the_machine_awake(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, started = tmp_path / "caffeinate", tmp_path / "started"
    sleeper.write_text(f'#!/bin/sh\necho "$*" >>"{started}"\nexec sleep 60\n', "utf-8")
    sleeper.chmod(0o755)
    monkeypatch.setattr(keep_awake, "CAFFEINATE", str(sleeper))
    async with opened(home) as session:
        line = SessionBus(session.bridge.spawn, session.window, "unix:path=/nowhere/bus")
        keeper = keeper_for("darwin", line)
        keeper.hold("Tasks are running")
        (first,) = line.findChildren(QProcess)
        assert first.waitForStarted()
        keeper.release()
        keeper.hold("Tasks are running")
        second = next(one for one in line.findChildren(QProcess) if one is not first)
        assert second.waitForStarted()
        assert second.arguments() == ["-i", "-w", str(os.getpid())]
        keeper.release()
        assert second.waitForFinished()
        assert first.waitForFinished() or first.state() == QProcess.ProcessState.NotRunning


async def test_without_a_bus_nothing_is_said_and_everything_works(home: Path) -> None:
    async with opened(home) as session:
        line = SessionBus(session.bridge.spawn, session.window, "unix:path=/nowhere/bus")
        Popups(line, lambda: None, session.window).show(Popup("x"))
        awake = KeepAwake(session.window.context, keeper_for("linux", line))
        session.bridge.health.emit(Health(root="/r", running=1))
        assert awake.held
        await until(lambda: True, session.bridge.health)
        assert session.window.banner.title == ""


QUITTER = """
import sys
from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication
import gui.app
import gui.window.main_window
made = gui.window.main_window.MainWindow.__init__
def quit_soon():
    app = QApplication.instance()
    QTimer.singleShot(1500, lambda: QApplication.postEvent(app, QEvent(QEvent.Type.Quit)))
def init(window, *args):
    made(window, *args)
    window.painted.connect(quit_soon)
gui.window.main_window.MainWindow.__init__ = init
sys.exit(gui.app.main(["--home", sys.argv[1]]))
"""


# Told before the first turn of its loop: Qt's own loop would drop that.
EARLY_QUITTER = """
import sys
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
import gui.app
make = gui.app.make_application
def make_and_quit():
    app = make()
    QApplication.postEvent(app, QEvent(QEvent.Type.Quit))
    return app
gui.app.make_application = make_and_quit
sys.exit(gui.app.main(["--home", sys.argv[1]]))
"""


@pytest.mark.parametrize("program", [QUITTER, EARLY_QUITTER], ids=["painted", "no-loop-yet"])
def test_a_program_that_the_desktop_tells_to_quit_ends_in_order(
    tmp_path: Path, program: str
) -> None:
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "home")],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    runners = tmp_path / "home" / "tasks" / ".runners"
    assert not runners.is_dir() or os.listdir(runners) == []
