"""Setting controls that show one preference each, and parts with buttons for tests and export."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QFile, QIODevice, QObject, QRegularExpression, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHideEvent, QRegularExpressionValidator, QValidator
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import EngineError
from gui.context.preferences import Preferences
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.style.accessibility import announce
from gui.style.editors import Patterns
from gui.style.questions import documents
from gui.style.theme import TonedLabel
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.service.engine import Engine


# Prefixes of preferences that are changed elsewhere in the window.
CHOSEN_ELSEWHERE = ("export.", "force.", "ledgers.", "start.", "viewer.", "views.")
MOST_BYTES = 1024 * 1024
_CHOSEN_FILE = "openchrome-monitor-settings.json"


class Part(QWidget):
    """Row of buttons with a result message below."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__()
        self.ctx = ctx
        self.said = TonedLabel("", "muted", self)
        self.said.setWordWrap(True)
        self.said.hide()
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        arrange(QVBoxLayout(self), self._row, self.said, margins=0, spacing=6)

    def add(self, words: str) -> QPushButton:
        button = QPushButton(words, self)
        button.setAutoDefault(False)
        self._row.addWidget(button)
        return button

    def fill_up(self) -> None:
        self._row.addStretch(1)

    def say(self, words: str, tone: str = "muted") -> None:
        """Show the result message, which screen readers find next to the buttons."""
        self.said.show_tone(tone)
        self.said.show_text(words)
        self.said.setVisible(bool(words))


class TallPart(Part):
    """Part of several rows, whose label stands beside the first one."""


class WidePart(Part):
    """Part that uses the whole width of its page."""

    def terms(self) -> list[str]:
        """Return further search terms for this part."""
        return []


class BrowserTest(Part):
    """Buttons that test whether the configured browser exists, and download one."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._test = self.add(self.tr("Test the browser"))
        self._test.clicked.connect(self._look)
        self.add(self.tr("Download Chromium…")).clicked.connect(self._download)
        self.fill_up()
        self._program: FileEditor | None = None
        ctx.preferences.changed.connect(self._forget)

    def watch(self, program: FileEditor) -> None:
        """Test nothing while this field of the program has a refused path."""
        self._program = program
        program.edited.connect(lambda: self.say(""))

    def _refuses(self) -> bool:
        if self._program is None or not self._program.is_refused:
            return False
        self.say(self.tr("Nothing was tested: the browser above is not kept."), "bad")
        return True

    def _forget(self, key: str) -> None:
        """Clear the result for another browser than the chosen one."""
        if key == "browser.path":
            self.say("")

    def _download(self) -> None:
        self.window().close()  # the main window shows the progress
        self.ctx.actions["download_browser"].trigger()

    def _look(self) -> None:
        if self._refuses():
            return
        self._test.setEnabled(False)
        self.say(self.tr("Looking…"))
        chosen = self.ctx.preferences.get("browser.path", str) or None

        async def look(engine: Engine) -> Finding:
            from engine.browser.chromium.browser_download import start_once
            from engine.browser.chromium.locate import locate
            from engine.doctor import browser

            asked = replace(engine.settings, browser_path=chosen)
            found = (await asyncio.to_thread(browser, asked))[0]
            if chosen is not None and found.state == "ok":
                program = await asyncio.to_thread(locate, chosen)  # `chosen` may begin with ~
                await asyncio.to_thread(start_once, program.path)  # it may be no browser at all
            return found

        def show(found: Finding) -> None:
            self._test.setEnabled(True)
            is_chosen = chosen == (self.ctx.preferences.get("browser.path", str) or None)
            if is_chosen and not self._refuses():
                self._show(found)

        self.ctx.bridge.ask(look, show, self._fail, name="test the browser")

    def _show(self, found: Finding) -> None:
        works = found.state == "ok"
        self.say(f"{found.text} {found.advice}".strip(), "good" if works else "bad")

    def _fail(self, error: EngineError) -> None:
        self._test.setEnabled(True)
        self.say(language.sentence(error), "bad")


class OpenAgain(Part):
    """Button that reopens the folder, so that engine settings take effect."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        again = self.add(self.tr("Apply now (opens this folder again)"))
        again.clicked.connect(self._open)
        self.fill_up()
        self.say(self._when())

    def _when(self) -> str:
        return self.tr("These settings take effect when a folder is opened.")

    def _open(self) -> None:
        root = self.ctx.bridge.look_at_health().root
        self.window().close()
        self.ctx.open_folder(Path(root))


