"""High-contrast colours: at least 7 : 1, and outlines instead of tints.

Only the differences from the default colours of `theme`, light and dark. No style sheet is used,
because it polishes and paints every widget through a second style.
"""

from __future__ import annotations

PALETTE = {
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
TONES = {
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
