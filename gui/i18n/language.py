"""The language of the window: every text by its English, the engine's by id.

`translations/CODE.json` holds `messages` (by message id), `errors` (by code: title, sentence,
advice), `window` (by the English that stands in `tr()`) and `told` (what the engine words itself:
mistakes in requests, why something failed; by its English). What is missing there is said in
English. Source texts are code: `tests/words` holds that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QLibraryInfo, QLocale, QObject, QTranslator
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.text import catalogue
from engine.text.messages import ENGLISH

FOLDER = Path(__file__).parents[1] / "translations"
NAMES = {"en": "English", "de": "Deutsch"}
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})
PSEUDO = "xx"  # every text marked, accented and a third longer: what is not has no translation
_ACCENTS = str.maketrans("AEIOUaeiouncs", "ÅÉÎÖÛåéîöûñçš")


class Texts:
    """One language's texts; `window` gives None for what it does not know."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.messages: Mapping[str, str] = found.get("messages", {})
        self.errors: Mapping[str, Mapping[str, str]] = found.get("errors", {})
        self._window: Mapping[str, str] = found.get("window", {})
        self.told: Callable[[str], str] = str
        if "told" in found:
            from gui.i18n.reasons import Recognised  # English needs none

            grounds = dict(self._grounds())
            self.told = Recognised({**found["told"], **grounds}, self.errors)

    def _grounds(self) -> Iterator[tuple[str, str]]:
        """What is to be said of the place of a ledger: it comes with its way out, in one."""
        for key, said in self.messages.items():
            if key.startswith("ground.") and (advice := self.messages.get(f"{key}.advice")):
                yield f"{ENGLISH[key]} {ENGLISH[f'{key}.advice']}", f"{said} {advice}"
        if deaf := self.messages.get("ground.disk.deaf"):
            yield ENGLISH["ground.disk.deaf"], deaf

    def window(self, source: str) -> str | None:
        return self._window.get(source)

    def error(self, code: str, part: str, english: str) -> str:
        return self.errors.get(code, {}).get(part, english)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every English text with how it is said; one English word may have two others."""
        yield from self._window.items()
        yield from ((ENGLISH[key], said) for key, said in self.messages.items())


class _Pseudo(Texts):
    """English in disguise, to find what was forgotten and what has too little room."""

    def __init__(self) -> None:
        super().__init__({"messages": {key: disguised(text) for key, text in ENGLISH.items()}})
        self.told = disguised

    def window(self, source: str) -> str | None:
        return disguised(source)

    def error(self, code: str, part: str, english: str) -> str:
        return disguised(english)


def disguised(text: str) -> str:
    """`Show {0} tasks` → `[Šhöw {0} tåšks ···]`; what stands in braces stays."""
    if not text:
        return text
    parts = text.replace("}", "{").split("{")
    inner = [f"{{{part}}}" if at % 2 else part.translate(_ACCENTS) for at, part in enumerate(parts)]
    return f"[{''.join(inner)} {'·' * (len(text) // 3)}]"


class _Translator(QTranslator):
    """Answers `tr()`: one English sentence has one translation, wherever it stands."""

    def __init__(self, texts: Texts, parent: QObject) -> None:
        super().__init__(parent)
        self._texts = texts

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        return self._texts.window(source)


def chosen(preference: str, system: str = "") -> str:
    """The code of the language to speak: what was chosen, else the system's, else English."""
    if preference in NAMES or preference == PSEUDO:
        return preference
    own = (system or QLocale.system().name()).partition("_")[0]
    return own if own in NAMES else "en"


