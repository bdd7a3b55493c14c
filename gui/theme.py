"""How the window looks: two palettes, a colour for each state, labels that show plain text only."""

from __future__ import annotations

import html
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.display import display, display_lines
from gui import stark

MOST_CHARS = 8000  # of one label or tooltip: laying out a megabyte takes Qt for seconds
MOST_TITLE_CHARS = 300


class Theme(StrEnum):
    """What the user chose; SYSTEM follows the desktop."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


# Every text colour below has at least 4.5 : 1 on the base it stands on (WCAG 2.2, 1.4.3);
# tests/gui/test_theme.py computes it.
_LIGHT = {
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
_DARK = {
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
_FADED = {False: "#717b88", True: "#7b8594"}  # what cannot be used now; WCAG asks nothing of it

_TONES = {
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
_COLOURS: Mapping[tuple[bool, bool], Mapping[str, QColor]] = MappingProxyType(
    {
        (dark, high): MappingProxyType({name: QColor(value) for name, value in tones.items()})
        for high, both in ((False, _TONES), (True, stark.TONES))
        for dark, tones in both.items()
    }
)
MORE_CONTRAST = "appearance.contrast"  # the application's property: a person asked for it


def is_dark(palette: QPalette) -> bool:
    """Does `palette` put light text on a dark base?"""
    return bool(palette.color(QPalette.ColorRole.Base).lightness() < 128)


def is_stark(palette: QPalette) -> bool:
    """Is `palette` one for who asked for more contrast? Then nothing should be told by tints."""
    return bool(palette.color(QPalette.ColorRole.Window) == palette.color(QPalette.ColorRole.Base))


def tones(palette: QPalette) -> Mapping[str, QColor]:
    """The colours that go with `palette`, by name: the states in small letters, then
    `attention`, `muted`, `good`, `warning`, `bad`, `accent`, and two that are not for text,
    `line` and `track`.
    """
    return _COLOURS[is_dark(palette), is_stark(palette)]


def tone(name: str, palette: QPalette) -> QColor:
    """One of `tones`; an unknown state looks `muted`."""
    known = tones(palette)
    return known.get(name.lower(), known["muted"])


def palette_of(dark: bool, high: bool = False) -> QPalette:
    """The whole palette, light or dark, for the Fusion style; `high` has more contrast."""
    palette = QPalette()
    usual = _DARK if dark else _LIGHT
    for role, value in (usual | stark.PALETTE[dark] if high else usual).items():
        palette.setColor(QPalette.ColorRole[role], QColor(value))
    faded = QColor(_FADED[dark])
    for role in ("WindowText", "Text", "ButtonText", "HighlightedText", "PlaceholderText"):
        palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole[role], faded)
    return palette


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Dress the whole application; SYSTEM asks the desktop whether it is dark."""
    hints = app.styleHints()
    schemes = {
        Theme.SYSTEM: Qt.ColorScheme.Unknown,
        Theme.LIGHT: Qt.ColorScheme.Light,
        Theme.DARK: Qt.ColorScheme.Dark,
    }
    if theme is Theme.SYSTEM:
        hints.unsetColorScheme()
    else:
        hints.setColorScheme(schemes[theme])
    dark = theme is Theme.DARK
    if theme is Theme.SYSTEM:
        dark = hints.colorScheme() == Qt.ColorScheme.Dark
    if app.style().objectName() != "fusion":
        app.setStyle("Fusion")
    app.setPalette(palette_of(dark, wants_contrast(app)))


def wants_contrast(app: QApplication) -> bool:
    """Did the desktop, or a person in the settings, ask for more contrast?"""
    access = app.styleHints().accessibility()  # kept: Qt frees it with the last reference
    asked = access.contrastPreference() == Qt.ContrastPreference.HighContrast
    return bool(asked or app.property(MORE_CONTRAST))


class PlainLabel(QLabel):
    """A label that shows its text as it is: no markup, no links, no pictures from local files.

    `QLabel` guesses by itself whether a text is HTML, and HTML can name files; what stands
    in a ledger folder or on a web page must never be guessed about.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show `text` literally, without signs that lie, and no more of it than anybody reads;
        a screen reader reads the same.
        """
        super().setText(display_lines(text, MOST_CHARS))

    def minimumSizeHint(self) -> QSize:
        """Wrapped, as narrow as anybody likes: one endless word must not widen the window."""
        hint = super().minimumSizeHint()
        return QSize(0, hint.height()) if self.wordWrap() else hint


def plain_label(
    text: str = "", parent: QWidget | None = None, *, tone: str = "", wrap: bool = False
) -> PlainLabel:
    """A label for any text at all, ours or a stranger's.

    `tone` is a name of `tones` that follows the theme; `wrap` breaks long lines.
    """
    label = TonedLabel(text, tone, parent) if tone else PlainLabel(text, parent)
    label.setWordWrap(wrap)
    return label


def heading(text: str, parent: QWidget | None = None, *, grow: float = 1.15) -> PlainLabel:
    """A label that leads: `grow` times the size of the text below it, and bolder."""
    label = _Heading(text, parent)
    label.grow(grow)
    return label


def scaled(font: QFont, grow: float, *, bold: bool = False) -> QFont:
    """`font` made `grow` times as large; `bold` makes it demi-bold."""
    bigger = QFont(font)
    bigger.setPointSizeF(font.pointSizeF() * grow)
    if bold:
        bigger.setWeight(QFont.Weight.DemiBold)
    return bigger


def plain_tip(text: str) -> str:
    """`text` as a tooltip that is shown literally: Qt would guess whether it is HTML."""
    shown = html.escape(display_lines(text, MOST_CHARS))
    return f"<p style='white-space:pre-wrap'>{shown}</p>" if text else ""


def plain_title(text: str) -> str:
    """`text` for a title bar, where `[*]` is a place for Qt's sign of unsaved work."""
    return display(text, MOST_TITLE_CHARS).replace("[*]", "[*][*]")


def plain_keys(text: str) -> str:
    """`text` for a button, a tab or a menu, where an & would make the next letter a shortcut."""
    return display(text).replace("&", "&&")


class _Heading(PlainLabel):
    """Keeps its proportion to the text when the size of all letters is changed."""

    _share = 1.0

    def grow(self, share: float) -> None:
        self._share = share
        self.setFont(scaled(QApplication.font(), share, bold=True))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ApplicationFontChange:
            self.grow(self._share)


class TonedLabel(PlainLabel):
    """A plain label in one of the theme's colours, also after the theme changes."""

    def __init__(self, text: str, tone_name: str, parent: QWidget | None = None) -> None:
        self._tone = tone_name
        super().__init__(text, parent)
        self.setForegroundRole(QPalette.ColorRole.WindowText)  # whatever its parent stands on
        self._colour()

    def show_tone(self, tone_name: str) -> None:
        """Take another colour of `tones`."""
        self._tone = tone_name
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()

    def _colour(self) -> None:
        palette = self.palette()
        colour = tone(self._tone, QApplication.palette())
        if palette.color(QPalette.ColorRole.WindowText) != colour:
            palette.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(palette)
