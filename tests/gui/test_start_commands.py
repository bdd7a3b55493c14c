"""The commands table: building, moving and validating rows; untouched parts stay."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
)

from engine.model.errors import Problem
from engine.service.drafts import lacks
from engine.service.rerun import Asked
from gui.context.preferences import Preferences
from gui.start.command_fields import ACTIONS
from gui.start.command_form import CommandForm
from gui.start.presets import Presets
from gui.start.start_dialog import StartDialog
from tests.gui.start_dialogs import judged


def command(intention: str, tool: str, action: str, **args: Any) -> dict[str, Any]:
    return {"tool_name": tool, "intention": intention, "args": {"action": action, **args}}


LOGIN: dict[str, Any] = {
    "task_name": "log in",
    "task_intention": "see the account",
    "metadata": {"ticket": 7},
    "commands": [
        command("open", "browser_navigate", "goto", url="https://example.com/"),
        command("name", "browser_interact", "type", selector="#u", text="  a\tb  "),
        command("pin", "browser_interact", "type", selector="#p", text={"secret": "env:PIN"}),
        command("see", "browser_content", "screenshot"),
    ],
}


@pytest.fixture
def dialog(dialog: StartDialog) -> StartDialog:
    dialog.form.choose("commands")
    QAbstractItemModelTester(form_of(dialog).rows, dialog)
    return dialog


def form_of(dialog: StartDialog) -> CommandForm:
    form = dialog.form.body
    assert isinstance(form, CommandForm)
    return form


OWN_BROWSER: dict[str, Any] = {
    "profile": "shop",
    "save_profile": "shop-2",
    "proxy": "socks5://127.0.0.1:1080",
    "proxy_username": "ann",
    "proxy_password": {"secret": "env:OF_THE_PROXY"},
    "proxy_bypass": [".example.com", "10.0.0.0/8"],
    "device": "Pixel 7",
    "viewport": "390x844",
    "user_agent": "Mozilla/5.0 (own)",
    "locale": "de-DE",
    "timezone": "Europe/Berlin",
}


def test_the_own_browser_of_a_task_is_set_in_the_form(dialog: StartDialog) -> None:
    form = form_of(dialog)
    form.fill(LOGIN)
    assert not OWN_BROWSER.keys() & form.args.keys()
    form.reveal("proxy")
    assert form.is_unfolded
    for key, value in OWN_BROWSER.items():
        form[key].value = value
    assert {key: form.args[key] for key in OWN_BROWSER} == OWN_BROWSER
    form.fill({**LOGIN, **OWN_BROWSER})
    assert form.args == {**LOGIN, **OWN_BROWSER}
    form["proxy"].value = ""
    form["proxy_bypass"].value = []
    assert not {"proxy", "proxy_bypass"} & form.args.keys()
    form.fill(LOGIN)
    assert form.args == LOGIN


def test_a_mistake_about_the_browser_is_shown_at_its_field(dialog: StartDialog) -> None:
    form = form_of(dialog)
    form.fill({**LOGIN, "proxy_username": "ann"})
    rest = form.problem_fields([Problem("proxy_username", "not_together", "needs proxy")])
    assert rest == []
    assert form["proxy_username"].mistake == "needs proxy"
    assert form.is_unfolded


def test_a_task_is_built_by_hand_with_nothing_but_the_keyboard(dialog: StartDialog) -> None:
    form = form_of(dialog)
    QTest.keyClicks(form["task_name"].editor, "look")
    QTest.keyClicks(form["task_intention"].editor, "see")
    add = next(one for one in form.findChildren(QPushButton) if one.text() == "Add command")
    add.setFocus()
    QTest.keyClick(add, Qt.Key.Key_Space)
    QTest.keyClicks(dialog.focusWidget(), "open it")
    QApplication.processEvents()  # the fields of the new command are shown
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    QTest.keyClicks(dialog.focusWidget(), "https://example.com/")
    assert dialog.form.asked.args == {
        "task_name": "look",
        "task_intention": "see",
        "commands": [command("open it", "browser_navigate", "goto", url="https://example.com/")],
    }
    assert dialog.start.isEnabled()


def test_what_nobody_edits_stays_as_it_was_given(dialog: StartDialog) -> None:
    dialog.show_request(Asked("commands", LOGIN), whole=True)
    form = form_of(dialog)
    for row in range(4):
        form._select(row)
    assert dialog.form.asked.args == LOGIN
    form._select(2)
    assert form.one["text"].value == {"secret": "env:PIN"}
    form.one["selector"].value = "#pin"
    changed = dialog.form.asked.args["commands"]
    assert changed[2]["args"] == {
        "action": "type",
        "selector": "#pin",
        "text": {"secret": "env:PIN"},
    }
    assert changed[1] == LOGIN["commands"][1]
    assert LOGIN["commands"][2]["args"]["selector"] == "#p"


def test_keys_in_page_content_are_kept_where_the_box_says_so(dialog: StartDialog) -> None:
    dialog.form.choose("commands")
    box = dialog.form["redact_content"].editor
    assert isinstance(box, QCheckBox)
    assert box.isChecked()
    assert "redact_content" not in dialog.form.asked.args
    box.setChecked(False)
    assert dialog.form.asked.args["redact_content"] is False
    dialog.form.fill({**dialog.form.asked.args, "redact_content": True})
    assert box.isChecked()


def test_commands_are_moved_doubled_and_removed_in_their_table(dialog: StartDialog) -> None:
    dialog.show_request(Asked("commands", LOGIN), whole=True)
    form = form_of(dialog)

    def order() -> list[str]:
        return [one["intention"] for one in dialog.form.asked.args["commands"]]

    dialog.activateWindow()
    form._select(0)
    form.table.setFocus()
    QApplication.processEvents()
    QTest.keyClick(form.table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert (order(), form.current) == (["name", "open", "pin", "see"], 1)
    QTest.keyClick(form.table, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(form.table, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert (order(), form.current) == (["open", "name", "pin", "see"], 0)
    form.duplicate()
    assert (order(), form.current) == (["open", "open", "name", "pin", "see"], 1)
    QTest.keyClick(form.table, Qt.Key.Key_Delete)
    form._select(3)
    QTest.keyClick(form.table, Qt.Key.Key_Delete)
    assert (order(), form.current) == (["open", "name", "pin"], 2)
    for _ in range(4):
        form.remove()
    assert order() == []
    assert not form.one.isVisible()
    assert [button.isEnabled() for button in form._row_buttons] == [False] * 4
    form.add()
    assert [button.isEnabled() for button in form._row_buttons] == [True] * 4


def test_a_mistake_stands_in_its_row_and_under_its_field(dialog: StartDialog) -> None:
    wrong = [
        command("a", "browser_navigate", "goto", url="ftp://x"),
        command("b", "browser_interact", "clik", selector="#a"),
        command("c", "browser_content", "screenshot", colour=1),
        "no command",
    ]
    dialog.show_request(Asked("commands", {**LOGIN, "commands": wrong}), whole=True)
    dialog.ask()
    form = form_of(dialog)
    cells = [form.rows.index(row, 0).data() for row in range(4)]
    assert cells == ["1 ⚠", "2 ⚠", "3 ⚠", "4 ⚠"]
    assert "http" in form.one["url"].mistake
    form._select(1)
    assert "did you mean click" in form.one.tool.mistake
    form._select(2)
    assert "is not an argument" in form.one.tool.mistake
    form._select(0)
    form.one["url"].value = "https://example.com"
    assert form.rows.index(0, 0).data() == "1"
    assert form.one["url"].mistake == ""


def test_the_reason_names_the_command_with_its_number_in_the_table(dialog: StartDialog) -> None:
    steps = [command("a", "browser_navigate", "goto", url="https://example.com/")]
    steps.append(command("b", "browser_interact", "type", text="x"))
    dialog.show_request(Asked("commands", {**LOGIN, "commands": steps}), whole=True)
    dialog.ask()
    expected = "Command 2, Element (CSS selector): is needed for browser_interact type"
    for row in (0, 1):
        form_of(dialog)._select(row)
        dialog.ask()
        assert dialog.footer.reason.whole == expected


@pytest.mark.parametrize("action", ["goto", "new_tab"])
def test_a_missing_scheme_is_added_to_the_address_of_a_command(
    dialog: StartDialog, action: str
) -> None:
    form = form_of(dialog)
    form.fill({**LOGIN, "commands": [command("a", "browser_navigate", action)]})
    QTest.keyClicks(form.one["url"].editor, "localhost:7601/shop/")
    assert form.args["commands"][0]["args"]["url"] == "http://localhost:7601/shop/"
    assert dialog.start.isEnabled()
    form.one["url"].left.emit()
    assert form.one["url"].value == "http://localhost:7601/shop/"


def test_a_variable_may_bring_the_scheme_of_an_address(dialog: StartDialog) -> None:
    form = form_of(dialog)
    form.fill({**LOGIN, "commands": [command("a", "browser_navigate", "goto", url="")]})
    QTest.keyClicks(form.one["url"].editor, "{{site}}/login")
    form.one["url"].left.emit()
    assert form.one["url"].value == "{{site}}/login"
    assert form.args["commands"][0]["args"]["url"] == "{{site}}/login"


@pytest.mark.parametrize("typed", [" {{site}}/login", "/login"])
def test_what_has_its_host_elsewhere_gets_no_scheme(dialog: StartDialog, typed: str) -> None:
    form = form_of(dialog)
    form.fill({**LOGIN, "commands": [command("a", "browser_navigate", "goto", url="")]})
    QTest.keyClicks(form.one["url"].editor, typed)
    form.one["url"].left.emit()
    assert form.args["commands"][0]["args"]["url"] == typed.strip()


def test_a_task_that_was_given_says_at_once_why_it_cannot_start(dialog: StartDialog) -> None:
    step = command("a", "browser_navigate", "goto", url="{{site}}/wiki")
    dialog.show_request(Asked("commands", {**LOGIN, "commands": [step]}), whole=True)
    form = form_of(dialog)
    assert not dialog.start.isEnabled()
    assert form.rows.index(0, 0).data() == "1 ⚠"
    assert form.one["url"].mistake == "there is no variable 'site'; give it a value in variables"


def test_a_task_that_only_names_a_variable_asks_for_its_value(dialog: StartDialog) -> None:
    step = command("a", "browser_navigate", "goto", url="{{site}}/wiki")
    dialog.show_request(Asked("commands", {**LOGIN, "commands": [step]}), whole=True)
    (line,) = form_of(dialog).variables.lines
    assert dialog.footer.reason.whole == "Type the value of site."
    QTest.keyClicks(line.value, "https://example.com")
    assert dialog.start.isEnabled()


@pytest.mark.parametrize(("tool", "action"), ACTIONS)
def test_every_action_shows_its_arguments(dialog: StartDialog, tool: str, action: str) -> None:
    form = form_of(dialog)
    form.add()
    combo = form.one.tool.editor
    assert isinstance(combo, QComboBox)
    combo.setCurrentIndex(combo.findData(f"{tool} {action}"))
    (made,) = dialog.form.asked.args["commands"]
    assert (made["tool_name"], made["args"]["action"]) == (tool, action)
    assert set(form.one._fields) == set(ACTIONS[tool, action])
    refused = [one.code for one in judged(dialog.form.asked) if "unknown" in one.code]
    assert refused == []


def test_secret_variables_are_hidden(dialog: StartDialog) -> None:
    dialog.form.show_request(Asked("commands", {**LOGIN, "variables": {"user": "ann"}}), whole=True)
    table = form_of(dialog).variables
    assert [(one.name.text(), one.value.text()) for one in table.lines] == [("user", "ann")]
    QTest.mouseClick(table.more, Qt.MouseButton.LeftButton)
    added = table.lines[-1]
    QTest.keyClicks(added.name, "pin")
    QTest.mouseClick(added.secret, Qt.MouseButton.LeftButton, pos=added.secret.rect().center())
    added.secret.setChecked(True)
    QTest.keyClicks(added.value, "4711")
    assert added.value.displayText() == "●●●●"
    assert dialog.form.asked.args["variables"] == {"user": "ann", "pin": "4711"}
    assert judged(dialog.form.asked) == ()
    presets = Presets(Preferences())
    kept = presets.keep("with a pin", dialog.form.asked)
    assert "4711" not in str(kept.asked)
    dialog.form.show_request(kept.asked, whole=True)
    again = form_of(dialog).variables.lines
    assert [(one.name.text(), one.value.text()) for one in again] == [("user", ""), ("pin", "")]
    assert lacks(dialog.form.asked)
    again[1].value.setText("4711")
    QApplication.processEvents()  # the lines are laid out
    QTest.mouseClick(again[0].remove, Qt.MouseButton.LeftButton)
    assert dialog.form.asked.args["variables"] == {"pin": "4711"}


def test_a_wrong_variable_is_named_where_it_stands(dialog: StartDialog) -> None:
    asked = Asked("commands", {**LOGIN, "variables": {"not a name": "x"}})
    dialog.form.show_request(asked, whole=True)
    form = form_of(dialog)
    assert form.problem_fields(judged(dialog.form.asked)) == []
    said = [one.text() for one in form.variables.findChildren(QLabel) if one.isVisible()]
    assert any("is not a name" in one for one in said)
    form.variables.lines[0].name.setText("pin")
    form.variables.add().show_value("pin", "y")
    form.variables.show_problems(())
    said = [one.text() for one in form.variables.findChildren(QLabel) if one.isVisible()]
    assert any("twice" in one for one in said)


def test_a_number_that_is_not_set_is_not_asked_for(dialog: StartDialog) -> None:
    form = form_of(dialog)
    form.add()
    form.one["timeout"].value = 500
    assert dialog.form.asked.args["commands"][0]["args"]["timeout"] == 500
    form.one["timeout"].value = None
    assert "timeout" not in dialog.form.asked.args["commands"][0]["args"]


REPLAY: dict[str, Any] = {
    "task_name": "replay",
    "task_intention": "do it again",
    "commands": [
        command("open", "browser_navigate", "goto", url="{{site}}/login"),
        command("name", "browser_interact", "type", selector="#u", text="{{user}}"),
        command("pin", "browser_interact", "type", selector="#p", text="{{password}}"),
    ],
    "variables": {},
    "metadata": {
        "variables": [
            {"name": "user", "secret": False, "field": "<b>Your</b> name"},
            {"name": "password", "secret": True, "field": "Password"},
        ]
    },
}


def test_only_the_values_of_a_task_with_variables_need_to_be_typed(dialog: StartDialog) -> None:
    dialog.show()
    dialog.show_request(Asked("commands", REPLAY), whole=True)
    table = form_of(dialog).variables
    shown = [(line.name.text(), line.label.text(), line.secret.isChecked()) for line in table.lines]
    assert shown == [
        ("site", "", False),
        ("user", "<b>Your</b> name", False),
        ("password", "Password", True),
    ]
    assert [line.value.isVisible() for line in table.lines] == [True] * 3
    assert table.lines[2].value.echoMode() == QLineEdit.EchoMode.Password
    assert dialog.focusWidget() is table.lines[0].value
    assert not dialog.start.isEnabled()  # a missing value is a mistake, and no empty text
    assert dialog.footer.reason.text() == "Type the value of site."
    for line, value in zip(table.lines, ("https://example.com", "ada", "hunter2"), strict=True):
        QTest.keyClicks(line.value, value)
    assert dialog.start.isEnabled()
    assert dialog.form.asked.args["variables"] == {
        "site": "https://example.com",
        "user": "ada",
        "password": "hunter2",
    }


def test_a_task_whose_braces_are_plain_text_stays_as_it_is(dialog: StartDialog) -> None:
    plain = {key: value for key, value in REPLAY.items() if key != "variables"}
    dialog.show_request(Asked("commands", plain), whole=True)
    assert dialog.form.asked.args == plain
    assert [line.name.text() for line in form_of(dialog).variables.lines][:1] == ["site"]


def test_variables_follow_the_commands_that_name_them(dialog: StartDialog) -> None:
    dialog.show_request(Asked("commands", REPLAY), whole=True)
    form = form_of(dialog)
    QTest.keyClicks(form.variables.lines[1].value, "ada")
    form.table.selectRow(2)
    form.remove()
    form.table.selectRow(1)
    form.remove()
    names = [line.name.text() for line in form.variables.lines]
    assert names == ["site", "user"]  # what was typed stays
