"""Theme: palettes and state colours (high contrast, colour blindness), fonts, plain-text labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from PySide6 import QtCore  # Importing `Qt` itself costs the first paint 45 ms
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.model.display import display, display_lines

if TYPE_CHECKING:
    from PySide6.QtGui import QFont


# Percent: beyond these limits the window could not be read, nor the setting undone.
LEAST, MOST = 70, 200
_BASE: Final = "letters of the desktop, in points"  # Properties of the application
# Properties of a widget.
_SHARE, _BOLD, _FIXED = "letters: share", "letters: bold", "letters: fixed pitch"


def lead(widget: QWidget, share: float, *, bold: bool = False) -> None:
    """Scale the widget's font by `share`, also after the text size changes."""
    widget.setProperty(_SHARE, share)
    widget.setProperty(_BOLD, bold)
    widget.setFont(_leading(share, bold=bold))


def fixed_pitch(widget: QWidget) -> None:
    """Use a monospaced font in the chosen text size, also after it changes."""
    widget.setProperty(_FIXED, True)
    widget.setFont(_fixed())


def application() -> QApplication:
    """Return the program's application object."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app


def choose_size(percent: float) -> None:
    """Scale all fonts to `percent` of the desktop's size, within the limits."""
    from PySide6.QtGui import QFont

    app = application()
    if not isinstance(app.property(_BASE), float):
        app.setProperty(_BASE, app.font().pointSizeF())
    font = QFont(app.font())
    wanted = app.property(_BASE) * min(max(percent, LEAST), MOST) / 100
    if abs(font.pointSizeF() - wanted) > 0.01:
        font.setPointSizeF(wanted)
        app.setFont(font)
        _renew()


def _renew() -> None:
    # Qt notifies windows only, and not a child whose own font has a size.
    for widget in QApplication.allWidgets():
        share = widget.property(_SHARE)
        if isinstance(share, float):
            widget.setFont(_leading(share, bold=bool(widget.property(_BOLD))))
        elif widget.property(_FIXED):
            widget.setFont(_fixed())


def _leading(share: float, *, bold: bool) -> QFont:
    from PySide6.QtGui import QFont  # Import here saves 3 ms before the first paint

    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * share)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def _fixed() -> QFont:
    """Return the desktop's monospaced font, scaled like the other fonts."""
    from PySide6.QtGui import QFontDatabase

    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    app = QApplication.instance()
    base = app.property(_BASE) if app else None
    if isinstance(base, float) and base > 0 and font.pointSizeF() > 0:
        font.setPointSizeF(font.pointSizeF() * QApplication.font().pointSizeF() / base)
    return font


# Every text colour below has at least 4.5 : 1 on its base colour (WCAG 2.2, 1.4.3);
# tests/gui/test_theme.py computes it.
LIGHT = {
    "Window": "#f3f4f6",
    "WindowText": "#1c2128",
    "Base": "#ffffff",
    "AlternateBase": "#f8f9fb",
    "Text": "#1c2128",
    "PlaceholderText": "#626b78",
    "Button": "#fbfbfc",
    "ButtonText": "#1c2128",
    "BrightText": "#ffffff",
    "Light": "#ffffff",
    "Midlight": "#eceef1",
    "Mid": "#cfd4db",
    "Dark": "#aeb5bf",
    "Shadow": "#5c6470",
    "Highlight": "#1f66d1",
    "HighlightedText": "#ffffff",
    "Link": "#1a5fc4",
    "LinkVisited": "#6b46c1",
    "ToolTipBase": "#1c2128",
    "ToolTipText": "#f3f4f6",
    "Accent": "#1f66d1",
}
DARK = {
    "Window": "#1e2228",
    "WindowText": "#e4e8ee",
    "Base": "#171a1f",
    "AlternateBase": "#1b1f25",
    "Text": "#e4e8ee",
    "PlaceholderText": "#98a2b0",
    "Button": "#2a2f37",
    "ButtonText": "#e4e8ee",
    "BrightText": "#ffffff",
    "Light": "#3a414b",
    "Midlight": "#2f353e",
    "Mid": "#39404a",
    "Dark": "#12151a",
    "Shadow": "#0b0d10",
    "Highlight": "#2f6fd6",
    "HighlightedText": "#ffffff",
    "Link": "#7db2ff",
    "LinkVisited": "#b79bff",
    "ToolTipBase": "#2f353e",
    "ToolTipText": "#e4e8ee",
    "Accent": "#4c8df0",
}
FADED = {False: "#717b88", True: "#7b8594"}  # Colours of disabled widgets, which WCAG exempts

