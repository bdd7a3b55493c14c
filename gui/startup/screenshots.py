"""Screenshots of the window (`--shot`) and its self-test (`--self-test`)."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower
from engine.model.records import TERMINAL, Status
from gui.desktop.launch_request import Wish
from gui.startup.crash_handler import Alarm
from gui.startup.screenshot_stages import STAGES, play
from gui.startup.session import Session
from gui.state.window_state import Memory
from gui.style.theme import Theme, apply_theme

SCENES = tuple(STAGES)
LOAD_S = 120.0
QUICK = frozenset({"main", "dark", "narrow", "empty", "start"})
READ_S = 2.0  # Time for reading a file or making a report
SETTLE_S = 0.4  # Two frames of the list at 40 ms, and the first events in the details
SELF_TEST_PAGES = 5
SELF_TEST_S = 200.0  # Generous, because a slow machine is no failure
DIM = QColor(0, 0, 0, 110)


async def shoot(
    app: QApplication, settings: Settings, file: Path, scene: str, beside: Sequence[Path] = ()
) -> tuple[int, str]:
    """Save a screenshot of the loaded window, with further ledgers `beside`.

    Returns the exit code, with an error message on failure.
    """
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "window.ini")
        apply_theme(app, Theme.DARK if scene == "dark" else Theme.LIGHT)
        if scene == "empty":
            settings = Settings.at(home=Path(folder) / "home")
            settings.root.mkdir(parents=True)
        session = Session(settings, memory, Alarm(), accepts=False)
        loaded = asyncio.Event()
        session.bridge.loaded.connect(loaded.set)
        session.bridge.unusable.connect(lambda _: loaded.set())
        session.open(Wish(beside=tuple(map(str, beside))))
        try:
            async with asyncio.timeout(LOAD_S):
                await loaded.wait()
                await _read_beside(session)
            play(session.window, scene)
            await asyncio.sleep(SETTLE_S if scene in QUICK else READ_S)
            saved = picture(session, _in_front(session)).save(str(file), "PNG")
        except TimeoutError:
            return 1, f"The ledger {settings.root} could not be read within {LOAD_S:.0f} s."
        finally:
            await session.close()
    return (0, "") if saved else (1, f"The picture cannot be written to {file}.")


async def _read_beside(session: Session) -> None:
    """Wait until each further ledger has reported tasks or a reason."""
    told = asyncio.Event()
    session.bridge.ledgers_changed.connect(told.set)
    while any(not one.tasks and not one.reason for one in session.bridge.ledgers):
        told.clear()
        await told.wait()


def _in_front(session: Session) -> QWidget | None:
    """Return the dialog or second window in front of the window."""
    active = QApplication.activeModalWidget()
    if active is not None:
        return active
    others = [one for one in QApplication.topLevelWidgets() if one.isVisible() and one.isWindow()]
    named = [one for one in others if one is not session.window and one.windowTitle()]
    return named[-1] if named else None


def picture(session: Session, dialog: QWidget | None) -> QPixmap:
    """Return a screenshot of the window with `dialog` in front."""
    shot = session.window.grab()
    if dialog is None:
        return shot
    front = dialog.grab()
    painter = QPainter(shot)
    painter.fillRect(shot.rect(), DIM)
    size, part = shot.deviceIndependentSize(), front.deviceIndependentSize()
    at = QPoint(
        round((size.width() - part.width()) / 2), round((size.height() - part.height()) / 2)
    )
    painter.fillRect(QRectF(at, part).adjusted(-1, -1, 1, 1), QColor(0, 0, 0, 140))
    painter.drawPixmap(at, front)
    painter.end()
    return shot


async def self_test(app: QApplication, browser_path: str | None) -> tuple[int, str]:
    """Crawl the sample site with the window's engine; return exit code and message."""
    from dataclasses import replace

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="openchrome-self-test-") as folder:
        home = Path(folder) / "home"
        settings = replace(Settings.at(home=home), browser_path=browser_path)
        session = Session(settings, Memory(Path(folder) / "window.ini"), Alarm())
        session.open()
        try:
            async with asyncio.timeout(SELF_TEST_S):
                problem = await _crawl_the_sample(session)
        except EngineError as error:
            problem = f"{error} {error.advice}".strip()
        except TimeoutError:
            problem = f"it was not done within {SELF_TEST_S:.0f} s"
        finally:
            browser = session.bridge.look_at_health().browser_name
            await session.close()
    took_s = time.monotonic() - began
    if problem:
        return 1, f"The self-test failed: {problem}"
    return 0, f"The self-test passed: {SELF_TEST_PAGES} pages with {browser} in {took_s:.1f} s."


async def _crawl_the_sample(session: Session) -> str:
    """Return the problem, or an empty string if crawl, ledger and table agree."""
    from engine.sample.site import Site

    opened = asyncio.Event()
    session.bridge.opened.connect(opened.set)
    await opened.wait()
    engine, model = session.bridge.engine, session.window.model
    changed = asyncio.Event()
    session.bridge.batch.connect(lambda _: changed.set())
    with Site(SELF_TEST_PAGES * 2) as site:
        args = {"url": site.url, "max_pages": SELF_TEST_PAGES, "delay_ms": 0}
        record = await engine.start(link_follower(), args)
        record = await engine.wait(record.task_id, int(SELF_TEST_S * 1000))
    if record.status != Status.COMPLETED:
        why = record.error.message if record.error else ""
        return f"the crawl ended as {record.status}. {why}".strip()
    while True:
        view = model.view_of(record.task_id)
        if view is not None and getattr(view.entry, "status", "") in TERMINAL:
            break
        changed.clear()
        await changed.wait()
    if view.units is None or view.units.done != SELF_TEST_PAGES:
        return f"the table shows {view.units}, not {SELF_TEST_PAGES} pages"
    return ""
