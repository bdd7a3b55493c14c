"""Adding, changing and removing ledgers: the settings page, cards, drops."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from engine.service.router.ledger_paths import Beside
from gui.app import _parse
from gui.commands.ledger_actions import LedgerActions, LedgerCard
from gui.commands.task_requests import CancelDialog
from gui.context.open_ledgers import KEPT
from gui.context.preferences import Preferences
from gui.desktop.launch_request import Wish, wish_in, wish_of
from gui.desktop.notifications import News
from gui.filters.views_menu import SavedView, Views
from gui.settings.setting_parts import LedgersPart
from gui.settings.settings_dialog import SettingsDialog
from gui.startup.session import Session
from gui.style.questions import Question
from gui.tasks.facets import ROOT
from tests.gui.result_ledgers import put_task
from tests.gui.side_ledgers import LAPTOP, all_read, facet, side_by_side, views_of
from tests.gui.test_result_tabs import settled
from tests.gui.windows import appearing, dialog_by_act, press, until


async def page_of(session: Session) -> LedgersPart:
    with appearing(SettingsDialog) as shown:
        session.window.beside.page_wanted.emit()
        dialog = await shown
    part = dialog.findChild(LedgersPart)
    assert part is not None
    assert part.isVisible()
    return part


def rows_of(part: LedgersPart) -> list[list[str]]:
    items = [part.list.topLevelItem(at) for at in range(part.list.topLevelItemCount())]
    return [[item.text(column) for column in range(4)] for item in items if item is not None]


def choose(part: LedgersPart, row: int) -> None:
    item = part.list.topLevelItem(row)
    assert item is not None
    part.list.setCurrentItem(item)


def enabled(part: LedgersPart) -> set[str]:
    return {one.text() for one in part.findChildren(QPushButton) if one.isEnabled()}


async def test_the_page_lists_and_protects_ledgers(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        part = await page_of(session)
        own = str(tmp_path / "own" / "tasks")
        laptops = [LAPTOP, str(laptop.path), "Live", "3"]
        await settled(lambda: rows_of(part) == [["here", own, "Live", "2"], laptops])
        choose(part, 0)
        assert enabled(part) == {"Add a folder…"}
        choose(part, 1)
        assert enabled(part) == {"Add a folder…", "Change…", "Test", "Remove"}
        press(part, "Test")
        await settled(lambda: "✓" in part.said.text())
        assert str(laptop.path) in part.said.text()
        part.watch_only.click()
        assert [one.watch_only for one in session.window.beside.states] == [False]
        press(part, "Remove")
        assert len(rows_of(part)) == 1
        assert str(laptop.path) in part.said.text()
        assert laptop.path.is_dir()


async def test_a_closed_page_gets_no_updates(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        part = await page_of(session)
        part.window().close()
        await settled(lambda: not isValid(part))
        session.window.beside.remove(LAPTOP)
        session.bridge.health.emit(session.bridge.look_at_health())
        assert session.window.beside.states == ()


async def test_a_renamed_ledger_keeps_its_filters(tmp_path: Path, laptop: Beside) -> None:
    put_task(tmp_path / LAPTOP, 9, status="FAILED", ended_at=_now_ms(), created_at=_now_ms())
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        views = window.findChild(Views)
        assert views is not None
        views.saved.save(SavedView("own:mine", "mine", facets=("root:laptop",)))
        window.table.select_ids([f"{9:016x}@laptop"])
        window.acts["acknowledge"].trigger()
        window.sidebar.select(["root:laptop"])
        part = await page_of(session)
        choose(part, 1)
        with appearing(LedgerCard) as shown:
            press(part, "Change…")
            card = await shown
        card.label.setText("Office")
        QTest.keyClick(card.label, Qt.Key.Key_Return)
        await until(lambda: len(views_of(session, "office")) == 4, session.bridge.batch)
        assert window.sidebar.chosen == ("root:office",)
        assert window.model.rowCount() == 4
        assert [view.facets for view in views.saved.own] == [("root:office",)]
        row = window.model.row_by_id(f"{9:016x}@office")
        assert row is not None
        assert row.quiet


def _now_ms() -> float:
    return time.time() * 1000


async def test_an_added_folder_is_kept(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path) as session:
        window = session.window
        actions = window.findChild(LedgerActions)
        assert actions is not None
        with appearing(LedgerCard) as shown:
            actions.ask_to_add(tmp_path / LAPTOP)
            card = await shown
        assert card.chosen == laptop
        assert card.focusWidget() is card.label
        press(card, "Add")
        await all_read(session)
        assert window.model.total == 5
        kept = window.preferences.get(KEPT, list)
        actions.ask_to_add(laptop.path / "..")  # the same once more
        await settled(lambda: window.banner.title)
        assert "shown already" in window.banner.title
    assert kept == [{"path": str(laptop.path), "label": LAPTOP, "watch_only": True}]


@pytest.mark.parametrize(
    ("label", "trouble"),
    [("", "needs a label"), ("here", "own ledger"), ("ci", "Another"), ("a b", "small letters")],
)
def test_a_label_that_cannot_be_is_explained(label: str, trouble: str, qtbot: QtBot) -> None:
    card = LedgerCard(Beside(Path("/x"), "fine"), {"ci"})
    qtbot.addWidget(card)
    card.ask_to_add(Path("/own"), 0)
    card.label.setText(label)
    assert trouble in card._note.text()
    assert not card._ok.isEnabled()
    card.label.setText("Fine-2")
    assert card._ok.isEnabled()
    assert card.chosen == Beside(Path("/x"), "fine-2")
    assert card.answer == ""


@pytest.mark.parametrize("answer", ["Beside this one", "Instead of this one", "Cancel"])
async def test_a_dropped_ledger_folder_asks(answer: str, tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path) as session:
        window, instead, other = session.window, list[Path](), list[int]()
        window.folder_wanted.disconnect()
        window.folder_wanted.connect(instead.append)
        actions = window.findChild(LedgerActions)
        assert actions is not None
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(str(tmp_path / LAPTOP))])
        with appearing(Question) as shown:
            actions.take_drop(mime, lambda: other.append(1))
            question = await shown
        with appearing(LedgerCard) as card:
            press(question, answer)
            if answer == "Beside this one":
                assert (await card).chosen.path == laptop.path
            else:
                card.cancel()
        assert instead == ([laptop.path] if answer.startswith("Instead") else [])
        assert not other


async def test_anything_else_that_is_dropped_goes_its_old_way(tmp_path: Path) -> None:
    async with side_by_side(tmp_path) as session:
        actions, other = session.window.findChild(LedgerActions), list[int]()
        assert actions is not None
        (tmp_path / "empty").mkdir()
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "empty"))])
        actions.take_drop(mime, lambda: other.append(1))
        await settled(lambda: other)
        text = QMimeData()
        text.setText("http://site.test/")
        actions.take_drop(text, lambda: other.append(2))
        assert other == [1, 2]


async def test_how_the_tasks_of_a_new_ledger_stand_is_no_news(tmp_path: Path) -> None:
    for number in (1, 2):
        put_task(tmp_path / LAPTOP, number, "browser_task", "RUNNING", budget_status="exceeded")
    async with side_by_side(tmp_path) as session:
        window, news = session.window, list[object]()
        found = window.findChild(News)
        assert found is not None
        found._take = news.extend  # type: ignore[assignment]  # records the news
        window.beside.add(Beside(tmp_path / LAPTOP / "tasks", LAPTOP))
        await all_read(session)
        assert news == []
        assert window.model.counts()["attention"] == 2


async def test_news_names_the_other_ledger(tmp_path: Path, laptop: Beside) -> None:
    folder = put_task(tmp_path / LAPTOP, 9, status="RUNNING", engine={"name": "Shop"})
    async with side_by_side(tmp_path, laptop) as session:
        found = session.window.findChild(News)
        assert found is not None
        meta = json.loads((folder / "meta.json").read_text())
        ended = folder / "meta.json.new"  # nobody may see half of it
        ended.write_text(json.dumps(meta | {"status": "FAILED", "ended_at": _now_ms()}))
        ended.replace(folder / "meta.json")
        await until(lambda: found.entries, found.changed)
        assert found.entries[0].body == "Shop at laptop"
        found.show_tasks(found.entries[0])
        assert session.window.table.selected_ids() == [f"{9:016x}@laptop"]


async def test_a_cancel_names_the_ledger_that_the_task_is_in(tmp_path: Path) -> None:
    laptop = Beside(tmp_path / LAPTOP / "tasks", LAPTOP, watch_only=False)
    put_task(tmp_path / LAPTOP, 9, "browser_task", "RUNNING", engine={"name": "Shop"})
    async with side_by_side(tmp_path, laptop) as session:
        session.window.table.select_ids([f"{9:016x}@laptop"])
        dialog = await dialog_by_act(session.window, "cancel", CancelDialog)
        assert "Cancel “Shop at laptop”?" in [one.text() for one in dialog.findChildren(QLabel)]
        dialog.reject()


async def test_saved_filters_survive_without_matches(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        window.sidebar.select([f"{ROOT}:laptop"])
        window.preferences.take_text(Preferences().as_text())  # nothing is kept in there
        assert window.model.total == 5
        window.preferences.restore("")
        await until(lambda: window.model.total == 2, session.bridge.batch)
        assert window.model.rowCount() == 2
        window.sidebar._refresh()
        assert facet(window.sidebar, f"{ROOT}:laptop") is None


def test_the_program_takes_folders_to_show_beside_and_hands_them_over(tmp_path: Path) -> None:
    options = _parse(["--beside", "one", "--beside", str(tmp_path)])
    assert isinstance(options, argparse.Namespace)
    wish = wish_of([], tmp_path, beside=options.beside)
    assert wish.beside == (str(tmp_path / "one"), str(tmp_path))
    assert wish_in(wish.message()) == wish
    handed = wish_in({"beside": ["not/absolute", 7, str(tmp_path)]})
    assert handed == Wish(beside=(str(tmp_path),))
    with pytest.raises(SystemExit):
        _parse(["--beside", " "])