TONES = {
    False: {
        "pending": "#57606a",
        "running": "#0b5cc0",
        "cancelling": "#8a5a00",
        "completed": "#17703a",
        "failed": "#b3261e",
        "cancelled": "#57606a",
        "orphaned": "#a23c00",
        "unreadable": "#8e3b9e",
        "attention": "#a23c00",
        "muted": "#5b6470",
        "good": "#17703a",
        "warning": "#8a5a00",
        "bad": "#b3261e",
        "accent": "#1f66d1",
        "line": "#dfe3e8",
        "track": "#e3e7ec",
    },
    True: {
        "pending": "#a3adba",
        "running": "#6cb0ff",
        "cancelling": "#e3b341",
        "completed": "#5cc97f",
        "failed": "#ff8a80",
        "cancelled": "#a3adba",
        "orphaned": "#ffa657",
        "unreadable": "#d69be0",
        "attention": "#ffa657",
        "muted": "#98a2b0",
        "good": "#5cc97f",
        "warning": "#e3b341",
        "bad": "#ff8a80",
        "accent": "#6cb0ff",
        "line": "#2c323a",
        "track": "#2f353e",
    },
}

# High contrast: at least 7 : 1, and outlines instead of tints. Only the differences from the
# default colours. No style sheet is used, because it polishes and paints every widget through a
# second style.
CONTRAST_PALETTE = {
    False: {
        "Window": "#ffffff",
        "WindowText": "#000000",
        "AlternateBase": "#ffffff",
        "Text": "#000000",
        "PlaceholderText": "#4a4a4a",
        "Button": "#ffffff",
        "ButtonText": "#000000",
        "Midlight": "#ffffff",
        "Mid": "#4a4a4a",
        "Dark": "#1f1f1f",
        "Highlight": "#0b3d91",
        "Link": "#0b3d91",
        "LinkVisited": "#4b2a85",
        "ToolTipBase": "#000000",
        "ToolTipText": "#ffffff",
        "Accent": "#0b3d91",
    },
    True: {
        "Window": "#000000",
        "WindowText": "#ffffff",
        "Base": "#000000",
        "AlternateBase": "#000000",
        "Text": "#ffffff",
        "PlaceholderText": "#b5b5b5",
        "Button": "#000000",
        "ButtonText": "#ffffff",
        "Light": "#8a8a8a",
        "Midlight": "#000000",
        "Mid": "#b5b5b5",
        "Dark": "#d6d6d6",
        "Highlight": "#9ecbff",
        "HighlightedText": "#000000",
        "Link": "#9ecbff",
        "LinkVisited": "#d3c2ff",
        "ToolTipBase": "#000000",
        "ToolTipText": "#ffffff",
        "Accent": "#9ecbff",
    },
}
CONTRAST_TONES = {
    False: {
        "pending": "#3d3d3d",
        "running": "#063f86",
        "cancelling": "#5c3b00",
        "completed": "#0b4f27",
        "failed": "#8c140f",
        "cancelled": "#3d3d3d",
        "orphaned": "#6e2900",
        "unreadable": "#65216f",
        "attention": "#6e2900",
        "muted": "#3d3d3d",
        "good": "#0b4f27",
        "warning": "#5c3b00",
        "bad": "#8c140f",
        "accent": "#0b3d91",
        "line": "#4a4a4a",
        "track": "#cfcfcf",
    },
    True: {
        "pending": "#d0d0d0",
        "running": "#9ecbff",
        "cancelling": "#ffd866",
        "completed": "#7ee2a0",
        "failed": "#ffb3ad",
        "cancelled": "#d0d0d0",
        "orphaned": "#ffc48a",
        "unreadable": "#ecc0f5",
        "attention": "#ffc48a",
        "muted": "#d0d0d0",
        "good": "#7ee2a0",
        "warning": "#ffd866",
        "bad": "#ffb3ad",
        "accent": "#9ecbff",
        "line": "#b5b5b5",
        "track": "#3d3d3d",
    },
}
# Fusion draws outlines darker than the `Window` colour, which is impossible on black, so these
# widget classes get a separate palette with another `Window` colour.
_MARKS = ("QCheckBox", "QRadioButton")
_LINES = ("QLineEdit", "QComboBox", "QAbstractSpinBox", "QPlainTextEdit")
_FIELDS = (*_LINES, "QTabBar")
_BUTTONS = ("QPushButton", "QToolButton")
_LISTS = ("QTableView", "QTreeView", "QListView")
_MENUS = ("QMenu",)


