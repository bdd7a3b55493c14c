"""The colours for who cannot tell red from green, light and dark: blue-green, brown, violet.

Only what differs from the usual colours. Searched for, so that good, bad and care keep apart as
far as can be for all three kinds of colour blindness while having 7 : 1 on white and on black.
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
# Nothing else has this colour: a palette with it is one of these.
MARK: Final = {False: "#722fc4", True: "#b792f9"}
