"""The start dialog explains a refused start, keeps lists, and shows the given values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QSpinBox

from engine.service.drafts import Terms
from engine.service.rerun import Asked
from gui.context.preferences import Preferences
from gui.start.presets import MOST_LISTED, MOST_RECENT, Presets, list_entry
from gui.start.request_tabs import JSON
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from tests.gui.start_dialogs import judged
from tests.gui.windows import dialog_of, heard, opened, until

QUICK: dict[str, Any] = {"engine": "static", "max_pages": 1, "delay_ms": 0}
WAIT_MS = 60_000


def shown(dialog: StartDialog, key: str) -> str:
    editor = dialog.form[key].editor
    # a field tells its editor as any widget: which one it is, each test here knows
    return editor.placeholderText() if isinstance(editor, QComboBox) else editor.text()  # type: ignore[attr-defined]


def as_json(dialog: StartDialog, **request: Any) -> None:
    """Write it as JSON, and look at it as a form."""
    dialog.tabs.setCurrentIndex(JSON)
    dialog.json.text.setPlainText(json.dumps(request))
    dialog.tabs.setCurrentIndex(0)


def test_enter_on_a_bad_address_says_what_is_wrong_under_the_field(dialog: StartDialog) -> None:
    address = dialog.form["url"].editor
    QTest.keyClicks(address, "ftp://example.com/")
    assert dialog.form["url"].mistake == ""  # nobody is interrupted while typing
    wanted: list[Asked] = []
    dialog.wanted.connect(wanted.append)
    QTest.keyClick(address, Qt.Key.Key_Return)
    assert "http" in dialog.form["url"].mistake
    assert dialog.form["url"].mistake in dialog.start.toolTip()
    assert address.accessibleDescription() == dialog.form["url"].mistake
    assert wanted == []
    assert dialog.isVisible()
    address.selectAll()  # type: ignore[attr-defined]  # the editor's class depends on the field
    QTest.keyClicks(address, "example.com")
    assert dialog.form["url"].mistake == ""
    QTest.keyClick(address, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    assert [asked.args["url"] for asked in wanted] == ["https://example.com"]


def test_enter_on_an_empty_form_says_what_is_missing(dialog: StartDialog) -> None:
    QTest.keyClick(dialog.form["url"].editor, Qt.Key.Key_Return)
    assert dialog.form["url"].mistake
    assert dialog.start.toolTip().count("Type the address of the site first.") == 1


def test_a_pause_after_a_bad_address_says_what_is_wrong(dialog: StartDialog, qtbot: Any) -> None:
    QTest.keyClicks(dialog.form["url"].editor, "ftp://example.com/")
    qtbot.waitUntil(lambda: bool(dialog.form["url"].mistake), timeout=WAIT_MS)
    assert dialog.focusWidget() is dialog.form["url"].editor
    assert dialog.form["url"].value == "ftp://example.com/"  # as it was typed


STRANGE: dict[str, tuple[Any, str]] = {
    "max_pages": ("many", "many"),
    "max_depth": (2.5, "2.5"),
    "delay_ms": (None, "null"),
    "concurrency": (1_000_000, "1000000"),
    "timeout_ms": ([1], "[1]"),
    "engine": ("steam", "steam"),
}


@pytest.mark.parametrize("key", STRANGE)
def test_invalid_field_values_are_shown_unchanged(dialog: StartDialog, key: str) -> None:
    given, words = STRANGE[key]
    as_json(dialog, kind="crawl", args={"url": "https://a.example/", key: given})
    field = dialog.form[key]
    assert dialog.form.asked.args[key] == given
    editor = field.editor
    # The editor's class depends on the field.
    box = editor if isinstance(editor, QSpinBox | QComboBox) else editor.target  # type: ignore[attr-defined]
    text = box.placeholderText() if isinstance(box, QComboBox) else box.text()
    assert text == words
    assert field.mistake or given is None  # at once, and not after another try
    dialog.tabs.setCurrentIndex(JSON)
    assert json.loads(dialog.json.text.toPlainText())["args"][key] == given


def test_a_typed_number_replaces_the_word_of_a_field(dialog: StartDialog) -> None:
    for number in (1, 20, 7):
        as_json(dialog, kind="crawl", args={"url": "https://a.example/", "max_pages": "many"})
        editor = dialog.form["max_pages"].editor
        assert isinstance(editor, QSpinBox)
        editor.setFocus()
        QTest.keyClicks(editor, str(number))
        assert dialog.form.asked.args["max_pages"] == number
        assert editor.text() == str(number)
        assert dialog.form["max_pages"].mistake == ""


def test_a_box_that_is_neither_on_nor_off_shows_neither(dialog: StartDialog) -> None:
    args = {"url": "https://a.example/", "respect_robots": "perhaps"}
    as_json(dialog, kind="crawl", args=args)
    box = dialog.form["respect_robots"].editor
    assert isinstance(box, QCheckBox)
    assert box.checkState() == Qt.CheckState.PartiallyChecked
    assert dialog.form.asked.args["respect_robots"] == "perhaps"
    box.click()
    assert dialog.form.asked.args["respect_robots"] is True
    box.click()
    assert dialog.form.asked.args["respect_robots"] is False


def test_a_budget_that_is_no_number_is_not_lost(dialog: StartDialog) -> None:
    policy = {"maxToolCalls": "lots", "maxNothing": 3}
    as_json(dialog, kind="crawl", args={"url": "https://a.example/"}, policy=policy)
    assert dialog.form.asked.terms == Terms(policy=policy)
    field = dialog.form.budgets._fields["maxToolCalls"]
    # The editor's class depends on the field.
    assert field.editor.text() == "lots"  # type: ignore[attr-defined]
    assert field.mistake
    dialog.form.budgets.preset.value = "careful"
    assert judged(dialog.form.asked) == ()


def listed(number: int, *, size: int = 0, **more: Any) -> dict[str, Any]:
    urls = [f"https://h{at}.example/{'x' * size}" for at in range(number)]
    return list_entry([Asked("crawl", {"url": url, **more}) for url in urls])


def test_a_list_is_one_recent_entry_and_comes_back_whole(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    presets.put(listed(12, max_pages=3))
    presets.put(listed(12, max_pages=3))
    dialog = StartDialog(judged, presets)
    qtbot.addWidget(dialog)
    dialog.show()
    assert dialog.shelf.recent.count() == 1
    item = dialog.shelf.recent.item(0)
    assert item.text() == "12 addresses, crawl of h0.example"
    assert "https://h4.example/\n…" in item.toolTip()
    dialog.shelf.recent.itemActivated.emit(item)
    assert dialog.start.text() == "Start 12 tasks"
    assert dialog.start.isEnabled()
    assert dialog.form.asked.args["max_pages"] == 3
    presets.remember(Asked("crawl", {"url": "https://one.example/"}))
    dialog.shelf.recent.itemActivated.emit(dialog.shelf.recent.item(0))
    assert dialog.start.text() == "Start"
    assert dialog.form.asked.args["url"] == "https://one.example/"
    dialog.close()


def test_saved_lists_are_bounded_and_have_no_secrets(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    secret = "https://a.example/?token=abcdef123456"
    presets.put(list_entry([Asked("crawl", {"url": url}) for url in (secret, "https://b.example")]))
    (kept,) = presets.recent
    assert kept.lost
    assert "abcdef123456" not in "".join(kept.urls)
    dialog = StartDialog(judged, presets)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.shelf.recent.itemActivated.emit(dialog.shelf.recent.item(0))
    assert not dialog.start.isEnabled()
    assert "[redacted]" in dialog.start.toolTip()
    dialog.close()
    for at in range(MOST_RECENT):
        presets.put(listed(100 + at, size=500))
    assert 2 <= len(presets.recent) < MOST_RECENT
    assert sum(len(url) for kept in presets.recent for url in kept.urls) <= MOST_LISTED
    presets.put(listed(600, size=500))
    whole = presets.recent[0]
    assert (whole.listed, len(whole.urls) < 600) == (600, True)


def list_of(session: Session, number: int) -> StartDialog:
    text = "\n".join(f"http://h{at}.invalid/" for at in range(number))
    session.window.requests.starting.open_list(text)
    dialog = dialog_of(session)
    assert isinstance(dialog, StartDialog)
    dialog.form.fill(QUICK)
    return dialog


async def test_a_starting_list_is_locked_and_remembered(home: Path) -> None:
    async with opened(home, slots=1) as session:
        dialog = list_of(session, 30)
        starting = session.window.requests.starting
        told = heard(starting._sequential_start.progress)
        dialog.ask()
        assert (dialog.footer.progress.value(), dialog.footer.progress.maximum()) == (0, 30)
        await told
        before = dialog.addresses.many.text.toPlainText()
        assert dialog.focusWidget() is dialog.footer.cancel
        QTest.keyClicks(dialog.addresses.many.text, "https://more.example/")
        starting.new_task({"url": "https://from-outside.example/"})
        assert dialog.addresses.many.text.toPlainText() == before
        assert not dialog.shelf.isEnabled()
        assert "being started" in dialog.start.toolTip()
        ended = heard(starting._sequential_start.ended)
        QTest.keyClick(dialog.footer.cancel, Qt.Key.Key_Space)
        number, _ = await ended
        assert dialog.form.asked.args["url"] == "https://from-outside.example/"
        recent = await until(lambda: starting.presets.recent, starting.presets.changed)
        assert len(recent[0].urls) == number
        assert dialog.shelf.isEnabled()
        dialog.reject()
