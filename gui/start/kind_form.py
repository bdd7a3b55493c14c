"""The arguments of one kind as a form: first what is needed, then limits, then folded sections.

The engine defines the forms (`engine.service.forms`); here their texts are translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QObject, QStringListModel, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QCompleter, QLineEdit, QVBoxLayout, QWidget

from engine.model.errors import Problem
from engine.model.kind_traits import traits_of
from engine.model.typed_address import complete
from engine.service.forms import Input, form_fields, inputs, kind_forms, own_names
from engine.text.words import count, kind_name
from gui.start.field import Field, Fold, choice, grid_of, number, number_or_none, number_or_word
from gui.style.editors import Patterns, Prose, Seconds, SecretLine, Several

Options = tuple[tuple[str, str], ...]


class Line(NamedTuple):
    """A field of a form; see `FormField`."""

    key: str
    name: str
    editor: str
    section: str
    hint: str
    shade: str
    none: str
    options: Options
    suffix: str
    sets: tuple[tuple[str, str, bool], ...]


class KindWords(NamedTuple):
    """Title, action and icon of a kind."""

    kind: str
    title: str
    doing: str
    sign: str


class FormWords(QObject):
    """The texts of every form in the language of the window.

    `suggestions` are texts that a field offers while something is typed, by the field's key.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.suggestions = {"profile": QStringListModel(self)}

    def lacking(self, *, lost: bool, given: int, listed: int) -> str:
        """What of a kept request has to be given again: secrets, or addresses beyond `given`."""
        lines = []
        if lost:
            lines.append(self.tr("Something in it was secret and was not kept: type it in again."))
        if 0 < given < listed:
            words = self.tr("The list was too long to be kept: these are the first {0} of {1}.")
            lines.append(words.format(count(given), count(listed)))
        return "\n".join(lines)

    def kinds(self) -> tuple[KindWords, ...]:
        """All that can be started, in the order in which it is offered."""
        return tuple(
            KindWords(kind, kind_name(kind), self.tr(form.action), traits_of(kind).icon)
            for kind, form in kind_forms().items()
        )

    def doing(self, kind: str) -> str:
        """The action of a kind."""
        return next((each.doing for each in self.kinds() if each.kind == kind), kind)

    def nothing(self, kind: str) -> str:
        """The reason why a task of this kind may store no unit."""
        form = kind_forms().get(kind)
        return self.tr(form.nothing) if form is not None and form.nothing else ""

    def listed(self, kind: str) -> str:
        """The name of a list of addresses for a kind."""
        form = kind_forms().get(kind)
        return (
            self.tr(form.listed)
            if form is not None and form.listed
            else self.tr("{0} addresses, {1}")
        )

    def sections(self) -> dict[str, str]:
        """The titles of the folded sections of a form, in their order; see `FormField.section`."""
        return {
            "scope": self.tr("Scope and start addresses"),
            "loading": self.tr("Loading and pace"),
            "content": self.tr("Content and files"),
            "identity": self.tr("Sign-in, device and headers"),
            "proxy": self.tr("Proxy"),
            "more": self.tr("Advanced"),
        }

    def lines(self, kind: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                key,
                self.tr(field.label),
                field.editor,
                field.section,
                self.tr(field.hint),
                self.tr(field.shade),
                self.tr(field.none),
                tuple((value, self.tr(label)) for value, label in field.options),
                field.suffix,
                field.sets,
            )
            for key, field in form_fields(kind).items()
        )


ADDRESSES = ("url", "sitemap_url")
ADDRESS_LISTS = ("urls", "tabs")
NOTHING = ("", None)


def editor_of(line: Line, facts: Input) -> QWidget:
    """The editor for one line of a form, at its default."""
    low, high = facts.low or 0, facts.high or 0
    if line.editor == "number" and facts.word:
        return number_or_word(low, high, facts.default, facts.word, line.none)
    if line.editor == "number" and line.none:
        return number_or_none(low, high, line.none, line.suffix)
    if line.editor == "number":
        return number(low, high, facts.default or low, line.suffix)
    if line.editor == "seconds":
        return Seconds(low, high, facts.default, line.none)
    if line.editor == "choice":
        return choice(line.options)
    if line.editor == "several":
        return Several(line.options, facts.default or ())
    return _text_editor(line, facts)


