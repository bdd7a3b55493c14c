"""The start dialog shows mistakes at their field; the cancel dialog counts correctly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton

import gui
from engine.model.errors import InvalidArguments, LedgerWriteFailed, Problem
from engine.model.records import Status, TaskRecord, TaskView, Unreadable
from engine.model.typed_address import address_in, complete
from engine.service.stop_plan import REACHED, fate
from gui.commands.task_requests import CancelDialog, plan_cancel
from gui.start.start_dialog import StartDialog
from gui.style.questions import Question
from gui.style.tables import PlainHeader
from gui.style.theme import tone

ID = "0123456789abcdef"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("example.com", "https://example.com"),
        (" example.com/a b ", "https://example.com/a b"),
        ("http://example.com", "http://example.com"),
        ("//example.com/x", "https://example.com/x"),
        ("localhost:8080/x", "http://localhost:8080/x"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("[::1]:9", "http://[::1]:9"),
        ("ftp://example.com", "ftp://example.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("example.com:8443/x", "https://example.com:8443/x"),
        ("", ""),
    ],
)
def test_an_address_gets_the_scheme_that_was_meant(typed: str, meant: str) -> None:
    assert complete(typed) == meant


@pytest.mark.parametrize(
    ("copied", "found"),
    [
        ("https://example.com/a?b=1", "https://example.com/a?b=1"),
        ("example.com", "https://example.com"),
        ("localhost", "http://localhost"),
        ("hello", ""),
        ("two words.com", ""),
        ("file:///etc/passwd", ""),
        ("https://", ""),
        ("x" * 3000, ""),
        ("http://[broken", ""),
    ],
)
def test_only_what_is_an_address_is_offered_from_the_clipboard(copied: str, found: str) -> None:
    assert address_in(copied) == found


def asked(dialog: StartDialog) -> list[tuple[str, Mapping[str, Any]]]:
    seen: list[tuple[str, Mapping[str, Any]]] = []
    dialog.wanted.connect(lambda asked: seen.append((asked.kind, asked.args)))
    return seen


def test_start_is_disabled_without_an_address(dialog: StartDialog) -> None:
    seen = asked(dialog)
    assert not dialog.start.isEnabled()
    assert "address" in dialog.start.toolTip()
    dialog.ask()
    assert seen == []
    assert dialog.form["url"].mistake


def test_a_typed_host_is_started_as_https(dialog: StartDialog) -> None:
    seen = asked(dialog)
    QTest.keyClicks(dialog.form["url"].editor, "example.com/docs")
    QTest.keyClick(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert len(seen) == 1
    kind, args = seen[0]
    assert kind == "crawl"
    assert args["url"] == "https://example.com/docs"
    assert args["max_pages"] == 20
    assert args["max_depth"] == 2


def test_the_forms_own_values_are_the_engines_defaults(dialog: StartDialog) -> None:
    from engine.kinds.crawl.crawl_args import parse_crawl

    dialog.form.fill({"url": "https://example.com/"})
    assert parse_crawl(dialog.form.asked.args) == parse_crawl({"url": "https://example.com/"})


def test_a_mistake_shows_under_its_field_only_after_the_field_was_left(dialog: StartDialog) -> None:
    url = dialog.form["url"]
    QTest.keyClicks(url.editor, "ftp://example.com")
    assert url.mistake == ""
    url.left.emit()
    assert "http" in url.mistake
    assert not dialog.start.isEnabled()


def test_a_refusal_unfolds_the_fields_that_are_folded_away(dialog: StartDialog) -> None:
    dialog.form.fill({"url": "https://example.com"})
    dialog.ask()
    problems = (
        Problem("include_patterns[0]", "bad_pattern", "is no pattern"),
        Problem("moon", "unknown", "is not known"),
    )
    dialog.show_refusal(InvalidArguments(problems))
    assert dialog.form.is_unfolded
    assert dialog.form["include_patterns"].mistake == "is no pattern"
    assert "This cannot be started" in dialog.banner.title
    assert dialog.isVisible()


def test_a_failed_start_keeps_what_was_typed(dialog: StartDialog) -> None:
    dialog.form.fill({"url": "https://example.com/keep"})
    dialog.ask()
    assert not dialog.start.isEnabled()
    dialog.show_error(LedgerWriteFailed(reason="disk full", path="/x"))
    assert dialog.start.isEnabled()
    assert dialog.form["url"].value == "https://example.com/keep"
    assert "ledger" in dialog.banner.title.lower()


def test_a_crawl_is_asked_for_once_however_often_the_keys_repeat(dialog: StartDialog) -> None:
    seen = asked(dialog)
    dialog.form.fill({"url": "https://example.com"})
    dialog.ask()
    dialog.form["max_pages"].changed.emit()
    assert not dialog.start.isEnabled()
    dialog.ask()
    dialog.start.click()
    assert len(seen) == 1
    assert all(not keys.autoRepeat() for keys in dialog.findChildren(QShortcut))
    dialog.show_error(LedgerWriteFailed(reason="disk full", path="/x"))
    dialog.ask()
    assert len(seen) == 2


def test_a_copied_address_is_offered_and_taken_by_one_click(dialog: StartDialog) -> None:
    dialog.addresses.offer_text("example.com/copied")
    assert dialog.offer.isVisible()
    dialog.offer.click()
    assert dialog.form["url"].value == "https://example.com/copied"
    assert not dialog.offer.isVisible()


def test_arguments_of_the_wrong_shape_from_a_folder_change_nothing(dialog: StartDialog) -> None:
    before = dialog.form.asked.args
    dialog.form.fill(
        {
            "max_pages": "many",
            "respect_robots": 3,
            "engine": ["browser"],
            "include_patterns": 5,
            "delay_ms": True,
            "unknown": 1,
        }
    )
    assert dialog.form.asked.args == before


def test_markup_in_an_offered_address_is_shown_literally(dialog: StartDialog) -> None:
    dialog.addresses.offer_text("https://example.com/<b>x</b>&y")
    assert "<b>" in dialog.offer.text()
    assert "&&y" in dialog.offer.text()


def view(status: str, **more: Any) -> TaskView:
    facts = {key: more.pop(key) for key in ("ours", "foreign", "orphaned") if key in more}
    return TaskView(TaskRecord(ID, kind="crawl", status=status, created_at=1, **more), **facts)


VIEWS = [
    view(Status.RUNNING, ours=True),
    view(Status.RUNNING, ours=True),
    view(Status.PENDING, ours=True),
    view(Status.RUNNING, foreign=True),
    view(Status.RUNNING, ours=True, cancel_requested_at=5),
    view(Status.COMPLETED),
    view(Status.FAILED),
    view(Status.RUNNING, orphaned=True),
    TaskView(Unreadable(ID, "broken", "/x")),
]


def test_a_selection_is_sorted_by_what_a_cancel_does_to_each_task() -> None:
    plan = plan_cancel(VIEWS)
    assert [len(group) for group in (plan.running, plan.pending, plan.foreign)] == [2, 1, 1]
    assert (plan.asked, plan.ended, plan.orphaned, plan.unreadable) == (1, 2, 1, 1)
    assert len(plan.ids) == 4
    assert [fate(one) in REACHED for one in VIEWS] == [True] * 4 + [False] * 5


def test_an_envelope_without_owner_is_cancelled_at_once(qapp: QApplication) -> None:
    record = TaskRecord(ID, kind="browser_task", status="RUNNING", created_at=1)
    outside = [TaskView(record, foreign=True), TaskView(record, orphaned=True)]
    plan = plan_cancel(outside)
    assert (len(plan.at_once), len(plan.ids), plan.orphaned) == (2, 2, 0)
    assert plan.needs_a_question
    assert all(fate(one) in REACHED for one in outside)
    assert "2 of agents and other programs: cancelled at once" in words_of(CancelDialog(plan))


def test_a_state_that_nobody_knows_is_not_called_finished(qapp: QApplication) -> None:
    plan = plan_cancel([view("PAUSED"), view(Status.RUNNING, ours=True)])
    assert (plan.ended, plan.unknown, len(plan.ids)) == (0, 1, 1)
    assert "1 in a state that is not known" in words_of(CancelDialog(plan))


def test_only_one_waiting_task_is_cancelled_without_a_question() -> None:
    waiting = view(Status.PENDING, ours=True)
    assert not plan_cancel([waiting]).needs_a_question
    assert plan_cancel([waiting, waiting]).needs_a_question
    assert plan_cancel([view(Status.RUNNING, ours=True)]).needs_a_question
    assert plan_cancel([view(Status.RUNNING, foreign=True)]).needs_a_question


def words_of(dialog: Question) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel))


def test_the_cancel_dialog_counts_tasks(qapp: QApplication, qtbot: Any) -> None:
    dialog = CancelDialog(plan_cancel(VIEWS))
    qtbot.addWidget(dialog)
    said = words_of(dialog)
    assert "Cancel 4 tasks?" in said
    assert "2 running: they stop" in said
    assert "1 waiting: removed" in said
    assert "1 owned by another process: the request is written" in said
    assert "2 already finished, 1 already asked to stop, 1 without a living owner" in said
    assert "1 that cannot be read" in said
    default = next(button for button in dialog.findChildren(QPushButton) if button.isDefault())
    assert default.text() == "Keep running"
    answers: list[str] = []
    dialog.when_answered(answers.append)
    dialog.open()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert answers == ["keep"]


def test_the_reason_is_optional_and_trimmed(qapp: QApplication, qtbot: Any) -> None:
    dialog = CancelDialog(plan_cancel(VIEWS[:1]))
    qtbot.addWidget(dialog)
    assert dialog.reason is None
    QTest.keyClicks(dialog._reason, "  wrong site ")
    assert dialog.reason == "wrong site"


def test_dialog_labels_are_plain_text(qapp: QApplication, qtbot: Any, dialog: StartDialog) -> None:
    cancel = CancelDialog(plan_cancel(VIEWS))
    qtbot.addWidget(cancel)
    labels = [*dialog.findChildren(QLabel), *cancel.findChildren(QLabel)]
    worded = [label for label in labels if label.text()]
    assert worded
    assert {label.textFormat() for label in worded} == {Qt.TextFormat.PlainText}


def test_tab_leads_from_the_last_field_to_what_is_folded_away(dialog: StartDialog) -> None:
    dialog.form["output_format"].editor.setFocus()
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Space)
    assert dialog.form.is_unfolded


def test_enter_presses_the_focused_button(qapp: QApplication, qtbot: Any) -> None:
    question = Question()
    qtbot.addWidget(question)
    question.ask("Stop", "Stop all?")
    reason = QLineEdit(question)
    question.body.addWidget(reason)
    stop = question.add_button("stop", "Stop")
    question.add_button("stay", "Stay", default=True)
    question.open()
    reason.setFocus()
    QTest.keyClick(reason, Qt.Key.Key_Return)
    assert question.isVisible()
    stop.setFocus()
    QTest.keyClick(stop, Qt.Key.Key_Return)
    assert question.answer == "stop"


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (["crawl"], "its finished pages are kept"),
        (["recording"], "its finished actions are kept"),
        (["commands", "commands"], "finished commands are kept"),
        (["recording", "crawl"], "finished steps are kept"),
    ],
)
def test_cancel_names_the_unit(qapp: QApplication, qtbot: Any, kinds: list[str], said: str) -> None:
    records = [TaskRecord(ID, kind=kind, status="RUNNING", created_at=1) for kind in kinds]
    dialog = CancelDialog(plan_cancel([TaskView(record, ours=True) for record in records]))
    qtbot.addWidget(dialog)
    assert said in words_of(dialog)


def test_a_cancel_that_cannot_be_undone_says_so(qapp: QApplication, qtbot: Any) -> None:
    waiting = view(Status.PENDING, ours=True)
    for views, said in (([waiting], "This cannot be undone"), ([waiting] * 2, "1 of them cannot")):
        dialog = CancelDialog(plan_cancel(views), for_good=1)
        qtbot.addWidget(dialog)
        assert said in words_of(dialog)


def test_what_destroys_has_the_colour_of_errors(qapp: QApplication, qtbot: Any) -> None:
    dialog = CancelDialog(plan_cancel(VIEWS[:1]))
    qtbot.addWidget(dialog)
    colours = {
        one.text(): one.palette().buttonText().color() for one in dialog.findChildren(QPushButton)
    }
    assert colours["Cancel task"] == tone("bad", qapp.palette())
    assert colours["Keep running"] == qapp.palette().buttonText().color()


LEAVES = {"", "no", "keep", "stay", "leave", "wait", "close", "STAY", "go on"}
ADDED = re.compile(r"^ +(?:.* = )?\w+\.add_button\((?:\"([^\"]*)\"|([A-Z]+)), ", re.MULTILINE)


def test_every_question_has_what_leaves_all_as_it_is_at_the_end() -> None:
    found = 0
    for file in Path(gui.__file__).parent.rglob("*.py"):
        for body in re.split(r"^    def |^def ", file.read_text("utf-8"), flags=re.MULTILINE):
            keys = [named or constant for named, constant in ADDED.findall(body)]
            leaving = [at for at, key in enumerate(keys) if key in LEAVES]
            found += bool(leaving)
            assert leaving == list(range(len(keys)))[len(keys) - len(leaving) :], (file.name, keys)
    assert found > 15


def test_lists_in_questions_look_like_the_other_tables(qapp: QApplication, qtbot: Any) -> None:
    dialog = CancelDialog(plan_cancel(VIEWS))
    qtbot.addWidget(dialog)
    assert isinstance(dialog.list.header(), PlainHeader)
    dialog.show()
    first = dialog.list.topLevelItem(0)
    assert first is not None
    image = dialog.list.viewport().grab(dialog.list.visualItemRect(first)).toImage()
    rows, ground = range(image.height()), image.pixel(1, image.height() // 2)
    ink = next(x for x in range(image.width()) if any(image.pixel(x, y) != ground for y in rows))
    assert 7 <= ink <= 10, "as far from the edge as the title of the column"
    assert dialog.list.verticalScrollBar().maximum() == 0, "so few rows have room"
