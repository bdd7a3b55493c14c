"""The selected item of a list in full below it, and what the menu of a row does with it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton

from engine.model.display import ELLIPSIS
from gui.details.unit_list import Items, UnitList
from gui.style.questions import Question
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.test_result_steps import viewer_at
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import opened

LONG = "http://site.test/" + "a-long-part/" * 60 + "end.html"
REASON = "net::ERR_CONNECTION_RESET: " + "the server closed the connection. " * 20 + "That is all."


def put_failures(home: Path) -> Path:
    """A crawl with a stored page, its screenshot, and a page that failed."""
    folder = put_task(home, 1)
    put_picture(folder, "1.png", 300)
    stored = page(0, screenshot="artifacts/1.png")
    put_pages(folder, stored, page(1, url=LONG, status=503, error=REASON, title="<b>x</b>"))
    return folder


async def listed(session: Any) -> UnitList:
    items: Items = await tab_of(session, 1, "items", Items)
    await settled(lambda: items.list.model.total == 2 and not items.list.is_reading)
    return items.list


def entries(units: UnitList, row: int) -> dict[str, Any]:
    menu = units.menu(units.model.unit_at(row))
    return {act.text().replace("&", ""): act for act in menu.actions() if act.text()}


async def test_redirects_and_custom_fields_of_a_page_stand_below_its_list(home: Path) -> None:
    hops = [{"url": "http://site.test/old", "status": 301}, "strange"]
    fields = {"price": "<b>12</b>", "tags": ["red", "blue"], "none": ""}
    told = {"redirects": hops, "final_url": "http://site.test/new", "fields": fields}
    put_pages(put_task(home, 1), page(0, **told), page(1, redirects="none", fields=7))
    async with opened(home) as session:
        units = await listed(session)
        units.table.selectRow(0)
        await settled(lambda: "price:" in units.strip.text.toPlainText())
        *_, led, own = units.strip.text.toPlainText().splitlines()
        assert led == "Redirects: http://site.test/old (301) → http://site.test/new"
        assert own == "price: <b>12</b> · tags: red, blue"
        units.table.selectRow(1)
        assert "price:" not in units.strip.text.toPlainText()


async def test_the_facts_of_a_page_stand_below_its_list(home: Path) -> None:
    facts = {"language": "de", "words": 1234, "h1": "Big <i>news</i>", "images_without_alt": 0}
    facts |= {"structured_data": ["Product", 3, "Offer"], "links_nofollow": [1], "strange": "x"}
    put_pages(put_task(home, 1), page(0, facts=facts), page(1, facts="none"))
    async with opened(home) as session:
        units = await listed(session)
        units.table.selectRow(0)
        await settled(lambda: "H1:" in units.strip.text.toPlainText())
        *_, first, second, third = units.strip.text.toPlainText().splitlines()
        assert first == "H1: Big <i>news</i>"
        assert second == "Structured data: Product, Offer"
        assert third == "Page language: de · Words: 1,234"
        units.table.selectRow(1)
        assert "H1:" not in units.strip.text.toPlainText()


async def test_a_chip_of_one_task_hides_nothing_of_the_next(home: Path) -> None:
    put_failures(home)
    put_pages(put_task(home, 2), page(0), page(1))
    async with opened(home) as session:
        units = await listed(session)
        await settled(lambda: units.chips._chips["failed"].isVisible())
        units.chips._chips["failed"].click()
        await settled(lambda: units.model.rowCount() == 1)
        await tab_of(session, 2, "items", Items)
        await settled(lambda: not units.is_reading and units.model.total == 2)
        assert units.model.rowCount() == 2


async def test_the_selected_item_is_shown_in_full_below_its_list(home: Path) -> None:
    put_failures(home)
    async with opened(home) as session:
        units = await listed(session)
        strip = units.strip
        assert not strip.isVisible()
        units.table.selectRow(1)
        assert units.model.unit_at(1).name.endswith(ELLIPSIS)
        await settled(lambda: LONG in strip.text.toPlainText())
        text = strip.text.toPlainText()
        assert strip.isVisible()
        assert "That is all." in text
        assert "<b>x</b>" in text  # plain text
        assert "Status: 503" in text
        assert not strip.picture.isVisible()
        units.table.selectRow(0)
        assert LONG not in strip.text.toPlainText()
        assert "Size: 1.0 kB" in strip.text.toPlainText()
        await settled(strip.picture.isVisible)
        assert not strip.picture.icon().isNull()


async def test_the_strip_leads_to_the_screenshot_and_to_the_source(home: Path) -> None:
    folder = put_failures(home)
    async with opened(home) as session:
        viewer = await viewer_at(session, folder.name, None)
        await settled(lambda: viewer.pages.model.total == 2)
        viewer.pages.table.selectRow(0)
        strip = viewer.pages.strip
        await settled(strip.picture.isVisible)
        strip.picture.click()
        assert viewer.tabs.currentWidget() is viewer.preview
        viewer.show_tab(viewer.pages)
        strip.source.click()
        assert viewer.tabs.currentWidget() is viewer.source
        viewer.pages.search.setText("no such page")
        await settled(lambda: viewer.pages.model.rowCount() == 0)
        assert strip.isHidden()


async def test_the_menu_of_a_row_copies_the_whole_address(home: Path) -> None:
    put_failures(home)
    async with opened(home) as session:
        units = await listed(session)
        units.table.selectRow(1)
        QGuiApplication.clipboard().setText("")
        entries(units, 1)["Copy address"].trigger()
        await settled(lambda: QGuiApplication.clipboard().text() == LONG)
        entries(units, 1)["Copy row"].trigger()
        assert "\t" in QGuiApplication.clipboard().text()


async def test_the_menu_of_a_row_opens_web_pages_only(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_pages(put_task(home, 1), page(0), page(1, url="file:///etc/passwd"))
    urls: list[str] = []

    def open_url(url: QUrl) -> bool:
        urls.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    async with opened(home) as session:
        units = await listed(session)
        entries(units, 0)["Open in browser"].trigger()
        assert urls == [page(0)["url"]]
        assert "Open in browser" not in entries(units, 1)


async def test_the_menu_of_a_row_offers_only_what_is_possible(home: Path) -> None:
    put_failures(home)
    async with opened(home) as session:
        units = await listed(session)
        assert "Show screenshot" in entries(units, 0)
        assert "Retry this page…" not in entries(units, 0)
        assert "Show screenshot" not in entries(units, 1)
        assert "Retry this page…" not in entries(units, 1)  # the list holds its start only


async def test_a_row_menu_opens_at_the_pointer(home: Path) -> None:
    put_failures(home)
    async with opened(home) as session:
        units = await listed(session)
        at = units.table.visualRect(units.model.index(1, 1)).center()
        units.table.customContextMenuRequested.emit(QPoint(at))
        menu = await settled(QApplication.activePopupWidget)
        assert isinstance(menu, QMenu)
        assert menu.actions()[0].text() == "Copy &address"
        menu.close()


async def test_a_failed_page_is_retried_alone_after_a_question(home: Path) -> None:
    failed = [page(number, status=None, error="net::ERR_CONNECTION_RESET") for number in (1, 2)]
    args = {"url": "http://site.test/", "max_pages": 3}
    folder = put_task(home, 1, engine={"host": socket.gethostname(), "args": args})
    put_pages(folder, page(0), *failed)
    async with opened(home) as session:
        units: UnitList = (await tab_of(session, 1, "items", Items)).list
        await settled(lambda: units.model.total == 3 and units.retry)
        found = await session.bridge.engine.requests.remainder(folder.name, page=failed[1]["url"])
        assert found.request is not None
        assert (found.request.args["url"], found.taken) == (failed[1]["url"], 1)
        entries(units, 2)["Retry this page…"].trigger()
        (dialog,) = await settled(lambda: session.window.findChildren(Question))
        said = " ".join(label.text() for label in dialog.findChildren(QLabel))
        assert "Try the failed page again?" in said
        assert failed[1]["url"] in said
        (start,) = (one for one in dialog.findChildren(QPushButton) if one.text() == "Start")
        start.click()
        model = session.window.model
        await settled(lambda: len(model.ids) == 2)
        new = next(model.view_of(one) for one in model.ids if one != folder.name)
        assert new is not None
        assert getattr(new.entry, "url", "") == failed[1]["url"]
