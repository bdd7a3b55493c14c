"""The details panel: the texts that it shows for one task."""

from __future__ import annotations

import time

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QPlainTextEdit, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from engine.model.records import EngineFields, TaskEvent, TaskView, Unreadable
from engine.text import words
from gui.details.overview import Arguments
from gui.details.panel import Details
from tests.gui.event_views import at_once, part, progress, refused, waits
from tests.gui.task_views import NOW, a_view, task_id


def button(details: Details, text: str) -> QPushButton:
    return next(one for one in details.findChildren(QPushButton) if one.text() == text)


def test_the_overview_says_why_and_since_when(details: Details) -> None:
    details.show_view(a_view(1, "FAILED", error=("disk full", "no_space"), done=3, total=9))
    overview = details.overview
    assert overview.sentence == "Failed after 5.0 s."  # the error is said once, in its colour
    assert overview.text_of("error") == "disk full [no_space]"
    assert overview.band.text == "3 of 9 pages"
    assert overview.text_of("id") == task_id(1)
    assert overview.text_of("cancel") == ""


def test_the_overview_begins_with_target_and_progress(details: Details) -> None:
    view = a_view(1, "RUNNING", done=41, total=120, quiet=0, age=9)
    now = msgspec.structs.replace(view, last_event_at=time.time() * 1000)
    details.show_view(now, speed="2.1/s · ~1 min")
    band, target = details.overview.band, details.overview.target
    assert band.isVisible()
    assert band.accessibleName() == "41 of 120 pages · 2.1/s · ~1 min"
    details.show_view(view, speed="2.1/s · ~1 min")  # silent for months: a stalled task has none
    assert band.accessibleName() == "41 of 120 pages"
    assert target.whole == "host1.example"
    details.show_view(a_view(2, "PENDING", args={"url": "javascript:alert(1)"}))
    assert not band.isVisible()
    assert not target.isVisible()


def test_the_address_is_copied_whole(details: Details) -> None:
    details.show_view(a_view(1, args={"url": "https://host1.example/"}))
    target = details.overview.target
    target.customContextMenuRequested.emit(QPoint(1, 1))
    (menu,) = target.findChildren(QMenu)
    assert [one.text() for one in menu.actions()] == ["Copy address", "Open in browser"]
    menu.actions()[0].trigger()
    menu.close()
    assert QGuiApplication.clipboard().text() == "https://host1.example/"


@pytest.mark.parametrize(("wide", "is_beside"), [(1200, True), (420, False)])
def test_arguments_stand_beside_the_facts_where_there_is_room(
    details: Details, qtbot: QtBot, wide: int, is_beside: bool
) -> None:
    arguments = {"url": "https://host1.example/", **{f"n{at}": at for at in range(30)}}
    details.show_view(a_view(1, args=arguments))
    details.resize(wide, 700)
    (box,) = details.overview.findChildren(Arguments)
    grid = details.overview.grid
    qtbot.waitUntil(
        lambda: (box.mapTo(details, QPoint()).x() > grid.width()) is is_beside, timeout=60_000
    )
    assert not box.verticalScrollBar().maximum()  # only the sheet scrolls


def test_what_another_task_had_does_not_stay(details: Details) -> None:
    details.show_view(a_view(1, "FAILED", error=("disk full", "no_space")))
    details.show_view(a_view(2, "PENDING", args={}))
    assert details.overview.text_of("error") == ""
    assert not details.overview.findChildren(QPlainTextEdit)[0].isVisible()


def test_a_budget_is_told_in_words(details: Details) -> None:
    details.show_view(
        a_view(
            1,
            "RUNNING",
            kind="browser_task",
            budget_status="exceeded",
            budget_exceeded=["maxToolCalls"],
            policy={"maxToolCalls": 50, "maxWallMs": 600_000, "maxSameUrlNavigations": 3},
            counters={"toolCalls": 63, "sameUrlNavigations": {"https://a.example/": 2}},
            recommended_next="change_strategy_or_verify",
            ended_at=NOW - 60_000 + 5000,
        )
    )
    said = details.overview.text_of("budget")
    assert said == "over its budget: tool calls"
    lines = details.overview.budgets.spoken()
    assert lines[0] == "tool calls: 63 of 50, exceeded"
    assert lines[1].startswith("time: ")
    assert lines[1].endswith("of 10 min 00 s, exceeded") or lines[1].endswith("s, within")
    assert lines[2:] == ["visits to the same URL: 2 of 3, within"]
    assert details.overview.text_of("advice") == "Try another way, or verify what is there"


