"""The filter of a real window: chips, mistakes, completion, cells, views, hidden tasks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QToolButton, QTreeWidgetItem

from engine.service.router.ledger_paths import Beside
from gui.filters.facet_tree import VIEW, FacetTree, children, key_of
from gui.filters.filter_bar import FilterBox, FilterHelp
from gui.filters.views_menu import MOST, SavedView, SaveView, Views, own_key
from gui.style.theme import choose_size
from gui.tasks.columns import COLUMN_AT
from gui.window.main_window import MainWindow
from tests.gui.task_views import a_view
from tests.gui.windows import app, heard, opened, press, until

ALT, SHIFT = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier
NONE = Qt.KeyboardModifier.NoModifier
REQUESTS: tuple[dict[str, str], ...] = (
    {"client": "claude-code", "route": "mcp"},
    {"route": "cli"},
    {},
)
HOURS = {0: 0.5, 1: 5, 2: 100, 3: 400}


@pytest.fixture
def tasks(home: Path) -> Path:
    """Eight ended tasks: two hosts, two kinds, of all ages, every second one failed."""
    now = time.time() * 1000
    for number in range(8):
        made = now - HOURS[number % 4] * 3_600_000
        record: dict[str, Any] = {
            "task_id": f"{number + 1:016x}",
            "kind": "crawl" if number < 6 else "commands",
            "status": "FAILED" if number % 2 else "COMPLETED",
            "engine": dict(REQUESTS[number % 3]),
            "created_at": made,
            "started_at": made,
            "ended_at": made + 1000,
            "args_summary": {"url": f"https://{'shop' if number < 5 else 'docs'}.example/{number}"},
        }
        if number % 2:
            record["error"] = {"message": "page timeout", "code": "timeout"}
        folder = home / "tasks" / record["task_id"]
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps(record), "utf-8")
    return home


def box_of(window: MainWindow) -> FilterBox:
    box = window.filter_bar.focusProxy()
    assert isinstance(box, FilterBox)
    return box


def tree_of(window: MainWindow) -> FacetTree:
    tree = window.sidebar.findChild(FacetTree)
    assert isinstance(tree, FacetTree)
    return tree


def item_of(window: MainWindow, key: str) -> QTreeWidgetItem:
    tree = tree_of(window)
    heads = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    found = [item for head in heads if head for item in (head, *children(head))]
    return next(item for item in found if key_of(item) == key)


async def soon(condition: Callable[[], Any]) -> Any:
    """What is done a moment later, by a timer of the window's own."""
    async with asyncio.timeout(50):
        while not (found := condition()):
            await asyncio.sleep(0.01)
    return found