def outlines(dark: bool, high: bool) -> dict[str, str]:
    """Return the `Window` colour of each widget class whose outline would be invisible."""
    window = "#ffffff" if dark else "#4a4a4a"
    if high:
        return dict.fromkeys((*_MARKS, *_FIELDS, *_BUTTONS, *_LISTS, *_MENUS), window)
    fields = dict.fromkeys((*_MARKS, *_LINES), "#98a2b0" if dark else "#a6adb8")
    return {**fields, **dict.fromkeys(_MENUS, "#a8b1be")} if dark else fields


# Red-green colour blindness: blue-green, brown, violet. Only the differences from the default
# colours. Found by search: good, bad and care are as far apart as possible for all three kinds of
# colour blindness, with 7 : 1 on white and on black.
_DISTINCT_LIGHT: Final = {"good": "#184c66", "bad": "#870605", "care": "#722fc5"}
_DISTINCT_DARK: Final = {"good": "#6ef9ed", "bad": "#edb36b", "care": "#b792fa"}
_DISTINCT_OF: Final = {
    "completed": "good",
    "good": "good",
    "failed": "bad",
    "bad": "bad",
    "cancelling": "care",
    "warning": "care",
    "orphaned": "care",
    "attention": "care",
}
DISTINCT_TONES: Final = {
    dark: {name: colours[of] for name, of in _DISTINCT_OF.items()}
    for dark, colours in ((False, _DISTINCT_LIGHT), (True, _DISTINCT_DARK))
}
# Unique colour that identifies a palette with these tones.
DISTINCT_MARK: Final = {False: "#722fc4", True: "#b792f9"}


MOST_CHARS = 8000  # Limit of one label or tool tip: Qt needs seconds to lay out a megabyte
MOST_TITLE_CHARS = 300
TIP_CHARS = 90  # Longest line of a tool tip
MOST_PALETTES = 50  # Each widget with its own colours has its own palette


