"""Colours of palettes and states, light and dark: default, high contrast, colour blindness."""

from __future__ import annotations

from typing import Final

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


def outlines(dark: bool, high: bool) -> dict[str, str]:
    """Return the `Window` colour of each widget class whose outline would be invisible."""
    window = "#ffffff" if dark else "#4a4a4a"
    if high:
        return dict.fromkeys((*_MARKS, *_FIELDS, *_BUTTONS, *_LISTS), window)
    return dict.fromkeys((*_MARKS, *_LINES), "#98a2b0" if dark else "#a6adb8")


# Red-green colour blindness: blue-green, brown, violet. Only the differences from the default
# colours. Found by search: good, bad and care are as far apart as possible for all three kinds of
# colour blindness, with 7 : 1 on white and on black.

_LIGHT: Final = {"good": "#184c66", "bad": "#870605", "care": "#722fc5"}
_DARK: Final = {"good": "#6ef9ed", "bad": "#edb36b", "care": "#b792fa"}
_OF: Final = {
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
    dark: {name: colours[of] for name, of in _OF.items()}
    for dark, colours in ((False, _LIGHT), (True, _DARK))
}
# Unique colour that identifies a palette with these tones.
DISTINCT_MARK: Final = {False: "#722fc4", True: "#b792f9"}
