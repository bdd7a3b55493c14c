"""Throughput and memory in the status bar."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from engine.ledger import machine
from engine.model.records import TaskRecord, TaskView, Units
from fixtures.site.site import Site
from gui.startup.session import Session
from gui.window.status_bar import MINUTES, Meters, Sparkline, Throughput
from tests.gui.live_tasks import ended, running, start
from tests.gui.windows import opened, until

BEGAN_S = 1_000_000 * 60.0


def view(task_id: str, done: int, status: str = "RUNNING", created_s: float = 0.0) -> TaskView:
    record = TaskRecord(task_id=task_id, status=status, created_at=created_s * 1000)
    return TaskView(record, Units(done=done))


def meters_of(session: Session) -> Meters:
    (meters,) = session.window.findChildren(Meters)
    return meters


def test_only_units_that_are_finished_from_now_on_count() -> None:
    throughput = Throughput(BEGAN_S)
    throughput.add([view("old", 500)], BEGAN_S)
    throughput.add([view("old", 503)], BEGAN_S + 1)
    throughput.add([view("new", 4, created_s=BEGAN_S + 2)], BEGAN_S + 3)
    throughput.add([view("new", 6, "COMPLETED", created_s=BEGAN_S + 2)], BEGAN_S + 4)
    throughput.add([view("ended", 900, "COMPLETED")], BEGAN_S + 5)
    throughput.add([view("short", 2, "COMPLETED", created_s=BEGAN_S + 5)], BEGAN_S + 6)
    throughput.add([view("short", 2, "COMPLETED", created_s=BEGAN_S + 5)], BEGAN_S + 6)
    assert throughput.minutes(BEGAN_S + 6) == (*[0] * (MINUTES - 1), 11)


def test_minutes_move_on_and_old_ones_leave() -> None:
    throughput = Throughput(BEGAN_S)
    throughput.add([view("a", 7, created_s=BEGAN_S)], BEGAN_S)
    throughput.add([view("a", 10, created_s=BEGAN_S)], BEGAN_S + 120)
    assert throughput.minutes(BEGAN_S + 120)[-3:] == (7, 0, 3)
    assert throughput.per_minute(BEGAN_S + 150) == 2.0  # three in the last 90 s
    assert sum(throughput.minutes(BEGAN_S + 29 * 60)) == 10
    assert sum(throughput.minutes(BEGAN_S + 30 * 60)) == 3
    assert sum(throughput.minutes(BEGAN_S + 90 * 60)) == 0
    assert throughput.minutes(BEGAN_S)[-1] == 0  # a clock that was set back moves nothing


def test_a_count_that_falls_and_comes_again_counts_once() -> None:
    throughput = Throughput(BEGAN_S)
    for done in (5, 3, 5, 6):  # another program rewrote the file
        throughput.add([view("a", done, created_s=BEGAN_S)], BEGAN_S)
    assert throughput.minutes(BEGAN_S)[-1] == 6


def test_the_chart_is_painted_anew_only_for_other_numbers(qapp: QApplication) -> None:
    chart = Sparkline()
    chart.resize(chart.sizeHint())
    before = chart.grab().toImage()
    chart.show_minutes((0,) * (MINUTES - 1) + (5,))
    assert chart.grab().toImage() != before
    chart.deleteLater()


async def test_the_status_bar_shows_what_is_finished_and_the_memory(home: Path, site: Site) -> None:
    async with opened(home) as session:
        meters = meters_of(session)
        task_id = await start(session, url=site.url, engine="static", delay_ms=0, max_pages=5)
        await ended(session, task_id)
        # The list hears of the end some ms later; a minute may end in between.
        await until(lambda: sum(meters.throughput.minutes(time.time())) == 5, session.bridge.news)
        meters.look()
        assert "Since " in meters.chart.accessibleDescription()
        assert ": 5 items, at most " in meters.chart.accessibleDescription()
        await until(lambda: meters.memory.text(), meters.changed)
        assert meters.memory.text().endswith((" MB", " GB"))
        assert "its browsers" in meters.memory.toolTip()


async def test_units_are_counted_in_a_hidden_window_and_shown_in_a_visible_one(home: Path) -> None:
    async with opened(home) as session:
        meters, now_s = meters_of(session), time.time()
        meters._now_s = lambda: now_s  # no minute ends between the two counts
        assert meters._timer.isActive()
        session.window.hide()
        before = meters.chart.accessibleDescription()
        model = session.window.model
        for done in (3, 8):
            model.put_many([view("0" * 16, done, created_s=now_s)])
            meters.look()
        assert sum(meters.throughput.minutes(now_s)) == 8
        assert meters.chart.accessibleDescription() == before
        session.window.show()
        meters.look()
        assert ": 8 items, at most 8 in a minute." in meters.chart.accessibleDescription()


async def test_the_figures_leave_a_narrow_window_first(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window, meters = session.window, meters_of(session)
        await running(session, f"{site.url}/hang")
        meters._show_memory(1_234_000_000)
        assert meters.memory.text() == "1.2 GB"
        window.status.resize(1_600, window.status.height())
        assert not meters.isHidden()
        window.status.resize(700, window.status.height())
        assert meters.isHidden()
        window.status.resize(1_600, window.status.height())
        assert not meters.isHidden()


def test_the_memory_is_that_of_the_process_and_its_children() -> None:
    own = machine.memory_bytes()
    assert 10_000_000 < own < 20_000_000_000
