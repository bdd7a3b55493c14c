"""The window in another language: nothing of it stays English, and it is offered at once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QMenu, QPushButton

from engine.model.errors import EngineError, TaskNotFound, WorkerFailed
from engine.server.hosts.host_table import HOSTS
from engine.text import messages
from engine.text.messages import ENGLISH
from gui.app import _parse
from gui.i18n import language
from gui.i18n.language import FOLDER, PSEUDO, chosen, speak
from gui.settings.appearance import LANGUAGE
from gui.startup.session import Session
from tests.gui.spoken_scenes import WORD, data_words, fill, said_in, scenes
from tests.gui.windows import app, opened

MARKED = re.compile(r"\[[^\[\]]*·*\]")
# What stays as it is in every language: units, names of programs and languages, a key of a form.
EVERYWHERE = {
    *("min", "KiB", "English", "Deutsch", "OpenChrome", "Monitor", "url", "main", "article"),
    *(word for host in HOSTS.values() for word in host.title.split()),
}


@pytest.fixture
def voice(request: pytest.FixtureRequest, qapp: object) -> Iterator[str]:
    """The language of the parameter is spoken, and English again afterwards."""
    before, code = QLocale(), getattr(request, "param", "de")
    speak(app(), code)
    yield code
    speak(app(), "en")
    messages.use({})
    QLocale.setDefault(before)
    app().setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def unmarked(text: str) -> str:
    """What is left of a text when everything is taken away that was said in the pseudo language."""
    while (rest := MARKED.sub(" ", text)) != text:
        text = rest
    return rest


@pytest.mark.parametrize("voice", [PSEUDO], indirect=True)
async def test_every_text_of_the_window_can_be_translated(voice: str, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    left: dict[str, tuple[str, str, set[str]]] = {}
    async with opened(tmp_path / "home") as session:
        async for scene, widget in scenes(session):
            known = data_words(tmp_path / "home") | EVERYWHERE
            for where, text in said_in(widget):
                if hard := set(WORD.findall(unmarked(text))) - known:
                    left.setdefault(text, (scene, where, hard))
    assert not left, "\n".join(f"{why}: {text[:120]!r}" for text, why in left.items())


async def test_a_german_window_says_nothing_in_english(voice: str, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    german = json.loads((FOLDER / "de.json").read_text("utf-8"))
    english = {text.replace("&", "") for text, said in german["window"].items() if text != said}
    english |= {text for key, text in ENGLISH.items() if german["messages"][key] != text}
    english -= {text.replace("&", "") for text in german["window"].values()}
    said: dict[str, tuple[str, str]] = {}
    async with opened(tmp_path / "home") as session:
        async for scene, widget in scenes(session):
            said |= {text: (scene, where) for where, text in said_in(widget)}
        assert doubled_keys(session) == []
    english -= data_words(tmp_path / "home")
    assert {text: place for text, place in said.items() if text.replace("&", "") in english} == {}
    assert len(set(said) & set(german["window"].values())) > 250


def doubled_keys(session: Session) -> list[tuple[str, str]]:
    """Letters that two lines of one menu claim."""
    found = []
    for menu in (session.window.menuBar(), *session.window.findChildren(QMenu)):
        texts = [action.text().replace("&&", "") for action in menu.actions()]
        keys = Counter(match[1].casefold() for text in texts if (match := re.search("&(.)", text)))
        found += [(f"{texts}", key) for key, times in keys.items() if times > 1]
    return found


async def test_english_menus_claim_no_letter_twice(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        assert doubled_keys(session) == []


async def test_a_language_is_kept_and_its_window_offered_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        window = session.window
        asked: list[Path] = []
        window.folder_wanted.disconnect()
        window.folder_wanted.connect(asked.append)
        menu = {action.text(): action for action in window.acts.menus["language"].actions()}
        menu["Deutsch"].trigger()
        assert window.desk.preferences.get(LANGUAGE, str) == "de"
        assert window.news_bar.title == "Language"
        (again,) = window.news_bar.findChildren(QPushButton)
        again.click()
        assert asked == [tmp_path / "home" / "tasks"]
        menu["English"].trigger()  # which is spoken already: nothing is left to offer
        assert window.news_bar.title == ""
        window.desk.preferences.set(LANGUAGE, "de")  # as the settings do it
        assert menu["Deutsch"].isChecked()


def test_what_is_not_there_leads_to_english() -> None:
    assert chosen("de") == "de"
    assert chosen("system", "de_AT") == "de"
    assert chosen("system", "fr_FR") == chosen("system", "C") == chosen("tlh", "C") == "en"
    assert chosen(PSEUDO, "de_DE") == PSEUDO


def test_the_language_of_one_start_is_a_known_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert _parse([]).language is None
    assert _parse(["--language", "de"]).language == "de"
    with pytest.raises(SystemExit):
        _parse(["--language", "tlh"])
    assert "choose one of en, de" in capsys.readouterr().err


def test_errors_are_told_in_the_language_and_kept_in_english(voice: str) -> None:
    error = TaskNotFound(task_id="0123", root="/r")
    assert language.title(error) == "Keine solche Aufgabe"
    assert language.told(error).startswith("In /r gibt es keine Aufgabe 0123. Sehen Sie")
    assert str(error) == "There is no task 0123 in /r."
    assert language.sentence(WorkerFailed(reason="x")).endswith("nicht gestartet: x")


def test_an_error_of_others_keeps_its_words(voice: str) -> None:
    class Foreign(EngineError):
        code = "foreign"
        title = "Theirs"

    error = Foreign(message="as they say it")
    assert (language.title(error), language.told(error)) == ("Theirs", "as they say it")