class SpeakNow(OpenAgain):
    """Button that reopens the window, so that the language takes effect."""

    def _when(self) -> str:
        return self.tr("The language takes effect when the window is opened again.")


class CarryOver(Part):
    """Export, import and reset of all settings."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self.add(self.tr("Export…")).clicked.connect(self._ask_export)
        self.add(self.tr("Import…")).clicked.connect(self._ask_import)
        self.add(self.tr("Restore all defaults")).clicked.connect(self._reset)
        self.fill_up()

    def export_to(self, path: str) -> None:
        """Write all preferences to the file `path`."""
        file = QFile(path)
        text = self.ctx.preferences.as_text().encode()
        if file.open(QIODevice.OpenModeFlag.WriteOnly) and file.write(text) == len(text):
            file.close()
            self.say(self.tr("Exported."), "good")
        else:
            self.say(self.tr("It could not be written: {0}").format(file.errorString()), "bad")

    def import_from(self, path: str) -> None:
        """Load preferences from a file that `export_to` wrote."""
        file = QFile(path)
        if not file.open(QIODevice.OpenModeFlag.ReadOnly):
            self.say(self.tr("It could not be read: {0}").format(file.errorString()), "bad")
            return
        try:
            text = bytes(file.read(MOST_BYTES).data()).decode()
            self.ctx.preferences.take_text(text)
        except (ValueError, RecursionError):
            self.say(self.tr("There are no settings in that file; nothing was changed."), "bad")
        else:
            self.say(self.tr("Imported."), "good")

    def _ask_export(self) -> None:
        dialog = QFileDialog(self, self.tr("Export settings"), documents())
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.selectFile(_CHOSEN_FILE)
        self._open(dialog).fileSelected.connect(self.export_to)

    def _ask_import(self) -> None:
        dialog = QFileDialog(self, self.tr("Import settings"), documents())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(dialog).fileSelected.connect(self.import_from)

    def _open(self, dialog: QFileDialog) -> QFileDialog:
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _reset(self) -> None:
        self.ctx.preferences.restore("", besides=CHOSEN_ELSEWHERE)
        self.say(
            self.tr("All settings are as they were at first; views, presets and folders stayed."),
            "good",
        )


class Diagnostics(Part):
    """Buttons for diagnostics."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        for key in ("doctor", "log", "debug_info"):
            if key in set(ctx.actions):
                act = ctx.actions[key]
                self.add(act.text().replace("&", "")).clicked.connect(act.trigger)
        self.fill_up()


CLOCK = QRegularExpression(r"(([01]?\d|2[0-3]):[0-5]\d)?")
FIELD_WIDTH = 260
MOST_LINES, MOST_WORD = 100, 80
Make = Callable[[QWidget], QWidget]


