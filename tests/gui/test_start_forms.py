"""Every kind has a form: with the engine's defaults, its mistakes in place, and a JSON twin."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from engine.kinds.registry import KINDS
from engine.service.drafts import Terms, document
from engine.service.forms import inputs, startable
from engine.service.rerun import Asked
from gui.start.field import Fold
from gui.start.kind_form import FormWords
from gui.start.request_form import BudgetForm
from gui.start.request_tabs import JSON, line_and_column, places
from gui.start.start_dialog import StartDialog
from tests.gui.start_dialogs import judged
from tests.support.kinds import FLAT, least


@pytest.mark.parametrize("kind", FLAT)
def test_an_untouched_form_has_the_engines_defaults(dialog: StartDialog, kind: str) -> None:
    dialog.form.choose(kind)
    dialog.form.fill(least(kind))
    assert KINDS[kind].parse(dialog.form.asked.args) == KINDS[kind].parse(least(kind))
    assert dialog.start.isEnabled()
    assert dialog.form.asked.terms == Terms()


@pytest.mark.parametrize("kind", FLAT)
def test_no_argument_of_a_kind_is_left_out_of_its_form(qapp: QApplication, kind: str) -> None:
    shown = {line.key for line in FormWords().lines(kind)}
    assert set(inputs(kind)) - shown <= {"headed", "tab"}  # these are asked for in JSON only
    options = {line.key: {value for value, _ in line.options} for line in FormWords().lines(kind)}
    for name, one in inputs(kind).items():
        assert set(one.choices) == options.get(name, set()) or not one.choices


@pytest.mark.parametrize("kind", startable())
def test_controls_are_named_and_labels_are_plain(dialog: StartDialog, kind: str) -> None:
    dialog.form.choose(kind)
    nameless = [
        widget
        for widget in dialog.findChildren(QWidget)
        if widget.isVisible()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
        and not widget.accessibleName()
        and not (isinstance(widget, QAbstractButton) and widget.text())
        and not widget.objectName().startswith("qt_")
    ]
    assert [type(widget).__name__ for widget in nameless] == []
    formats = {label.textFormat() for label in dialog.findChildren(QLabel) if label.text()}
    assert formats == {Qt.TextFormat.PlainText}


@pytest.mark.parametrize("kind", startable())
def test_tab_goes_through_a_form_and_comes_back(dialog: StartDialog, kind: str) -> None:
    dialog.form.choose(kind)
    dialog.form._cards[kind].setFocus()
    first, seen = dialog.focusWidget(), []
    for _ in range(80):
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        seen.append(dialog.focusWidget())
        if dialog.focusWidget() is first:
            break
    assert dialog.focusWidget() is first
    assert seen[0] is dialog.form.body.needed
    in_form = [number for number, one in enumerate(seen) if dialog.form.isAncestorOf(one)]
    assert in_form[:-1] == list(range(len(in_form) - 1))  # nothing else comes between


@pytest.mark.parametrize("kind", [kind for kind in FLAT if "password" in inputs(kind)])
def test_a_password_is_hidden_and_may_be_a_reference(dialog: StartDialog, kind: str) -> None:
    dialog.form.choose(kind)
    editor = dialog.form["password"].editor
    assert isinstance(editor, QLineEdit)
    assert editor.echoMode() is QLineEdit.EchoMode.Password
    editor.setText(" pass word ")
    assert dialog.form.asked.args["password"] == " pass word "
    editor.setText('{"secret": "env:SITE"}')
    assert dialog.form.asked.args["password"] == {"secret": "env:SITE"}


def test_the_address_goes_along_to_another_kind(dialog: StartDialog) -> None:
    QTest.keyClicks(dialog.form["url"].editor, "example.com")
    dialog.form.choose("recording")
    assert dialog.form.asked.args["url"] == "https://example.com"
    assert not dialog.addresses.switch.isVisible()


def test_the_kinds_are_one_stop_of_tab_and_arrows_choose_among_them(dialog: StartDialog) -> None:
    QTest.keyClick(dialog.form.body.needed, Qt.Key.Key_Backtab)
    assert dialog.focusWidget() is dialog.form._cards["crawl"]
    for _ in range(2):
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Right)
    assert dialog.form.kind == "recording"
    assert dialog.focusWidget() is dialog.form._cards["recording"]
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    assert dialog.focusWidget() is dialog.form.body.needed
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Backtab)
    assert dialog.focusWidget() is dialog.form._cards["recording"]


def test_a_short_form_shows_all_of_itself(dialog: StartDialog) -> None:
    room = dialog.screen().availableSize().height() - 60
    assert dialog.height() == min(720, room)


def test_scrolling_the_form_turns_no_number(dialog: StartDialog) -> None:
    editor = dialog.form["max_pages"].editor
    dialog.form["url"].editor.setFocus()
    angle = QPoint(0, 120)
    wheel = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), angle, angle, Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(editor, wheel)
    assert dialog.form["max_pages"].value == 20


def test_a_click_opens_a_folded_mistake(dialog: StartDialog, qtbot: Any) -> None:
    dialog.form["url"].value = "https://example.com/"
    assert not dialog.footer.reason.isVisible()
    field = dialog.form["wait_for"]
    field.value = "x" * 3_000
    assert not field.isVisible()
    assert not dialog.start.isEnabled()
    reason = dialog.footer.reason
    assert reason.isVisible()
    assert reason.whole == f"{field.label}: must not be longer than 2,048 characters"
    QTest.mouseClick(reason, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: dialog.form.is_in_sight(field), timeout=60_000)
    assert field.mistake
    qtbot.waitUntil(lambda: dialog.focusWidget() is field.editor, timeout=60_000)
    field.value = "#late"
    assert dialog.start.isEnabled()
    assert not reason.isVisible()


def test_a_click_scrolls_to_a_mistake(dialog: StartDialog, qtbot: Any) -> None:
    assert not dialog.footer.reason.isVisible()  # nobody has typed: the field is in sight
    dialog.form.budgets.unfold()
    dialog.form.contract.unfold()
    dialog.resize(dialog.width(), 420)
    QApplication.processEvents()
    bar = dialog.form._area.verticalScrollBar()
    bar.setValue(bar.maximum())
    reason = dialog.footer.reason
    assert reason.whole == "Type the address of the site first."
    assert reason.isVisible()
    QTest.mouseClick(reason, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: dialog.form.is_in_sight(dialog.form["url"]), timeout=60_000)
    qtbot.waitUntil(lambda: dialog.focusWidget() is dialog.form["url"].editor, timeout=60_000)


def test_a_mistake_of_the_budgets_is_named_and_unfolded(dialog: StartDialog, qtbot: Any) -> None:
    terms = Terms(policy={"maxWallMs": 1_000, "allowedDomains": ["no domain"]})
    dialog.show_request(Asked("crawl", {"url": "https://example.com/"}, None, terms))
    dialog.form.budgets.toggle.setChecked(False)
    reason = dialog.footer.reason
    assert reason.whole.startswith("Only on these domains: ")
    QTest.mouseClick(reason, Qt.MouseButton.LeftButton)
    assert dialog.form.budgets.is_unfolded
    place = dialog.form.field_of("policy.allowedDomains[0]")
    assert place is not None
    qtbot.waitUntil(lambda: dialog.form.is_in_sight(place), timeout=60_000)


def test_a_click_selects_the_command_with_a_mistake(dialog: StartDialog, qtbot: Any) -> None:
    goto = {"action": "goto", "url": "https://example.com/"}
    one = {"tool_name": "browser_navigate", "intention": "go", "args": goto}
    two = {**one, "args": {"action": "goto", "url": "nowhere"}}
    args = {"task_name": "a", "task_intention": "b", "commands": [one, two]}
    dialog.show_request(Asked("commands", args), whole=True)
    assert dialog.form.body.current == 0  # type: ignore[union-attr]  # never None here
    QTest.mouseClick(dialog.footer.reason, Qt.MouseButton.LeftButton)
    assert dialog.form.body.current == 1  # type: ignore[union-attr]  # never None here
    place = dialog.form.field_of("commands[1].args.url")
    assert place is not None
    qtbot.waitUntil(lambda: dialog.form.is_in_sight(place), timeout=60_000)


def test_an_envelope_says_its_objective_in_its_terms(dialog: StartDialog) -> None:
    dialog.form.choose("browser_task")
    assert not dialog.start.isEnabled()
    dialog.form["objective"].value = "find the price"
    asked = dialog.form.asked
    assert asked.args == {}
    assert (asked.terms.objective, asked.terms.phase) == ("find the price", "explore")
    assert dialog.start.isEnabled()


@pytest.mark.parametrize(("kind", "key"), [("oc_session_snapshot", "tabs"), ("crawl", "urls")])
def test_missing_schemes_are_added_to_a_list_of_addresses(
    dialog: StartDialog, kind: str, key: str
) -> None:
    dialog.form.choose(kind)
    dialog.form.fill(least(kind))
    editor = dialog.form[key].editor
    assert isinstance(editor, QPlainTextEdit)
    editor.setPlainText("localhost:7601/shop/\nexample.com")
    whole = ["http://localhost:7601/shop/", "https://example.com"]
    assert dialog.form.asked.args[key] == whole
    assert dialog.start.isEnabled()
    dialog.form.left.emit(key)
    assert dialog.form[key].value == whole
    editor.setPlainText("https://example.com\nno address")
    dialog.form.left.emit(key)
    assert "is not a web address" in dialog.form[key].mistake


def test_no_address_of_a_long_list_is_lost_when_its_schemes_are_added(dialog: StartDialog) -> None:
    dialog.form.choose("crawl")
    dialog.form.fill(least("crawl"))
    editor = dialog.form["urls"].editor
    assert isinstance(editor, QPlainTextEdit)
    long = f"example.com/?q={'x' * 3_000}"
    typed = [long, *(f"site{number}.example" for number in range(700))]
    editor.setPlainText("\n".join(typed))
    dialog.form.left.emit("urls")
    assert dialog.form["urls"].value == [f"https://{one}" for one in typed]


def test_no_end_of_a_very_long_address_is_lost_when_its_scheme_is_added(
    dialog: StartDialog,
) -> None:
    long = f"example.com/?q={'x' * 9_000}"
    dialog.form.choose("crawl")
    editor = dialog.form["url"].editor
    assert isinstance(editor, QLineEdit)
    editor.setText(long)
    dialog.form.left.emit("url")
    assert dialog.form.asked.args["url"] == f"https://{long}"


def test_form_and_json_say_the_same_request(dialog: StartDialog) -> None:
    asked = Asked(
        "crawl",
        {"url": "https://example.com/", "max_pages": 7, "failOnPage": 3},
        "mine",
        Terms(
            policy={"maxToolCalls": 9, "allowedDomains": ["example.com"]},
            enforce=True,
            contract={"expected_total": 12, "failed_policy": "block", "cursor": "x"},
            workflow_id="w1",
        ),
    )
    dialog.show_request(asked, whole=True)
    shown = dialog.form.asked
    assert shown.args["failOnPage"] == 3
    assert (shown.name, shown.terms) == ("mine", asked.terms)
    dialog.tabs.setCurrentIndex(JSON)
    assert json.loads(dialog.json.text.toPlainText()) == document(shown)
    dialog.json.text.setPlainText(
        dialog.json.text.toPlainText().replace('"max_pages": 7', '"max_pages": 8')
    )
    dialog.tabs.setCurrentIndex(0)
    assert dialog.form["max_pages"].value == 8
    assert dialog.form.asked.terms == asked.terms
    assert dialog.form.asked.args["failOnPage"] == 3


def test_open_sections_stay_open_after_a_visit_to_json(dialog: StartDialog) -> None:
    dialog.form.unfold(frozenset(("Content and files", "Budgets")))
    assert dialog.form.unfolded == {"Content and files", "Budgets"}
    dialog.tabs.setCurrentIndex(JSON)
    text = dialog.json.text
    text.setPlainText(text.toPlainText().replace('"crawl"', '"crawl_sitemap"'))
    dialog.tabs.setCurrentIndex(0)
    assert dialog.form.kind == "crawl_sitemap"
    assert dialog.form.is_unfolded
    assert dialog.form.budgets.is_unfolded
    assert not dialog.form.contract.is_unfolded


def test_a_section_that_is_opened_at_the_lower_edge_scrolls_into_view(
    dialog: StartDialog, qtbot: QtBot
) -> None:
    dialog.resize(dialog.width(), dialog.minimumSizeHint().height())
    dialog.show()
    (area,) = (one for one in dialog.form.findChildren(QScrollArea) if one.widget())
    folds = [one for one in area.findChildren(Fold) if one.isVisible()]
    for fold in (folds[0], folds[-1]):
        area.ensureWidgetVisible(fold.toggle, 0, 0)
        QTest.mouseClick(fold.toggle, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(partial(in_sight, area, fold))
        QTest.mouseClick(fold.toggle, Qt.MouseButton.LeftButton)


def in_sight(area: QScrollArea, fold: Fold) -> bool:
    """All of it, or what fits below its heading."""
    top = fold.mapTo(area.viewport(), QPoint(0, 0)).y()
    room = area.viewport().height()
    return top >= 0 and fold.inner.height() > 0 and top + min(fold.height(), room) <= room


def test_a_section_tells_how_many_of_its_fields_are_changed(dialog: StartDialog) -> None:
    dialog.form.fill({"url": "https://a.example/", "retries": 5, "wait_for": "main"})
    folds = {fold.title: fold.toggle for fold in dialog.form.body.findChildren(Fold)}
    assert folds["Loading and pace"].text() == "Loading and pace · 2 changed"
    assert folds["Proxy"].text() == "Proxy"
    dialog.form["retries"].value = 2
    dialog.form["wait_for"].value = ""
    assert folds["Loading and pace"].text() == "Loading and pace"


def test_another_kind_begins_without_mistakes(dialog: StartDialog) -> None:
    dialog.form.fill({"url": "https://a.example/"})
    dialog.form["url"].left.emit()
    dialog.form.choose("commands")
    assert dialog.form["task_name"].mistake == ""
    assert not dialog.banner.isVisible()
    dialog.form.choose("crawl")
    dialog.form["url"].value = "ftp://a.example/"
    dialog.form["url"].left.emit()
    dialog.form.choose("crawl_sitemap")
    assert dialog.form["url"].mistake


def test_a_web_archive_is_started_by_choosing_it_alone(dialog: StartDialog) -> None:
    dialog.form.fill({"url": "https://a.example/"})
    archive = dialog.form["archive"].editor
    assert isinstance(archive, QComboBox)
    archive.setFocus()
    QTest.keyClick(archive, Qt.Key.Key_Down)
    assert dialog.form.asked.args["archive"] == "warc"
    assert judged(dialog.form.asked) == ()
    QTest.keyClick(archive, Qt.Key.Key_Up)
    assert dialog.form["block_resources"].value is True


def test_json_that_is_none_stays_in_sight_with_its_line(dialog: StartDialog) -> None:
    dialog.tabs.setCurrentIndex(JSON)
    dialog.json.text.setPlainText('{"kind": "crawl",\n  "args": {"url": }}')
    dialog.tabs.setCurrentIndex(0)
    assert dialog.tabs.currentIndex() == JSON
    assert "line 2, column 19" in dialog.json.mistakes
    assert not dialog.start.isEnabled()


def test_a_json_mistake_moves_the_cursor_to_its_line(dialog: StartDialog) -> None:
    dialog.tabs.setCurrentIndex(JSON)
    text = '{"kind": "crawl",\n "args": {"url": "https://a.example/",\n   "max_pages": 0}}'
    dialog.json.text.setPlainText(text)
    dialog.json.settle()
    assert "Line 3, column 17: max_pages: must be between 1 and" in dialog.json.mistakes
    dialog.json._go.click()
    assert dialog.json.text.textCursor().blockNumber() == 2


def test_values_without_a_field_are_reported(dialog: StartDialog) -> None:
    dialog.tabs.setCurrentIndex(JSON)
    args = {"url": "https://a.example/", "max_pages": "many", "color": 3}
    dialog.json.text.setPlainText(json.dumps({"kind": "crawl", "args": args}))
    dialog.tabs.setCurrentIndex(0)
    assert dialog.form.asked.args["max_pages"] == "many"
    dialog.ask()
    assert "whole number" in dialog.form["max_pages"].mistake
    said = [label.text() for label in dialog.banner.findChildren(QLabel)]
    assert any("color: is not an argument" in text for text in said)
    dialog.form["max_pages"].value = 4
    assert dialog.form.asked.args["max_pages"] == 4


def test_budgets_are_presets_until_a_number_is_changed(qapp: QApplication, qtbot: Any) -> None:
    for kind, names in (("crawl", ["unlimited", "normal", "careful"]), ("browser_task", None)):
        form = BudgetForm(kind)
        qtbot.addWidget(form)
        assert not form.policy
        form.unfold()
        for name in names or ["normal", "careful", "unlimited"]:
            form.preset.value = name
            policy = form.policy
            assert form.preset.value == name
            needed: dict[str, Any] = least(kind) if kind in FLAT else {}
            terms = Terms(policy=policy, objective="x" if kind == "browser_task" else None)
            assert judged(Asked(kind, needed, None, terms)) == ()
        form._fields["maxToolCalls"].value = 777
        assert form.preset.value == "own"
        assert form.policy is not None
        assert form.policy["maxToolCalls"] == 777


def test_budget_and_contract_fields_are_created_on_unfold(dialog: StartDialog) -> None:
    dialog.form.fill(least("crawl"))
    asked = dialog.form.asked
    assert not dialog.form.budgets.is_made
    assert not dialog.form.contract.is_made
    dialog.form.budgets.unfold()
    assert dialog.form.asked == asked
    first = dialog.form.budgets.preset.editor
    assert dialog.form.budgets.toggle.nextInFocusChain() is first
    dialog.form.show_request(
        Asked("crawl", least("crawl"), None, Terms(contract={"expected_total": 5})), whole=True
    )
    assert dialog.form.contract.contract == {"expected_total": 5, "failed_policy": "allow"}


def test_a_mistake_in_budgets_or_contract_unfolds_them(dialog: StartDialog) -> None:
    dialog.form.fill(least("crawl"))
    folds = (dialog.form.contract, dialog.form.budgets)
    for fold in folds:
        fold.unfold()
    dialog.form.contract.wanted.setChecked(True)
    dialog.form.budgets._domains.value = ["http://x/y"]
    for fold in folds:
        fold.toggle.setChecked(False)
    dialog.ask()
    assert dialog.form.contract.is_unfolded
    assert dialog.form.budgets.is_unfolded
    assert "is needed" in dialog.form.contract._fields["stop_condition"].mistake
    assert dialog.form.budgets._domains.mistake
    dialog.form.contract._fields["expected_total"].value = 5
    dialog.form.budgets._domains.value = ["example.com"]
    assert dialog.start.isEnabled()
    assert dialog.form.asked.terms.contract == {"expected_total": 5, "failed_policy": "allow"}


def test_a_place_is_found_for_every_value_of_a_json_text() -> None:
    text = json.dumps({"a": [1, {"b c": None}], "d": "x"}, indent=1)
    found = places(text)
    assert set(found) == {"", "a", "a[0]", "a[1]", 'a[1]["b c"]', "d"}
    assert text[found["a[0]"]] == "1"
    assert text[found['a[1]["b c"]'] :].startswith("null")
    assert line_and_column(text, found["d"]) == (8, 7)


def test_a_command_form_says_why_it_cannot_start(dialog: StartDialog) -> None:
    dialog.form.choose("commands")
    dialog.form.fill({"task_name": "Sign in"})
    assert not dialog.start.isEnabled()
    assert dialog.footer.reason.isVisible()
    assert dialog.footer.reason.whole in dialog.start.toolTip()


def test_a_form_that_is_thrown_away_says_nothing_any_more(dialog: StartDialog) -> None:
    dialog.form["url"].editor.setFocus()
    dialog.form.choose("commands")
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert dialog.addresses.offer.parent() is not None
    dialog.form.choose("crawl")
    assert dialog.addresses.switch.isVisible()


def test_the_concurrency_of_a_crawl_is_a_number_or_automatic(dialog: StartDialog) -> None:
    dialog.form.choose("crawl")
    field = dialog.form["concurrency"]
    editor = field.editor
    assert isinstance(editor, QSpinBox)
    assert (field.value, editor.text()) == (3, "3")
    editor.setValue(editor.minimum())
    assert (field.value, editor.text()) == ("auto", "automatic")
    assert dialog.form.asked.args["concurrency"] == "auto"
    for value in (16, "auto", 1):
        field.hold(value)
        assert field.value == value
        assert not field.is_strange
    field.hold("auto")
    field.hold("lots")  # kept as it was given, until it is edited
    assert (field.value, editor.text()) == ("lots", "lots")
    editor.setFocus()
    QTest.keyClicks(editor, "7")
    assert (field.value, editor.text()) == (7, "7")
