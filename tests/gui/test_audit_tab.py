"""The Audit tab of the result viewer shows the reports about a crawl's pages."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtTest import QAbstractItemModelTester, QTest
from pytestqt.qtbot import QtBot

from engine.results.site_audit import REPORT_OF, REPORTS
from gui.commands.exporting import ExportDialog
from gui.details import audit_tab
from gui.details.audit_tab import AuditTab, ReportModel
from gui.details.result_window import SIZE, ResultWindow
from gui.startup.session import Session
from gui.style.tables import PAD, PlainTable
from gui.style.widgets import EmptyNote
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.test_exporting import choose_rows
from tests.gui.test_result_tabs import settled
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import opened

NAMES = [one.name for one in REPORTS]


def linking(number: int, *to: int, **fields: Any) -> dict[str, Any]:
    links = [{"href": page(one)["url"], "text": f"<b>to {one}</b>"} for one in to]
    return page(number, links=links, links_found=len(links), content=f"Text {number}", **fields)


def gone(number: int, **fields: Any) -> dict[str, Any]:
    told = {"status": 404, "error": "HTTP 404", "error_code": "http", "title": "", **fields}
    return page(number, **told)


async def audit_of(session: Session, number: int = 1) -> tuple[ResultWindow, AuditTab]:
    """The viewer's Audit tab, once it has read the pages."""
    viewer = await viewer_of(session, number)
    viewer.show_tab(viewer.audit)
    await settled(lambda: viewer.audit.report_name)
    return viewer, viewer.audit


def choose(tab: AuditTab, name: str) -> ReportModel:
    tab.choice.selectRow(NAMES.index(name))
    assert tab.table is not None
    model = tab.table.model()
    assert isinstance(model, ReportModel)
    return model


def cells(model: ReportModel) -> list[list[str]]:
    return [
        [model.text_at(row, at) for at in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


async def test_the_first_report_with_rows_is_shown(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1, 2), linking(1, 2), gone(2))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        assert tab.report_name == "broken_links"
        assert [tab.reports.index(row, 1).data() for row in range(2)] == ["2", "0"]
        url = page(2)["url"]
        assert cells(choose(tab, "broken_links")) == [
            [url, "HTTP 404", page(0)["url"], "<b>to 2</b>", "", ""],
            [url, "HTTP 404", page(1)["url"], "<b>to 2</b>", "", ""],
        ]
        choose(tab, "links_in")
        assert tab.about.text() == "How many pages link to each page, the fewest first."


async def test_a_report_is_searched_and_sorted(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1, 2, 3), gone(1), gone(2), gone(3, error="HTTP 500"))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        model = choose(tab, "broken_links")
        assert tab.table is not None
        tab.table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        assert [row[1] for row in cells(model)] == ["HTTP 500", "HTTP 404", "HTTP 404"]
        tab.search.setText("404 TO")
        await settled(lambda: model.rowCount() == 2)
        assert "2 of 3" in tab.state.text()
        tab.search.setText("nowhere")
        await settled(lambda: model.rowCount() == 0)
        note = tab.table.findChild(EmptyNote)
        assert note is not None
        assert note.text() == "No row matches the search."
        choose(tab, "redirects")  # a search of one report hides nothing of another
        assert tab.search.text() == ""
        assert choose(tab, "broken_links").rowCount() == 3