def test_a_budget_that_only_the_record_tells_is_told_as_it_stands(details: Details) -> None:
    odd = {"budget_status": "exceeded", "budget_exceeded": ["maxToolCalls", "maxDreams"]}
    details.show_view(a_view(1, "RUNNING", **odd))
    assert details.overview.text_of("budget") == "over its budget: tool calls, maxDreams"
    for status in ("dreaming", "used"):  # the latter names a message of ours that has fields
        details.show_view(a_view(2, "RUNNING", budget_status=status))
        assert details.overview.text_of("budget") == status


def test_what_a_task_belongs_to_is_told_by_its_ids(details: Details) -> None:
    view = a_view(1, "COMPLETED", kind="commands", objective="buy it")
    engine = EngineFields(
        command_task_id="task_17_abc", contract_id="c0", task_run_id="t0", run_id="r0"
    )
    entry = msgspec.structs.replace(view.entry, engine=engine)
    details.show_view(msgspec.structs.replace(view, entry=entry))
    told = [
        details.overview.text_of(field)
        for field in ("command_task", "contract", "task_run", "run", "objective")
    ]
    assert told == ["task_17_abc", "c0", "t0", "r0", "buy it"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"client": "claude-code", "route": "mcp"}, "claude-code over MCP"),
        ({"client": "<b>a</b>\u202eb", "route": "mcp"}, "<b>a</b>\ufffdb over MCP"),
        ({"route": "cli"}, "the command line"),
    ],
)
def test_who_requested_a_task_is_told(details: Details, given: dict[str, str], said: str) -> None:
    details.show_view(a_view(1, **given))
    assert details.overview.text_of("client") == said


def test_force_and_the_reason_of_a_cancel_are_not_hidden(details: Details) -> None:
    view = a_view(1, "COMPLETED", cancel_requested_at=NOW)
    engine = EngineFields(forced_at=NOW, cancel_reason="too\u202e slow")
    entry = msgspec.structs.replace(view.entry, engine=engine)
    details.show_view(msgspec.structs.replace(view, entry=entry))
    assert details.overview.sentence == (
        "Completed by force after 5.0 s; its contract was not met."
    )
    assert details.overview.text_of("forced").endswith("against its contract")
    assert details.overview.text_of("cancel").endswith(": too\ufffd slow")


def test_an_unreadable_folder_shows_reason_and_file(details: Details) -> None:
    details.show_view(TaskView(Unreadable(task_id(1), "line 3: no JSON", "/r/x/meta.json", NOW)))
    assert details.overview.text_of("path") == "/r/x/meta.json"
    assert "line 3: no JSON" in details.overview.sentence


def test_arguments_stand_in_plain_text(details: Details) -> None:
    details.show_view(a_view(1, args={"url": "https://a.example/<b>\u202ex", "n": [1, 2]}))
    code = details.overview.findChildren(QPlainTextEdit)[0]
    assert '"url": "https://a.example/<b>\ufffdx"' in code.toPlainText()


def test_the_chosen_tab_can_be_kept_and_odd_words_change_nothing(details: Details) -> None:
    details._tabs.setCurrentIndex(1)
    kept = details.save_state()
    details._tabs.setCurrentIndex(0)
    for state in (kept, "", "another tab"):
        details.restore_state(state)
        assert details._tabs.currentIndex() == 1


def test_no_label_ever_guesses_at_markup(details: Details) -> None:
    details.show_view(a_view(1, "FAILED", name="<h1>big</h1>", error=("<img src=x>", "c")))
    labels = [label for label in details.findChildren(QLabel) if "<" in label.text()]
    assert labels
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in labels)


def test_selecting_a_task_asks_for_its_events_once(details: Details) -> None:
    asked: list[str] = []
    details.wants_events.connect(asked.append)
    details.show_view(a_view(1))
    details.show_view(a_view(1, "FAILED"))
    details.show_view(a_view(2))
    assert asked == [task_id(1), task_id(2)]


def test_events_of_another_task_are_left_alone(details: Details) -> None:
    details.show_view(a_view(1))
    details.show_events(task_id(2), progress(1, 5))
    assert details.events.model.total == 0
    details.show_events(task_id(1), progress(1, 5))
    details.show_events(task_id(1), progress(6, 9))
    assert details.events.model.total == 9


