"""Colours for red-green colour blindness, light and dark: blue-green, brown, violet.

Only the differences from the default colours. Found by search: good, bad and care are as far apart
as possible for all three kinds of colour blindness, with 7 : 1 on white and on black.
"""

from __future__ import annotations

from typing import Final

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
TONES: Final = {
    dark: {name: colours[of] for name, of in _OF.items()}
    for dark, colours in ((False, _LIGHT), (True, _DARK))
}
# Unique colour that identifies a palette of this module.
MARK: Final = {False: "#722fc4", True: "#b792f9"}
