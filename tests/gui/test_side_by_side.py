"""Several ledgers in one window: their column, facet and sign, and none of them with one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

from engine.export.exporter import Order
from engine.export.exports import row_of
from engine.model.ledger_ids import is_label, qualified
from engine.model.records import Health, TaskRecord
from engine.query import completion
from engine.service.router.ledger_paths import Beside
from engine.text.words import task_name
from gui.commands.exporting import file_name
from gui.commands.ledger_actions import LedgerTrouble
from gui.commands.rerunning import RerunDialog
from gui.context.open_ledgers import KEPT, kept_in
from gui.desktop.launch_request import Wish
from gui.filters.filter_bar import FilterHelp
from gui.start.start_dialog import StartDialog
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.facets import FacetCounts
from gui.tasks.row import Row, make_row
from gui.window.status_bar import StatusBar
from tests.gui.result_ledgers import put_task
from tests.gui.side_ledgers import CI, LAPTOP, a_ledger, clipboard, facet, side_by_side, views_of
from tests.gui.task_views import NOW, a_view
from tests.gui.windows import dialog_by_act, patient, press, until

ROOT = COLUMN_AT["root"]


async def test_with_one_ledger_nothing_of_it_is_to_be_seen(tmp_path: Path) -> None:
    async with side_by_side(tmp_path) as session:
        window = session.window
        menu = QMenu()
        window.table.header().fill_menu(menu)
        window.acts.menus["sort"].aboutToShow.emit()
        sorts = [action.text() for action in window.acts.menus["sort"].actions()]
        assert window.table.isColumnHidden(ROOT)
        assert "Root" not in {one.text()[:4] for one in menu.actions() if one.isVisible()}
        assert not any("Root" in text for text in sorts)
        assert facet(window.sidebar, "root:here") is None
        assert not window.status.beside.isVisibleTo(window)
        assert window.windowTitle() == str(tmp_path / "own" / "tasks")
        window.table.selectAll()
        window.acts["copy_rows"].trigger()
        assert "Root" not in clipboard()
        known = window.model.facets.values
        assert completion("root", 4, known).offers == ()
        examples = FilterHelp(lambda _: None, window).table
        shown = [examples.topLevelItem(at) for at in range(examples.topLevelItemCount())]
        assert not any(item is not None and "root:" in item.text(0) for item in shown)


async def test_a_second_ledger_adds_column_and_facet(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        assert not window.table.isColumnHidden(ROOT)
        assert {row.about.ledger for row in window.model.all_rows()} == {"", LAPTOP}
        window.sidebar._refresh()
        counts = {key: window.model.facets.of(key, NOW) for key in ("root:here", "root:laptop")}
        assert counts == {"root:here": 2, "root:laptop": 3}
        assert facet(window.sidebar, "root:laptop") is not None
        assert window.windowTitle().endswith("own/tasks and laptop".replace("/", _separator()))
        assert window.status.beside.link.text() == "1 beside"
        assert window.status.beside.isVisibleTo(window)
        window.sidebar.select(["root:laptop"])
        assert window.model.rowCount() == 3
        assert window.filter_bar.chips.names == (LAPTOP,)
        window.filter_bar.set_text("-root:laptop")
        window.sidebar.select([])
        assert window.model.rowCount() == 2
        offers = completion("root:l", 6, window.model.facets.values).offers
        assert [one.text for one in offers] == ["root:laptop"]


def _separator() -> str:
    return str(Path("a/b"))[1]


async def test_removing_a_ledger_deletes_no_file(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        before = files_in(laptop.path)
        window.sidebar.select(["root:laptop"])
        window.model.set_sort([("root", False), ("age", False)])
        window.beside.remove(LAPTOP)
        await until(lambda: window.model.total == 2, session.bridge.batch)
        window.sidebar._refresh()
        assert window.table.isColumnHidden(ROOT)
        assert facet(window.sidebar, "root:here") is None
        assert window.sidebar.chosen == ()
        assert window.model.sort_keys == (("age", False),)
        assert not window.status.beside.isVisibleTo(window)
        assert window.preferences.get(KEPT, list) == []
    assert files_in(laptop.path) == before


def files_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [one for one in folder.rglob("*") if one.is_file()]
    return {str(one): (one.stat().st_mtime_ns, one.read_bytes()) for one in files}


async def test_ids_are_read_copied_and_linked_plain(tmp_path: Path, laptop: Beside) -> None:
    put_task(tmp_path / LAPTOP, 9, args_summary={}, engine={"parent_task_id": f"{1:016x}"})
    async with side_by_side(tmp_path, laptop) as session:
        window, plain = session.window, f"{9:016x}"
        view = next(one for one in views_of(session, LAPTOP) if one.task_id.startswith(plain))
        assert view.task_id == qualified(plain, LAPTOP)
        window.table.select_ids([view.task_id])
        told: list[str] = []
        for key in ("copy_ids", "copy_link", "copy_rows"):
            window.acts[key].trigger()
            told.append(clipboard())
        window.details._head._copy.click()
        told += [clipboard(), window.details.overview.text_of("id"), task_name(view)]
        told += [window.details.overview.text_of("parent"), file_name(view, "csv")]
        told.append(json.dumps(row_of(view), default=str))
        row = window.model.row_by_id(view.task_id)
        assert row is not None
        told += [column.text(row, NOW) for column in COLUMNS]
        assert told[:2] == [plain, f"openchrome-monitor://task/{plain}"]
        assert not any("@" in text for text in told)
        place = f"laptop: {laptop.path} (only watched)"
        assert window.details.overview.text_of("ledger") == place


async def test_exported_lists_name_each_ledger(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        views = [*views_of(session, ""), *views_of(session, LAPTOP)]
        exports = session.bridge.engine.exports
        for name, some in (("all.csv", views), ("some.csv", views[:2])):
            await exports.list_to_file(some, Order("", "csv"), tmp_path / name)
        with (tmp_path / "all.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        ids = [f"{number:016x}" for number in (1, 2, 1, 2, 3)]
        assert [row["task_id"] for row in rows] == ids
        assert [row["ledger"] for row in rows] == ["here", "here", *[LAPTOP] * 3]
        assert "ledger" not in (tmp_path / "some.csv").read_text()


async def test_a_link_opens_a_task_of_a_ledger_beside(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        window.arrivals.take(Wish(tasks=(f"{3:016x}",)))
        assert window.table.selected_ids() == [f"{3:016x}@laptop"]
        window.arrivals.take(Wish(tasks=(f"{1:016x}",)))  # both have it: the own one is meant
        assert window.table.selected_ids() == [f"{1:016x}"]


async def test_session_folders_are_not_saved(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path) as session:
        patient(session)
        window = session.window
        window.arrivals.take(Wish(beside=(str(laptop.path),), tasks=(f"{3:016x}",)))
        await until(window.table.selected_ids, window.table.selection_changed)
        assert window.table.selected_ids() == [f"{3:016x}@laptop"]
        assert window.preferences.get(KEPT, list) == []
        window.beside.visit([laptop.path, tmp_path / "own" / "tasks"])
        assert [one.label for one in window.beside.states] == [LAPTOP]


async def test_what_is_only_watched_is_grey_and_says_why(tmp_path: Path, laptop: Beside) -> None:
    put_task(tmp_path / LAPTOP, 9, "browser_task", "RUNNING")
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        ended, live = f"{1:016x}@laptop", f"{9:016x}@laptop"
        for one, keys in ((ended, ("delete", "delete_for_good")), (live, ("cancel",))):
            window.table.select_ids([one])
            for key in keys:
                assert not window.acts[key].isEnabled()
                assert "“laptop” is only watched" in window.acts[key].toolTip()
        window.beside.change(LAPTOP, Beside(laptop.path, LAPTOP, watch_only=False))
        assert window.acts["cancel"].isEnabled()
        assert "watched" not in window.acts["cancel"].toolTip()
        window.table.select_ids([ended])
        assert window.acts["delete"].isEnabled()
        window.table.select_ids([f"{1:016x}"])
        assert "watched" not in window.acts["cancel"].toolTip()


async def test_reruns_start_in_the_own_ledger(tmp_path: Path, laptop: Beside) -> None:
    put_task(tmp_path / LAPTOP, 9, "browser_task", engine={"host": "x"}, objective="look")
    async with side_by_side(tmp_path, laptop) as session:
        window, own = session.window, str(tmp_path / "own" / "tasks")
        window.table.select_ids([f"{9:016x}@laptop"])
        dialog = await dialog_by_act(window, "rerun", RerunDialog)
        words = f"New tasks start in this window’s own ledger, {own}."
        assert words in [label.text() for label in dialog.findChildren(QLabel)]
        first = dialog.list.topLevelItem(0)
        assert first is not None
        assert first.text(0) == "http://site.test/ at laptop"
        press(dialog, "Re-run 1 task")
        await until(lambda: window.beside.own_tasks == 3, session.bridge.batch)
        (new,) = {view.task_id for view in views_of(session, "")} - {f"{n:016x}" for n in (1, 2)}
        view = window.model.view_of(new)
        assert isinstance(view and view.entry, TaskRecord)
        assert view.entry.objective == "look"  # type: ignore[union-attr]  # never unreadable here
        assert len(views_of(session, LAPTOP)) == 4
        start = await dialog_by_act(window, "new", StartDialog)
        assert start.footer.place == words
        start.reject()


async def test_other_ledgers_work_when_one_is_lost(tmp_path: Path, laptop: Beside) -> None:
    ci = Beside(a_ledger(tmp_path / CI, 20, 2), CI)
    async with side_by_side(tmp_path, laptop, ci) as session:
        window = session.window
        trouble = window.findChild(LedgerTrouble)
        assert trouble is not None
        bar = trouble.bar
        laptop.path.rename(tmp_path / "away")
        await until(lambda: window.model.total == 4, session.bridge.batch)
        assert bar.title == "The folder of “laptop” is gone"
        assert window.status.beside.link.text() == "2 beside, 1 lost"
        assert window.area.state == "table"
        press(bar, "Take it out of this window")
        assert bar.isHidden()
        assert [one.label for one in window.beside.states] == [CI]


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["", LAPTOP, CI])), max_size=40))
def test_the_facets_of_ledgers_count_as_counting_them_does(moves: list[tuple[int, str]]) -> None:
    counts, rows = FacetCounts(), dict[int, Row]()
    counts.ledgers = (LAPTOP, CI)
    for number, label in moves:
        before = rows.pop(number, None)
        after = None
        if before is None:
            after = rows[number] = make_row(a_view(number, ledger=label), None, NOW)
        counts.move(before, after)
        if number % 3 == 0:
            counts.of("root:here", NOW)
    found = [row.about.ledger for row in rows.values()]
    expected = {f"root:{label or 'here'}": found.count(label) for label in ("", LAPTOP, CI)}
    assert {key: counts.of(key, NOW) for key in counts.most("root", 9)} == expected


_VALUES = st.one_of(st.none(), st.integers(), st.text(max_size=8), st.booleans())


@given(
    st.lists(st.one_of(_VALUES, st.dictionaries(st.sampled_from(["path", "label", "x"]), _VALUES)))
)
def test_whatever_was_kept_gives_ledgers_that_can_be_shown(values: list[object]) -> None:
    good = {"path": str(Path("/a").absolute()), "label": "good", "watch_only": False}
    found = kept_in([good, *values])
    assert found[0] == Beside(Path("/a").absolute(), "good", watch_only=False)
    assert all(is_label(one.label) and one.path.is_absolute() for one in found)
    assert len({one.label for one in found}) == len(found)


async def test_other_ledgers_stay_without_the_own(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        window, trouble = session.window, session.window.findChild(LedgerTrouble)
        assert trouble is not None
        (tmp_path / "own").rename(tmp_path / "away")
        await until(lambda: trouble.bar.title, session.bridge.health)
        assert trouble.bar.title == "The window’s own ledger folder is gone"
        await until(lambda: window.model.total == 3, session.bridge.batch)
        assert window.area.state == "table"
        trouble.bar._close.click()
        window.bridge.rescan()  # which tells how everything stands once more
        assert trouble.bar.title == ""
        (tmp_path / "away").rename(tmp_path / "own")
        await until(lambda: window.model.total == 5, session.bridge.batch)
        assert trouble.bar.title == ""


async def test_lost_folders_differ_from_empty_ones(tmp_path: Path, laptop: Beside) -> None:
    async with side_by_side(tmp_path, laptop) as session:
        area = session.window.area
        (tmp_path / "own").rename(tmp_path / "away")
        (tmp_path / LAPTOP).rename(tmp_path / "closed")
        await until(lambda: area.state == "trouble", area.populated)
        (tmp_path / "closed").rename(tmp_path / LAPTOP)
        await until(lambda: area.state == "table", area.populated)


def test_nothing_is_pushed_out_of_the_status_bar_by_a_long_path(qtbot: QtBot) -> None:
    bar = StatusBar()
    qtbot.addWidget(bar)
    last = QLabel("news", bar)
    bar.addPermanentWidget(last)
    bar.show()
    browser = "Chromium headless shell 156.0.8078.79"
    root = str(Path("/srv/very/long/path/to/the/folder/of/all/the/tasks"))
    bar.show_health(Health(root=root, engine="ready", browser="ready", browser_name=browser))
    bar.show_beside("bad", "2 beside, 1 lost", "laptop: gone")
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    others = [one for one in bar.findChildren(QWidget, options=direct) if one.isVisible()]
    others.remove(bar.root)
    taken, letter = sum(one.sizeHint().width() for one in others), bar.fontMetrics().maxWidth()
    bar.resize(taken + 40 * bar.fontMetrics().averageCharWidth(), 30)
    assert last.geometry().right() <= bar.width()
    assert "…" in bar.root.text()
    bar.resize(taken + 2 * len(root) * letter, 30)
    assert bar.root.text() == root
