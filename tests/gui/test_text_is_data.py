"""Foreign text is literal in every widget, tooltip, title and dialog."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QObject, QPoint, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMenu, QToolTip, QWidget

from engine.model.display import display
from engine.model.errors import LedgerUnusable, TaskNotFound
from engine.model.records import Health
from gui.commands.help_dialog import About
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from gui.style.banners import Card
from gui.style.questions import ask_folder, show_folder
from gui.tasks.columns import columns_there
from tests.gui.hostile_texts import MARK, corpus, ledger, paint_canary
from tests.gui.task_views import a_view
from tests.gui.text_walk import Said, said_by, shows_canary
from tests.gui.windows import app, dialog_of, opened, until


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory, qapp_cls: object) -> Path:
    return paint_canary(tmp_path_factory.mktemp("canary"))


@pytest.fixture
def texts(canary: Path) -> dict[str, str]:
    return corpus(canary)


@pytest.fixture
def hostile_home(tmp_path: Path, texts: dict[str, str]) -> Path:
    """A ledger of hostile tasks in a folder with a hostile name."""
    home = tmp_path / f"{MARK} <b>A&B</b> $(touch x) \u202egpj 'q' \"q\" [*] %s"
    ledger(home / "tasks", texts)
    return home


def walked(session: Session, *parts: QWidget) -> list[Said]:
    """All texts of the window and of what stands before it, or of these parts of it; asserts
    that each is harmless."""
    mine = list(parts)
    if not parts:
        mine += [one for one in app().topLevelWidgets() if one is session.window or _is_ours(one)]
    widgets = [part for top in mine for part in (top, *top.findChildren(QWidget))]
    found = [said for said in said_by(widgets) if said.text]
    faults = [fault for said in found for fault in said.faults()]
    assert not faults, "\n".join(faults[:20])
    for top in mine:
        assert not shows_canary(top.grab().toImage()), top
    return found


def _is_ours(widget: QWidget) -> bool:
    return isinstance(widget, QDialog | QMenu) and widget.isVisible()


def tips(found: list[Said]) -> Iterator[QImage]:
    """Pictures of the tooltips as Qt shows them."""
    for text in {said.text for said in found if said.how == "tip" and said.is_theirs}:
        QToolTip.showText(QPoint(0, 0), text)
        for label in app().topLevelWidgets():
            if isinstance(label, QLabel) and label.isVisible():
                yield label.grab().toImage()
        QToolTip.hideText()


async def test_the_walk_finds_markup_in_a_label_that_guesses(texts: dict[str, str]) -> None:
    label = QLabel(texts["markup"])  # what every label of Qt does by itself
    label.show()
    assert shows_canary(label.grab().toImage())
    assert [fault for said in said_by([label]) for fault in said.faults()]
    label.deleteLater()


@pytest.mark.case("R83", "R36")
async def test_task_texts_are_literal(hostile_home: Path, texts: dict[str, str]) -> None:
    async with opened(hostile_home) as session:
        window = session.window
        window.resize(1400, 1000)
        for number, name in enumerate(texts, 1):
            window.table.select_ids([f"{number:016x}"])
            window.details.restore_state(("overview", "events", "timeline")[number % 3])
            await until(lambda: window.details.events.model.total, window.details.events.counted)
            assert sum(said.is_theirs for said in walked(session, window.details)) > 5, name
        found = walked(session)
        assert sum(said.is_theirs for said in found) > 20 * len(texts)
        assert not any(map(shows_canary, tips(found)))


@pytest.mark.case("R83")
async def test_ampersands_are_literal(hostile_home: Path, texts: dict[str, str]) -> None:
    async with opened(hostile_home) as session:
        window = session.window
        number = list(texts).index("ampersand") + 1
        window.table.select_ids([f"{number:016x}"])
        await until(lambda: window.details.events.model.total, window.details.events.counted)
        labels = window.details.findChildren(QLabel)
        assert any(label.text() == texts["ampersand"] for label in labels)
        found = walked(session)
        chips = [said.text for said in found if said.how == "keys" and "A&&B" in said.text]
        assert any(text.startswith(f"A&&B {MARK} &&&& &&File") for text in chips)


@pytest.mark.case("R83")
@pytest.mark.parametrize("scene", ["start", "cancel", "about", "alarm", "menu"])
async def test_dialogs_are_literal(hostile_home: Path, texts: dict[str, str], scene: str) -> None:
    async with opened(hostile_home) as session:
        for name in texts if scene in ("start", "cancel") else ("markup",):
            top = _play(session, scene, list(texts).index(name) + 1, texts[name])
            found = walked(session, *([top] if scene in ("start", "cancel") else []))
            assert scene in ("menu", "alarm") or any(said.is_theirs for said in found), name
            assert not any(map(shows_canary, tips(found)))
            top.close()
            top.deleteLater()
            QApplication.sendPostedEvents()
            await asyncio.sleep(0)


@pytest.mark.case("R83")
async def test_folder_dialogs_show_plain_names(hostile_home: Path, texts: dict[str, str]) -> None:
    async with opened(hostile_home) as session:
        (hostile_home / "tasks" / texts["almost markup"]).mkdir()
        ask_folder(session.window, "Open", str(hostile_home / "tasks"), print)
        dialog = dialog_of(session)
        found = [said for said in said_by(dialog.findChildren(QWidget)) if said.is_theirs]
        faults = [fault for said in found for fault in said.faults()]
        # Which signs it shows is the desktop's; whether it renders them is ours to know.
        assert found
        assert not [fault for fault in faults if not fault.startswith("holds")]
        dialog.reject()


def _play(session: Session, scene: str, number: int, text: str) -> QWidget:
    window = session.window
    window.table.select_ids([f"{number:016x}"])
    if scene == "start":
        QGuiApplication.clipboard().setText(f"https://example.com/{text}"[:2000])
        args = dict.fromkeys(("scope", "wait_for", "engine"), text)
        window.requests.new_task({"url": text, "include_patterns": [text], text: text, **args})
    elif scene == "cancel":
        (view,) = window.selected
        running = replace(view.entry, status="RUNNING", cancel_requested_at=None)
        window.requests.cancel([replace(view, entry=running, orphaned=False)])
    elif scene == "about":
        About(Health(root=text, browser_name=text), window.bridge, window).open()
    elif scene == "alarm":
        alarm = CrashHandler()
        alarm.setParent(window)
        alarm.window = window
        alarm._tell(text)
    else:
        return _menu(session)
    return dialog_of(session)


def _menu(session: Session) -> QMenu:
    menu = QMenu(session.window)
    session.window.acts.fill_context_menu(menu)
    session.window.table.header().fill_menu(menu)
    menu.popup(QPoint(0, 0))
    return menu


@pytest.mark.case("R83")
async def test_every_trouble_is_told_letter_by_letter(home: Path, texts: dict[str, str]) -> None:
    async with opened(home) as session:
        window = session.window
        parts = (window.banner, window.status, *window.findChildren(Card))
        for text in texts.values():
            missing = TaskNotFound(task_id=text, root=text)
            window.trouble.show_refusals([missing] * 3)
            assert any(said.is_theirs for said in walked(session, window.banner))
            window.banner._close.click()
            window.area.show_trouble(LedgerUnusable(path=text, reason=text))
            assert any(said.is_theirs for said in walked(session, *window.findChildren(Card)))
            window.area.show_loading(0, 0, True)
            for health in _troubles(text):
                window._show_health(health)
                walked(session, *parts)
                assert MARK in window.windowTitle()
                title = Said("title", window.windowTitle())
                assert not title.faults()


def _troubles(text: str) -> Iterator[Health]:
    more: dict[str, Any] = {
        "root": text,
        "browser_name": text,
        "browser_reason": text,
        "watcher_reason": text,
    }
    yield Health(engine="ready", browser="missing", **more)
    yield Health(engine="ready", watcher="gone", **more)
    yield Health(engine="ready", watcher="polling", read_only=text, **more)
    yield Health(engine="ready", warnings=(text,), **more)


@pytest.mark.case("R85")
async def test_copied_rows_are_plain_text(hostile_home: Path, texts: dict[str, str]) -> None:
    formulas = ("=1+1", " =1+1", '"=1+1', "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "A&B")
    async with opened(hostile_home) as session:
        window = session.window
        views = [a_view(900 + at, name=name) for at, name in enumerate(formulas)]
        window.model.put_many(views)
        window.table.selectAll()
        window.acts["copy_rows"].trigger()
        lines = QGuiApplication.clipboard().text().split("\n")
        assert len(lines) == 1 + len(texts) + len(formulas)
        cells = [line.split("\t") for line in lines]
        assert {len(line) for line in cells} == {len(columns_there(several=False))}
        for cell in (cell for line in cells for cell in line):
            assert display(cell) == cell
            assert not cell.lstrip(' "').startswith(("=", "+", "-", "@"))
        assert QGuiApplication.clipboard().mimeData().formats() == ["text/plain"]


class Desktop(QObject):
    """Stands where the desktop's file manager would."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[QUrl] = []

    @Slot(QUrl)
    def take(self, url: QUrl) -> None:
        self.opened.append(url)


@pytest.mark.case("R86")
@pytest.mark.parametrize("name", ["a'b\"c", "$(touch x)", "`id`", "a;b|c&d", "50%20#x?y", "-rf ~"])
def test_a_folder_opens_by_its_exact_name(qapp: QApplication, tmp_path: Path, name: str) -> None:
    desktop, folder = Desktop(), tmp_path / name
    # PySide6's stub wants bytes.
    QDesktopServices.setUrlHandler("file", desktop, "take")  # type: ignore[arg-type]
    try:
        show_folder(folder)
    finally:
        QDesktopServices.unsetUrlHandler("file")
    assert [url.toLocalFile() for url in desktop.opened] == [str(folder)]
    assert desktop.opened[0].isLocalFile()
