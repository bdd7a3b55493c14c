"""The statistics of a ledger: each task counts once, and the bars include ended ones."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox

from engine.model.records import TaskRecord, TaskView
from engine.service.feed import Batch
from gui.commands.statistics_dialog import DAY_MS, HOUR_MS, SPANS, StatisticsDialog, count_up
from gui.style.theme import PlainLabel
from tests.gui.task_views import NOW, a_view
from tests.gui.windows import opened, press

DAY, WEEK, MONTH, ALL = SPANS


def ended(number: int, status: str, ago_ms: float, took_ms: float = 5000) -> TaskView:
    view = a_view(number, status, age=int(ago_ms + took_ms), ended_at=NOW - ago_ms)
    assert isinstance(view.entry, TaskRecord)
    return replace(view, entry=replace(view.entry, started_at=NOW - ago_ms - took_ms))


def test_what_ended_within_the_span_is_counted_by_how_it_ended() -> None:
    views = [
        ended(1, "COMPLETED", HOUR_MS),
        ended(2, "COMPLETED", 3 * HOUR_MS),
        ended(3, "FAILED", HOUR_MS),
        ended(4, "CANCELLED", HOUR_MS),
        ended(5, "COMPLETED", 3 * DAY_MS),
    ]
    day, week = count_up(views, DAY, NOW), count_up(views, WEEK, NOW)
    assert day.ended == (2, 1, 1)
    assert day.success == pytest.approx(2 / 3)
    assert week.ended == (3, 1, 1)
    assert day.bars[22] == (1, 1, 1) or day.bars[23] == (1, 1, 1)


def test_how_long_tasks_took_is_told_by_half_and_by_one_of_twenty() -> None:
    views = [ended(number, "COMPLETED", HOUR_MS, number * 1000) for number in range(1, 101)]
    found = count_up(views, ALL, NOW)
    assert found.median_ms == 51_000
    assert found.slow_ms == 96_000
    assert count_up([], ALL, NOW).median_ms is None


def test_kinds_and_hosts_are_told_with_what_failed_the_largest_first() -> None:
    views = [a_view(number, "FAILED", args={"url": "https://a.example/"}) for number in (1, 2)]
    views.append(a_view(3, "COMPLETED", kind="commands", args={"url": "https://b.example/"}))
    found = count_up(views, ALL, NOW)
    assert [(one.name, one.tasks, one.failed) for one in found.kinds] == [
        ("crawl", 2, 2),
        ("commands", 1, 0),
    ]
    assert [one.name for one in found.hosts] == ["a.example", "b.example"]


STATES = st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])


@given(st.lists(st.tuples(STATES, st.integers(0, 40 * DAY_MS)), max_size=30))
def test_the_bars_include_all_tasks_of_the_span(tasks: list[tuple[str, int]]) -> None:
    views = [
        ended(number, status, ago)
        if status in ("COMPLETED", "FAILED", "CANCELLED")
        else a_view(number, status, age=ago)
        for number, (status, ago) in enumerate(tasks)
    ]
    for span in (DAY, WEEK, MONTH):
        found = count_up(views, span, NOW)
        assert tuple(map(sum, zip(*found.bars, strict=True))) == found.ended
    assert sum(count_up(views, ALL, NOW).ended) == sum(
        status not in ("PENDING", "RUNNING") for status, _ in tasks
    )


async def test_the_dialog_counts_what_the_window_knows_and_copies_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        shift = time.time() * 1000 - NOW
        views = []
        for number in range(1, 30):
            view = ended(number, "FAILED" if number % 3 == 0 else "COMPLETED", HOUR_MS)
            assert isinstance(view.entry, TaskRecord)
            at = NOW - HOUR_MS + shift
            entry = replace(view.entry, created_at=at - 9000, started_at=at - 5000, ended_at=at)
            views.append(replace(view, entry=entry))
        session.bridge.batch.emit(Batch(tuple(views), (), 29, 29, True))
        session.window.acts["statistics"].trigger()
        dialog = session.window.findChildren(StatisticsDialog)[-1]

        def said(words: str) -> bool:
            return any(words in label.text() for label in dialog.findChildren(PlainLabel))

        while not said("✓ 20 completed · ✖ 9 failed"):
            await asyncio.sleep(0.01)
        dialog.findChildren(QComboBox)[0].setCurrentIndex(3)
        while not said("69 % completed"):
            await asyncio.sleep(0.01)
        press(dialog, "Copy")
        assert "host1.example\t1\t0" in QGuiApplication.clipboard().text()
        dialog.accept()
