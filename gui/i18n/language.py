"""Translations: texts of the window by their English, the engine's by id.

`translations/CODE.json` holds `messages` (by message id), `errors` (by code: title, sentence,
advice), `window` (by the English text in `tr()`) and `told` (English sentences of the engine:
mistakes in requests, reasons of failures). A missing text is shown in English. `tests/words` checks
that every source text is translated.
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
from engine.text import messages
from engine.text.messages import ENGLISH

FOLDER = Path(__file__).parents[1] / "translations"
NAMES = {"en": "English", "de": "Deutsch"}
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})
PSEUDO = "xx"  # pseudo language: marks, accents and lengthens every text, to find untranslated ones
_ACCENTS = str.maketrans("AEIOUaeiouncs", "ÅÉÎÖÛåéîöûñçš")


class Texts:
    """Texts of one language; `window` returns None for unknown texts."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.messages: Mapping[str, str] = found.get("messages", {})
        self.errors: Mapping[str, Mapping[str, str]] = found.get("errors", {})
        self._window: Mapping[str, str] = found.get("window", {})
        self.told: Callable[[str], str] = str
        if "told" in found:
            from gui.i18n.reasons import ReasonTranslator  # English needs none

            grounds = dict(self._grounds())
            self.told = ReasonTranslator({**found["told"], **grounds}, self.errors)

    def _grounds(self) -> Iterator[tuple[str, str]]:
        """Yield warnings about a ledger's folder together with their advice, as they are stored."""
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
        """Yield every English text with its translation; an English word may have several."""
        yield from self._window.items()
        yield from ((ENGLISH[key], said) for key, said in self.messages.items())


class _Pseudo(Texts):
    """Pseudo language, to find untranslated texts and labels that are too narrow."""

    def __init__(self) -> None:
        super().__init__({"messages": {key: pseudo_text(text) for key, text in ENGLISH.items()}})
        self.told = pseudo_text

    def window(self, source: str) -> str | None:
        return pseudo_text(source)

    def error(self, code: str, part: str, english: str) -> str:
        return pseudo_text(english)


def pseudo_text(text: str) -> str:
    """Convert `Show {0} tasks` to `[Šhöw {0} tåšks ···]`; fields are unchanged."""
    if not text:
        return text
    parts = text.replace("}", "{").split("{")
    inner = [f"{{{part}}}" if at % 2 else part.translate(_ACCENTS) for at, part in enumerate(parts)]
    return f"[{''.join(inner)} {'·' * (len(text) // 3)}]"


class _Translator(QTranslator):
    """Translator of `tr()`: an English sentence has one translation in every context."""

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
    """Return the language code: the preference, else the system's, else English."""
    if preference in NAMES or preference == PSEUDO:
        return preference
    own = (system or QLocale.system().name()).partition("_")[0]
    return own if own in NAMES else "en"


def speak(app: QApplication, code: str) -> None:
    """Set the language, before the first widget is created.

    Existing widgets keep their texts, so a change of language reopens the window.
    """
    spoken = _SPOKEN[0] = texts(code)
    _NOW[0] = code
    locale = QLocale.system() if QLocale.system().name().startswith(code) else QLocale(code)
    QLocale.setDefault(locale)
    signs = {"group": locale.groupSeparator(), "point": locale.decimalPoint()}
    messages.use(spoken.messages, **signs, told=spoken.told)
    _remove_translators(app)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    qt = QTranslator(app)
    if qt.load(locale, "qtbase", "_", folder):
        _install(app, qt)
    if code != "en":
        _install(app, _Translator(spoken, app))
    # By number: importing the names of `Qt` costs the first paint 45 ms.
    app.setProperty("layoutDirection", int(code in RIGHT_TO_LEFT))


def current_language() -> str:
    """Return the code of the current language."""
    return _NOW[0]


def elsewhere(text: str) -> list[str]:
    """Return the other names of a text, in English and other languages, for search."""
    english = [text, *_translation_maps(_NOW[0])[1].get(text, ())]
    found = [
        one
        for code in NAMES
        for each in english
        for one in _translation_maps(code)[0].get(each, ())
    ]
    return [one for one in dict.fromkeys((*english, *found)) if one != text]


@lru_cache(maxsize=4)
def _translation_maps(code: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Map English texts to translations, and translations to English."""
    there: dict[str, list[str]] = {}
    back: dict[str, list[str]] = {}
    for english, said in texts(code).pairs():
        there.setdefault(english, []).append(said)
        back.setdefault(said, []).append(english)
    return there, back


def _install(app: QApplication, translator: QTranslator) -> None:
    app.installTranslator(translator)
    _TRANSLATORS.append(translator)


def _remove_translators(app: QApplication) -> None:
    while _TRANSLATORS:
        one = _TRANSLATORS.pop()
        if isValid(one):  # a recreated application has deleted its translators
            app.removeTranslator(one)
            one.deleteLater()


@lru_cache(maxsize=4)
def texts(code: str) -> Texts:
    """Return the texts of a language; none for English, which is in the code."""
    if code == PSEUDO:
        return _Pseudo()
    if code not in NAMES or code == "en":
        return Texts({})
    return Texts(msgspec.json.decode((FOLDER / f"{code}.json").read_bytes()))


_SPOKEN = [Texts({})]
_TRANSLATORS: list[QTranslator] = []  # querying the application's children takes 17 ms
_NOW = ["en"]


def title(error: EngineError) -> str:
    """Return the title of an error."""
    return _SPOKEN[0].error(error.code, "title", error.title)


def sentence(error: EngineError) -> str:
    """Return the sentence of an error; reasons in its fields are translated, too."""
    if isinstance(error, InvalidArguments):
        return "; ".join(map(mistake, error.problems))
    template = _SPOKEN[0].error(error.code, "sentence", error.sentence)
    if template == error.sentence:
        return messages.retold(str(error))
    return template.format(**_told(error.fields))


def mistake(problem: Problem) -> str:
    """Return a mistake in a request with its path."""
    said = messages.retold(problem.message)
    return f"{problem.path}: {said}" if problem.path else said


def translated(problem: Problem) -> Problem:
    """Return the mistake with its message translated."""
    return Problem(problem.path, problem.code, messages.retold(problem.message))


def advice_of(kind: type[EngineError]) -> str:
    """Return the general advice for an error class."""
    return _SPOKEN[0].error(kind.code, "advice", kind.advice_text)


def _told(fields: Mapping[str, object]) -> dict[str, object]:
    told = messages.retold
    return {name: told(one) if isinstance(one, str) else one for name, one in fields.items()}


def advice(error: EngineError) -> str:
    """Return the advice for an error; "" if there is none."""
    template = _SPOKEN[0].error(error.code, "advice", error.advice_text)
    return template.format(**_told(error.fields))


def told(error: EngineError) -> str:
    """Return sentence and advice of an error as one text."""
    said, way_out = sentence(error), advice(error)
    if said and way_out and said[-1] not in ".!?…":
        said += "."
    return f"{said} {way_out}".strip()