class Theme(StrEnum):
    """The chosen theme; SYSTEM follows the desktop."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


DISTINCT = "appearance.distinct"  # Property of the application: colour-blind palette
MORE_CONTRAST = "appearance.contrast"  # Property of the application: the user chose more contrast


_KNOWN: dict[int, Mapping[str, QColor]] = {}


@cache
def _tones(dark: bool, high: bool, apart: bool) -> Mapping[str, QColor]:
    usual = (CONTRAST_TONES if high else TONES)[dark]
    more = DISTINCT_TONES[dark] if apart else {}
    return MappingProxyType({name: QColor(value) for name, value in (usual | more).items()})


def is_dark(palette: QPalette) -> bool:
    """Return whether `palette` has light text on a dark base."""
    return bool(palette.color(QPalette.ColorRole.Base).lightness() < 128)


def is_high_contrast(palette: QPalette) -> bool:
    """Return whether `palette` has high contrast, where tints must not carry meaning."""
    roles = QPalette.ColorRole
    return bool(palette.color(roles.AlternateBase) == palette.color(roles.Base))


def is_colour_blind(palette: QPalette) -> bool:
    """Return whether `palette` uses the colour-blind state colours."""
    mark = palette.color(QPalette.ColorRole.LinkVisited)
    return bool(mark == QColor(DISTINCT_MARK[is_dark(palette)]))


def tones(palette: QPalette) -> Mapping[str, QColor]:
    """Return the colours of `palette` by name.

    The names are the states in lower case, then `attention`, `muted`, `good`, `warning`, `bad`,
    `accent`, and two that are not for text, `line` and `track`.
    """
    key = palette.cacheKey()  # Comparing the colours takes ten times as long
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) > MOST_PALETTES:
            _KNOWN.clear()
        found = _tones(is_dark(palette), is_high_contrast(palette), is_colour_blind(palette))
        _KNOWN[key] = found
    return found


def tone(name: str, palette: QPalette) -> QColor:
    """Return one colour of `tones`; an unknown state is `muted`."""
    known = tones(palette)
    return known.get(name.lower(), known["muted"])


def palette_of(dark: bool, high: bool = False, apart: bool = False) -> QPalette:
    """Return the complete palette for the Fusion style, light or dark.

    `high` has more contrast; `apart` avoids red and green for states.
    """
    palette = QPalette()
    usual = DARK if dark else LIGHT
    for role, value in (usual | CONTRAST_PALETTE[dark] if high else usual).items():
        palette.setColor(QPalette.ColorRole[role], QColor(value))
    if apart:
        palette.setColor(QPalette.ColorRole.LinkVisited, QColor(DISTINCT_MARK[dark]))
    faded = QColor(FADED[dark])
    for role in ("WindowText", "Text", "ButtonText", "HighlightedText", "PlaceholderText"):
        palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole[role], faded)
    return palette


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Apply the theme to the application; SYSTEM uses the desktop's colour scheme."""
    hints, schemes = app.styleHints(), QtCore.Qt.ColorScheme
    if theme is Theme.SYSTEM:
        hints.unsetColorScheme()
        dark = hints.colorScheme() == schemes.Dark
    else:
        dark = theme is Theme.DARK
        hints.setColorScheme(schemes.Dark if dark else schemes.Light)
    if app.style().objectName() != "fusion":
        app.setStyle("Fusion")
    _dress(app, dark, wants_contrast(app))


def dress_first(app: QApplication, theme: Theme) -> None:
    """Apply the theme for the first paint of an application made with the Fusion style.

    It costs 1 ms instead of 70, because Qt's names and the style's are not loaded and the desktop's
    contrast is not read. Call `apply_theme` afterwards.
    """
    dark = theme is Theme.DARK or (theme is Theme.SYSTEM and is_dark(app.palette()))
    _dress(app, dark, bool(app.property(MORE_CONTRAST)))


def _dress(app: QApplication, dark: bool, high: bool) -> None:
    apart = bool(app.property(DISTINCT))
    app.setPalette(palette_of(dark, high, apart))
    for kind, window in outlines(dark, high).items():
        outlined = palette_of(dark, high, apart)
        outlined.setColor(QPalette.ColorRole.Window, QColor(window))
        app.setPalette(outlined, kind)  # type: ignore[arg-type]  # its stub wants bytes, it does not


