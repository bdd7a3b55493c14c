"""Translations: texts of the window by their English, the engine's by id.

`translations/CODE.json` holds `messages` (by message id), `errors` (by code: title, sentence,
advice), `window` (by the English text in `tr()`) and `told` (English sentences of the engine:
mistakes in requests, reasons of failures). A missing text is shown in English. `tests/words` checks
that every source text is translated.

The process in which a task failed writes the reason to its ledger in English; a mistake in a
request has an English sentence from its rule. Each sentence is recognised by its template, and its
fields are inserted into the translation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import msgspec
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.records import Status
from engine.text import messages
from engine.text.messages import ENGLISH

MOST_CHARS = 2_000  # longer texts are not translated: templates are shorter without their fields
_NUMBER = re.compile(r"\d{1,3}(,\d{3})+|\d+\.\d{1,3}")  # in English format
MOST_NESTED = 4  # depth of a reason in a reason


class Template(NamedTuple):
    """Sentence template with named fields; `parts` has one more entry than `names`."""

    parts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Parse a template with fields in braces; format specifiers are ignored."""
        parts, names = [""], []
        for part, name, _, _ in Formatter().parse(text):
            parts[-1] += part
            if name is not None:
                names.append(name)
                parts.append("")
        return cls(tuple(parts), tuple(names))

    @property
    def weight(self) -> int:
        """The number of fixed characters: more make a false match less likely."""
        return len("".join(self.parts).strip())

    def facts(self, text: str) -> dict[str, str] | None:
        """Return the fields of a matching text; None without a match. Linear in `text`."""
        first, last = self.parts[0], self.parts[-1]
        if not (text.startswith(first) and text.endswith(last)):
            return None
        at, end = len(first), len(text) - len(last)
        found = []
        for part in self.parts[1:-1]:
            stop = text.find(part, at + 1, end)
            if stop < 0:
                return None
            found.append(text[at:stop])
            at = stop + len(part)
        return dict(zip(self.names, (*found, text[at:end]), strict=True)) if at < end else None

    def filled(self, facts: Mapping[str, str]) -> str:
        gaps = (facts[name] for name in self.names)
        return "".join(part + next(gaps, "") for part in self.parts)


# What a field of an action may hold. A sentence of a person that begins like one ("Check the
# prices") has no element, address or key there, and stays as it is.
_ELEMENT = re.compile(r"(\w+) “(.*)”", re.DOTALL)
_SELECTOR = re.compile(r"\S*(?:[#\[=:]|\w\.\w)\S*(?: >+ \S+)*")
_ACTION_FIELDS = {
    "url": re.compile(r"\w+:\S*"),
    "key": re.compile(r"\S+"),
    "button": re.compile(r"left|middle|right"),
    "pixels": re.compile(r"\d+"),
    "tab": re.compile(r"\d+"),
}


class ActionTranslator:
    """Translator of what a recording stores while it runs: an action in English words.

    Typed text, addresses and names are data and stay as they are; of an element only the role is
    translated.
    """

    def __init__(self, said: Mapping[str, str]) -> None:
        self._said = said
        known = [
            (Template.of(ENGLISH[key]), Template.of(text))
            for key, text in said.items()
            if key.startswith("action.") and key != "action.element"
        ]
        self._whole = {one.parts[0]: text.parts[0] for one, text in known if not one.names}
        self._whole |= {ENGLISH[key]: text for key, text in said.items() if key.startswith("part.")}
        self._open = sorted(
            (pair for pair in known if pair[0].names), key=lambda pair: -pair[0].weight
        )

    def __call__(self, text: str) -> str | None:
        """Translate an action, or a part of a bundle; None for another text."""
        if text in self._whole:
            return self._whole[text]
        for template, said in self._open:
            facts = template.facts(text) if text.startswith(template.parts[0]) else None
            facts = self._translated(facts) if facts is not None else None
            if facts is not None:
                return said.filled(facts)
        return None

    def _translated(self, facts: dict[str, str]) -> dict[str, str] | None:
        fields = ((name, _ACTION_FIELDS.get(name)) for name in facts)
        if not all(field is None or field.fullmatch(facts[name]) for name, field in fields):
            return None
        if "what" in facts:
            what = self._element(facts["what"])
            return None if what is None else {**facts, "what": what}
        return facts

    def _element(self, text: str) -> str | None:
        if f"role.{text}" in self._said:
            return self._said[f"role.{text}"]
        found = _ELEMENT.fullmatch(text)
        if found is None:
            return text if _SELECTOR.fullmatch(text) else None
        role, name = found.groups()
        template = Template.of(self._said.get("action.element", ENGLISH["action.element"]))
        return template.filled({"role": self._said.get(f"role.{role}", role), "name": name})


