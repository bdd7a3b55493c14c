"""The events of one task in the details pane: followed, read, hidden, copied and counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QAbstractSlider, QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from engine.model.records import TaskEvent
from engine.results.units import Unit
from engine.text import words
from engine.text.messages import ENGLISH, retold
from gui.details import event_table
from gui.details.event_table import EventModel, EventTable
from gui.details.panel import Details
from gui.details.unit_columns import ITEM_COLUMNS
from gui.engine_link.task_events import EventPart, event_row
from gui.style.tables import COLOUR
from gui.style.theme import tone
from tests.gui.event_views import part, progress
from tests.gui.task_views import NOW, a_view, task_id


@pytest.mark.parametrize(
    ("kind", "data", "said", "tone"),
    [
        (
            "tool_call",
            {"tool": "interact", "ok": False, "durationMs": 20, "sessionId": "s1"},
            "interact, failed, 20 ms (sessionId s1)",
            "bad",
        ),
        (
            "tool_call",
            {"tool": "navigate", "ok": True, "durationMs": 1200, "summary": "opened"},
            "navigate, 1.2 s: opened",
            "",
        ),
        ("tool_call", {"durationMs": "long"}, "long", ""),
        (
            "tool_call",
            {
                "tool": "find",
                "ok": False,
                "summary": "no_tab_open",
                "error": {"message": "This agent has no tab open yet.", "code": "no_tab_open"},
            },
            "find, failed: This agent has no tab open yet. (code no_tab_open)",
            "bad",
        ),
        ("tool_call", {"tool": "find", "error": {"code": [1]}}, "find (code [1])", ""),
        ("tool_call", {"tool": "find", "error": "no"}, "find (error no)", ""),
        (
            "budget",
            {
                "from": "ok",
                "to": "warning",
                "exceeded": [],
                "warning": ["maxToolCalls"],
                "recommended_next": "checkpoint_or_verify",
            },
            "Near its budget: tool calls. Make a checkpoint, or verify what is there.",
            "warning",
        ),
        (
            "budget",
            {
                "from": "warning",
                "to": "exceeded",
                "exceeded": ["maxWallMs"],
                "warning": ["maxToolCalls"],
            },
            "Over its budget: time (near tool calls)",
            "bad",
        ),
        ("budget", {"from": "exceeded", "to": "ok"}, "Within its budget again", ""),
        ("budget", {"from": 1, "to": {"a": 2}}, "1 → {'a': 2}", ""),
        (
            "guard",
            {"allowed": False, "reason": "4/200 seen.", "suggested_next_action": "Go on."},
            "May not be completed yet: 4/200 seen. Go on.",
            "warning",
        ),
        ("guard", {"allowed": True, "reason": "all seen"}, "May be completed: all seen", "good"),
        (
            "guard",
            {"allowed": False, "reason": "4/200", "forced": {"by": "me", "reason": "it is gone"}},
            "Completed by force by me (it is gone), although: 4/200",
            "warning",
        ),
        ("guard", {"allowed": "maybe"}, "maybe", "warning"),
        (
            "failed",
            {"code": "orphaned", "message": "process 7 is gone", "pid": 7},
            "process 7 is gone (code orphaned, pid 7)",
            "bad",
        ),
    ],
)
def test_agent_events_are_in_words(kind: str, data: dict[str, Any], said: str, tone: str) -> None:
    row = event_row(TaskEvent(NOW, kind, data))
    assert (row.text, row.tone) == (said, tone)


@pytest.fixture
def events(details: Details) -> Iterator[Details]:
    """The Events tab of a task with 100 events, following."""
    details.show_view(a_view(1))
    details._tabs.setCurrentIndex(1)
    details.show_events(task_id(1), progress(1, 100))
    tester = QAbstractItemModelTester(
        details.events.model, QAbstractItemModelTester.FailureReportingMode.Fatal
    )
    yield details
    del tester


def at_the_end(details: Details) -> bool:
    bar = details.events.table.verticalScrollBar()
    return bar.value() == bar.maximum()


def scroll(details: Details, action: QAbstractSlider.SliderAction) -> None:
    details.events.table.verticalScrollBar().triggerAction(action)


def test_the_newest_event_stays_in_sight_while_following(events: Details) -> None:
    assert at_the_end(events)
    events.show_events(task_id(1), progress(101, 150))
    assert at_the_end(events)
    assert not events.events.pill.isVisible()


def test_scrolling_up_ends_following_and_counts_what_is_new(events: Details) -> None:
    scroll(events, QAbstractSlider.SliderAction.SliderToMinimum)
    assert not events.events.follow.isChecked()
    events.show_events(task_id(1), progress(101, 228))
    assert not at_the_end(events)
    assert events.events.pill.text() == "↓ 128 new"
    events.events.pill.click()
    assert at_the_end(events)
    assert events.events.follow.isChecked()
    assert not events.events.pill.isVisible()


def test_scrolling_back_to_the_end_follows_again(events: Details) -> None:
    scroll(events, QAbstractSlider.SliderAction.SliderToMinimum)
    scroll(events, QAbstractSlider.SliderAction.SliderToMaximum)
    assert events.events.follow.isChecked()


def test_scrolling_up_stops_following_until_the_last_event(events: Details) -> None:
    table = events.events.table
    table.setCurrentIndex(events.events.model.index(99, 0))
    for _ in range(2):
        QTest.keyClick(table, Qt.Key.Key_PageUp)
    assert not events.events.follow.isChecked()
    QTest.keyClick(table, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert events.events.follow.isChecked()


@pytest.mark.parametrize("slice_size", [700, 100])
def test_only_the_newest_events_are_kept_and_the_first_line_counts_the_others(
    events: Details, slice_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_table, "KEPT", 200)
    for first in range(101, 801, slice_size):
        events.show_events(task_id(1), progress(first, first + slice_size - 1))
    model = events.events.model
    texts = [model.row_at(row).text for row in range(model.rowCount())]
    assert texts[0] == "… 600 earlier events are in the file"
    assert texts[1:] == [f"{n}/500  page {n}" for n in range(601, 801)]
    assert model.total == 800
    model.hide_kinds(frozenset({"progress"}))
    assert model.rowCount() == 1
    events.events.start_over()
    assert model.rowCount() == 0


@pytest.mark.case("R39")
def test_older_events_keep_the_view(events: Details, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_table, "KEPT", 250)
    panel, model = events.events, events.events.model
    model.stand_behind(300)
    assert (model.total, model.row_at(0).text) == (400, "… 300 earlier events are in the file")
    assert at_the_end(events)
    scroll(events, QAbstractSlider.SliderAction.SliderToMinimum)
    bar = panel.table.verticalScrollBar()
    bar.setValue(40)
    read = model.row_at(40)
    older = [TaskEvent(NOW, "log", {"note": str(number)}) for number in range(100)]
    events.show_events(task_id(1), part(*older, older=True))
    assert model.row_at(bar.value()) == read
    assert [model.row_at(at).text for at in (0, 1, 101)] == [
        "… 200 earlier events are in the file",
        "0",
        "1/500  page 1",
    ]
    assert not panel.pill.isVisible()
    events.show_events(task_id(1), part(*older, older=True))  # room for fifty of them only
    assert (model.total, model.rowCount()) == (400, 251)
    assert model.row_at(0).text == "… 150 earlier events are in the file"
    model.hide_kinds(frozenset({"log"}))
    assert model.rowCount() == 101


def test_the_count_of_older_events_disappears(events: Details) -> None:
    model = events.events.model
    model.stand_behind(1)
    events.show_events(task_id(1), part(TaskEvent(NOW, "started"), older=True))
    assert (model.row_at(0).kind, model.total, model.rowCount()) == ("started", 101, 101)


def test_of_a_line_that_is_too_long_the_head_and_the_size_are_shown(events: Details) -> None:
    clipped = TaskEvent(NOW, "log", {"_clipped": '{"ts":1,' + "x" * 600, "_bytes": 20_000_000})
    text = event_row(clipped).text
    assert text.startswith('{"ts":1,xxx')
    assert text.endswith("x… (20 MB)")
    assert len(text) < 400


def test_pruning_keeps_scroll_position(events: Details, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_table, "KEPT", 110)
    scroll(events, QAbstractSlider.SliderAction.SliderToMinimum)
    bar, model = events.events.table.verticalScrollBar(), events.events.model
    bar.setValue(60)
    read = model.row_at(60)
    events.show_events(task_id(1), progress(101, 130))
    assert model.row_at(bar.value()) == read


def test_unknown_event_kinds_share_one_switch(events: Details) -> None:
    odd = [TaskEvent(NOW, f"kind number {n} of a stranger", {}) for n in range(300)]
    events.show_events(task_id(1), part(*odd, TaskEvent(NOW, "failed")))
    assert events.minimumSizeHint().width() < 900
    QApplication.processEvents()
    chips = {chip.text(): chip for chip in events.events._chips.findChildren(QToolButton)}
    assert len(chips) == 12
    assert "Failed (1)" in chips
    assert all(chip.geometry().right() < 900 for chip in chips.values())
    assert events.events.model.rowCount() == 401
    chips["Other (291)"].click()
    assert events.events.model.rowCount() == 110


def test_a_kind_can_be_hidden_and_shown(events: Details) -> None:
    events.show_events(task_id(1), part(TaskEvent(NOW, "log", {"note": "hello"})))
    chip = next(one for one in events.findChildren(QToolButton) if one.text() == "Progress (100)")
    chip.click()
    assert events.events.model.rowCount() == 1
    events.show_events(task_id(1), progress(101, 120))
    assert events.events.model.rowCount() == 1
    chip.click()
    assert events.events.model.rowCount() == 121


def test_copied_events_are_safe_in_a_spreadsheet(events: Details) -> None:
    events.events.start_over()
    log = TaskEvent(NOW, "log", {"note": "=HYPERLINK(1)"})
    events.show_events(task_id(1), part(log))
    QTest.keyClick(events.events.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    events.events.copy()
    assert QGuiApplication.clipboard().text().endswith("\tLog\t'=HYPERLINK(1)")


def test_lines_that_could_not_be_read_are_counted(events: Details) -> None:
    events.show_events(task_id(1), EventPart((), skipped=2))
    shown = [label.text() for label in events.findChildren(QLabel) if label.isVisible()]
    assert "2 unreadable lines were left out" in shown


@pytest.mark.parametrize(
    ("event", "name", "text"),
    [
        (TaskEvent(NOW, "progress", {"unitsDone": 3, "unitsTotal": None}), "Progress", "3"),
        (
            TaskEvent(NOW, "progress", {"unitsDone": 3, "unitsTotal": 9, "unitsFailed": 2}),
            "Progress",
            "3/9 · 2 failed",
        ),
        (TaskEvent(NOW, "log", {"phase": "robots", "note": "ok"}), "Log", "robots: ok"),
        (
            TaskEvent(NOW, "failed", {"error": {"message": "no", "code": "c"}}),
            "Failed",
            "no (code c)",
        ),
        (TaskEvent(NOW, "failed", {"error": ["odd"]}), "Failed", 'error ["odd"]'),
        (TaskEvent(NOW, "mystery\x1b[31m", {"a": 1}), "mystery\ufffd[31m", "a 1"),
        (TaskEvent(float("nan"), "started"), "Started", ""),
    ],
)
def test_an_event_is_told_in_words(event: TaskEvent, name: str, text: str) -> None:
    row = event_row(event)
    assert (row.name, row.text) == (name, text)


@pytest.mark.usefixtures("german")
def test_the_reason_of_a_failed_page_is_told_in_the_language_of_the_window() -> None:
    data = {"unitsDone": 3, "message": "http://a.test/x: Blocked by robots.txt"}
    row = event_row(TaskEvent(NOW, "progress", data))
    assert row.text == f"3  http://a.test/x: {retold('Blocked by robots.txt')}"
    assert retold("Blocked by robots.txt") != "Blocked by robots.txt"


def crawled(first: int, failures: list[int], *, older: bool = False) -> EventPart:
    """Progress of pages from `first`, with the number of failed ones after each."""
    rows = [
        event_row(
            TaskEvent(
                NOW + n, "progress", {"unitsDone": n, "unitsFailed": failed, "message": f"=p{n}"}
            ),
            place=n * 100,
        )
        for n, failed in enumerate(failures, first)
    ]
    return EventPart(tuple(rows), older=older)


def test_the_events_of_failed_pages_are_marked_and_have_a_chip(details: Details) -> None:
    events = details.events
    events.start_over(task_id(1))
    events.add(crawled(3, [1, 1, 2]))
    model = events.model
    assert [model.row_at(row).kind for row in range(3)] == ["progress", "progress", "unit_failed"]
    assert model.index(2, 1).data().startswith("✕")
    assert model.index(2, 2).data(COLOUR) == tone("bad", QApplication.palette())
    assert model.index(1, 2).data(COLOUR) is None
    assert model.lines([2])[0].split("\t")[1] == model.index(2, 1).data()
    assert model.kinds == {"progress": 2, "unit_failed": 1}
    events._filter(frozenset({"progress"}))
    assert model.rowCount() == 1
    events.add(crawled(6, [2, 3]))
    assert [model.row_at(row).place for row in range(2)] == [500, 700]


def test_a_failure_is_known_once_the_events_before_it_are_read(details: Details) -> None:
    events = details.events
    events.start_over(task_id(1))
    events.add(crawled(3, [2, 2]))
    QAbstractItemModelTester(events.model)
    assert events.model.kinds == {"progress": 2}
    events.add(crawled(1, [0, 1], older=True))
    kinds = [row.kind for row in events.model.kept]
    assert kinds == ["progress", "unit_failed", "unit_failed", "progress"]
    assert +events.model.kinds == {"progress": 2, "unit_failed": 2}


def test_the_names_of_all_kinds_fit_their_column(german: None, qtbot: QtBot) -> None:
    table = EventTable(EventModel())
    qtbot.addWidget(table)
    room, measure = table.columnWidth(1), table.fontMetrics().horizontalAdvance
    names = [words.say(one) for one in ENGLISH if one.startswith("event.")]
    assert [name for name in names if measure(name) + 10 > room] == []


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (
            "progress",
            {"unitsDone": 2, "message": "Press Tab in textbox “Password”"},
            "2  Tab drücken in Textfeld „Password“",
        ),
        ("progress", {"unitsDone": 1, "unitsTotal": 2, "message": "dom"}, "1/2  DOM"),
        (
            "progress",
            {"unitsDone": 2, "unitsTotal": 2, "message": "screenshot: is empty", "unitsFailed": 1},
            "2/2 · 1 Fehler  Bild: ist leer",
        ),
        (
            "log",
            {"phase": "stop", "note": "asked to end in good order"},
            "Ende: gebeten, in guter Ordnung zu enden",
        ),
        ("log", {"phase": "mine", "note": "as I say"}, "mine: as I say"),
        (
            "started",
            {"objective": "Collect 12 herons", "phase": "explore"},
            "Ziel Collect 12 herons, Phase erkunden",
        ),
        (
            "tool_call",
            {"tool": "find", "ok": False, "error": {"code": "gone", "message": "is empty"}},
            "find, fehlgeschlagen: ist leer (Code gone)",
        ),
        ("log", {"note": "n", "mine": 3}, "n (mine 3)"),
    ],
)
def test_events_are_told_in_german_but_for_what_others_wrote(
    german: None, kind: str, data: dict[str, Any], said: str
) -> None:
    assert event_row(TaskEvent(ts=NOW, kind=kind, data=data)).text == said


def test_the_parts_of_a_bundle_have_german_names_in_the_list(german: None) -> None:
    (name,) = (column for column in ITEM_COLUMNS if column.key == "name")
    shown = [name.text(Unit(0, "done", one)) for one in ("dom", "screenshot", "https://a.test/")]
    assert shown == ["DOM", "Bild", "https://a.test/"]