def speak(app: QApplication, code: str) -> None:
    """Say everything in this language from now on: before the first widget is made.

    What is on the screen already keeps its words, so a window is opened again for another one.
    """
    spoken = _SPOKEN[0] = texts(code)
    _NOW[0] = code
    locale = QLocale.system() if QLocale.system().name().startswith(code) else QLocale(code)
    QLocale.setDefault(locale)
    signs = {"group": locale.groupSeparator(), "point": locale.decimalPoint()}
    catalogue.use(spoken.messages, **signs, told=spoken.told)
    _fall_silent(app)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    qt = QTranslator(app)
    if qt.load(locale, "qtbase", "_", folder):
        _install(app, qt)
    if code != "en":
        _install(app, _Translator(spoken, app))
    # by its number: the names in `Qt` cost the first paint 45 ms
    app.setProperty("layoutDirection", int(code in RIGHT_TO_LEFT))


def spoken_now() -> str:
    """The code of the language that is spoken."""
    return _NOW[0]


def elsewhere(text: str) -> list[str]:
    """What a text of the window is called in the other languages, to be found by all its names."""
    english = [text, *_both_ways(_NOW[0])[1].get(text, ())]
    found = [one for code in NAMES for each in english for one in _both_ways(code)[0].get(each, ())]
    return [one for one in dict.fromkeys((*english, *found)) if one != text]


@lru_cache(maxsize=4)
def _both_ways(code: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What English texts are called in a language, and the other way round."""
    there: dict[str, list[str]] = {}
    back: dict[str, list[str]] = {}
    for english, said in texts(code).pairs():
        there.setdefault(english, []).append(said)
        back.setdefault(said, []).append(english)
    return there, back


def _install(app: QApplication, translator: QTranslator) -> None:
    app.installTranslator(translator)
    _TRANSLATORS.append(translator)


def _fall_silent(app: QApplication) -> None:
    while _TRANSLATORS:
        one = _TRANSLATORS.pop()
        if isValid(one):  # an application that was made anew took its own along
            app.removeTranslator(one)
            one.deleteLater()


@lru_cache(maxsize=4)
def texts(code: str) -> Texts:
    """The texts of a language; none for English, which stands in the code."""
    if code == PSEUDO:
        return _Pseudo()
    if code not in NAMES or code == "en":
        return Texts({})
    return Texts(msgspec.json.decode((FOLDER / f"{code}.json").read_bytes()))


_SPOKEN = [Texts({})]
_TRANSLATORS: list[QTranslator] = []  # to ask the application for its children takes 17 ms
_NOW = ["en"]


def title(error: EngineError) -> str:
    """What went wrong, in a few words."""
    return _SPOKEN[0].error(error.code, "title", error.title)


def sentence(error: EngineError) -> str:
    """What went wrong. What quotes somebody else's words does it in their language."""
    if isinstance(error, InvalidArguments):
        return "; ".join(map(mistake, error.problems))
    template = _SPOKEN[0].error(error.code, "sentence", error.sentence)
    if template == error.sentence:
        return catalogue.retold(str(error))
    return template.format(**_told(error.fields))


def mistake(problem: Problem) -> str:
    """What is wrong with a request, and where."""
    said = catalogue.retold(problem.message)
    return f"{problem.path}: {said}" if problem.path else said


def translated(problem: Problem) -> Problem:
    """The same mistake in the same place, in words of the language."""
    return Problem(problem.path, problem.code, catalogue.retold(problem.message))


def advice_of(kind: type[EngineError]) -> str:
    """What can be done about every error of this kind."""
    return _SPOKEN[0].error(kind.code, "advice", kind.advice_text)


def _told(fields: Mapping[str, object]) -> dict[str, object]:
    told = catalogue.retold
    return {name: told(one) if isinstance(one, str) else one for name, one in fields.items()}


def advice(error: EngineError) -> str:
    """What can be done now; empty when there is nothing."""
    template = _SPOKEN[0].error(error.code, "advice", error.advice_text)
    return template.format(**_told(error.fields))


def told(error: EngineError) -> str:
    """What went wrong and what can be done, as one text."""
    said, way_out = sentence(error), advice(error)
    if said and way_out and said[-1] not in ".!?…":
        said += "."
    return f"{said} {way_out}".strip()