def _text_editor(line: Line, facts: Input) -> QWidget:
    if line.editor == "check":
        box = QCheckBox(line.name)
        box.setChecked(bool(facts.default))
        return box
    if line.editor == "lines":
        return Patterns()
    if line.editor == "prose":
        return Prose()
    edit = SecretLine() if facts.secret else QLineEdit()
    if facts.secret:
        edit.setEchoMode(QLineEdit.EchoMode.Password)
    edit.setPlaceholderText(line.shade)
    return edit


def field_of_line(line: Line, facts: Input, words: FormWords) -> Field:
    """The field for one line of a form, at its default."""
    name = "" if line.editor == "check" else line.name
    field = Field(line.key, name, editor_of(line, facts), line.hint)
    if isinstance(field.editor, QLineEdit) and line.key in words.suggestions:
        field.editor.setCompleter(_completer(words.suggestions[line.key], field.editor))
    if facts.choices and isinstance(facts.default, str):
        field.value = facts.default
    field.editor.setAccessibleName(line.name)
    return field


def says_something(field: Field) -> bool:
    """Whether a field belongs into the request.

    An empty list does not, but where the form itself begins with a chosen few.
    """
    value = field.value
    if field.is_strange:
        return True
    return value not in NOTHING and (value != [] or field.key == "include")


def completed(addresses: Iterable[Any]) -> list[Any]:
    """Return a list of addresses with their missing schemes; other values stay as they are."""
    return [complete(one) if isinstance(one, str) else one for one in addresses]


def _completer(texts: QStringListModel, editor: QLineEdit) -> QCompleter:
    """Offer the texts that contain what is typed; all on Down, or a click while it is empty."""
    made = QCompleter(texts, editor)
    made.setFilterMode(Qt.MatchFlag.MatchContains)
    made.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
    _OfferAll(editor)
    return made


class _OfferAll(QObject):
    """Offers all texts of the field's completer, as Qt does only while something is typed."""

    def __init__(self, editor: QLineEdit) -> None:
        super().__init__(editor)
        self._editor = editor
        editor.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Down:
                self._offer()
                return True
        elif isinstance(event, QMouseEvent) and self._asks(event):
            self._offer()
        return False

    def _asks(self, event: QMouseEvent) -> bool:
        """Whether this is a click into the empty field; other buttons open a menu, or paste."""
        is_click = event.type() == QEvent.Type.MouseButtonRelease
        return is_click and event.button() == Qt.MouseButton.LeftButton and not self._editor.text()

    def _offer(self) -> None:
        completer = self._editor.completer()
        if completer is not None:
            completer.setCompletionPrefix("")
            completer.complete()


class Sections(QVBoxLayout):
    """The folded sections of a form; a heading counts the fields that are not at their default."""

    def __init__(
        self, words: FormWords, lines: Iterable[Line], fields: Mapping[str, Field], parent: QWidget
    ) -> None:
        super().__init__()
        self.setSpacing(8)  # as between the folded forms of the terms
        self._folds: list[Fold] = []
        by_section: dict[str, list[Field]] = {}
        for line in lines:
            by_section.setdefault(line.section, []).append(fields[line.key])
        for section, title in words.sections().items():
            if section in by_section:
                self._add(Fold(title, parent), by_section[section])

    @property
    def is_unfolded(self) -> bool:
        """True if any section is unfolded."""
        return any(fold.is_unfolded for fold in self._folds)

    def reveal(self, field: Field) -> None:
        """Unfold the section that has this field, if any."""
        for fold in self._folds:
            if fold.holds(field):
                fold.unfold()

    def _add(self, fold: Fold, fields: list[Field]) -> None:
        fold.column.addLayout(grid_of(*fields))
        self._folds.append(fold)
        self.addWidget(fold)
        defaults = {field.key: field.value for field in fields}

        def count_changed() -> None:
            fold.show_changed(sum(field.value != defaults[field.key] for field in fields))

        for field in fields:
            field.changed.connect(count_changed)