async def test_a_crawl_of_one_address_says_that_it_cannot_find_orphans(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        assert tab.reports.index(NAMES.index("orphans"), 1).data() == "–"
        choose(tab, "orphans")
        assert tab.table is not None
        note = tab.table.findChild(EmptyNote)
        assert note is not None
        assert note.text().startswith("Only a crawl of a sitemap")


async def test_find_in_the_tab_is_its_own_search(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        QTest.keySequence(viewer, QKeySequence(QKeySequence.StandardKey.Find))
        assert viewer.tabs.currentWidget() is tab
        assert tab.search.hasFocus()


async def test_a_crawl_that_goes_on_can_be_read_again(home: Path) -> None:
    folder = put_task(home, 1, status="RUNNING")
    put_pages(folder, linking(0, 1))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        assert "has not ended" in tab.state.text()
        assert tab.reports.index(0, 1).data() == "0"
        put_pages(folder, linking(0, 1), gone(1))
        assert tab.again.isVisible()
        tab.again.click()
        await settled(lambda: tab.reports.index(0, 1).data() == "1")


async def test_enter_on_a_row_shows_its_page(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        viewer.pages.search.setText("hides everything")
        await settled(lambda: not viewer.pages.model.rowCount())
        choose(tab, "broken_links")
        assert tab.table is not None
        tab.table.selectRow(0)
        QTest.keyClick(tab.table, Qt.Key.Key_Return)
        await settled(lambda: viewer.tabs.currentWidget() is viewer.pages)
        await settled(lambda: viewer.pages.current is not None)
        assert viewer.pages.current is not None
        assert viewer.pages.current.name == page(0)["url"]  # which holds the broken link
        assert viewer.pages.search.text() == ""


async def test_the_menu_of_a_cell_has_the_address_in_it(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        model = choose(tab, "broken_links")
        assert tab.table is not None
        tab.table.selectRow(0)
        for column, number in ((0, 1), (1, 1), (2, 0)):
            menu = tab.menu(tab.table, model.index(0, column))
            names = [one.text() for one in menu.actions()]
            assert names == ["Show &page", "Copy &address", "Open in &browser", "Copy &row"]
            menu.actions()[1].trigger()
            assert QGuiApplication.clipboard().text() == page(number)["url"]
            menu.actions()[3].trigger()
            assert QGuiApplication.clipboard().text().split("\t")[1] == "HTTP 404"
            menu.deleteLater()


async def test_this_view_exports_the_shown_rows_of_the_report(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1, 2), gone(1), gone(2))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        model = choose(tab, "broken_links")
        tab.search.setText("to 2")
        await settled(lambda: model.rowCount() == 1)
        viewer.this_view.trigger()
        (dialog,) = await settled(lambda: viewer.findChildren(ExportDialog))
        dialog.choose("csv")
        dialog.export_to(tmp_path / "broken.csv")
        await settled(dialog.folder.isVisible)
        text = (tmp_path / "broken.csv").read_text("utf-8-sig")
        (row,) = csv.DictReader(text.splitlines())
        assert (row["target"], row["text"]) == (page(2)["url"], "<b>to 2</b>")
        dialog.close()


async def test_only_crawls_have_the_tab(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    put_pages(put_task(home, 2, "commands"), {"tool_name": "navigate", "status": "success"})
    async with opened(home) as session:
        viewer, _ = await audit_of(session, 1)
        at = viewer.tabs.indexOf(viewer.audit)
        assert viewer.tabs.isTabVisible(at)
        viewer = await viewer_of(session, 2)
        assert not viewer.tabs.isTabVisible(at)
        assert viewer.tabs.currentWidget() is viewer.pages


async def test_a_crawl_without_pages_says_so(home: Path) -> None:
    put_task(home, 1, status="FAILED")
    async with opened(home) as session:
        choose_rows(session, 1)
        keys = Qt.KeyboardModifier.ControlModifier
        QTest.keyClick(session.window.table, Qt.Key.Key_Return, keys)
        (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
        assert isinstance(viewer, ResultWindow)
        viewer.show_tab(viewer.audit)
        await settled(lambda: "no pages of a site" in viewer.audit.state.text())


def test_report_models_are_proper_models(qtbot: QtBot, monkeypatch: Any) -> None:
    monkeypatch.setattr(audit_tab, "MOST_SHOWN", 3)
    model = ReportModel(REPORT_OF["slow"])
    tester = QAbstractItemModelTester(model)
    model.show_rows([(f"http://site.test/{one}", 1.0 * one, None, "T") for one in range(9)])
    assert model.total == 3
    model.sort(1, Qt.SortOrder.DescendingOrder)
    assert [row[1] for row in cells(model)] == ["2", "1", "0"]
    model.sort(-1)
    model.set_filter("/1")
    assert len(cells(model)) == 1
    del tester


LOOP: Final[dict[str, Any]] = {
    "status": None,
    "error": "too many redirects",
    "error_code": "redirects",
}


def room_of(table: PlainTable, column: int) -> int:
    return table.columnWidth(column) - PAD


async def test_a_problem_is_not_cut_for_empty_columns_beside_it(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1, **LOOP))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        viewer.resize(*SIZE)
        choose(tab, "broken_links")
        table = tab.table
        assert table is not None
        assert room_of(table, 1) >= table.fontMetrics().horizontalAdvance(LOOP["error"])
        names = [one.name for one in REPORT_OF["broken_links"].columns]
        shown = [name for at, name in enumerate(names) if not table.isColumnHidden(at)]
        assert shown == ["target", "problem", "page", "text"]


async def test_how_a_broken_link_was_found_is_shown_where_it_is_known(home: Path) -> None:
    links = [{"href": page(1)["url"], "text": "x", "rel": "nofollow"}]
    put_pages(put_task(home, 1), page(0, links=links, links_found=1), gone(1))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        choose(tab, "broken_links")
        assert tab.table is not None
        assert not tab.table.isColumnHidden(4)
        assert tab.table.isColumnHidden(5)


async def test_the_page_and_no_number_has_the_spare_room_of_a_report(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), linking(1, 0))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        viewer.resize(1390, 700)
        choose(tab, "links_in")
        table = tab.table
        assert table is not None
        numbers = [table.columnWidth(at) for at in (1, 2, 3)]
        assert table.columnWidth(0) > 2 * sum(numbers)
        assert table.columnWidth(0) + sum(numbers) == table.viewport().width()


@pytest.mark.usefixtures("german")
async def test_problems_are_told_and_found_in_the_language_of_the_window(home: Path) -> None:
    put_pages(put_task(home, 1), linking(0, 1), gone(1, **LOOP), gone(2))
    async with opened(home) as session:
        _, tab = await audit_of(session)
        model = choose(tab, "broken_links")
        assert [row[1] for row in cells(model)] == ["zu viele Weiterleitungen", "HTTP 404"]
        tab.search.setText("Weiterleitungen")
        await settled(lambda: model.rowCount() == 1)
        assert tab.keep is not None
        kept = [tab.keep({"problem": problem}) for problem in (LOOP["error"], "HTTP 404", None)]
        assert kept == [True, False, False]