class ReasonTranslator:
    """Translator of this program's sentences, by English text, or by code for errors."""

    def __init__(
        self,
        told: Mapping[str, str],
        errors: Mapping[str, Mapping[str, str]] | None = None,
        said: Mapping[str, str] | None = None,
    ) -> None:
        self._told, self._errors = told, errors or {}
        self._actions = ActionTranslator(said or {})
        self._whole: dict[str, str] = {}
        self._open: tuple[tuple[Template, Template], ...] = ()
        self._again = lru_cache(maxsize=2_000)(self._say)

    def __call__(self, text: str) -> str:
        """Translate `text` with its fields; unknown texts are returned unchanged."""
        if not self._whole:
            self._build_templates()
        return self._again(text, 0) if text else text

    def _build_templates(self) -> None:
        """Build the templates on first use, which few windows need.

        An export may do so in a thread: `_whole`, which tells that they are there, comes last.
        """
        both = [(Template.of(source), Template.of(said)) for source, said in self._known()]
        gaps = (pair for pair in both if pair[0].names and pair[0].weight)
        self._open = tuple(sorted(gaps, key=lambda pair: -pair[0].weight))
        self._whole = {one.parts[0]: said.parts[0] for one, said in both if not one.names}

    def _known(self) -> Iterator[tuple[str, str]]:
        yield from self._told.items()
        for kind in _kinds(EngineError):  # the loaded classes: each may be why a task failed
            said = self._errors.get(kind.code, {}).get("sentence")
            if said is not None:
                yield kind.sentence, said

    def _say(self, text: str, depth: int) -> str:
        whole = self._whole.get(text)
        if whole is not None or len(text) > MOST_CHARS or depth > MOST_NESTED:
            return whole or text
        if not depth and (action := self._actions(text)) is not None:
            return action
        if depth and _NUMBER.fullmatch(text):
            return messages.decimal(float(text.replace(",", "")), len(text.partition(".")[2]))
        for template, said in self._open:
            if text.startswith(template.parts[0]) and (facts := template.facts(text)) is not None:
                return said.filled(
                    {name: self._say(fact, depth + 1) for name, fact in facts.items()}
                )
        return text


def _kinds(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


FOLDER = Path(__file__).parents[1] / "translations"
NAMES = {"en": "English", "de": "Deutsch"}
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})
PSEUDO = "xx"  # pseudo language: marks, accents and lengthens every text, to find untranslated ones
_ACCENTS = str.maketrans("AEIOUaeiouncs", "ÅÉÎÖÛåéîöûñçš")


_WITH_STATUS = frozenset({"export.partial.live", "export.partial.ended"})
# They match what others write.
_NO_NOTES = frozenset({"export.rows", "export.rows.one", "export.differences", "export.kind.tasks"})


class Texts:
    """Texts of one language; `window` returns None for unknown texts."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.messages: Mapping[str, str] = found.get("messages", {})
        self.errors: Mapping[str, Mapping[str, str]] = found.get("errors", {})
        self._window: Mapping[str, str] = found.get("window", {})
        self.told: Callable[[str], str] = str
        if "told" in found:
            # English needs none

            stored = {**dict(self._grounds()), **dict(self._export_notes())}
            self.told = ReasonTranslator({**found["told"], **stored}, self.errors, self.messages)

    def _grounds(self) -> Iterator[tuple[str, str]]:
        """Yield warnings about a ledger's folder together with their advice, as they are stored."""
        for key, said in self.messages.items():
            if key.startswith("ground.") and (advice := self.messages.get(f"{key}.advice")):
                yield f"{ENGLISH[key]} {ENGLISH[f'{key}.advice']}", f"{said} {advice}"
        if deaf := self.messages.get("ground.disk.deaf"):
            yield ENGLISH["ground.disk.deaf"], deaf

    def _export_notes(self) -> Iterator[tuple[str, str]]:
        """Yield what exports note on their rows, which files of data have in English.

        The status of a task is a word of the ledger there.
        """
        for key, said in self.messages.items():
            if key in _WITH_STATUS:
                for status in Status:
                    word = self.messages.get(f"status.{status.lower()}", status)
                    yield ENGLISH[key].format(status=status), said.format(status=word)
            if (key.startswith("export.") and key not in _NO_NOTES) or key == "audit.limited":
                yield ENGLISH[key], said

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


def is_about_content(error: InvalidArguments) -> bool:
    """Return whether a file or another content is refused as a whole, and not a field in it."""
    codes = [problem.code for problem in error.problems]
    return len(codes) == 1 and codes[0] in ("no_file", "nothing_to_start")


def title(error: EngineError) -> str:
    if isinstance(error, InvalidArguments) and is_about_content(error):
        return QCoreApplication.translate("Errors", "There is nothing to start")
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
