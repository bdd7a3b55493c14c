"""Window tests: each gets a new `Loop`, and fails for leftovers and stalls."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine.service.router.ledger_paths import Beside
from gui.context.preferences import Preferences
from gui.details.panel import Details
from gui.i18n.language import current_language, speak
from gui.start.presets import Presets
from gui.start.start_dialog import StartDialog
from gui.startup.crash_handler import is_a_pipes_end
from gui.startup.loop import Loop
from tests.gui.freezes import FreezeWatch
from tests.gui.side_ledgers import LAPTOP, a_ledger
from tests.gui.start_dialogs import judged
from tests.support.far_limits import be_patient

HERE = Path(__file__).resolve().parent
LIMIT_S = 200.0  # catches what hangs; a crowded machine may take its time
SETTLE_TURNS = 10  # turns of the loop in which a task that was just cancelled may end


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path) -> None:
    """No test reads or writes the settings of another one, let alone the user's."""
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    for form in (QSettings.Format.IniFormat, QSettings.Format.NativeFormat):  # Qt's own dialogs
        QSettings.setPath(form, QSettings.Scope.UserScope, str(tmp_path / "ini"))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who closes, is asked over a bus or reads a folder is not given up for a moment of rest."""
    monkeypatch.setattr("gui.startup.session.PATIENCE_S", 120.0)
    monkeypatch.setattr("gui.engine_link.bridge.CLOSE_S", 60.0)  # for tasks to end in order
    monkeypatch.setattr("gui.desktop.bus.CONNECT_S", 60.0)
    monkeypatch.setattr("gui.desktop.bus.CALL_S", 60.0)
    monkeypatch.setattr("gui.desktop.bus.CLOSE_S", 60.0)  # else its line is left behind
    monkeypatch.setattr("gui.engine_link.bridge.SILENT_S", 60.0)
    monkeypatch.setattr("engine.ledger.watch.ANSWER_S", 60.0)


@pytest.fixture
def patient_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that starts late, because the machine rested a moment, has not failed."""
    be_patient(monkeypatch)


@pytest.fixture(autouse=True)
def nothing_left_to_the_next() -> Iterator[None]:
    """What a test held, copied or showed would be taken for the next one's own."""
    yield
    if QApplication.instance() is None:
        return
    left = [f"{one!r} is shown" for one in QApplication.topLevelWidgets() if _is_left(one)]
    # A button still held would make every later resize look like a drag.
    held = QApplication.mouseButtons()
    if held:
        left.append(f"{held} is pressed")
    if QApplication.overrideCursor() is not None:
        left.append("the mouse pointer of the whole program")
    if current_language() != "en":
        left.append(f"the language {current_language()}")
        speak(cast(QApplication, QApplication.instance()), "en")
    _let_go_of_everything()
    assert not left, f"the test left behind: {left}"


def _is_left(window: QWidget) -> bool:
    return window.isVisible() and window.windowType() != Qt.WindowType.ToolTip


def _let_go_of_everything() -> None:
    """So that the test that left it is the only one that fails for it."""
    for window in filter(_is_left, QApplication.topLevelWidgets()):
        window.close()
    while QApplication.overrideCursor() is not None:
        QApplication.restoreOverrideCursor()
    nowhere = QWidget()
    # No fault of the test: a dialog that closed while a key was down never hears of its release.
    QTest.keyRelease(nowhere, Qt.Key.Key_Shift)
    for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
        if QApplication.mouseButtons() & button:
            QTest.mouseRelease(nowhere, button)
    QApplication.clipboard().clear()


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """As the program has it: no window's end, of this test or of one before, ends a loop."""
    qapp.setQuitOnLastWindowClosed(False)
    return qapp


@pytest.fixture
def qt_loop(qapp: QApplication) -> Iterator[Loop]:
    """A fresh loop on the one application; errors that only the loop saw fail the test."""
    seen: list[dict[str, Any]] = []
    loop = Loop(qapp)
    loop.set_exception_handler(
        lambda _, context: None if is_a_pipes_end(context) else seen.append(context)
    )
    asyncio.set_event_loop(loop)
    watch = FreezeWatch()
    gc.freeze()  # what all other tests left must not be looked through in the middle of this one
    watch.start()
    yield loop
    loop.run_until_complete(_settle())
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    frozen = watch.stop()
    loop.run_until_complete(loop.shutdown_asyncgens())
    gc.unfreeze()
    gc.collect(1)  # a task whose error nobody took speaks up when it is collected
    loop.close()
    asyncio.set_event_loop(None)
    assert not left, f"the test left tasks running: {left}"
    assert not seen, f"the loop's exception handler was told: {seen}"
    assert not frozen, frozen


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    """The whole program in German until the test ends."""
    speak(qapp, "de")
    yield
    speak(qapp, "en")


@pytest.fixture
def details(qtbot: QtBot) -> Details:
    """The details pane alone, as large as it is in a usual window."""
    details = Details()
    qtbot.addWidget(details)
    details.resize(900, 320)
    details.show()
    return details


def pytest_configure(config: pytest.Config) -> None:
    # said by the invisible screen for every window with a smallest size; nothing is wrong
    config.addinivalue_line("qt_log_ignore", "This plugin does not support propagateSizeHints")
    config.addinivalue_line("qt_log_ignore", "This plugin does not support raise")
    config.addinivalue_line("qt_log_ignore", "This plugin does not support grabbing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not isinstance(item, pytest.Function) or not item.path.is_relative_to(HERE):
            continue
        if inspect.iscoroutinefunction(item.obj) and "qt_loop" not in item.fixturenames:
            item.fixturenames.insert(0, "qt_loop")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test on its Qt loop."""
    here = pyfuncitem.path.is_relative_to(HERE)
    if not here or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    loop = pyfuncitem.funcargs["qt_loop"]
    assert isinstance(loop, Loop)
    names = pyfuncitem._fixtureinfo.argnames
    test = functools.partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    loop.run_until_complete(_bounded(test))
    return True


async def _settle() -> None:
    """Let what was just called off end; what still runs after these turns was left behind."""
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)


async def _bounded(test: Any) -> None:
    async with asyncio.timeout(LIMIT_S):
        await test()


@pytest.fixture
def dialog(qapp: QApplication, qtbot: QtBot) -> Iterator[StartDialog]:
    """A start dialog without a window, and with an empty clipboard."""
    QGuiApplication.clipboard().clear()
    dialog = StartDialog(judged, Presets(Preferences()))
    # A form that holds invalid JSON asks before it is closed.
    qtbot.addWidget(dialog, before_close_func=lambda _: dialog.done(0))
    dialog.show()
    yield dialog
    dialog.done(0)


@pytest.fixture
def laptop(tmp_path: Path) -> Beside:
    """A second ledger with two tasks."""
    return Beside(a_ledger(tmp_path / LAPTOP, 1, 3), LAPTOP)
