"""Counts of one have the singular, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from engine.model.config import Settings
from engine.model.records import Health
from engine.service.rerun import Asked
from gui.commands.exporting import ExportDialog
from gui.context.preferences import Preferences
from gui.engine_link.bridge import Bridge
from gui.settings.setting_controls import Diagnostics, Number, control_for
from gui.settings.setting_pages import SettingPages
from gui.start.starting import Estimate
from gui.window.status_bar import StatusBar
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.test_exporting import choose_rows
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened


@pytest.fixture
def place(qtbot: QtBot) -> QWidget:
    place = QWidget()
    qtbot.addWidget(place)
    return place


def number_of(place: QWidget, key: str) -> QSpinBox:
    """The box of this preference, as the settings make it."""
    items = [
        item for each in SettingPages(Diagnostics).pages() for item in each.items if item.key == key
    ]
    (control,) = (one.control for one in items if isinstance(one.control, Number))
    box = control_for(control, key, Preferences(), place)
    assert isinstance(box, QSpinBox)
    place.show()
    return box


def typed(box: QSpinBox, text: str) -> str:
    box.selectAll()
    QTest.keyClicks(box, text)
    return box.text()


@pytest.mark.parametrize(
    ("key", "one", "ten"),
    [("retention.days", "1 day", "10 days"), ("retention.keep", "1 task", "10 tasks")],
)
def test_settings_numbers_have_singulars(place: QWidget, key: str, one: str, ten: str) -> None:
    box = number_of(place, key)
    assert typed(box, "1") == one
    assert typed(box, "10") == ten, "a 1 on the way to it must not be in the way"
    assert box.value() == 10
    box.setValue(2)
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.text() == one


@pytest.mark.usefixtures("german")
def test_a_number_of_the_settings_has_its_singular_in_german(place: QWidget) -> None:
    days, tasks = number_of(place, "retention.days"), number_of(place, "retention.keep")
    assert (typed(days, "1"), typed(days, "12")) == ("1 Tag", "12 Tage")
    assert (typed(tasks, "1"), typed(tasks, "12")) == ("1 Aufgabe", "12 Aufgaben")


def test_the_status_bar_counts_one_slot(qtbot: QtBot) -> None:
    bar = StatusBar()
    qtbot.addWidget(bar)
    bar.show_health(Health(root="/ledger", running=1, slots=1))
    assert bar.work.text() == "1 running here · 1 slot"


def test_a_crawl_of_one_page_is_not_told_of_pages(qapp: object) -> None:
    estimate = Estimate(Bridge(Settings.at(home=Path("/nowhere"))))
    asked = Asked("crawl", {"url": "https://a.example/", "max_pages": 1, "delay_ms": 1000})
    assert estimate.words(asked) == "1 page at most."


async def test_the_only_task_that_a_filter_hides_is_one(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("status:failed")
        await settled(lambda: window.area.state == "unmatched")
        texts = [one.text() for one in window.area.findChildren(QLabel) if one.isVisible()]
        assert "1 task is here; the filter hides it." in texts


async def test_an_export_of_one_row_says_so(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        window = session.window
        choose_rows(session, 1)
        window.acts["export_tasks"].trigger()
        (dialog,) = await settled(lambda: window.findChildren(ExportDialog))
        dialog.choose("csv")
        dialog.export_to(tmp_path / "one.csv")
        await settled(dialog.folder.isVisible)
        assert "Exported: 1 row" in [one.text() for one in dialog.findChildren(QLabel)]
