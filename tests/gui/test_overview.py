"""The Overview: running budgets, phase, contract, related tasks, the reason of the end."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from engine.model.config import Settings
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from gui.details.facts import GaugeLine, gauge_lines
from gui.details.overview import Overview, PhaseSteps
from gui.details.overview_sections import BudgetBars
from gui.details.panel import Details
from gui.startup.session import Session
from tests.gui.task_views import NOW, a_view
from tests.gui.windows import opened, until
from tests.support.task_folders import task_id, write_meta

POLICY = {"maxToolCalls": 50, "maxWallMs": 600_000}


def envelope(calls: int, **more: Any) -> TaskRecord:
    view = a_view(
        1, "RUNNING", kind="browser_task", policy=POLICY, counters={"toolCalls": calls}, **more
    )
    assert isinstance(view.entry, TaskRecord)
    return view.entry


@pytest.mark.parametrize(
    ("calls", "level"), [(37, "ok"), (38, "warning"), (50, "warning"), (51, "exceeded")]
)
def test_a_gauge_has_the_edges_of_the_engine(calls: int, level: str) -> None:
    line = gauge_lines(envelope(calls), NOW)[0]
    assert (line.used, line.level, line.fraction) == (f"{calls} of 50", level, calls / 50)


def test_time_runs_out_also_while_nothing_is_called() -> None:
    record = envelope(1)
    later = [gauge_lines(record, record.created_at + at * 60_000)[1] for at in (1, 8, 11)]
    assert [line.level for line in later] == ["ok", "warning", "exceeded"]
    assert later[2].used == "11 min 00 s of 10 min 00 s"


def test_a_default_budget_is_shown_once_something_of_it_is_used() -> None:
    names = [line.name for line in gauge_lines(envelope(1), NOW)]
    assert names == ["tool calls", "time"]
    record = envelope(2)
    assert record.counters is not None
    record.counters["failureStreak"] = 2
    assert "failures in a row" in [line.name for line in gauge_lines(record, NOW)]


def test_allowed_domains_have_a_gauge_once_they_are_exceeded() -> None:
    policy = {"allowedDomains": ["a.example"]}
    views = [
        a_view(1, "RUNNING", kind="browser_task", policy=policy, budget_exceeded=exceeded)
        for exceeded in (None, ["allowedDomains"])
    ]
    lines = [gauge_lines(view.entry, NOW) for view in views]  # type: ignore[arg-type]
    assert lines[0] == []
    said = GaugeLine("allowed domains", "another domain was opened", 1.0, "exceeded")
    assert lines[1] == [said]


def test_budgets_stand_under_a_heading_and_leave_with_it(qtbot: QtBot) -> None:
    bars = BudgetBars()
    qtbot.addWidget(bars)
    bars.show_lines(gauge_lines(envelope(3), NOW))
    assert not bars.isHidden()
    assert {"Budgets", "tool calls"} <= set(labels(bars).splitlines())
    bars.show_lines([])
    assert bars.isHidden()


async def test_a_gauge_goes_on_by_itself_while_it_is_looked_at(qtbot: QtBot) -> None:
    overview = Overview()
    qtbot.addWidget(overview)
    age = NOW - time.time() * 1000
    view = a_view(1, "RUNNING", kind="browser_task", policy={"maxWallMs": 60_000}, age=age)
    overview.show_view(view)
    overview.show()
    before = overview.budgets.spoken()
    await until(lambda: overview.budgets.spoken() != before, overview._aging.timeout)
    overview.hide()
    assert not overview._aging.isActive()


async def test_how_long_ago_goes_on_for_a_task_that_has_ended(qtbot: QtBot) -> None:
    overview = Overview()
    qtbot.addWidget(overview)
    overview.show_view(a_view(1, "COMPLETED", age=NOW - time.time() * 1000))
    overview.show()
    before = overview.text_of("created")
    assert before.endswith("ago)")
    await until(lambda: overview.text_of("created") != before, overview._aging.timeout)
    overview.hide()
    assert not overview._aging.isActive()


@pytest.mark.parametrize(
    ("phase", "said"), [("verify", "Phase: verify"), ("dreams\u202e", "Phase: dreams\ufffd")]
)
def test_unknown_phases_are_shown_unchanged(qtbot: QtBot, phase: str, said: str) -> None:
    steps = PhaseSteps()
    qtbot.addWidget(steps)
    steps.show_phase(phase)
    assert not steps.isHidden()
    assert steps.accessibleName() == said
    steps.show_phase("")
    assert steps.isHidden()


@asynccontextmanager
async def looking_at(home: Path, number: int) -> AsyncIterator[tuple[Session, Details]]:
    async with opened(home) as session:
        session.window.table.select_ids([task_id(number)])
        yield session, session.window.details


def labels(part: Any) -> str:
    return "\n".join(one.text() for one in part.findChildren(QLabel) if not one.isHidden())


async def test_a_contract_is_counted_in_words_with_what_to_do_next(tmp_path: Path) -> None:
    home = tmp_path / "home"
    contracts = Engine(Settings.at(home=home), accepts=False).goals.contracts
    begun = contracts.start({"expected_total": 10, "item_key": "page", "scope": "crawl"})
    named = begun.contract.contract_id
    word = {"completed": ["a", "b"], "failed": [{"item": "c", "reason": "HTTP 500"}]}
    contracts.update(named, word | {"skipped": [{"item": "d", "reason": "robots"}]})
    write_meta(home / "tasks", 1, "FAILED", kind="crawl", engine={"contract_id": named})
    async with looking_at(home, 1) as (_, details):
        part = details.overview.contract
        await until(lambda: not part.isHidden(), details.overview._extras.changed)
        assert "Contract" in labels(part).splitlines()
        assert part.bar.accessibleName() == "2 done · 1 failed · 1 skipped · 6 missing of 10"
        assert "4/10 page items observed" in labels(part)
        assert "Continue processing page items" in labels(part)


async def test_a_contract_that_is_gone_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_meta(home / "tasks", 1, "FAILED", kind="crawl", engine={"contract_id": "0" * 16})
    async with looking_at(home, 1) as (_, details):
        part = details.overview.contract
        await until(lambda: not part.isHidden(), details.overview._extras.changed)
        assert "0000000000000000" in labels(part)
        assert part.bar.isHidden()


@pytest.mark.parametrize(
    ("word", "deeper", "said"),
    [
        ("max_pages", 7, "its page limit; more pages were known"),
        ("frontier", 0, "itself: all known pages were crawled"),
        ("frontier", 7, "itself: all pages within the maximum depth were crawled"),
        ("<b>odd</b>", 0, ""),
    ],
)
async def test_what_ended_a_crawl_is_told(
    tmp_path: Path, word: str, deeper: int, said: str
) -> None:
    home = tmp_path / "home"
    folder = write_meta(home / "tasks", 1, "COMPLETED", kind="crawl")
    summary = {"stopped_by": word, "links_too_deep": deeper}
    (folder / "result.json").write_text(json.dumps({"summary": summary, "pages": []}))
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        assert overview.text_of("ended_by") == said


async def test_a_crawl_that_was_to_follow_no_link_does_not_say_that_all_were_read(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    args = {"url": "http://site.test/", "max_depth": 0}
    folder = write_meta(home / "tasks", 1, "COMPLETED", kind="crawl", args_summary=args)
    (folder / "result.json").write_text('{"summary":{"stopped_by":"frontier"},"pages":[]}')
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        said = "itself: the given addresses were read, no link was followed"
        assert overview.text_of("ended_by") == said


async def test_pages_that_may_not_be_what_they_should_are_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = write_meta(home / "tasks", 1, "COMPLETED", kind="crawl")
    summary = {"stopped_by": "frontier", "empty_pages": 1, "unsettled_pages": 3}
    summary |= {"redacted": 2, "links_over_limit": 1, "links_fragments": 4}
    (folder / "result.json").write_text(json.dumps({"summary": summary, "pages": []}))
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        assert overview.text_of("remarks").splitlines() == [
            "1 page shows neither text nor link nor picture",
            "3 pages were taken before they came to rest",
            "2 places of page content were redacted",
            "1 link beyond the limit of a page was not followed",
            "4 addresses with #/ or #! were not followed as own pages",
        ]


async def test_missing_pages_differ_from_failed_pages(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = write_meta(home / "tasks", 1, "COMPLETED", kind="crawl")
    summary = {"stopped_by": "frontier", "failed": 5, "http_errors": 3, "not_loaded": 2}
    (folder / "result.json").write_text(json.dumps({"summary": summary, "pages": []}))
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        assert overview.text_of("failures") == "3 answered with an error, 2 not loaded"


async def test_the_pages_by_worker_of_a_cluster_are_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = write_meta(home / "tasks", 1, "COMPLETED", kind="crawl")
    workers = {"calm": 3, "busy": 1_200, "odd": "many", **{f"w{n}": 2 for n in range(5)}}
    summary = {"stopped_by": "frontier", "workers": workers}
    (folder / "result.json").write_text(json.dumps({"summary": summary, "pages": []}))
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        told = "busy: 1,200, calm: 3, w0: 2, w1: 2, w2: 2, w3: 2, 1 more"
        assert overview.text_of("workers") == told


async def test_a_picture_fits_and_one_that_is_none_is_not_shown(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number, data in ((1, None), (2, b"\x89PNG no picture")):
        folder = write_meta(home / "tasks", number, "COMPLETED", kind="crawl")
        (folder / "result.json").write_text('{"summary": {"stopped_by": "frontier"}, "pages": []}')
        (folder / "artifacts").mkdir()
        file = folder / "artifacts" / "0001.png"
        image = QImage(700, 200, QImage.Format.Format_RGB32)
        image.fill(QColor("red"))
        assert image.save(str(file))
        if data:
            file.write_bytes(data)
    async with looking_at(home, 1) as (session, details):
        overview = details.overview
        await until(lambda: not overview.picture.isHidden(), overview._extras.changed)
        assert overview.picture.pixmap().deviceIndependentSize().toSize().width() == 240
        session.window.table.select_ids([task_id(2)])
        await until(lambda: overview._extra.stopped_by, overview._extras.changed)
        assert overview.picture.isHidden()


async def test_links_between_reruns_work_with_a_filter(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_meta(home / "tasks", 1, "FAILED", objective="parent", created_at=1)
    for number in (2, 3):
        engine = {"parent_task_id": task_id(1)}
        write_meta(home / "tasks", number, "FAILED", engine=engine, created_at=number)
    async with looking_at(home, 1) as (session, details):
        links = details.overview.links
        assert links.rerun_link.text() == "Show the newest of its 2 re-runs"
        links.rerun_link.click()
        assert details.task_id == task_id(3)
        session.window.filter_bar.set_text(task_id(3))
        links.parent_link.click()
        assert details.task_id == task_id(1)


async def test_alt_digit_selects_a_tab_that_is_remembered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_meta(home / "tasks", 1, "FAILED")
    write_meta(home / "tasks", 2, "PENDING", created_at=int(time.time() * 1000))
    async with looking_at(home, 1) as (session, details):
        window, tabs = session.window, details._tabs
        window.activateWindow()
        QTest.keyClick(window.table, Qt.Key.Key_3, Qt.KeyboardModifier.AltModifier)
        assert tabs.tabText(tabs.currentIndex()) == "Timeline"
        window.table.select_ids([task_id(2)])
        assert tabs.currentIndex() == 0
        window.table.select_ids([task_id(1)])
        assert tabs.tabText(tabs.currentIndex()) == "Timeline"
        QTest.keyClick(window.table, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
        assert tabs.currentIndex() == 0


async def test_the_arguments_of_a_huge_record_are_read_when_it_is_looked_at(tmp_path: Path) -> None:
    home = tmp_path / "home"
    args = {"script": "x" * 900_000, "last": "the end of it"}
    write_meta(home / "tasks", 1, "COMPLETED", args_summary=args)
    async with looking_at(home, 1) as (session, details):
        overview = details.overview
        view = session.window.model.view_of(task_id(1))
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        assert "script" not in view.entry.args_summary
        await until(lambda: overview._extra.arguments, overview._extras.changed)
        assert '"script": "xxx' in overview._args.toPlainText()
        assert len(overview._args.toPlainText()) < 100_000


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"args": {"task_name": "Sign in"}}, '"task_name": "Sign in"'),
        ({}, "Its commands are in the tab Commands."),
    ],
)
async def test_long_arguments_of_commands_are_shown_or_where_they_are(
    tmp_path: Path, stored: dict[str, Any], said: str
) -> None:
    home = tmp_path / "home"
    short = {"_truncated": True, "_bytes": 5603}
    kind = {"kind": "commands", "args_summary": short, "engine": {"host": "h", **stored}}
    write_meta(home / "tasks", 1, "COMPLETED", **kind)
    async with looking_at(home, 1) as (_, details):
        overview = details.overview
        await until(lambda: overview._extra.arguments, overview._extras.changed)
        assert said in overview._args.toPlainText()
