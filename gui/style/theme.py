"""Palettes, state colours, and labels that show plain text only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from PySide6 import QtCore  # Importing `Qt` itself costs the first paint 45 ms
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.model.display import display, display_lines
from gui.style import palettes
from gui.style.fonts import lead

MOST_CHARS = 8000  # Limit of one label or tool tip: Qt needs seconds to lay out a megabyte
MOST_TITLE_CHARS = 300
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
    usual = (palettes.CONTRAST_TONES if high else palettes.TONES)[dark]
    more = palettes.DISTINCT_TONES[dark] if apart else {}
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
    return bool(mark == QColor(palettes.DISTINCT_MARK[is_dark(palette)]))


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
    usual = palettes.DARK if dark else palettes.LIGHT
    for role, value in (usual | palettes.CONTRAST_PALETTE[dark] if high else usual).items():
        palette.setColor(QPalette.ColorRole[role], QColor(value))
    if apart:
        palette.setColor(QPalette.ColorRole.LinkVisited, QColor(palettes.DISTINCT_MARK[dark]))
    faded = QColor(palettes.FADED[dark])
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
    for kind, window in palettes.outlines(dark, high).items():
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
    """Return `text` as a literal tool tip, because Qt would guess whether it is HTML."""
    import html  # The module's entity table is too large to load before the first paint

    shown = html.escape(display_lines(text, MOST_CHARS))
    return f"<p style='white-space:pre-wrap'>{shown}</p>" if text else ""


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


class TonedLabel(PlainLabel):
    """Plain label in a colour of the theme, also after a theme change."""

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
        palette = self.palette()
        colour = tone(self._tone, QApplication.palette())
        if palette.color(QPalette.ColorRole.WindowText) != colour:
            palette.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(palette)
