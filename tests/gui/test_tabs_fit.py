"""The text of a tab has its whole height, selected or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QStyle, QStyleOptionTab, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from gui.details.raw import Raw
from gui.start.start_dialog import StartDialog
from gui.style.theme import Theme, apply_theme, choose_size
from gui.style.widgets import Tabs
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import opened


def cut(bar: QTabBar) -> list[str]:
    """The texts that are higher than their place."""
    option, found = QStyleOptionTab(), []
    for at in filter(bar.isTabVisible, range(bar.count())):
        bar.initStyleOption(option, at)
        place = bar.style().subElementRect(QStyle.SubElement.SE_TabBarTabText, option, bar)
        found += [bar.tabText(at)] if place.height() < bar.fontMetrics().height() else []
    return found


@pytest.mark.parametrize("percent", [70, 100, 200])
def test_no_tab_cuts_the_dots_and_the_descenders_of_its_text(
    qtbot: QtBot, qapp: QApplication, percent: int
) -> None:
    apply_theme(qapp, Theme.LIGHT)
    try:
        choose_size(percent)
        tabs = Tabs()
        qtbot.addWidget(tabs)
        for text in ("Übersicht", "JSON", "Log"):
            tabs.addTab(QWidget(), text)
        tabs.show()
        assert cut(tabs.tabBar()) == []
    finally:
        choose_size(100)


async def test_no_window_has_tabs_that_cut_their_text(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        await tab_of(session, 1, "raw", Raw)
        await viewer_of(session, 1)
        session.window.requests.new_task({})
        (dialog,) = await settled(lambda: session.window.findChildren(StartDialog))
        bars = session.window.findChildren(QTabBar)
        texts = {bar.tabText(0) for bar in bars}
        assert {"Overview", "Pages", "Form"} <= texts
        assert [cut(bar) for bar in bars] == [[] for _ in bars]
        dialog.close()
