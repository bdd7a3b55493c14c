"""Facts of pages as columns of the result viewer: chosen, sorted, searched, copied, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from gui.commands.exporting import ExportDialog
from gui.details.result_window import SIZE, SMALLEST, ResultWindow
from gui.details.unit_columns import PAGE_COLUMNS, search_example, title_of, width_of
from gui.details.unit_list import Items, UnitList, UnitModel
from gui.style.tables import PAD
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import FAR_MS, opened

FACTS = {
    "content_type": "text/html",
    "charset": "utf-8",
    "language": "de",
    "canonical": "http://site.test/0",
    "description": "=All about shoes",
    "robots": "index",
    "h1": "Big <i>news</i>",
    "h1_count": 1,
    "words": 1234,
    "links_internal": 12,
    "links_external": 0,
    "links_nofollow": 1,
    "images": 4,
    "images_without_alt": 2,
    "structured_data": ["Product", "Offer"],
    "content_hash": "00ff00ff00ff00ff",
}
AT = {column.key: at for at, column in enumerate(PAGE_COLUMNS)}
USUAL = ["number", "code", "url", "title", "depth", "response", "render", "size", "error"]
DOWN = Qt.SortOrder.DescendingOrder


def put_crawl(home: Path, number: int = 1) -> None:
    """A crawl with three pages: with facts, with others, and with none."""
    more = {"redirects": [{"url": "http://site.test/old"}], "transferred_bytes": 500}
    few = {**FACTS, "words": 99, "description": "", "h1": "", "h1_count": 0, "language": "en-GB"}
    put_pages(
        put_task(home, number),
        page(0, facts=FACTS, links_found=1500, **more),
        page(1, facts=few, redirects=[], transferred_bytes=20_000),
        page(2, status=404, error="HTTP 404"),
    )


def shown(units: UnitList) -> list[str]:
    header = units.table.horizontalHeader()
    return [one.key for at, one in enumerate(PAGE_COLUMNS) if not header.isSectionHidden(at)]


def entries(units: UnitList) -> dict[str, QAction]:
    """The entries of the column menu, which the button fills whenever it opens."""
    assert units.columns is not None
    menu = units.columns.button.menu()
    menu.aboutToShow.emit()
    return {one.text(): one for one in menu.actions() if one.text() and one.isVisible()}


def choose(units: UnitList, *keys: str) -> None:
    for key in keys:
        entries(units)[title_of(key)].trigger()


def numbers(units: UnitList) -> list[int]:
    return [units.model.unit_at(row).number for row in range(units.model.rowCount())]


async def searched(units: UnitList, text: str, count: int) -> list[int]:
    units.search.setText(text)
    await settled(lambda: not units._typed.is_pending and units.model.rowCount() == count)
    return numbers(units)


async def test_facts_are_hidden_until_somebody_chooses_them(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        assert shown(units) == USUAL
        choose(units, "words", "h1", "redirects")
        assert shown(units) == [*USUAL[:-1], "redirects", "h1", "words", "error"]
        cells = [units.model.index(0, AT[key]).data() for key in ("redirects", "h1", "words")]
        assert cells == ["1", "Big <i>news</i>", "1,234"]
        choose(units, "words", "depth")
        assert "words" not in shown(units)
        assert "depth" not in shown(units)
        kept = session.window.preferences.get("viewer.columns", dict)
        assert kept == {"h1": True, "redirects": True, "depth": False}, "no more than differs"


async def test_a_choice_holds_for_the_next_start_until_it_is_reset(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        choose((await viewer_of(session, 1)).pages, "words", "depth")
        kept = session.window.preferences.as_text()  # as in the file
        assert json.loads(kept)["values"]["viewer.columns"] == {"words": True, "depth": False}
    async with opened(home) as session:
        session.window.preferences.take_text(kept)
        units = (await viewer_of(session, 1)).pages
        assert "words" in shown(units)
        assert "depth" not in shown(units)
        entries(units)["&Reset columns"].trigger()
        assert shown(units) == USUAL
        assert session.window.preferences.get("viewer.columns", dict) == {}


async def test_a_damaged_choice_counts_as_none(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        kept = {"words": "yes", "no such column": True, "url": False}
        session.window.preferences.set("viewer.columns", kept)
        units = (await viewer_of(session, 1)).pages
        assert shown(units) == USUAL


async def test_the_address_always_stays(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        assert [name for name, one in entries(units).items() if not one.isEnabled()] == ["URL"]


async def test_a_rare_column_is_shown_by_use_until_it_is_chosen(home: Path) -> None:
    put_crawl(home)
    put_pages(put_task(home, 2), page(0, attempts=3), page(1))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        units = viewer.pages
        assert "attempts" not in shown(units)
        await shown_other(viewer, 1)
        assert "attempts" in shown(units)
        choose(units, "attempts")
        assert "attempts" not in shown(units)
        await shown_other(viewer, -1)
        choose(units, "attempts")
        assert "attempts" in shown(units), "chosen, although no page has a value"


async def shown_other(viewer: ResultWindow, way: int) -> None:
    button = viewer.on if way > 0 else viewer.back
    await settled(button.isEnabled)
    before = viewer.task_id
    button.click()
    assert viewer.task_id != before
    await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)


async def test_the_menu_opens_with_the_keyboard_and_at_the_header(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        assert units.columns is not None
        units.search.setFocus()
        QTest.keyClick(units.search, Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is units.columns.button
        header = units.table.horizontalHeader()
        header.customContextMenuRequested.emit(QPoint(5, 5))
        (menu,) = await settled(lambda: [m for m in header.findChildren(QMenu) if m.isVisible()])
        marks = {one.text(): one.isChecked() for one in menu.actions() if one.isCheckable()}
        assert marks["Status"]
        assert not marks["Words"]
        menu.close()


async def test_other_kinds_have_no_columns_of_pages(home: Path) -> None:
    step = {"tool_name": "browser_navigate", "intention": "open it", "status": "success"}
    put_crawl(home)
    put_pages(put_task(home, 2, "commands"), step)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        choose(viewer.pages, "words")
        await shown_other(viewer, 1)
        assert shown(viewer.pages) == ["number", "code", "url", "title"]
        assert not {"Words", "Depth", "H1"} & entries(viewer.pages).keys()
        await shown_other(viewer, -1)
        assert "words" in shown(viewer.pages)


@pytest.mark.usefixtures("german")
async def test_parts_of_evidence_are_named_as_in_the_details(home: Path) -> None:
    put_pages(put_task(home, 1, "oc_evidence_bundle"), {"part": "dom"}, {"part": "screenshot"})
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        model = viewer.pages.model
        assert [model.index(row, AT["url"]).data() for row in (0, 1)] == ["DOM", "Bild"]
        assert model.headerData(AT["url"], Qt.Orientation.Horizontal) == "Teil"
        viewer.pages.table.selectRow(1)
        assert viewer.pages.strip.text.toPlainText().startswith("Bild\n")


async def test_columns_of_facts_sort_numbers_as_numbers(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        choose(units, "words", "transferred", "h1_count", "description")
        for key, up in (
            ("words", [2, 1, 0]),
            ("transferred", [2, 0, 1]),
            ("h1_count", [2, 1, 0]),
            ("links", [1, 2, 0]),
            ("description", [1, 2, 0]),
        ):
            units.table.sortByColumn(AT[key], Qt.SortOrder.AscendingOrder)
            assert numbers(units) == up, key
        units.table.sortByColumn(AT["words"], DOWN)
        assert numbers(units) == [0, 1, 2]
        choose(units, "words")
        assert numbers(units) == [0, 1, 2]
        assert units.table.horizontalHeader().sortIndicatorSection() == -1, "no hidden order"


async def test_a_copy_has_the_visible_columns_in_their_order(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        hidden = ("number", "title", "depth", "response", "render", "size", "error")
        choose(units, "transferred", "description", "words", *hidden)
        units.table.selectRow(0)
        units.table.setFocus()
        QTest.keySequence(units.table, "Ctrl+C")
        copied = QGuiApplication.clipboard().text()
        assert copied == f"200\t{page(0)['url']}\t500 B\t'=All about shoes\t1,234"


async def test_terms_search_the_facts_of_pages(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        assert await searched(units, "words:<100", 1) == [1]
        assert await searched(units, "-description:*", 2) == [1, 2]
        assert await searched(units, "redirects:>0", 1) == [0]
        assert await searched(units, "language:en OR status:404", 2) == [1, 2]
        assert await searched(units, "NEWS shoes", 1) == [0]
        assert not units.mistake.isVisible()


async def test_a_mistake_in_the_search_is_shown_and_can_be_corrected(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        units = (await viewer_of(session, 1)).pages
        patience = units.mistake._patience
        pause_ms, patience.interval_ms = patience.interval_ms, FAR_MS
        assert await searched(units, "absent", 0) == []
        assert await searched(units, "wrods:<100", 3) == [0, 1, 2]
        assert not units.mistake.isVisible(), "nobody is interrupted while typing"
        assert patience.is_pending
        patience.interval_ms = pause_ms
        patience.request()  # the pause begins now, not while this machine rested
        await settled(units.mistake.isVisible)
        assert "‘wrods’" in units.mistake.sentence.text()
        assert units.mistake.mend.text() == "Write words:<100"
        units.mistake.mend.click()
        assert numbers(units) == [1]
        assert not units.mistake.isVisible()
        units.search.setText("words:many")
        await settled(units.mistake.isVisible)
        assert not units.mistake.mend.isVisible()
        units.mistake.as_words.click()
        assert units.search.text() == '"words:many"'
        assert numbers(units) == []
        assert not units.mistake.isVisible()


async def test_an_export_of_this_view_has_exactly_the_pages_shown(
    home: Path, tmp_path: Path
) -> None:
    put_crawl(home)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        units = viewer.pages
        for at, (text, count) in enumerate({"words:<100": 1, "-redirects:>0": 2}.items()):
            found = await searched(units, text, count)
            viewer.this_view.trigger()
            (dialog,) = await settled(lambda: viewer.findChildren(ExportDialog))
            dialog.choose("jsonl")
            file = tmp_path / f"{at}.jsonl"
            dialog.export_to(file)
            await settled(dialog.folder.isVisible)
            rows = [json.loads(line)["url"] for line in file.read_text().splitlines()]
            assert rows == [page(number)["url"] for number in found]
            dialog.close()
            dialog.setParent(None)


async def test_the_items_of_the_details_are_searched_alike(home: Path) -> None:
    put_crawl(home)
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        units = items.list
        await settled(lambda: units.model.total == 3 and not units.is_reading)
        assert units.columns is None
        assert await searched(units, "h1_count:0", 1) == [1]


def test_every_column_has_a_title_with_room_for_it(qapp: object) -> None:
    for column in PAGE_COLUMNS:
        title = title_of(column.key)
        assert title
        if column.is_extra:
            assert width_of(column) > len(title)


def test_the_header_tells_how_a_column_is_searched(qapp: object) -> None:
    model = UnitModel(PAGE_COLUMNS)
    tip = int(Qt.ItemDataRole.ToolTipRole)
    found: dict[str, Any] = {
        one.key: model.headerData(at, Qt.Orientation.Horizontal, tip)
        for at, one in enumerate(PAGE_COLUMNS)
    }
    assert "words:&lt;100" in found["words"], "a tip is rich text"
    assert "status:404" in found["code"]
    assert found["number"] is None
    assert {one.key for one in PAGE_COLUMNS if not search_example(one)} == {"number", "earlier"}


async def test_custom_fields_have_a_column_while_a_page_has_some(home: Path) -> None:
    fields = {"price": "<i>12</i>", "tags": ["red", "blue"], "odd": 7}
    put_pages(put_task(home, 1), page(0), page(1, fields=fields), page(2, fields="none"))
    put_pages(put_task(home, 2), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        at = next(at for at, one in enumerate(PAGE_COLUMNS) if one.key == "fields")
        assert not viewer.pages.table.isColumnHidden(at)
        model = viewer.pages.model
        cells = [model.index(row, at).data() for row in range(3)]
        assert cells == ["", "price: <i>12</i> · tags: red, blue", ""]
        viewer.pages.search.setText("fields:red")
        await settled(lambda: model.rowCount() == 1)
        viewer = await viewer_of(session, 2)
        assert viewer.pages.table.isColumnHidden(at)


async def test_an_address_has_the_room_that_the_other_columns_do_not_need(home: Path) -> None:
    url = "http://127.0.0.1:8902/slow-body"
    put_pages(put_task(home, 1), page(0, url=url, redacted=1), page(1, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.resize(*SIZE)
        table = viewer.pages.table
        assert {"redacted", "error"} <= set(shown(viewer.pages))
        assert table.columnWidth(AT["url"]) - PAD > table.fontMetrics().horizontalAdvance(url)
        widths = [table.columnWidth(at) for at in range(len(PAGE_COLUMNS))]
        assert sum(widths) == table.viewport().width()


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (
            "commands",
            [
                {"intention": "click", "tool_name": "browser_interact"},
                {"intention": "click", "error": "not done within 30 s: #nowhere-to-be-found-here"},
            ],
        ),
        (
            "crawl",
            [page(0), page(1, status=None, error="robots.txt could not be read: HTTP 503")],
        ),
        ("crawl", [page(0), page(1, url=f"http://site.test/{'page' * 8}", error="HTTP 404")]),
    ],
)
async def test_names_and_errors_share_the_room_by_their_longest_text(
    home: Path, kind: str, rows: list[dict[str, Any]]
) -> None:
    put_pages(put_task(home, 1, kind, "FAILED"), *rows)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.resize(*SIZE)
        table, model = viewer.pages.table, viewer.pages.model
        for key in ("url", "error"):
            text = str(model.index(1, AT[key]).data())
            room = table.columnWidth(AT[key]) - PAD
            assert table.fontMetrics().horizontalAdvance(text) <= room, text
        widths = [table.columnWidth(at) for at in range(len(PAGE_COLUMNS))]
        assert sum(widths) == table.viewport().width()


async def test_a_small_result_window_scrolls_no_further_than_it_must(home: Path) -> None:
    put_pages(put_task(home, 1), page(0, redacted=1), page(1, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        table = viewer.pages.table
        viewer.resize(*SMALLEST)
        await settled(lambda: table.horizontalHeader().length() > table.viewport().width())
        least = 24 * table.fontMetrics().averageCharWidth()
        assert table.columnWidth(AT["url"]) - PAD == least
        assert all(table.columnWidth(AT[key]) > PAD for key in shown(viewer.pages))


async def test_errors_have_a_column_only_while_a_page_has_one(home: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1))
    put_pages(put_task(home, 2), page(0), page(1, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        assert "error" not in shown(viewer.pages)
        url = viewer.pages.table.columnWidth(AT["url"])
        await shown_other(viewer, 1)
        assert "error" in shown(viewer.pages)
        assert viewer.pages.table.columnWidth(AT["url"]) < url


@pytest.mark.usefixtures("german")
async def test_a_title_of_a_page_column_is_shown_whole(home: Path) -> None:
    put_pages(put_task(home, 1), page(0, redacted=1), page(1, error="HTTP 404"))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.resize(*SIZE)
        table = viewer.pages.table
        metrics = table.horizontalHeader().fontMetrics()
        for at in (AT[key] for key in shown(viewer.pages)):
            title = str(viewer.pages.model.headerData(at, Qt.Orientation.Horizontal))
            room = table.columnWidth(at) - PAD
            assert metrics.elidedText(title, Qt.TextElideMode.ElideRight, room) == title
