"""In either language every command is found by its words of both, and every letter is one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu

from gui.commands.palette import Entry, Palette, ranked
from gui.i18n import language
from gui.window.main_window import MainWindow
from tests.gui.windows import opened

CODES = tuple(language.NAMES)
# These are lists of things: columns, views and languages come and go, and have arrows.
LETTERLESS = ("sort", "columns", "views", "language")


@pytest.fixture(params=CODES)
def code(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[str]:
    language.speak(qapp, request.param)
    yield request.param
    language.speak(qapp, "en")


def menus_of(window: MainWindow) -> Iterator[tuple[str, list[QAction]]]:
    bar = window.menuBar().actions()
    yield "menu bar", bar
    for each in bar:
        menu = each.menu()
        assert isinstance(menu, QMenu)
        yield menu.title(), menu.actions()
    for name, menu in window.acts.menus.items():
        menu.aboutToShow.emit()
        yield name, menu.actions()
    row = QMenu(window)
    window.acts.fill_context_menu(row)
    yield "menu of a row", row.actions()


def letter(text: str) -> str:
    found = re.search("&(.)", text.replace("&&", ""))
    return found[1].casefold() if found else ""


async def test_every_letter_of_a_menu_belongs_to_one_entry(tmp_path: Path, code: str) -> None:
    async with opened(tmp_path / "home") as session:
        for name, actions in menus_of(session.window):
            letters: dict[str, list[str]] = {}
            for one in actions:
                if not one.isSeparator():
                    letters.setdefault(letter(one.text()), []).append(one.text())
            nameless = letters.pop("", [])
            assert name in LETTERLESS or not nameless, (name, nameless)
            assert not {key: found for key, found in letters.items() if len(found) > 1}, name


def names_of(entry: Entry) -> tuple[str, str]:
    """What it is called; what it says of itself in brackets may change with each click."""
    return entry.text.partition(" (")[0], entry.name.partition(" (")[0]


async def test_commands_are_found_in_both_languages(tmp_path: Path, qapp: QApplication) -> None:
    spoken: dict[str, dict[str, tuple[str, str]]] = {}
    entries: dict[str, list[Entry]] = {}
    try:
        for code in CODES:
            language.speak(qapp, code)
            async with opened(tmp_path / code) as session:
                palette = session.window.findChildren(Palette)[0]
                found = palette.entries()
                spoken[code] = {at: names_of(one) for at, one in enumerated(found)}
                entries[code] = found
    finally:
        language.speak(qapp, "en")
    here, there = CODES
    assert set(spoken[here]) == set(spoken[there])
    for mine, theirs in ((here, there), (there, here)):
        by_place = dict(enumerated(entries[mine]))
        for at, names in spoken[theirs].items():
            for name in filter(None, names):
                answers = ranked([by_place[at]], name, [])
                assert answers, f"{name!r} does not find {by_place[at].text!r} in {mine}"


def enumerated(entries: list[Entry]) -> list[tuple[str, Entry]]:
    """Entries of menus have their words as keys: their places are the same in all languages."""
    return [(f"{at}", one) for at, one in enumerate(entries)]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        *(("doktor", "doctor"), ("doctor", "doctor"), ("diagnose", "doctor")),
        *(("löschen", "delete"), ("trash", "delete"), ("papierkorb", "delete")),
        *(("optionen", "settings"), ("settings", "settings"), ("suchen", "find")),
        *(("new task evidence", "new:oc_evidence_bundle"), ("aufgabe crawl", "new:crawl")),
    ],
)
async def test_words_that_people_look_for(tmp_path: Path, code: str, typed: str, key: str) -> None:
    async with opened(tmp_path / "home") as session:
        entries = session.window.findChildren(Palette)[0].entries()
        assert key in [one.key for one in ranked(entries, typed, [])[:6]]


async def test_the_word_of_the_windows_own_language_comes_first(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        entries = session.window.findChildren(Palette)[0].entries()
        assert ranked(entries, "theme: dark", [])[0].text == "Theme: Dark"
        assert ranked(entries, "farbschema: dunkel", [])[0].text == "Theme: Dark"