@dataclass(frozen=True, slots=True)
class Switch:
    """A check box with its text."""

    words: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A list of choices as pairs of value and text."""

    values: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Number:
    """An integer; `none` labels the lowest value, `one` is the suffix of 1.

    `beyond` is the message for a saved value out of range, with the nearest valid value. With
    `whole`, a typed number counts when the field is left, not with each digit.
    """

    low: int
    high: int
    suffix: str = ""
    none: str = ""
    one: str = ""
    beyond: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as HH:MM, or empty; `wrong` is the message for an invalid text."""

    empty: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Word:
    """One text, or empty; `wrong` is the message for one that `is_valid` refuses.

    A refused text is not kept, since it may hold a password.
    """

    empty: str
    wrong: str
    is_valid: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of words, one a line; `wrong` is the message for those that `is_valid` refuses.

    Refused words are kept, so that a mistake can be corrected, but have no effect.
    """

    empty: str
    wrong: str
    is_valid: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class File:
    """The path of a program or a folder, or empty.

    `wrong` is the message for a typed path that `is_valid` refuses, which is not kept; `gone` is
    that for a kept one that is not valid any more.
    """

    empty: str
    wrong: str
    gone: str
    is_valid: Callable[[str], bool]
    is_folder: bool = False


Control = Switch | Choice | Number | Clock | Word | Lines | File


def control_for(control: Control, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    """Return the widget for one preference, bound in both directions."""
    makers: dict[type, Callable[..., QWidget]] = {
        Switch: _switch,
        Choice: _choice,
        Number: _number,
        Clock: _clock,
        Word: _word,
        Lines: _lines,
        File: _file,
    }
    return makers[type(control)](control, key, preferences, parent)


def _follow(widget: QWidget, key: str, preferences: Preferences, show: Callable[[], None]) -> None:
    """Call `show` now, and when the preference changes or is restored, while `widget` exists.

    A text that was refused is no change of its preference, but goes with the restored page.
    """

    def hear(changed: str) -> None:
        if changed == key:
            show()

    def hear_restored(prefix: str) -> None:
        if key.startswith(prefix):
            show()

    def stop() -> None:
        preferences.changed.disconnect(hear)
        preferences.restored.disconnect(hear_restored)

    preferences.changed.connect(hear)
    preferences.restored.connect(hear_restored)
    widget.destroyed.connect(stop)
    show()


def _switch(control: Switch, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QCheckBox(control.words, parent)
    _follow(box, key, preferences, lambda: box.setChecked(preferences.get(key, bool)))
    box.toggled.connect(lambda on: preferences.set(key, on))
    return box


def _choice(control: Choice, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QComboBox(parent)
    for value, words in control.values:
        box.addItem(words, value)

    def show() -> None:
        box.setCurrentIndex(max(0, box.findData(preferences.get(key, str))))

    _follow(box, key, preferences, show)
    box.activated.connect(lambda at: preferences.set(key, box.itemData(at)))
    return _calm(box)


def _number(control: Number, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QSpinBox(parent)
    box.setRange(control.low, control.high)
    box.setSuffix(control.suffix)
    box.setSpecialValueText(control.none)
    box.setKeyboardTracking(not control.whole)
    if control.one:
        suffixes = {1: control.one}
        box.valueChanged.connect(lambda value: box.setSuffix(suffixes.get(value, control.suffix)))
    _follow(box, key, preferences, lambda: box.setValue(preferences.get(key, int)))
    box.valueChanged.connect(lambda value: preferences.set(key, value))
    _calm(box)
    return _beside_beyond(box, control, key, preferences) if control.beyond else box


def _beside_beyond(box: QSpinBox, control: Number, key: str, preferences: Preferences) -> QWidget:
    both = QWidget(box.parentWidget())
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    said = TonedLabel("", "warning", both)
    said.setWordWrap(True)

    def judge() -> None:
        kept = preferences.get(key, int)
        said.show_text(control.beyond.format(kept, min(max(kept, control.low), control.high)))
        said.setVisible(not control.low <= kept <= control.high)

    _follow(said, key, preferences, judge)
    row.addWidget(box, 1)
    row.addWidget(said, 1)
    both.setFocusProxy(box)
    return both


def _clock(control: Clock, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    return _checked(control, key, preferences, parent, QRegularExpressionValidator(CLOCK))


class _Accepts(QValidator):
    """Validator by a function, for texts that are typed whole."""

    def __init__(self, is_valid: Callable[[str], bool]) -> None:
        super().__init__()
        self._is_valid = is_valid

    def validate(self, text: str, at: int) -> tuple[QValidator.State, str, int]:
        states = QValidator.State
        is_valid = not text.strip() or self._is_valid(text.strip())
        return states.Acceptable if is_valid else states.Intermediate, text, at


def _word(control: Word, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    return _checked(control, key, preferences, parent, _Accepts(control.is_valid))


def _checked(
    control: Clock | Word,
    key: str,
    preferences: Preferences,
    parent: QWidget,
    validator: QValidator,
) -> QWidget:
    """Return a field that keeps only what `validator` accepts; a message tells what it refuses.

    The message of a time stands beside its field, that of a text below, since it is longer.
    """
    both, is_short = QWidget(parent), isinstance(control, Clock)
    row: QBoxLayout = QHBoxLayout(both) if is_short else QVBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    field = _field(key, preferences, both)
    field.setPlaceholderText(control.empty)
    validator.setParent(field)
    field.setValidator(validator)
    wrong = TonedLabel(control.wrong, "bad", both)
    keeps = wrong.sizePolicy()
    keeps.setRetainSizeWhenHidden(is_short)  # The field keeps its place while it is hidden
    wrong.setSizePolicy(keeps)
    wrong.setWordWrap(not is_short)

    def judge() -> None:
        wrong.setVisible(not field.hasAcceptableInput())

    field.textChanged.connect(judge)
    judge()
    row.addWidget(field, 1)
    row.addWidget(wrong, 1)
    both.setFocusProxy(field)
    return both


class _LinesEditor(Patterns):
    """Editor that emits `left` when it loses the focus or is hidden."""

    left = Signal()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:  # its own context menu
            self.left.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.left.emit()


def _lines(control: Lines, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    both = QWidget(parent)
    field = _LinesEditor()
    field.setPlaceholderText(control.empty)
    wrong = TonedLabel("", "bad", both)
    wrong.setWordWrap(True)

    def kept() -> list[str]:
        return [line for line in preferences.get(key, list) if isinstance(line, str)]

    def show() -> None:
        if field.lines() != kept():
            field.setPlainText("\n".join(kept()))
        refused = [display(line, MOST_WORD) for line in kept() if not control.is_valid(line)]
        wrong.show_text(control.wrong.format(", ".join(refused)) if refused else "")
        wrong.setVisible(bool(refused))

    arrange(QVBoxLayout(both), field, wrong, margins=0, spacing=2)
    _follow(field, key, preferences, show)
    field.left.connect(lambda: preferences.set(key, field.lines()[:MOST_LINES]))
    both.setFocusProxy(field)
    return both


def _field(key: str, preferences: Preferences, parent: QWidget) -> QLineEdit:
    field = QLineEdit(parent)
    field.setMaximumWidth(FIELD_WIDTH)
    _follow(field, key, preferences, lambda: field.setText(preferences.get(key, str)))

    def keep() -> None:
        if field.hasAcceptableInput():
            preferences.set(key, field.text().strip())

    field.editingFinished.connect(keep)
    return field


def _file(control: File, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    both = FileEditor(control, key, preferences, parent)
    _follow(both, key, preferences, both.show_kept)
    return both


class FileEditor(QWidget):
    """A path with a button that browses for it, and a message below for a wrong one.

    A path is checked when the field is left, since a half typed one is always wrong. `edited` is
    emitted for each change of the text. The object name is the key of the preference.
    """

    edited = Signal()

    def __init__(self, control: File, key: str, preferences: Preferences, parent: QWidget) -> None:
        super().__init__(parent)
        self._control, self._key, self._preferences = control, key, preferences
        self.setObjectName(key)
        self._field = QLineEdit(self)
        self._field.setPlaceholderText(control.empty)
        self._wrong = TonedLabel("", "bad", self)
        self._wrong.setWordWrap(True)
        browse = QPushButton(self.tr("Browse…"), self)
        browse.setAutoDefault(False)
        row = arrange(QHBoxLayout(), (self._field, 1), browse, margins=0, spacing=6)
        arrange(QVBoxLayout(self), row, self._wrong, margins=0, spacing=2)
        self.setFocusProxy(self._field)
        self._field.textChanged.connect(lambda _: self._say(""))
        self._field.textChanged.connect(lambda _: self.edited.emit())
        self._field.editingFinished.connect(self._keep)
        browse.clicked.connect(self._browse)

    def show_kept(self) -> None:
        """Show the kept path, and whether it is still there."""
        kept = self._preferences.get(self._key, str)
        self._field.setText(kept)
        self._say("" if self._is_valid(kept) else self._control.gone)

    @property
    def is_refused(self) -> bool:
        """Whether the field has a path that is not kept because it is wrong."""
        path = self._field.text().strip()
        return path != self._preferences.get(self._key, str) and not self._is_valid(path)

    def _is_valid(self, path: str) -> bool:
        return not path or self._control.is_valid(path)

    def _say(self, words: str) -> None:
        self._wrong.show_text(words)
        self._wrong.setVisible(bool(words))

    def _keep(self) -> None:
        path = self._field.text().strip()
        if path == self._preferences.get(self._key, str):
            self.show_kept()
        elif self._is_valid(path):
            self._preferences.set(self._key, path)
        elif self._wrong.isHidden():
            self._say(self._control.wrong)
            announce(self._field, self._control.wrong)

    def _browse(self) -> None:
        dialog = QFileDialog(self, self._control.empty)
        modes = QFileDialog.FileMode
        dialog.setFileMode(modes.Directory if self._control.is_folder else modes.ExistingFile)
        dialog.fileSelected.connect(self._take)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _take(self, path: str) -> None:
        self._field.setText(path)
        self._keep()


def _calm(box: QWidget) -> QWidget:
    """Ignore the wheel over an unfocused box, so that it scrolls the page."""
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    box.installEventFilter(_Wheel(box))
    return box


class _Wheel(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        away = isinstance(watched, QWidget) and not watched.hasFocus()
        if away and event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        return False
