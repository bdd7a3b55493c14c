"""How the window looks: two palettes, a colour for each state, labels that show plain text only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from PySide6 import QtCore  # not `Qt` itself: its names cost the first paint 45 ms
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.model.display import display, display_lines
from gui.style import colour_blind, colours, high_contrast
from gui.style.fonts import lead

MOST_CHARS = 8000  # of one label or tooltip: laying out a megabyte takes Qt for seconds
MOST_TITLE_CHARS = 300
MOST_PALETTES = 50  # every widget that colours its own has one


class Theme(StrEnum):
    """What the user chose; SYSTEM follows the desktop."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


DISTINCT = "appearance.distinct"  # the application's property: no red against green
MORE_CONTRAST = "appearance.contrast"  # the application's property: a person asked for it


_KNOWN: dict[int, Mapping[str, QColor]] = {}


@cache
def _tones(dark: bool, high: bool, apart: bool) -> Mapping[str, QColor]:
    usual = (high_contrast.TONES if high else colours.TONES)[dark]
    more = colour_blind.TONES[dark] if apart else {}
    return MappingProxyType({name: QColor(value) for name, value in (usual | more).items()})


def is_dark(palette: QPalette) -> bool:
    """Does `palette` put light text on a dark base?"""
    return bool(palette.color(QPalette.ColorRole.Base).lightness() < 128)


def is_stark(palette: QPalette) -> bool:
    """Is `palette` one for who asked for more contrast? Then nothing should be told by tints."""
    roles = QPalette.ColorRole
    return bool(palette.color(roles.AlternateBase) == palette.color(roles.Base))


def is_distinct(palette: QPalette) -> bool:
    """Is `palette` one whose states are not told by red and green?"""
    mark = palette.color(QPalette.ColorRole.LinkVisited)
    return bool(mark == QColor(colour_blind.MARK[is_dark(palette)]))


def tones(palette: QPalette) -> Mapping[str, QColor]:
    """The colours that go with `palette`, by name: the states in small letters, then
    `attention`, `muted`, `good`, `warning`, `bad`, `accent`, and two that are not for text,
    `line` and `track`.
    """
    key = palette.cacheKey()  # to look at its colours takes ten times as long
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) > MOST_PALETTES:
            _KNOWN.clear()
        found = _tones(is_dark(palette), is_stark(palette), is_distinct(palette))
        _KNOWN[key] = found
    return found


def tone(name: str, palette: QPalette) -> QColor:
    """One of `tones`; an unknown state looks `muted`."""
    known = tones(palette)
    return known.get(name.lower(), known["muted"])


def palette_of(dark: bool, high: bool = False, apart: bool = False) -> QPalette:
    """The whole palette, light or dark, for the Fusion style.

    `high` has more contrast; with `apart` states are told without red and green.
    """
    palette = QPalette()
    usual = colours.DARK if dark else colours.LIGHT
    for role, value in (usual | high_contrast.PALETTE[dark] if high else usual).items():
        palette.setColor(QPalette.ColorRole[role], QColor(value))
    if apart:
        palette.setColor(QPalette.ColorRole.LinkVisited, QColor(colour_blind.MARK[dark]))
    faded = QColor(colours.FADED[dark])
    for role in ("WindowText", "Text", "ButtonText", "HighlightedText", "PlaceholderText"):
        palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole[role], faded)
    return palette


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Dress the whole application; SYSTEM asks the desktop whether it is dark."""
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
    """As `apply_theme`, for the first paint of an application that was made with the Fusion style.

    It costs 1 ms instead of 70: Qt's own names are not loaded, nor the style's, so that the
    desktop is not asked about contrast. `apply_theme` has to follow.
    """
    dark = theme is Theme.DARK or (theme is Theme.SYSTEM and is_dark(app.palette()))
    _dress(app, dark, bool(app.property(MORE_CONTRAST)))


def _dress(app: QApplication, dark: bool, high: bool) -> None:
    apart = bool(app.property(DISTINCT))
    app.setPalette(palette_of(dark, high, apart))
    for kind, window in high_contrast.outlines(dark, high).items():
        outlined = palette_of(dark, high, apart)
        outlined.setColor(QPalette.ColorRole.Window, QColor(window))
        app.setPalette(outlined, kind)  # type: ignore[arg-type]  # its stub wants bytes, it does not


def wants_contrast(app: QApplication) -> bool:
    """Did the desktop, or a person in the settings, ask for more contrast?"""
    access = app.styleHints().accessibility()  # kept: Qt frees it with the last reference
    asked = access.contrastPreference() == QtCore.Qt.ContrastPreference.HighContrast
    return bool(asked or app.property(MORE_CONTRAST))


class PlainLabel(QLabel):
    """A label that shows its text as it is: no markup, no links, no pictures from local files.

    `QLabel` guesses by itself whether a text is HTML, and HTML can name files; what stands
    in a ledger folder or on a web page must never be guessed about.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
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


def plain_tip(text: str) -> str:
    """`text` as a tooltip that is shown literally: Qt would guess whether it is HTML."""
    import html  # a table of all entities: too much for the first paint

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
        lead(self, share, bold=True)

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
