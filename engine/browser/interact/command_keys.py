"""Key names of the browser: `Enter`, `Control+A`, `é`."""

from __future__ import annotations

import difflib
from typing import Final

QUOTED = "{}"  # placeholder of the quoted value; secrets are masked only inside the quoted value
MAX_QUOTED = 40  # characters


class WrongValue(ValueError):
    """An invalid value; the message marks the place of the quoted value with QUOTED."""

    def __init__(self, sentence: str, quoted: str) -> None:
        super().__init__(sentence.format(quoted[:MAX_QUOTED]))
        self.sentence, self.quoted = sentence, quoted


MODIFIERS: Final = ("Shift", "Control", "Alt", "Meta", "ControlOrMeta")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = """
Escape Backquote Minus Equal Backslash Backspace Tab BracketLeft BracketRight CapsLock Semicolon
Quote Enter ShiftLeft Comma Period Slash ShiftRight ControlLeft MetaLeft AltLeft Space AltRight
AltGraph MetaRight ContextMenu ControlRight PrintScreen ScrollLock Pause PageUp PageDown Insert
Delete Home End ArrowLeft ArrowUp ArrowRight ArrowDown AudioVolumeMute AudioVolumeDown
AudioVolumeUp MediaTrackNext MediaTrackPrevious MediaPlayPause NumLock NumpadDivide
NumpadMultiply NumpadSubtract NumpadAdd NumpadDecimal NumpadEnter
"""
NAMED: Final = frozenset(
    {f"Key{letter}" for letter in _LETTERS}
    | {f"Digit{number}" for number in range(10)}
    | {f"Numpad{number}" for number in range(10)}
    | {f"F{number}" for number in range(1, 13)}
    | set(_OTHERS.split())
    | set(MODIFIERS)
)


def read_key(given: object) -> str:
    """Read a key, or modifiers and a key joined by `+`. Raises ValueError."""
    if not isinstance(given, str) or not given:
        raise ValueError("must be the name of a key, such as Enter or Control+A")
    *held, last = _parts(given)
    for name in held:
        if name not in MODIFIERS:
            sentence = f"only {', '.join(MODIFIERS)} can be held; '{QUOTED}' cannot"
            raise WrongValue(sentence, name)
    if len(last) != 1 and last not in NAMED:
        near = difflib.get_close_matches(last[:40], NAMED, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise WrongValue(f"'{QUOTED}' is not the name of a key{hint}", last)
    return given


def is_typing(key: str) -> bool:
    """Return whether pressing `key` types a character."""
    *held, last = _parts(key)
    return len(last) == 1 and set(held) <= {"Shift"}


def _parts(given: str) -> list[str]:
    """Split a chord; `Control++` is Control and the plus sign."""
    if given == "+":
        return ["+"]
    if given.endswith("++"):
        return [*given[:-2].split("+"), "+"]
    return given.split("+")
