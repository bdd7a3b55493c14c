"""The licenses in About: all components, their texts, and a search in both."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QLineEdit, QPlainTextEdit, QTreeWidget

from gui.commands.help_dialog import About, LicensesDialog
from tests.gui.windows import opened, press
from tests.support.engines import until


def licenses_of(session) -> LicensesDialog:
    session.window.acts["about"].trigger()
    dialog = session.window.findChildren(About)[-1]
    press(dialog, "Licenses…")
    return dialog.findChildren(LicensesDialog)[-1]


def names(dialog) -> list[str]:
    tree = dialog.findChildren(QTreeWidget)[0]
    items = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    return [item.text(0) for item in items if not item.isHidden()]


def text(dialog) -> str:
    return dialog.findChildren(QPlainTextEdit)[0].toPlainText()


def close(session) -> None:
    for kind in (LicensesDialog, About):
        for dialog in session.window.findChildren(kind):
            dialog.accept()


async def test_all_components_are_listed_with_their_texts(tmp_path):
    async with opened(tmp_path / "home") as session:
        dialog = licenses_of(session)
        await until(lambda: len(names(dialog)) > 40)
        assert text(dialog)
        tree = dialog.findChildren(QTreeWidget)[0]
        for item in map(tree.topLevelItem, range(tree.topLevelItemCount())):
            assert item is not None
            tree.setCurrentItem(item)
            assert len(text(dialog)) > 200
        close(session)


async def test_words_find_components_by_name_license_and_text(tmp_path):
    async with opened(tmp_path / "home") as session:
        dialog = licenses_of(session)
        await until(lambda: names(dialog))
        field = dialog.findChildren(QLineEdit)[0]
        field.setText("pyside")
        assert "PySide6_Essentials" in names(dialog)
        assert "aiohttp" not in names(dialog)
        field.setText("lesser general PUBLIC")
        assert {"PySide6_Essentials", "shiboken6"} <= set(names(dialog))
        assert "GNU LESSER GENERAL PUBLIC LICENSE" in text(dialog)
        field.setText("xyzzy")
        assert names(dialog) == []
        shown = [one.text() for one in dialog.findChildren(QLabel) if not one.isHidden()]
        assert "No component contains these words." in shown
        close(session)


async def test_words_typed_before_the_list_is_read_apply_to_it(tmp_path):
    async with opened(tmp_path / "home") as session:
        dialog = licenses_of(session)
        dialog.findChildren(QLineEdit)[0].setText("watchdog")
        await until(lambda: names(dialog))
        assert "watchdog" in names(dialog)
        assert len(names(dialog)) < 5
        close(session)


async def test_a_package_without_its_list_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.doctor.third_party_licenses.bundle", lambda: tmp_path)
    async with opened(tmp_path / "home") as session:
        dialog = licenses_of(session)
        label = dialog.findChildren(QLabel)[0]
        await until(lambda: "Install the program again." in label.text())
        assert "THIRD-PARTY-LICENSES.txt" in label.text()
        close(session)


async def test_closing_at_once_leaves_nothing_running(tmp_path):
    async with opened(tmp_path / "home") as session:
        licenses_of(session)
        close(session)
