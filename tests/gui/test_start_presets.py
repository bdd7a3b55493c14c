"""Presets and recent requests are stored without secrets and restored by one click."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit

from engine.model.config import Settings
from engine.model.records import TaskView
from engine.service.feed import Batch
from engine.service.rerun import Asked
from gui.context.preferences import Preferences
from gui.engine_link.bridge import Bridge
from gui.start.presets import MOST_PRESETS, MOST_RECENT, PresetName, Presets
from gui.start.request_tabs import JSON
from gui.start.start_dialog import StartDialog, StartFooter
from gui.start.starting import Estimate
from tests.gui.start_dialogs import LOOK_TASK, words_of
from tests.gui.task_views import NOW, a_view


@pytest.fixture
def presets() -> Presets:
    return Presets(Preferences())


@pytest.fixture
def dialog(qapp: QApplication, qtbot: Any, presets: Presets) -> Iterator[StartDialog]:
    dialog = StartDialog(lambda _: (), presets)
    # A form that holds invalid JSON asks before it is closed.
    qtbot.addWidget(dialog, before_close_func=lambda _: dialog.done(0))
    dialog.show()
    yield dialog
    dialog.done(0)


def test_presets_and_recent_ones_hold_no_secret_and_survive_damage(tmp_path: Path) -> None:
    file = tmp_path / "preferences.json"
    presets = Presets(Preferences(file))
    secret = Asked("crawl", {"url": "https://ada:pw99@example.com/?token=abcdef123"}, "mine")
    assert presets.keep("Nightly", secret).lost
    presets.keep("Nightly", secret)
    for number in range(MOST_RECENT + 5):
        presets.remember(Asked("recording", {"url": f"https://h{number}.example/"}))
    presets.remember(Asked("recording", {"url": "https://h9.example/"}))
    text = file.read_text()
    assert "pw99" not in text
    assert "abcdef123" not in text
    again = Presets(Preferences(file))
    (kept,) = again.presets
    assert (kept.title, kept.asked.name, kept.lost) == ("Nightly", "mine", True)
    assert len(again.recent) == MOST_RECENT
    assert again.recent[0].asked.args == {"url": "https://h9.example/"}
    damaged = json.loads(text)
    damaged["values"]["start.recent"] = [3, {"request": {"kind": "moon"}}, {}]
    file.write_text(json.dumps(damaged))
    assert Presets(Preferences(file)).recent == ()
    assert len(Presets(Preferences(file)).presets) == 1


def test_a_preset_fills_the_form_without_secrets(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    presets.keep("Login", Asked("commands", with_typing(LOOK_TASK)))
    dialog = StartDialog(lambda _: (), presets)
    qtbot.addWidget(dialog)
    dialog.show()
    listed = dialog.shelf.presets
    listed.setCurrentRow(0)
    listed.itemActivated.emit(listed.item(0))
    assert dialog.form.kind == "commands"
    assert "type it in again" in words_of(dialog)
    assert not dialog.start.isEnabled()
    assert "[redacted]" in dialog.start.toolTip()
    dialog.activateWindow()
    listed.setFocus()
    qapp.processEvents()
    QTest.keyClick(listed, Qt.Key.Key_Delete)
    assert presets.presets == ()
    dialog.close()


def test_enter_on_a_recent_request_starts_nothing(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    presets.remember(Asked("crawl", {"url": "https://example.com/"}, "again"))
    dialog = StartDialog(lambda _: (), presets)
    qtbot.addWidget(dialog)
    dialog.show()
    wanted: list[Asked] = []
    dialog.wanted.connect(wanted.append)
    dialog.form.fill({"url": "https://example.com/"})
    listed = dialog.shelf.recent
    listed.setFocus()
    listed.setCurrentRow(0)
    QTest.keyClick(listed, Qt.Key.Key_Return)
    assert dialog.form.asked.name == "again"
    dialog.form.choose("commands")
    dialog.form.body.add()  # type: ignore[union-attr]  # never None here
    # Never None here.
    QTest.keyClick(dialog.form.body.table, Qt.Key.Key_Return)  # type: ignore[union-attr]
    assert wanted == []
    dialog.close()


def test_the_last_ones_of_a_host_say_how_long_it_takes(qapp: QApplication) -> None:
    estimate = Estimate(Bridge(Settings.at(home=Path("/nowhere"))))
    asked = Asked("crawl", {"url": "https://host.example/a", "max_pages": 60, "delay_ms": 1000})
    assert estimate.words(asked) == "Up to 60 pages."
    views = tuple(
        a_view(number, done=10, args={"url": "https://host.example/"}, ended_at=NOW + number)
        for number in range(1, 4)
    )
    estimate.hear(Batch(views, (), 3, 3, True))
    estimate.hear(Batch(views, (), 3, 3, True))
    assert "Up to 60 pages: about" in estimate.words(asked)
    listed = "4 tasks, each of up to 60 pages: 240 at most."
    assert estimate.words(asked, 4) == listed
    elsewhere = Asked(
        "crawl", {"url": "https://other.example/", "max_pages": 600, "delay_ms": 1000}
    )
    assert estimate.words(elsewhere) == "Up to 600 pages, at least 10 min with this pause."


def took(number: int, minutes: int) -> TaskView:
    url = {"url": "https://host.example/"}
    return a_view(number, age=1, done=10, args=url, ended_at=NOW + minutes * 60_000)


def test_recent_requests_come_from_the_ledger(qapp: QApplication, qtbot: Any) -> None:
    estimate = Estimate(Bridge(Settings.at(home=Path("/nowhere"))))
    asked = Asked("crawl", {"url": "https://host.example/a"})
    newest, oldest = [took(at, 1) for at in range(10)], [took(at, 90) for at in range(10, 300)]
    estimate.hear(Batch(tuple(newest), (), 10, 300, False))
    estimate.hear(Batch(tuple(oldest), (), 300, 300, True))
    assert not estimate.words(asked)
    qtbot.waitUntil(lambda: bool(estimate.words(asked)), timeout=60_000)
    assert estimate.words(asked) == "The last ones at this host took 1 min."
    news = [took(at, 30) for at in range(300, 305)]
    estimate.hear(Batch(tuple(news), (), 305, 305, True))
    assert estimate.words(asked) == "The last ones at this host took 30 min."


def with_typing(task: dict[str, Any]) -> dict[str, Any]:
    typed = {"action": "type", "selector": "#p", "text": "hunter2"}
    step = {"tool_name": "browser_interact", "intention": "t", "args": typed}
    return {**task, "commands": [*task["commands"], step]}


def test_the_star_keeps_the_form_under_a_name(dialog: StartDialog, presets: Presets) -> None:
    wanted: list[Asked] = []
    dialog.wanted.connect(wanted.append)
    dialog.form.fill({"url": "https://example.com/"})
    dialog.footer.star.click()
    QTest.keyClicks(dialog.focusWidget(), "Docs")
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
    assert [kept.title for kept in presets.presets] == ["Docs"]
    assert wanted == []  # Enter named the preset, and started nothing
    assert "Kept as “Docs”" in dialog.footer.told
    assert dialog.isVisible()
    assert not dialog.findChildren(QPlainTextEdit)[0].hasFocus()


def test_escape_in_a_preset_name_keeps_the_form(dialog: StartDialog, presets: Presets) -> None:
    dialog.form.fill({"url": "https://example.com/"})
    dialog.footer.star.click()
    QTest.keyClicks(dialog.focusWidget(), "Docs")
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert dialog.isVisible()
    assert not dialog.footer.star.isChecked()
    assert dialog.form.asked.args["url"] == "https://example.com/"
    assert presets.presets == ()
    QTest.keyClick(dialog.footer.star, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_replacing_a_preset_is_announced(dialog: StartDialog, presets: Presets) -> None:
    told = []
    for url in ("https://a.example/", "https://a.example/", "https://b.example/"):
        dialog.form.fill({"url": url})
        dialog.footer.keep_wanted.emit("Docs")
        told.append("in place of" in dialog.footer.told)
    assert told == [False, False, True]
    (kept,) = presets.presets
    assert kept.asked.args["url"] == "https://b.example/"


def test_invalid_text_is_not_saved_as_a_preset(dialog: StartDialog, presets: Presets) -> None:
    dialog.tabs.setCurrentIndex(JSON)
    dialog.json.text.setPlainText("{")
    dialog.footer.star.click()
    QTest.keyClicks(dialog.focusWidget(), "Docs")
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
    assert presets.presets == ()
    assert dialog.footer.told == "Not kept: the JSON is no request."


def test_f2_gives_a_preset_another_name(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    for name in ("Docs", "Shop"):
        presets.keep(name, Asked("crawl", {"url": f"https://{name.lower()}.example/"}))
    dialog = StartDialog(lambda _: (), presets)
    qtbot.addWidget(dialog)
    dialog.show()

    def card() -> PresetName:
        dialog.shelf.presets.setCurrentRow(0)
        rename, _ = dialog.shelf.presets.actions()
        assert rename.shortcut().toString() == "F2"
        rename.trigger()
        return dialog.findChildren(PresetName)[-1]

    asking = card()
    asking.name.clear()
    QTest.keyClick(asking.name, Qt.Key.Key_Return)
    assert asking.isVisible()  # a preset needs a name
    QTest.keyClicks(asking.name, " Manual ")
    assert "Replaces" not in words_of(asking)
    QTest.keyClick(asking.name, Qt.Key.Key_Return)
    assert [kept.title for kept in presets.presets] == ["Manual", "Shop"]
    assert [dialog.shelf.presets.item(at).text() for at in range(2)] == ["Manual", "Shop"]
    asking = card()
    asking.name.setText("Shop")
    assert "Replaces" in words_of(asking)
    QTest.keyClick(asking.name, Qt.Key.Key_Return)
    (kept,) = presets.presets
    assert (kept.title, kept.asked.args["url"]) == ("Shop", "https://docs.example/")
    dialog.close()


def test_a_full_preset_list_refuses_another(qapp: QApplication, qtbot: Any) -> None:
    presets = Presets(Preferences())
    for number in range(MOST_PRESETS):
        presets.keep(f"Preset {number}", Asked("crawl", {"url": "https://a.example/"}))
    before = presets.presets
    footer = StartFooter()
    qtbot.addWidget(footer)
    footer.tell_kept(presets.keep("One more", Asked("crawl", {"url": "https://b.example/"})))
    assert presets.presets == before
    assert footer.told == "Not kept: there are 50 presets already. Forget one first."
    again = presets.keep("Preset 7", Asked("crawl", {"url": "https://b.example/"}))
    assert again.replaced
    assert len(presets.presets) == MOST_PRESETS
