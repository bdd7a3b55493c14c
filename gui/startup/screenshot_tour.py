"""Screenshots of the window (`--shot`) and its self-test (`--self-test`)."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower, traits_of
from engine.model.records import TERMINAL, Status, TaskView
from engine.model.status import Standing, standing
from gui.context.preferences import Memory
from gui.desktop.launch_request import Wish
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from gui.style.theme import Theme, apply_theme

LOAD_S = 120.0
QUICK = frozenset({"main", "dark", "narrow", "empty", "start"})
READ_S = 2.0  # Time for reading a file or making a report
SETTLE_S = 0.4  # Two frames of the list at 40 ms, and the first events in the details
SELF_TEST_PAGES = 5
SELF_TEST_S = 200.0  # Generous, because a slow machine is no failure
DIM = QColor(0, 0, 0, 110)
Play = Callable[[Session], object]
NARROW = (900, 560)


def play(session: Session, scene: str) -> None:
    """Bring the window into the state of `scene`."""
    STAGES[scene](session)


def _tasks(session: Session) -> Iterable[TaskView]:
    ids = (session.window.model.id_at(row) for row in range(session.window.model.rowCount()))
    views = (session.window.model.view_of(task_id) for task_id in ids)
    return (view for view in views if view is not None)


def _choose(session: Session, *wanted: Callable[[TaskView], bool]) -> None:
    """Select the first task that matches one of `wanted`, in their order."""
    views = list(_tasks(session))
    found = next((view for one in wanted for view in views if one(view)), None)
    ids = [found.task_id] if found is not None else [view.task_id for view in views[:1]]
    session.window.table.select_ids(ids)


def _units(noun: str) -> Callable[[TaskView], bool]:
    return lambda view: traits_of(getattr(view.entry, "kind", "")).unit_noun == noun


def _is(state: Standing) -> Callable[[TaskView], bool]:
    return lambda view: standing(view) is state


def _has_contract(view: TaskView) -> bool:
    engine = getattr(view.entry, "engine", None)
    return _is(Standing.RUNNING)(view) and getattr(engine, "contract_id", None) is not None


def _main(session: Session) -> None:
    _choose(session, _is(Standing.RUNNING))


def _tab(key: str, *wanted: Callable[[TaskView], bool]) -> Play:
    def show(session: Session) -> None:
        _choose(session, *wanted)
        session.window.details.restore_state(key)

    return show


def _act(key: str, *wanted: Callable[[TaskView], bool]) -> Play:
    def show(session: Session) -> None:
        _choose(session, *wanted)
        session.window.acts[key].trigger()

    return show


def _ledgers(session: Session) -> None:
    _choose(session, lambda view: bool(view.ledger))


def _filter(session: Session) -> None:
    session.window.filter_bar.set_text("(status:completed OR status:failed) kind:crawl took:<1m")
    _choose(session)


def _many(session: Session) -> None:
    session.window.table.select_ids([view.task_id for view in list(_tasks(session))[:5]])


def _cancel(session: Session) -> None:
    session.window.acts["all"].trigger()
    session.window.acts["cancel"].trigger()


def _narrow(session: Session) -> None:
    session.window.resize(*NARROW)
    _main(session)


def _start(session: Session) -> None:
    session.window.requests.new_task({"url": "https://example.com/docs"})


def _is_ended_crawl(view: TaskView) -> bool:
    return _is(Standing.COMPLETED)(view) and traits_of(getattr(view.entry, "kind", "")).crawls


_ENDED = (_is(Standing.COMPLETED), _is(Standing.FAILED))
STAGES: dict[str, Play] = {
    "main": _main,
    "dark": _main,
    "narrow": _narrow,
    "empty": lambda _: None,
    "details": _tab("overview", _has_contract, _units("calls")),
    "events": _tab("events", *_ENDED),
    "timeline": _tab("timeline", *_ENDED),
    "items": _tab("items", _is(Standing.FAILED)),
    "commands": _tab("commands", _units("commands")),
    "result": _tab("result", *_ENDED),
    "screenshots": _tab("screenshots", _units("parts"), _units("commands")),
    "raw": _tab("raw", *_ENDED),
    "filter": _filter,
    "several": _many,
    "ledgers": _ledgers,
    "start": _start,
    "cancel": _cancel,
    "force": _act("force", _has_contract),
    "rerun": _act("rerun_many"),
    "viewer": _act("open_result", _is_ended_crawl, *_ENDED),
    "palette": _act("palette"),
    "settings": _act("settings"),
    "shortcuts": _act("shortcuts"),
    "doctor": _act("doctor"),
    "statistics": _act("statistics"),
    "help": _act("help"),
}
SCENES = tuple(STAGES)


async def shoot(
    app: QApplication, settings: Settings, file: Path, scene: str, beside: Sequence[Path] = ()
) -> tuple[int, str]:
    """Save a screenshot of the loaded window, with further ledgers `beside`.

    Returns the exit code, with an error message on failure.
    """
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "window.ini")
        apply_theme(app, Theme.DARK if scene == "dark" else Theme.LIGHT)
        if scene == "empty" or _is_first_start(settings):
            settings = Settings.at(home=Path(folder) / "home")
            settings.root.mkdir(parents=True)
        session = Session(settings, memory, CrashHandler(), accepts=False)
        loaded = asyncio.Event()
        session.bridge.loaded.connect(loaded.set)
        session.bridge.unusable.connect(lambda _: loaded.set())
        session.open(Wish(beside=tuple(map(str, beside))))
        try:
            async with asyncio.timeout(LOAD_S):
                await loaded.wait()
                await _read_beside(session)
            play(session, scene)
            await asyncio.sleep(SETTLE_S if scene in QUICK else READ_S)
            saved = picture(session, _in_front(session)).save(str(file), "PNG")
        except TimeoutError:
            return 1, f"The ledger {settings.root} could not be read within {LOAD_S:.0f} s."
        finally:
            await session.close()
    return (0, "") if saved else (1, f"The picture cannot be written to {file}.")


def _is_first_start(settings: Settings) -> bool:
    """Return whether the window would create the ledger, which a screenshot must not do."""
    return not settings.root.exists() and not settings.home.exists()


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
        session = Session(settings, Memory(Path(folder) / "window.ini"), CrashHandler())
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
        record = await engine.requests.start(link_follower(), args)
        record = await engine.tasks.wait(record.task_id, int(SELF_TEST_S * 1000))
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