class KindForm(QWidget):
    """Holds one `Field` for each argument; knows no rule about them, the engine does."""

    changed = Signal()
    left = Signal(str)

    def __init__(self, kind: str, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self._fields: dict[str, Field] = {}
        self._others: dict[str, Any] = {}  # Values without a field, kept unchanged
        facts = inputs(kind)
        lines = words.lines(kind)
        for line in lines:
            self._add(line, facts.get(line.key, Input()), words)
        for line in lines:
            self._connect_options(line)
        self.under_first = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(grid_of(*self._of(lines, "first"), columns=1))
        column.addLayout(self.under_first)
        column.addLayout(grid_of(*self._of(lines, "limits")))
        self._sections = Sections(words, lines, self._fields, self)
        column.addLayout(self._sections)
        self.needed = self._fields[lines[0].key].editor

    def __getitem__(self, key: str) -> Field:
        return self._fields[key]

    def __contains__(self, key: object) -> bool:
        return key in self._fields

    @property
    def is_unfolded(self) -> bool:
        """True if any section is unfolded."""
        return self._sections.is_unfolded

    @property
    def others(self) -> tuple[str, ...]:
        """What the request holds beside what the form shows."""
        return tuple(self._others)

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as they stand, addresses completed; only those that say something."""
        fields = self._fields.items()
        found = {key: field.value for key, field in fields if says_something(field)}
        for key in ADDRESSES:
            if isinstance(found.get(key), str):
                found[key] = complete(found[key])
        for key in ADDRESS_LISTS:
            if isinstance(found.get(key), list):
                found[key] = completed(found[key])
        return {**found, **self._others}

    def fill(self, args: Mapping[str, Any], *, whole: bool = False) -> None:
        """Show these arguments. What the form cannot show is left out, or kept if `whole`."""
        for key, value in (args if whole else own_names(self.kind, args)).items():
            field = self._fields.get(key)
            if field is None and whole:
                self._others[key] = value
            elif field is not None and whole:
                field.hold(value)
            elif field is not None:
                field.value = value

    def problem_fields(self, problems: Iterable[Problem]) -> list[Problem]:
        """Show each problem at its field; return those without a field."""
        rest: list[Problem] = []
        by_key: dict[str, list[str]] = {}
        for problem in problems:
            key = problem.path.split("[")[0].split(".")[0]
            if key in self._fields:
                by_key.setdefault(key, []).append(problem.message)
            else:
                rest.append(problem)
        for key, field in self._fields.items():
            field.show_mistake("; ".join(by_key.get(key, ())))
        for key in by_key:
            self._sections.reveal(self._fields[key])
        return rest

    def field_of(self, path: str) -> Field | None:
        """The field that a mistake with this path belongs to."""
        return self._fields.get(path.split("[")[0].split(".")[0])

    def reveal(self, path: str) -> Field | None:
        """The same, unfolded."""
        field = self.field_of(path)
        if field is not None:
            self._sections.reveal(field)
        return field

    def _of(self, lines: Iterable[Line], section: str) -> list[Field]:
        return [self._fields[line.key] for line in lines if line.section == section]

    def _add(self, line: Line, facts: Input, words: FormWords) -> None:
        field = self._fields[line.key] = field_of_line(line, facts, words)
        field.changed.connect(self.changed)
        field.left.connect(lambda key=line.key: self.left.emit(key))

    def _connect_options(self, line: Line) -> None:
        """Set the fields that go with an option when it is chosen."""
        editor = self._fields[line.key].editor
        if not line.sets or not isinstance(editor, QComboBox):
            return

        def follow() -> None:
            for option, key, value in line.sets:
                if editor.currentData() == option:
                    self._fields[key].value = value

        editor.activated.connect(follow)  # by the user only
