"""The settings: a control for every preference, immediate effect, search."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QSystemTrayIcon,
    QWidget,
)

from engine.doctor import Finding
from engine.model.build_info import BuildInfo
from engine.model.config import Settings
from engine.service.engine import Engine
from gui.commands.help_actions import as_chosen
from gui.context.preferences import DEFAULTS, Preferences
from gui.settings.setting_controls import CHOSEN_ELSEWHERE, BrowserTest, CarryOver, Diagnostics
from gui.settings.setting_pages import SettingPages
from gui.settings.setting_parts import Clearing
from gui.settings.settings_dialog import SettingsDialog
from gui.startup.session import Session
from gui.style.theme import PlainLabel, fixed_pitch, heading, lead
from gui.tasks.columns import COLUMN_AT
from tests.gui.windows import app, opened, press
from tests.support.engines import until


def settings_of(session: Session) -> SettingsDialog:
    session.window.acts["settings"].trigger()
    return session.window.findChildren(SettingsDialog)[-1]


def editor(dialog: QWidget, name: str) -> QWidget:
    (found,) = (one for one in dialog.findChildren(QWidget) if one.accessibleName() == name)
    return found


def pages(dialog: SettingsDialog) -> list[str]:
    names = dialog.findChildren(QListWidget)[0]
    items = [names.item(at) for at in range(names.count())]
    return [item.text() for item in items if not item.isHidden()]


def test_every_preference_is_in_the_settings_or_chosen_where_it_is_used(
    qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = BuildInfo(channel="zip", updates_url="https://example.org/latest.json")
    monkeypatch.setattr("gui.settings.setting_pages.build_info", lambda: offered)
    there = {item.key for page in SettingPages(Diagnostics).pages() for item in page.items}
    chosen_here = {key for key in DEFAULTS if not key.startswith(CHOSEN_ELSEWHERE)}
    assert chosen_here - there == set()
    assert there - set(DEFAULTS) <= {""}


async def test_what_is_chosen_holds_at_once_and_is_taken_back_per_page(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences, table = session.window.desk.preferences, session.window.table
        before = table.verticalHeader().defaultSectionSize()
        dialog = settings_of(session)
        rows = editor(dialog, "Row density")
        assert isinstance(rows, QComboBox)
        rows.setFocus()
        QTest.keyClick(rows, Qt.Key.Key_Down)
        assert preferences.get("appearance.density", str) == "roomy"
        while table.verticalHeader().defaultSectionSize() <= before:
            await asyncio.sleep(0)
        dialog.show_page("appearance.")
        press(dialog, "Restore this page’s defaults")
        assert rows.currentText() == "Normal"
        while table.verticalHeader().defaultSectionSize() != before:
            await asyncio.sleep(0)
        dialog.accept()


@pytest.mark.parametrize("there", [True, False])
async def test_what_needs_a_tray_is_grey_where_there_is_none(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: there))
    monkeypatch.setattr(QSystemTrayIcon, "show", lambda self: None)
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        boxes = {box.text(): box.isEnabled() for box in dialog.findChildren(QCheckBox)}
        assert boxes["Show tray icon"] is there
        assert boxes["Closing the window hides it in the tray"] is there
        assert boxes["Start minimised"]
        dialog.accept()


async def test_theme_and_menu_of_themes_say_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        theme = editor(dialog, "Theme")
        assert isinstance(theme, QComboBox)
        themes = {act.text(): act for act in session.window.acts.themes.values()}
        themes["&Dark"].trigger()
        assert theme.currentText() == "Dark"
        session.window.desk.preferences.set("appearance.theme", "light")
        assert themes["&Light"].isChecked()
        assert session.window.memory.theme.value == "light"
        dialog.accept()


async def test_the_height_of_rows_outlives_another_theme(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences, table = session.window.desk.preferences, session.window.table
        rows = table.verticalHeader()
        before = rows.defaultSectionSize()
        preferences.set("appearance.density", "roomy")
        await until(lambda: rows.defaultSectionSize() > before)
        roomy = rows.defaultSectionSize()
        for theme in ("dark", "light", "system"):
            preferences.set("appearance.theme", theme)
            QApplication.sendEvent(table, QEvent(QEvent.Type.FontChange))
            assert rows.defaultSectionSize() == roomy, theme


async def test_letters_grow_everywhere_and_shrink_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        before = app().font().pointSizeF()
        dialog = settings_of(session)
        size = editor(dialog, "Font size")
        assert isinstance(size, QSpinBox)
        size.setValue(150)
        assert app().font().pointSizeF() == pytest.approx(before * 1.5)
        size.setValue(100)
        assert app().font().pointSizeF() == pytest.approx(before)
        dialog.accept()


@pytest.mark.parametrize(("chosen", "possible"), [(100_000, 200), (0, 70), (-5, 70)])
async def test_letter_sizes_are_clamped(tmp_path: Path, chosen: int, possible: int) -> None:
    async with opened(tmp_path / "home") as session:
        before, preferences = app().font().pointSizeF(), session.window.desk.preferences
        preferences.set("appearance.letters", chosen)
        assert app().font().pointSizeF() == pytest.approx(before * possible / 100)
        dialog = settings_of(session)
        dialog.show_page("appearance.")
        size = editor(dialog, "Font size")
        assert isinstance(size, QSpinBox)

        def told() -> list[str]:
            said = dialog.findChildren(QLabel)
            return [one.text() for one in said if one.isVisible() and "was chosen" in one.text()]

        assert told() == [f"{chosen} % was chosen; {possible} % is what can be."]
        assert size.value() == possible
        size.setValue(100)
        assert told() == []
        assert app().font().pointSizeF() == pytest.approx(before)
        dialog.accept()


async def test_letters_of_their_own_size_or_pitch_grow_with_the_others(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        size = editor(dialog, "Font size")
        assert isinstance(size, QSpinBox)
        title = heading("A title", dialog)
        plain, fixed = PlainLabel("Why", dialog), QPlainTextEdit(dialog)
        lead(plain, 1.1)
        fixed_pitch(fixed)
        theirs = [title, plain, fixed]
        before = [one.font().pointSizeF() for one in theirs]
        for percent in (150, 80, 100):
            size.setValue(percent)
            grown = [was * percent / 100 for was in before]
            assert [one.font().pointSizeF() for one in theirs] == pytest.approx(grown)
        later = QPlainTextEdit(dialog)
        size.setValue(150)
        fixed_pitch(later)
        assert later.font().pointSizeF() == pytest.approx(before[2] * 1.5)
        size.setValue(100)
        dialog.accept()


async def test_search_finds_a_setting_on_its_page_and_hides_the_rest(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        field = dialog.findChildren(QLineEdit)[0]
        QTest.keyClicks(field, "sound")
        assert pages(dialog) == ["Notifications"]
        shown = [box.text() for box in dialog.findChildren(QCheckBox) if box.isVisible()]
        assert shown == ["With a sound"]
        field.setText("no such thing")
        assert pages(dialog) == []
        field.clear()
        assert len(pages(dialog)) == len(SettingPages(Diagnostics).pages())
        dialog.accept()


async def test_a_time_that_is_none_is_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        dialog.show_page("notify.")
        field = editor(dialog, "Quiet from")
        QTest.keyClicks(field, "29:00")
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert session.window.desk.preferences.get("notify.quiet_from", str) in ("", "2:00")
        assert isinstance(field, QLineEdit)
        field.setText("22:30")
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert session.window.desk.preferences.get("notify.quiet_from", str) == "22:30"
        dialog.accept()


async def test_a_time_that_is_none_is_called_so_as_long_as_it_stands_there(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        dialog.show_page("notify.")
        field = editor(dialog, "Quiet until")

        def told() -> int:
            said = dialog.findChildren(QLabel)
            return sum(one.isVisible() for one in said if "a time is written" in one.text())

        assert told() == 0
        combo = editor(dialog, "Failed tasks")
        edge = QPoint(0, 0)
        assert field.mapTo(dialog, edge).x() == combo.mapTo(dialog, edge).x()
        QTest.keyClicks(field, "7:5")
        QTest.keyClick(field, Qt.Key.Key_Tab)
        assert told() == 1
        assert session.window.desk.preferences.get("notify.quiet_until", str) == ""
        QTest.keyClicks(field, "0")
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert told() == 0
        assert session.window.desk.preferences.get("notify.quiet_until", str) == "7:50"
        dialog.accept()


async def test_settings_go_to_another_machine_and_rubbish_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.desk.preferences
        part = CarryOver(session.window.context)
        preferences.set("appearance.density", "roomy")
        part.export_to(str(tmp_path / "out.json"))
        preferences.set("appearance.density", "normal")
        (tmp_path / "rubbish.json").write_text("[1, 2")
        part.import_from(str(tmp_path / "rubbish.json"))
        assert "nothing was changed" in part.said.text()
        assert preferences.get("appearance.density", str) == "normal"
        part.import_from(str(tmp_path / "out.json"))
        assert preferences.get("appearance.density", str) == "roomy"
        assert json.loads((tmp_path / "out.json").read_text())["version"] == 1
        part.deleteLater()


async def test_a_browser_that_is_not_there_is_told_by_its_test(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.desk.preferences.set("browser.path", str(tmp_path / "nowhere"))
        part = BrowserTest(session.window.context)
        press(part, "Test the browser")
        while part.said.text() in ("", "Looking…"):
            await asyncio.sleep(0.01)
        assert "nowhere" in part.said.text()
        part.deleteLater()


async def test_a_program_that_is_no_browser_fails_its_test(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.desk.preferences.set("browser.path", sys.executable)
        part = BrowserTest(session.window.context)
        press(part, "Test the browser")
        while part.said.text() in ("", "Looking…"):
            await asyncio.sleep(0.01)
        assert "no Chromium" in part.said.text()
        part.deleteLater()


async def test_a_browser_below_the_home_passes_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho Chromium 131.0.6778.204\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with opened(tmp_path / "home") as session:
        session.window.desk.preferences.set("browser.path", "~/chromium")
        part = BrowserTest(session.window.context)
        press(part, "Test the browser")
        while part.said.text() in ("", "Looking…"):
            await asyncio.sleep(0.01)
        assert part.said.text() == f"chromium 131.0.6778.204 ({program})"
        part.deleteLater()


async def test_the_result_of_a_browser_test_goes_with_the_browser_that_it_tested(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.desk.preferences
        preferences.set("browser.path", str(tmp_path / "nowhere"))
        part = BrowserTest(session.window.context)
        press(part, "Test the browser")
        while part.said.text() in ("", "Looking…"):
            await asyncio.sleep(0.01)
        preferences.set("browser.path", "")
        assert part.said.text() == ""
        assert part.said.isHidden()
        part.deleteLater()


@pytest.mark.parametrize(
    ("name", "key", "wrong", "reason"),
    [
        ("Browser", "browser.path", "/nonexistent/chrome", "not a program"),
        ("Files for uploads", "commands.allow_files", "/no/such/dir", "no such folder"),
        ("Files for uploads", "commands.allow_files", "relative", "no such folder"),
    ],
)
async def test_a_path_that_leads_nowhere_is_not_kept_and_called_so_when_the_field_is_left(
    tmp_path: Path, name: str, key: str, wrong: str, reason: str
) -> None:
    right = sys.executable if key == "browser.path" else str(tmp_path)
    async with opened(tmp_path / "home") as session:
        dialog, preferences = settings_of(session), session.window.preferences
        dialog.show_page("engine.")
        field = editor(dialog, name)
        assert isinstance(field, QLineEdit)

        def told() -> list[str]:
            labels = [one for one in dialog.findChildren(QLabel) if one.isVisible()]
            return [one.text() for one in labels if one.text().startswith("Not kept")]

        dialog.activateWindow()
        field.setFocus()
        await until(field.hasFocus)
        QTest.keyClicks(field, wrong)
        assert told() == [], "a half typed path is always wrong"
        QTest.keyClick(field, Qt.Key.Key_Tab)
        (words,) = told()
        assert reason in words
        assert "Browse" in words
        assert preferences.get(key, str) == ""
        for typed in (right, ""):
            field.setText(typed)
            assert told() == []
            QTest.keyClick(field, Qt.Key.Key_Return)
            assert told() == []
            assert preferences.get(key, str) == typed
        dialog.accept()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("Browser", "/nope"),
        ("Files for uploads", "relative/x"),
        ("Proxy", "no proxy"),
        ("Cluster", "nowhere"),
    ],
)
async def test_a_refused_text_goes_with_the_restored_page(
    tmp_path: Path, name: str, wrong: str
) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        dialog.show_page("engine.")
        field = editor(dialog, name)
        assert isinstance(field, QLineEdit)

        def refused() -> list[str]:
            labels = [one for one in dialog.findChildren(QLabel) if one.isVisible()]
            return [one.text() for one in labels if one.text().startswith("Not kept")]

        field.setText(wrong)
        field.editingFinished.emit()
        assert refused()
        press(dialog, "Restore this page’s defaults")
        assert field.text() == ""
        assert refused() == []
        dialog.accept()


async def test_no_browser_is_tested_under_a_refused_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = Finding("browser", "ok", "Chromium works.")
    monkeypatch.setattr("engine.doctor.browser", lambda _: [works])
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        dialog.show_page("engine.")
        field, part = editor(dialog, "Browser"), dialog.findChildren(BrowserTest)[0]
        assert isinstance(field, QLineEdit)
        press(part, "Test the browser")
        await until(lambda: part.said.text() == "Chromium works.")
        field.setText("/nope")
        assert part.said.text() == "", "it was about another browser than the typed one"
        field.editingFinished.emit()
        press(part, "Test the browser")
        assert "is not kept" in part.said.text()
        field.clear()
        assert part.said.text() == ""
        press(part, "Test the browser")
        field.setText("/nope")
        await until(lambda: part.said.text() not in ("", "Looking…"))
        assert "is not kept" in part.said.text(), "typed while the test ran"
        dialog.accept()


async def test_a_kept_path_that_has_gone_is_called_so_when_the_settings_open(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.preferences.set("commands.allow_files", str(tmp_path / "gone"))
        dialog = settings_of(session)
        dialog.show_page("engine.")
        labels = [one.text() for one in dialog.findChildren(QLabel) if one.isVisible()]
        assert [text for text in labels if text.startswith("This folder is not there any more")]
        dialog.accept()


async def test_each_setting_that_waits_for_a_folder_to_be_opened_says_so_beside_it(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        for page in SettingPages(Diagnostics).pages():
            for item in page.items:
                if not item.key or not item.label:
                    continue
                words = editor(dialog, item.label).accessibleDescription()
                waits = page.title == "Engine and browser"
                assert ("when a folder is opened" in words) == waits, item.label
        dialog.accept()


async def an_ended_task(home: Path, *, days_ago: int) -> Path:
    """The folder of a crawl that ended so long ago."""
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    record = await engine.requests.start(
        "crawl", {"url": "http://127.0.0.1:9/", "engine": "static"}
    )
    await engine.tasks.wait(record.task_id)
    await engine.close()
    meta = home / "tasks" / record.task_id / "meta.json"
    found = json.loads(meta.read_text("utf-8"))
    for name, value in found.items():
        if name.endswith("_at") and isinstance(value, int | float):
            found[name] -= days_ago * 86_400_000
    meta.write_text(json.dumps(found), "utf-8")
    return meta.parent


async def said(part: Clearing, words: str) -> None:
    async with asyncio.timeout(60):
        while words not in part.said.text():
            await asyncio.sleep(0.01)


def listed(part: Clearing) -> list[tuple[str, str]]:
    """The tasks that would go, with their states."""
    if part.list is None:
        return []
    items = map(part.list.topLevelItem, range(part.list.topLevelItemCount()))
    return [(item.text(0), item.text(1)) for item in items if item is not None]


async def test_only_what_a_preview_showed_is_cleared_away(tmp_path: Path, trash: Path) -> None:
    home = tmp_path / "home"
    old = await an_ended_task(home, days_ago=40)
    new = await an_ended_task(home, days_ago=3)
    async with opened(home) as session:
        preferences = session.window.desk.preferences
        part = Clearing(session.window.context)
        clear = next(one for one in part.findChildren(QPushButton) if "trash" in one.text())
        assert not clear.isEnabled(), "what was not shown cannot go"
        press(part, "Preview what would go")
        await said(part, "1 task would go")
        assert listed(part) == [("http://127.0.0.1:9/", "Failed")]
        preferences.set("retention.days", 50)
        assert not clear.isEnabled(), "another rule was chosen than was shown"
        assert listed(part) == []
        press(part, "Preview what would go")
        await said(part, "Nothing would go.")
        preferences.set("retention.days", 30)
        press(part, "Preview what would go")
        await said(part, "1 task would go")
        clear.click()
        await said(part, "Tasks in the trash: 1")
        assert not old.exists()
        assert new.exists()
        part.deleteLater()


async def test_the_preview_of_clearing_has_the_titles_of_the_list(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = await an_ended_task(home, days_ago=40)
    meta = folder / "meta.json"
    record = json.loads(meta.read_text("utf-8"))
    meta.write_text(json.dumps({**record, "args_summary": {}}), "utf-8")
    async with opened(home) as session:
        model = session.window.model
        title = COLUMN_AT["task"]
        in_list = model.index(0, title).data()
        assert in_list == f"crawl {folder.name}"
        part = Clearing(session.window.context)
        press(part, "Preview what would go")
        await said(part, "1 task would go")
        assert listed(part) == [(in_list, "Failed")]
        part.deleteLater()


async def test_an_exception_alone_lets_nothing_go(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await an_ended_task(home, days_ago=40)
    async with opened(home) as session:
        preferences = session.window.desk.preferences
        preferences.set("retention.days", 0)
        preferences.set("retention.keep", 1)
        part = Clearing(session.window.context)
        press(part, "Preview what would go")
        assert part.said.text() == "Without a limit nothing goes."
        assert part.rules().is_empty
        part.deleteLater()


async def test_opening_the_folder_again_gives_the_engine_what_was_chosen(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        asked: list[Path] = []
        session.window.folder_wanted.disconnect()
        session.window.folder_wanted.connect(asked.append)
        dialog = settings_of(session)
        press(dialog, "Apply now (opens this folder again)")
        assert asked == [tmp_path / "home" / "tasks"]
        assert not dialog.isVisible()


def test_what_was_asked_for_at_the_start_wins_over_what_was_chosen(tmp_path: Path) -> None:
    preferences = Preferences()
    preferences.set("engine.slots", 7)
    preferences.set("browser.path", "/opt/b")
    settings = as_chosen(Settings.at(home=tmp_path), preferences)
    assert (settings.slots, settings.browser_path) == (7, "/opt/b")
    preferences.set("engine.slots", 0)
    given = Settings(home=tmp_path, root=tmp_path, slots=3, browser_path="/mine")
    assert as_chosen(given, preferences) == given


async def test_a_proxy_with_a_password_in_it_is_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog, preferences = settings_of(session), session.window.preferences
        field = editor(dialog, "Proxy")
        assert isinstance(field, QLineEdit)
        for typed, kept in (
            ("http://ann:s3cret@h:8080", ""),
            ("socks5://h:1080", "socks5://h:1080"),
            ("ftp://h:1", "socks5://h:1080"),
            ("", ""),
        ):
            field.setText(typed)
            field.editingFinished.emit()
            assert preferences.get("proxy.address", str) == kept


def test_the_chosen_proxy_is_the_engines_unless_the_environment_names_one(tmp_path: Path) -> None:
    preferences = Preferences()
    for key, value in (
        ("proxy.address", "http://h:8080"),
        ("proxy.username", "ann"),
        ("proxy.password", "env:WORD"),
        ("proxy.bypass", [".example.com", "not a host"]),
    ):
        preferences.set(key, value)
    environ = {"WORD": "of the proxy"}
    upstream = as_chosen(Settings(home=tmp_path, environ=environ), preferences).proxy.upstream()
    assert upstream is not None
    assert (str(upstream), upstream.password) == ("http://h:8080", "of the proxy")
    assert upstream.is_bypassed("a.example.com", 80)
    named = Settings.chosen({"OC_PROXY": "socks5://other:1"}, home=tmp_path)
    assert str(as_chosen(named, preferences).proxy.upstream()) == "socks5://other:1"