async def test_what_is_typed_and_chosen_stands_in_chips_that_take_it_away(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        chips = window.filter_bar.chips
        window.filter_bar.set_text("shop")
        assert chips.isHidden()  # mere words stand in the box already
        window.sidebar.select(("failed",))
        window.filter_bar.set_text("shop age:<1d")
        assert list(chips.names) == ["Failed", "shop", "age:<1d"]
        assert window.model.rowCount() == 1
        first = chips.findChildren(QToolButton)[2]
        first.setFocus()
        QTest.keyClick(first, Qt.Key.Key_Delete)
        assert not window.sidebar.chosen
        assert list(chips.names) == ["shop", "age:<1d"]
        assert window.model.rowCount() == 3
        next(b for b in chips.findChildren(QToolButton) if b.text() == "Clear all").click()
        assert (window.filter_bar.text, window.model.rowCount()) == ("", 8)


async def test_a_mistake_is_told_under_the_box_and_mended_by_a_click(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, bar = session.window, session.window.filter_bar
        window.filter_bar.set_text("status:failed")
        box = box_of(window)
        box.setFocus()
        box.clear()
        QTest.keyClicks(box, "stat:failed shop")
        QTest.keyClick(box, Qt.Key.Key_Return)
        assert bar.mistake == "Unknown field ‘stat’. Try status:"
        assert box.hasFocus()
        assert window.model.rowCount() == 8  # emptied, and not narrowed by what nobody understands
        buttons = {each.text(): each for each in bar.findChildren(QPushButton)}
        buttons["Write status:failed shop"].click()
        assert (bar.text, bar.mistake) == ("status:failed shop", "")
        assert window.model.rowCount() == 2
        bar.set_text("a:b")
        buttons["Look for it as text"].click()
        assert (bar.text, window.model.rowCount()) == ('"a:b"', 0)


async def test_several_mistakes_are_told_together_each_at_its_place(tasks: Path) -> None:
    async with opened(tasks) as session:
        bar = session.window.filter_bar
        bar.set_text("pages:>many stat:failed age:1h shop")
        assert bar.mistake.splitlines() == [
            "Character 1: ‘>many’ cannot be compared in pages:. Write it like pages:>100.",
            "Character 13: Unknown field ‘stat’. Try status:",
            "Character 25: ‘1h’ cannot be compared in age:. Write it like age:<1h.",
        ]
        buttons = {each.text() for each in bar.findChildren(QPushButton)}
        assert "Write pages:>many status:failed age:1h shop" in buttons


async def test_a_ledger_that_is_not_there_is_told_with_those_that_are(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, bar = session.window, session.window.filter_bar
        bar.set_text("root:nope")
        assert bar.mistake == "‘nope’ is no value of root:. Known: here."
        assert window.model.rowCount() == 0  # it is asked for all the same
        window.beside.add(Beside(tasks / "nowhere", "nope"))
        await until(lambda: not bar.mistake, window.beside.changed)
        window.beside.remove("nope")
        await soon(lambda: bar.mistake)
        bar.set_text("root:here")
        assert (bar.mistake, window.model.rowCount()) == ("", 8)


async def test_half_a_condition_is_no_mistake_before_the_fingers_rest(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, bar = session.window, session.window.filter_bar
        box = box_of(window)
        box.setFocus()
        QTest.keyClicks(box, "age:")
        QTest.keyClick(box, Qt.Key.Key_Escape)  # no offers any more, the text stays
        await until(lambda: bar.text == "age:", bar.text_changed)
        assert (bar.text, bar.mistake) == ("age:", "")
        await soon(lambda: bar.mistake)
        assert "needs something after it" in bar.mistake


async def test_fields_and_values_are_completed_by_keyboard(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        box = box_of(window)
        box.setFocus()
        QTest.keyClicks(box, "ho")
        assert list(box.offers) == ["host:"]
        QTest.keyClick(box, Qt.Key.Key_Tab)
        assert box.text() == "host:"
        assert list(box.offers) == ["host:docs.example", "host:shop.example"]
        QTest.keyClick(box, Qt.Key.Key_Down)
        QTest.keyClick(box, Qt.Key.Key_Return)
        assert [box.text(), *box.offers] == ["host:docs.example "]
        assert box.hasFocus()
        QTest.keyClick(box, Qt.Key.Key_Return)
        assert window.model.rowCount() == 3
        assert window.table.hasFocus()


async def test_a_cell_filters_by_its_value_and_with_shift_by_all_others(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, table = session.window, session.window.table
        window.resize(1400, 800)
        row = next(at for at in range(8) if window.model.row_at(at).host.startswith("docs"))

        def click(column: str, keys: Qt.KeyboardModifier) -> None:
            index = window.model.index(row, COLUMN_AT[column])
            table.scrollTo(index)
            QTest.mouseClick(
                table.viewport(), Qt.MouseButton.LeftButton, keys, table.visualRect(index).center()
            )

        click("kind", ALT)
        kind = window.model.row_at(0).about.kind
        assert window.filter_bar.text == f"kind:{kind}"
        assert not table.selected_ids()
        row = 0
        click("status", ALT | SHIFT)
        state = window.filter_bar.text.rpartition(":")[2]
        assert window.filter_bar.text == f"kind:{kind} -status:{state}"
        assert all(
            window.model.row_at(at).standing.value != state for at in range(window.model.rowCount())
        )


async def test_the_menu_names_the_value_it_would_filter_by(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        action = window.acts["filter_by_value"]
        window.table.setCurrentIndex(window.model.index(0, COLUMN_AT["rate"]))
        assert not action.isEnabled()
        window.table.setCurrentIndex(window.model.index(0, COLUMN_AT["host"]))
        host = window.model.row_at(0).host
        assert action.text() == f"Filter b&y host:{host}"
        action.trigger()
        assert window.filter_bar.text == f"host:{host}"


async def test_kinds_hosts_and_ages_are_counted_at_the_side_and_narrow(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        window.sidebar.fold(())
        tree = tree_of(window)

        def says(key: str) -> str:
            return str(item_of(window, key).data(0, Qt.ItemDataRole.AccessibleTextRole))

        await soon(lambda: window.sidebar.isVisible() and _has(window, "host:docs.example"))
        keys = ("kind:crawl", "host:docs.example", "age:<1d", "age:>=7d")
        right = ["Crawl: 6", "docs.example: 3", "Last day: 4", "Older than 7 days: 2"]
        await soon(lambda: [says(key) for key in keys] == right)
        item = item_of(window, "kind:commands")
        tree.scrollToItem(item)
        at = tree.visualItemRect(item).center()
        QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, NONE, at)
        assert window.sidebar.chosen == ("kind:commands",)
        assert window.model.rowCount() == 2
        assert window.filter_bar.chips.names == ("Commands",)


def _has(window: MainWindow, key: str) -> bool:
    try:
        return item_of(window, key) is not None
    except StopIteration:
        return False


async def test_a_heading_folds_and_changes_nothing_else(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        window.sidebar.select(("failed",))
        tree, head = tree_of(window), item_of(window, "group:status")
        at = tree.visualItemRect(head).center()
        QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, NONE, at)
        assert "status" in window.sidebar.folded
        assert window.sidebar.chosen == ("failed",)
        tree.setFocus()
        QTest.keyClick(tree, Qt.Key.Key_Return)
        assert "status" not in window.sidebar.folded


async def test_everything_in_a_facet_is_meant_by_its_menu(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        window.sidebar.menu_wanted.emit("failed", QPoint(10, 10))
        menu = app().activePopupWidget()
        assert isinstance(menu, QMenu)
        assert window.sidebar.chosen == ("failed",)
        assert len(window.scope) == window.model.rowCount() == 4
        assert window.scope.matching
        assert menu.actions()[0].text() == window.scope.describes()
        menu.close()


async def test_the_menu_of_a_view_means_its_tasks_though_their_texts_are_made_in_slices(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 2)
    async with opened(tasks) as session:
        window = session.window
        (views,) = window.findChildren(Views)
        views.saved.save(SavedView(own_key("docs"), "docs", "docs"))
        window.sidebar.menu_wanted.emit(VIEW + own_key("docs"), QPoint(10, 10))
        menu = app().activePopupWidget()
        assert isinstance(menu, QMenu)
        assert {
            row.host for row in window.model.all_rows() if row.task_id in window.scope.ids()
        } == {"docs.example"}
        assert len(window.scope) == window.model.rowCount() == 3
        assert menu.actions()[0].text() == window.scope.describes()
        menu.close()


async def test_enter_applies_a_filter_in_preparation_before_the_list_gets_the_focus(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 2)
    async with opened(tasks) as session:
        window, focused = session.window, list[int]()
        box = box_of(window)
        box.setFocus()
        app().focusChanged.connect(
            lambda _, now: focused.append(window.model.rowCount()) if now is window.table else None
        )
        QTest.keyClicks(box, "docs")
        QTest.keyClick(box, Qt.Key.Key_Return)
        assert focused == [3]
        assert window.table.hasFocus()


async def test_a_chip_keeps_the_focus_while_the_filter_is_in_preparation(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 2)
    async with opened(tasks) as session:
        window = session.window
        window.sidebar.select(("failed", "completed"))
        window.filter_bar.chips._chips[0].setFocus()
        window.filter_bar.set_text("docs")
        first, second, _ = window.filter_bar.chips._chips
        assert first.hasFocus()
        assert (first.isEnabled(), second.isEnabled()) == (True, False)
        window.narrowing.settle()
        assert second.isEnabled()


async def test_enter_saves_a_view_also_from_its_check_box_and_esc_does_not(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, preferences = session.window, session.window.desk.preferences
        for key, number in ((Qt.Key.Key_Escape, 0), (Qt.Key.Key_Return, 1)):
            window.acts["save_view"].trigger()
            dialog = window.findChildren(SaveView)[-1]
            QTest.keyClicks(dialog.name, "Mine")
            dialog.layout_too.setFocus()
            QTest.keyClick(dialog.layout_too, key)
            assert len(preferences.get("views.saved", list)) == number


async def test_a_view_that_is_saved_again_keeps_its_order_and_columns(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, preferences = session.window, session.window.desk.preferences
        window.filter_bar.set_text("shop")
        for _ in range(2):
            window.acts["save_view"].trigger()
            dialog = window.findChildren(SaveView)[-1]
            if not dialog.name.text():
                QTest.keyClicks(dialog.name, "Mine")
                dialog.layout_too.setChecked(True)
            QTest.keyClick(dialog.name, Qt.Key.Key_Return)
            (kept,) = preferences.get("views.saved", list)
            assert kept["columns"]
            assert kept["sort"]


async def test_the_name_of_a_view_of_the_program_is_called_taken(tasks: Path) -> None:
    async with opened(tasks) as session:
        session.window.acts["save_view"].trigger()
        dialog = session.window.findChildren(SaveView)[-1]
        QTest.keyClicks(dialog.name, "failed, last  day")
        assert "A view of the program has this name" in dialog._note.text()
        QTest.keyClicks(dialog.name, " 2")
        assert not dialog._note.text()


async def test_the_note_below_the_name_of_a_view_is_never_cut(tasks: Path) -> None:
    async with opened(tasks) as session:
        choose_size(200)
        try:
            session.window.acts["save_view"].trigger()
            dialog = session.window.findChildren(SaveView)[-1]
            QTest.keyClicks(dialog.name, "failed, last day")
            async with asyncio.timeout(20):
                while not has_room(dialog._note):
                    await asyncio.sleep(0.02)
            assert dialog.rect().contains(dialog.save_button.geometry())
        finally:
            choose_size(100)


def has_room(note: QLabel) -> bool:
    wraps = Qt.TextFlag.TextWordWrap if note.wordWrap() else Qt.TextFlag.TextSingleLine
    words = note.fontMetrics().boundingRect(note.contentsRect(), wraps, note.text())
    return note.height() >= words.height() and note.width() >= words.width()


async def test_a_view_is_saved_chosen_and_removed_with_a_way_back(tasks: Path) -> None:
    async with opened(tasks) as session:
        window, preferences = session.window, session.window.desk.preferences
        window.sidebar.select(("failed",))
        window.filter_bar.set_text("shop age:<1d")
        window.acts["save_view"].trigger()
        dialog = window.findChild(SaveView)
        assert isinstance(dialog, SaveView)
        assert not dialog.save_button.isEnabled()
        QTest.keyClicks(dialog.name, "My triage")
        QTest.keyClick(dialog.name, Qt.Key.Key_Return)
        (kept,) = preferences.get("views.saved", list)
        assert (kept["name"], kept["query"], kept["facets"]) == (
            "My triage",
            "shop age:<1d",
            ["failed"],
        )
        window.clear_filter()
        item = item_of(window, VIEW + "own:my triage")
        tree, at = tree_of(window), tree_of(window).visualItemRect(item).center()
        QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, NONE, at)
        assert (window.filter_bar.text, window.sidebar.chosen) == ("shop age:<1d", ("failed",))
        spoken = Qt.ItemDataRole.AccessibleTextRole
        await soon(lambda: item.data(0, spoken) == "My triage: 1")
        QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, NONE, at)
        assert not window.model.is_filtered  # a second click goes back to all
        window.acts.menus["views"].aboutToShow.emit()
        names = [action.text() for action in window.acts.menus["views"].actions()]
        assert "&Back to My triage" in names
        window.sidebar.menu_wanted.emit(VIEW + "own:my triage", QPoint(10, 10))
        menu = app().activePopupWidget()
        assert isinstance(menu, QMenu)
        next(a for a in menu.actions() if a.text() == "&Remove the view").trigger()
        menu.close()
        assert preferences.get("views.saved", list) == []
        assert not _has(window, VIEW + "own:my triage")
        assert "“My triage”" in window.acts["undo"].text()
        press(window.news_bar, "Undo")
        assert preferences.get("views.saved", list) == [kept]
        assert _has(window, VIEW + "own:my triage")
        assert window.news_bar.isHidden()
        assert not window.acts["undo"].isEnabled()


async def test_an_undone_removal_of_a_view_takes_none_of_the_later_ones(tasks: Path) -> None:
    async with opened(tasks) as session:
        (views,) = session.window.findChildren(Views)
        saved = views.saved
        made = [SavedView(own_key(f"V{at}"), f"V{at}", "failed") for at in range(MOST + 1)]
        for view in made[:MOST]:
            saved.save(view)
        views._remove(made[5])
        saved.save(made[MOST])
        session.window.acts["undo"].trigger()
        assert saved.own == [*made[1:]]
        saved.remove(made[7].key)
        views._remove(made[7])  # by a menu that was opened before
        assert saved.own == [*made[1:7], *made[8:]]


async def test_a_facet_replaces_a_view_and_stays_beside_what_was_typed(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        tree, total = tree_of(window), window.model.total

        def click(key: str, modifier: Qt.KeyboardModifier = NONE) -> None:
            at = tree.visualItemRect(item_of(window, key)).center()
            QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, modifier, at)

        (views,) = window.findChildren(Views)
        click(VIEW + views.saved.all[0].key)
        assert window.filter_bar.text
        click("all")  # selected already, since a view has no facet
        assert (window.filter_bar.text, window.model.rowCount()) == ("", total)
        click(VIEW + views.saved.all[0].key)
        click("completed")
        assert (window.filter_bar.text, window.sidebar.chosen) == ("", ("completed",))
        click(VIEW + views.saved.all[0].key)
        viewed = window.filter_bar.text
        click("failed", Qt.KeyboardModifier.ControlModifier)
        assert (window.filter_bar.text, window.sidebar.chosen) == (viewed, ("failed",))
        window.clear_filter()
        window.filter_bar.set_text("shop")
        click("failed")
        assert (window.filter_bar.text, window.sidebar.chosen) == ("shop", ("failed",))


async def test_a_view_that_is_saved_while_views_are_counted_is_counted_too(tasks: Path) -> None:
    async with opened(tasks) as session:
        (views,) = session.window.findChildren(Views)
        views._soon.interval_ms = 1
        views._count()
        assert views._counting.is_busy
        views._save("Just now", False)
        key = VIEW + views.saved.own[0].key
        spoken = Qt.ItemDataRole.AccessibleTextRole
        await soon(lambda: item_of(session.window, key).data(0, spoken))


async def test_views_are_counted_at_once_when_the_last_count_was_long_ago(tasks: Path) -> None:
    async with opened(tasks) as session:
        (views,) = session.window.findChildren(Views)
        await soon(lambda: not views._counting.is_busy and not views._soon.is_pending)
        views._soon.interval_ms = 600_000  # as after a count of very many tasks
        views._soon._ran_at -= 601
        counted = heard(views._counting.done)
        session.window.model.drop_many(session.window.model.ids)
        async with asyncio.timeout(10):
            await counted


async def test_views_are_counted_anew_once_the_list_is_complete(tasks: Path) -> None:
    async with opened(tasks) as session:
        (views,) = session.window.findChildren(Views)
        counts: dict[str, int] = {}
        views._counting.counted.connect(counts.__setitem__)
        await soon(lambda: not views._counting.is_busy and not views._soon.is_pending)
        views._soon.run()
        await soon(lambda: not views._counting.is_busy)
        before = counts["system:failed"]
        session.bridge.loaded.connect(views._count_first)
        views._soon.run()  # of the first part of a list
        assert views._counting.is_busy
        views._soon.interval_ms = 600_000
        session.window.model.put_many([a_view(77, "FAILED", ended_at=time.time() * 1000)])
        session.bridge.loaded.emit()
        async with asyncio.timeout(10):
            await heard(views._counting.done)
        assert counts["system:failed"] == before + 1


async def test_suspend_delays_no_count(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tasks) as session:
        (views,) = session.window.findChildren(Views)
        await soon(lambda: not views._counting.is_busy)
        views._count()
        assert views._counting.is_busy
        model, now_ms = session.window.model, session.window.model.now_ms
        monkeypatch.setattr(model, "now_ms", lambda: now_ms() + 3_600_000)
        await soon(lambda: not views._counting.is_busy)
        assert views._soon.interval_ms < 60_000


async def test_when_nothing_matches_the_nearest_ways_out_are_offered(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        window.sidebar.select(("failed", "kind:commands"))
        window.filter_bar.set_text("docs zzz")
        assert window.area.state == "unmatched"

        def button() -> QPushButton | None:
            found = (b for b in window.area.findChildren(QPushButton) if "without" in b.text())
            return next(found, None)

        way = await soon(button)
        assert way.text() == "1 without ‘zzz’"
        way.click()
        assert (window.filter_bar.text, window.model.rowCount()) == ("docs", 1)


async def test_what_belongs_to_an_older_query_is_grey_while_the_typed_one_is_wrong(
    tasks: Path,
) -> None:
    async with opened(tasks) as session:
        window, bar = session.window, session.window.filter_bar

        def seen() -> set[str]:
            labels = bar.findChildren(QLabel)
            return {one.text() for one in labels if one.isVisible() and one.isEnabled()}

        def ways() -> list[QPushButton]:
            found = window.area.findChildren(QPushButton)
            return [one for one in found if "without" in one.text() and one.isVisible()]

        bar.set_text("status:failed zzz")
        await soon(ways)
        chips = [
            one for one in bar.chips.findChildren(QToolButton) if one.text() in bar.chips.names
        ]
        numbers = "Showing 0 of 8"
        assert numbers in seen()
        bar.set_text("status:failed zzz kind:")
        assert bar.mistake
        assert not any(chip.isEnabled() for chip in chips)
        assert numbers not in seen()
        assert "The list is unchanged until the query is valid." in seen()
        await soon(lambda: not ways())
        bar.set_text("status:failed zzz")
        assert all(chip.isEnabled() for chip in chips)
        assert numbers in seen()
        assert "The list is unchanged until the query is valid." not in seen()
        await soon(ways)


async def test_the_help_puts_its_examples_into_the_filter(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        window.filter_bar.help_wanted.emit()
        help_ = window.findChild(FilterHelp)
        assert isinstance(help_, FilterHelp)
        rows = [help_.table.topLevelItem(at) for at in range(help_.table.topLevelItemCount())]
        failed = next(row for row in rows if row and row.text(0) == "status:failed")
        help_.table.itemActivated.emit(failed, 0)
        assert (window.filter_bar.text, window.model.rowCount()) == ("status:failed", 4)
        help_.close()


async def test_the_side_stands_as_it_was_left(tasks: Path) -> None:
    async with opened(tasks) as session:
        session.window.sidebar.select(("kind:crawl", "host:shop.example"))
        session.window.sidebar.fold(("status", "age"))
        session.window.sidebar.show_empty(True)
    async with opened(tasks) as session:
        sidebar = session.window.sidebar
        assert set(sidebar.chosen) == {"kind:crawl", "host:shop.example"}
        assert {"status", "age"} <= set(sidebar.folded)
        assert sidebar.shows_empty
        assert session.window.model.rowCount() == 5
        assert not sidebar.restore_state("no state at all")
        assert set(sidebar.chosen) == {"kind:crawl", "host:shop.example"}


async def test_clients_and_routes_have_a_column_a_facet_and_completion(tasks: Path) -> None:
    async with opened(tasks) as session:
        window = session.window
        column = COLUMN_AT["client"]
        assert window.table.isColumnHidden(column)
        window.table.header().show_column("client", True)
        window.model.set_sort((("client", False),))
        shown = [
            window.model.data(window.model.index(at, column), Qt.ItemDataRole.DisplayRole)
            for at in range(window.model.rowCount())
        ]
        assert shown == ["claude-code"] * 3 + ["Command line"] * 3 + [""] * 2

        def says(key: str) -> str:
            return str(item_of(window, key).data(0, Qt.ItemDataRole.AccessibleTextRole))

        await soon(lambda: window.sidebar.isVisible() and _has(window, "client:claude-code"))
        keys = ("client:claude-code", "route:mcp", "route:cli")
        right = ["claude-code: 3", "Over MCP: 3", "On the command line: 3"]
        await soon(lambda: [says(key) for key in keys] == right)
        window.sidebar.select(("client:claude-code", "route:cli"))
        assert window.model.rowCount() == 6
        assert window.filter_bar.chips.names == ("claude-code", "On the command line")
        window.sidebar.select(())
        box = box_of(window)
        box.setFocus()
        QTest.keyClicks(box, "-client:cl")
        assert list(box.offers) == ["client:claude-code"]
        QTest.keyClick(box, Qt.Key.Key_Tab)
        assert box.text() == "-client:claude-code "
        QTest.keyClicks(box, "-route:c")
        assert list(box.offers) == ["route:cli", "route:mcp"]
        QTest.keyClick(box, Qt.Key.Key_Tab)
        await soon(lambda: window.model.rowCount() == 2)