def test_folder_and_id_are_at_hand(details: Details, qtbot: QtBot) -> None:
    details.show_view(a_view(7))
    button(details, words.say("details.copy_id")).click()
    assert QGuiApplication.clipboard().text() == task_id(7)
    with qtbot.waitSignal(details.wants_folder, timeout=60_000) as wanted:
        button(details, words.say("details.open_folder")).click()
    assert wanted.args == [task_id(7)]


@pytest.mark.case("R65")
def test_blocked_requests_are_in_overview_and_events(details: Details) -> None:
    details.show_view(a_view(1))
    assert details.overview.text_of("refused") == ""
    metadata, intranet = ("169.254.169.254:80", "link-local address"), ("10.0.0.1:8080", "private")
    details.show_events(task_id(1), part(refused(*metadata), TaskEvent(NOW, "log", {"note": "x"})))
    assert details.overview.text_of("refused").startswith("1 address\n169.254.169.254:80: link")
    details.show_events(task_id(1), part(refused(*intranet), refused(*intranet), older=True))
    assert details.overview.text_of("refused").splitlines() == [
        "2 addresses",
        "169.254.169.254:80: link-local address",
        "10.0.0.1:8080: private (2 times)",
    ]
    details._tabs.setCurrentIndex(1)
    chips = {chip.text() for chip in details.events.findChildren(QToolButton)}
    assert {"Refused (3)", "Log (1)"} <= chips
    assert details.events.model.row_at(0).text == "10.0.0.1:8080: private"
    details.show_view(a_view(2))
    assert details.overview.text_of("refused") == ""


def test_the_overview_says_first_that_a_site_lets_the_crawl_wait(details: Details) -> None:
    now_ms = time.time() * 1000
    details.show_view(a_view(1, "RUNNING"))
    plain = details.overview.sentence
    asked = "a.test asks for 10 s between two requests (Crawl-delay)."
    silent = "b.test asked to wait 60 s before it is asked again (Retry-After)."
    details.show_events(
        task_id(1),
        part(
            waits("a.test", 10, "crawl_delay", now_ms - 10**7),
            waits("c.test", 60, "retry_after", now_ms - 61_000),
            waits("b.test", 60, "retry_after", now_ms),
        ),
    )
    assert details.overview.sentence == f"{silent} {asked} {plain}"
    rows = [details.events.model.row_at(at) for at in range(3)]
    assert [(row.text, row.tone) for row in (rows[0], rows[2])] == [
        (asked, "warning"),
        (silent, "warning"),
    ]
    details.show_view(a_view(1, "COMPLETED"))
    assert asked not in details.overview.sentence
    details.show_view(a_view(2, "RUNNING"))
    assert asked not in details.overview.sentence


def test_the_overview_of_a_running_crawl_says_how_many_pages_load_at_once_and_why(
    details: Details,
) -> None:
    details.show_view(a_view(1, "RUNNING"))
    changes = [at_once(3, 0, "start", 1_000), at_once(6, 3, "room", 2_000)]
    details.show_events(task_id(1), part(*changes))
    now = "6 (before: 3): the site and the machine allow more"
    assert details.overview.text_of("concurrency") == now
    assert details.events.model.row_at(1).text == f"Pages at once: {now}"
    details.show_events(task_id(1), part(at_once(4, 3, "room", 1_500), older=True))
    assert details.overview.text_of("concurrency") == now
    details.show_events(task_id(1), part(at_once(3, 6, "refused", 3_000)))
    fewer = "3 (before: 6): the site asked for less (429 or 503)"
    assert details.overview.text_of("concurrency") == fewer
    details.show_view(a_view(1, "COMPLETED"))
    assert details.overview.text_of("concurrency") == ""
    details.show_view(a_view(2, "RUNNING"))
    assert details.overview.text_of("concurrency") == ""


def test_of_very_many_refused_addresses_the_rest_is_counted(details: Details) -> None:
    details.show_view(a_view(1))
    many = [refused(f"10.0.0.{n}:80", "private address") for n in range(250)]
    details.show_events(task_id(1), part(*many))
    lines = details.overview.text_of("refused").splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("250 addresses", "…and 230 more", 22)