def wants_contrast(app: QApplication) -> bool:
    """Return whether the desktop or the settings request more contrast."""
    # Keep a reference, because Qt frees the object with the last one.
    access = app.styleHints().accessibility()
    asked = access.contrastPreference() == QtCore.Qt.ContrastPreference.HighContrast
    return bool(asked or app.property(MORE_CONTRAST))


class PlainLabel(QLabel):
    """Label that shows literal text: no markup, no links, no pictures from local files.

    `QLabel` guesses whether a text is HTML, and HTML can refer to files, so text from a ledger
    folder or a web page must not be guessed about.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show `text` literally, without control characters, cut to a readable length."""
        super().setText(display_lines(text, MOST_CHARS))

    def minimumSizeHint(self) -> QSize:
        """Allow any width for wrapped text, so that one long word cannot widen the window."""
        hint = super().minimumSizeHint()
        return QSize(0, hint.height()) if self.wordWrap() else hint


def plain_label(
    text: str = "", parent: QWidget | None = None, *, tone: str = "", wrap: bool = False
) -> PlainLabel:
    """Return a label for any text, trusted or not.

    `tone` is a name of `tones` that follows the theme; `wrap` breaks long lines.
    """
    label = TonedLabel(text, tone, parent) if tone else PlainLabel(text, parent)
    label.setWordWrap(wrap)
    return label


def heading(text: str, parent: QWidget | None = None, *, grow: float = 1.15) -> PlainLabel:
    """Return a bold label of `grow` times the text size."""
    label = _Heading(text, parent)
    label.grow(grow)
    return label


def plain_tip(text: str) -> str:
    """Return `text` as a literal tool tip, because Qt would guess whether it is HTML.

    Lines are broken here: Qt makes its tool tips so narrow that paths break in the middle.
    """
    import html  # The module's entity table is too large to load before the first paint
    from textwrap import TextWrapper

    wrapper = TextWrapper(TIP_CHARS, expand_tabs=False, break_on_hyphens=False)
    lines = display_lines(text, MOST_CHARS).split("\n")
    parts = (wrapper.wrap(line) if len(line) > TIP_CHARS else [line] for line in lines)
    shown = html.escape("\n".join(part for each in parts for part in each))
    return f"<p style='white-space:pre'>{shown}</p>" if text else ""


def from_home(path: str) -> str:
    """Return `path` with ~ for the home folder."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def plain_title(text: str) -> str:
    """Return `text` for a title bar, where Qt replaces `[*]` by its modified mark."""
    return display(text, MOST_TITLE_CHARS).replace("[*]", "[*][*]")


def plain_keys(text: str) -> str:
    """Return `text` for a button, tab or menu, where & marks a shortcut."""
    return display(text).replace("&", "&&")


class _Heading(PlainLabel):
    """Heading that keeps its proportion when the text size changes."""

    _share = 1.0

    def grow(self, share: float) -> None:
        self._share = share
        lead(self, share, bold=True)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ApplicationFontChange:
            self.grow(self._share)


def use_colour(widget: QWidget, role: QPalette.ColorRole, colour: QColor) -> None:
    """Give `widget` this colour; a no-op if it has it, because each change causes an event."""
    palette = widget.palette()
    if palette.color(role) != colour:
        palette.setColor(role, colour)
        widget.setPalette(palette)


class TonedLabel(PlainLabel):
    """Plain label in a colour of the theme, also after a theme change; "" is that of texts."""

    def __init__(self, text: str, tone_name: str, parent: QWidget | None = None) -> None:
        self._tone = tone_name
        super().__init__(text, parent)
        # Independent of the parent's background role.
        self.setForegroundRole(QPalette.ColorRole.WindowText)
        self._colour()

    def show_tone(self, tone_name: str) -> None:
        """Use another colour of `tones`."""
        self._tone = tone_name
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()

    def _colour(self) -> None:
        palette, role = QApplication.palette(), QPalette.ColorRole.WindowText
        use_colour(self, role, tone(self._tone, palette) if self._tone else palette.color(role))
