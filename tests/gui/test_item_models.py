"""Every item model of the program keeps Qt's rules while its data changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QAbstractItemView, QLineEdit, QWidget

from gui.commands.palette import PaletteDialog
from gui.details.result_window import ResultWindow
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from tests.gui.result_ledgers import START, page, put_pages, put_picture, put_task
from tests.gui.task_views import task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import appearing, dialog_by_act, opened


class Watchers:
    """One for each model that some view shows; a rule that is broken is a warning, and fails."""

    def __init__(self) -> None:
        self._held: dict[int, QAbstractItemModelTester] = {}
        self.kinds: set[str] = set()

    def watch(self, window: QWidget) -> None:
        """Hold every model of `window` against the rules from now on."""
        mode = QAbstractItemModelTester.FailureReportingMode.Warning
        for model in _models(window):
            if id(model) not in self._held:
                self._held[id(model)] = QAbstractItemModelTester(model, mode)
                self.kinds.add(type(model).__name__)


def _models(window: QWidget) -> Iterable[QAbstractItemModel]:
    """Those that are ours; how lists of items keep theirs is Qt's own business."""
    found = [view.model() for view in window.findChildren(QAbstractItemView)]
    return [one for one in found if type(one).__module__.startswith("gui.")]


def put_events(folder: Path, first: int, number: int) -> None:
    with (folder / "events.jsonl").open("a") as file:
        for n in range(first, first + number):
            event = {"ts": START + n * 500, "kind": "log", "data": {"message": f"step {n}"}}
            file.write(json.dumps(event) + "\n")


async def look_at_all_tabs(session: Session, testers: Watchers) -> None:
    tabs = session.window.details._tabs
    for at in filter(tabs.isTabVisible, range(tabs.count())):
        tabs.setCurrentIndex(at)
        testers.watch(session.window)


async def test_the_windows_own_models_while_tasks_come_change_and_go(home: Path) -> None:
    folder = put_task(home, 1)
    put_picture(folder, "a.png")
    put_pages(folder, *map(page, range(8)))
    put_events(folder, 0, 20)
    steps = [{"tool": "navigate", "args": {"url": "http://site.test"}}]
    put_task(home, 2, kind="commands", args_summary={"commands": steps})
    async with opened(home) as session:
        window, model, testers = session.window, session.window.model, Watchers()
        window.resize(1200, 800)
        testers.watch(window)
        for number in (1, 2):
            window.table.select_ids([task_id(number)])
            await look_at_all_tabs(session, testers)
        put_events(folder, 20, 30)
        for number in range(3, 40):
            put_task(home, number, status="FAILED" if number % 3 else "COMPLETED")
        await settled(lambda: model.total == 39)
        window.table.selectAll()
        model.set_sort((("status", True), ("age", False)))
        window.filter_bar.set_text("status:failed")
        await settled(lambda: 0 < model.rowCount() < 39)
        window.clear_filter()
        for number in range(3, 30):
            shutil.rmtree(home / "tasks" / task_id(number))
        await settled(lambda: model.total == 12)
        assert {"TaskModel", "EventModel", "TimelineModel", "JsonModel"} <= testers.kinds


async def test_the_models_of_the_viewer_while_it_reads_and_narrows(home: Path) -> None:
    for number in (1, 2):
        pages = [page(n, status=200 if n % number else 404) for n in range(24)]
        put_pages(put_task(home, number), *pages[number:])
    async with opened(home) as session:
        session.window.table.select_ids([task_id(1)])
        testers = Watchers()
        # The type variable is bound to QDialog.
        with appearing(ResultWindow) as told:  # type: ignore[type-var]
            session.window.acts["open_result"].trigger()
            viewer = await told
        testers.watch(viewer)
        await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)
        for at in range(viewer.tabs.count()):
            viewer.tabs.setCurrentIndex(at)
            testers.watch(viewer)
        viewer.show_tab(viewer.json)
        await settled(lambda: viewer.json.view.model.rowCount())
        viewer.json.view.tree.expand(viewer.json.view.model.index(0, 0))
        viewer.show_tab(viewer.diff)
        await settled(lambda: viewer.diff.model.rowCount())
        viewer.show_tab(viewer.pages)
        viewer.pages.search.setText("site.test/1")
        await settled(lambda: 0 < viewer.pages.model.rowCount() < 23)
        QTest.keyClick(viewer, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        await settled(lambda: viewer.task_id == task_id(2))
        viewer.close()
        assert {"UnitModel", "DiffModel", "JsonModel"} <= testers.kinds


async def test_the_models_of_palette_and_start_dialog_while_one_types(home: Path) -> None:
    for number in range(1, 12):
        put_task(home, number)
    async with opened(home) as session:
        window, testers = session.window, Watchers()
        palette = await dialog_by_act(window, "palette", PaletteDialog)
        testers.watch(palette)
        (field,) = palette.findChildren(QLineEdit)
        for typed in ("e", "x", "p", "zzz"):
            QTest.keyClicks(field, typed)
            await settled(field.hasFocus)
        palette.reject()
        start = await dialog_by_act(window, "new", StartDialog)
        start.form.choose("commands")
        testers.watch(start)
        keys = Qt.Key
        (table,) = [one for one in start.findChildren(QAbstractItemView) if one.isVisible()][-1:]
        for key in (keys.Key_Down, keys.Key_Delete):
            QTest.keyClick(table, key)
        start.reject()
        assert "CommandRows" in testers.kinds
