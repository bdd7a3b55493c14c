"""A real window on a real engine, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QObject, SignalInstance
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QWidget

from engine.model.config import Settings
from gui.commands.deleting import Deleting
from gui.context.preferences import Memory
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from gui.window.main_window import MainWindow

WAIT_S = 120.0  # a browser may have to start first, on a crowded machine
FAR_MS = 10 * 60_000
T = TypeVar("T", bound=QDialog)


@asynccontextmanager
async def opened(home: Path, *, wait: str = "loaded", **more: Any) -> AsyncIterator[Session]:
    """A session on `home`, once its list is complete (or its `unusable` was told)."""
    settings = replace(Settings.at(home=home), **more)
    session = Session(settings, Memory(home.parent / "window.ini"), CrashHandler())
    source = session.window.bridge.loaded if wait == "loaded" else session.bridge.unusable
    told = heard(source)
    session.open()
    try:
        async with asyncio.timeout(WAIT_S):
            await told
        yield session
    finally:
        session.window.remember()
        await session.close()


def heard(signal: SignalInstance) -> asyncio.Future[Any]:
    """A future for the next time that `signal` is emitted; its result are the arguments."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def tell(*values: Any) -> None:
        signal.disconnect(tell)
        if not future.done():
            future.set_result(values)

    signal.connect(tell)
    return future


async def until(condition: Callable[[], Any], signal: SignalInstance) -> Any:
    """Wait until `condition` holds, looking again whenever `signal` is emitted."""
    async with asyncio.timeout(WAIT_S):
        while not (found := condition()):
            await heard(signal)
    return found


def patient(session: Session) -> None:
    """Let nothing that is offered, told or waited for some seconds run out during a test."""
    window = session.window
    timers = [one._over for one in window.findChildren(Deleting)]
    timers += [window.requests._undo_timer, window.reports._over, window.arrivals._patience]
    for timer in timers:
        timer.setInterval(FAR_MS)


def dialog_of(session: Session) -> QDialog:
    """The dialog that stands before the window now."""
    active = [
        dialog
        for dialog in session.window.findChildren(QDialog)
        if dialog.isVisible() and dialog.isModal()
    ]
    assert len(active) == 1, active
    return active[0]


class _Shown(QObject):
    """Tells of the next widget that appears and fits."""

    def __init__(self, fits: Callable[[QObject], bool], told: asyncio.Future[Any]) -> None:
        super().__init__()
        self._fits, self._told = fits, told
        app().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        appears = event.type() == QEvent.Type.Show and self._fits(watched)
        if appears and not self._told.done():
            self._told.set_result(watched)
        return False


@contextmanager
def appearing(kind: type[T]) -> Iterator[asyncio.Future[T]]:
    """A future for the dialog of this kind that what is done inside brings up."""
    told: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    watch = _Shown(lambda one: isinstance(one, kind), told)
    try:
        yield told
    finally:
        app().removeEventFilter(watch)


async def dialog_by_act(window: MainWindow, act: str, kind: type[T]) -> T:
    """Trigger an action of the window, and return the dialog of this kind that it opens."""
    with appearing(kind) as told:
        window.acts[act].trigger()
        return await told


@contextmanager
def showing(widget: QWidget) -> Iterator[asyncio.Future[Any]]:
    """A future for the moment at which this widget appears."""
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    watch = _Shown(lambda one: one is widget, told)
    try:
        yield told
    finally:
        app().removeEventFilter(watch)


def press(dialog: QWidget, words: str) -> None:
    """Click the button that says `words`, perhaps with the seconds that are left."""
    buttons = dialog.findChildren(QPushButton)
    next(one for one in buttons if words in (one.text(), one.accessibleName())).click()


def app() -> QApplication:
    found = QApplication.instance()
    assert isinstance(found, QApplication)
    return found
