"""The five tools of seed 002 as one table, and the stored form of their arguments.

A row has the accepted arguments of an action, the required ones, and the reader of each.
Validation, execution and dialogs all use this table.

`{{name}}` in an argument is a placeholder for a variable; `{"secret": "env:NAME"}` instead of a
text is a reference to a secret. The stored form of a task keeps both unchanged, and only the
length of typed text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.browser.interact.command_keys import MODIFIERS, is_typing, read_key
from engine.browser.interact.command_uploads import MAX_FILES, read_name
from engine.kinds import arguments
from engine.model import redact

DEFAULT_TIMEOUT_MS: Final = 30_000
EXPECT_TIMEOUT_MS: Final = 5_000  # the default of Playwright's assertions
MAX_TIMEOUT_MS: Final = 3_600_000
MAX_SELECTOR: Final = 4_096  # characters
MAX_TYPED: Final = 100_000
MAX_SCRIPT: Final = 500_000
MAX_SCROLL_PX: Final = 1_000_000
MAX_FRAMES: Final = 10  # nested frames
MAX_ALTERNATIVES: Final = 20
MAX_CLICKS: Final = 3
MAX_COUNT: Final = 1_000_000
BUTTONS: Final = ("left", "right", "middle")
STATES: Final = ("visible", "hidden", "enabled", "disabled", "checked", "unchecked")
LOAD_STATES: Final = ("load", "domcontentloaded", "networkidle")

Read = Callable[[object], Any]  # returns the value, or raises ValueError with the reason


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of an action. A `text` also accepts a reference to a secret."""

    read: Read
    required: bool = False
    text: bool = False


Action = Mapping[str, Arg]


def _typed(given: object) -> str:
    """Read a text unchanged; an empty text is valid (it clears a field)."""
    if not isinstance(given, str):
        raise ValueError("must be a text")
    if len(given) > MAX_TYPED:
        raise ValueError(f"must not be longer than {MAX_TYPED:,} characters")
    return given


def _text(limit: int, *, required: bool = True) -> Arg:
    return Arg(arguments.long_text(limit), required, text=True)


def _one_or_more(of: Read, most: int) -> Callable[[object], tuple[Any, ...]]:
    """Return a reader of one text, or of 1 to `most` texts, as a tuple."""

    def read(given: object) -> tuple[Any, ...]:
        several = given if isinstance(given, list | tuple) else (given,)
        if not 1 <= len(several) <= most:
            raise ValueError(f"must be a text, or a list of 1 to {most} of them")
        return tuple(of(each) for each in several)

    return read


_SELECTOR = _text(MAX_SELECTOR)
_MAYBE_SELECTOR = _text(MAX_SELECTOR, required=False)
_MAYBE_TEXT = _text(MAX_TYPED, required=False)
_ANY_TEXT = Arg(_typed, text=True)  # an empty text is valid
_FRAME = Arg(_one_or_more(arguments.long_text(MAX_SELECTOR), MAX_FRAMES))
_ALTERNATIVES = Arg(_one_or_more(arguments.long_text(MAX_SELECTOR), MAX_ALTERNATIVES))
_IN_FRAME: Final[Action] = {
    "selector": _SELECTOR,
    "frame": _FRAME,
    "alternatives": _ALTERNATIVES,
}


def _tab(given: object) -> int | str:
    """Read a tab: its number from 0, its title, or a pattern of its address."""
    if isinstance(given, str) and given.strip():
        text = arguments.text(given)
        return int(text) if text.isascii() and text.isdigit() else text
    try:
        return arguments.whole(0, MAX_COUNT)(given)
    except ValueError:
        raise ValueError("must be a number from 0, a title or an address") from None


_OFFSET = Arg(arguments.whole(-MAX_SCROLL_PX, MAX_SCROLL_PX))
_KEY = Arg(read_key, True, text=True)


def _held(given: object) -> tuple[str, ...]:
    """Read the held modifier keys: `Control+Shift`, or a list."""
    several = given.split("+") if isinstance(given, str) else given
    return _one_or_more(arguments.one_of(*MODIFIERS), len(MODIFIERS))(several)


_INSTANCE_ID = _text(100)
_MAYBE_INSTANCE_ID = _text(100, required=False)
_SIZE = Arg(arguments.whole(200, 8_000))
_KEEP_TEXT = Arg(arguments.flag)
TIMEOUT: Final = Arg(arguments.whole(1, MAX_TIMEOUT_MS))

TOOLS: Final[Mapping[str, Mapping[str, Action]]] = {
    "browser_navigate": {
        "goto": {"url": Arg(arguments.web_address, True, text=True)},
        "reload": {},
        "back": {},
        "forward": {},
        "wait_for": {
            "selector": _MAYBE_SELECTOR,
            "text": _MAYBE_TEXT,
            "url": _MAYBE_TEXT,
            "gone": _MAYBE_SELECTOR,
            "load_state": Arg(arguments.one_of(*LOAD_STATES)),
            "frame": _FRAME,
        },
        "tabs": {},
        "new_tab": {"url": Arg(arguments.web_address, text=True)},
        "switch_tab": {"tab": Arg(_tab, True)},
        "close_tab": {"tab": Arg(_tab)},
    },
    "browser_interact": {
        "click": {
            **_IN_FRAME,
            "count": Arg(arguments.whole(1, MAX_CLICKS)),
            "button": Arg(arguments.one_of(*BUTTONS)),
            "modifiers": Arg(_held),
        },
        "check": _IN_FRAME,
        "uncheck": _IN_FRAME,
        "press": {**_IN_FRAME, "key": _KEY, "keep_text": _KEEP_TEXT},
        "type": {
            **_IN_FRAME,
            "text": Arg(_typed, True, text=True),
            "append": Arg(arguments.flag),
            "keep_text": _KEEP_TEXT,
        },
        "keyboard": {"key": _KEY, "keep_text": _KEEP_TEXT},
        "scroll": {
            "direction": Arg(arguments.one_of("up", "down", "left", "right"), True),
            "amount": Arg(arguments.whole(1, MAX_SCROLL_PX)),
            "frame": _FRAME,
        },
        "select": {
            **_IN_FRAME,
            "value": _ANY_TEXT,
            "label": _ANY_TEXT,
            "index": Arg(arguments.whole(0, MAX_COUNT)),
        },
        "hover": _IN_FRAME,
        "dialog": {
            "answer": Arg(arguments.one_of("accept", "dismiss", "leave", "stay"), True),
            "text": _ANY_TEXT,
            "keep_text": _KEEP_TEXT,
            "expected": Arg(arguments.flag),
        },
        "upload": {**_IN_FRAME, "files": Arg(_one_or_more(read_name, MAX_FILES), True)},
        "drag": {
            **_IN_FRAME,
            "target": _MAYBE_SELECTOR,
            "target_alternatives": _ALTERNATIVES,
            "x": _OFFSET,
            "y": _OFFSET,
        },
    },
    "browser_content": {
        "screenshot": {"selector": _MAYBE_SELECTOR, "frame": _FRAME},
        "get_text": _IN_FRAME,
        "get_html": {"selector": _MAYBE_SELECTOR, "frame": _FRAME},
        "get_viewport_dom": {"frame": _FRAME},
        "expect": {
            "selector": _MAYBE_SELECTOR,
            "state": Arg(arguments.one_of(*STATES)),
            "text": _ANY_TEXT,
            "contains": _MAYBE_TEXT,
            "value": _ANY_TEXT,
            "count": Arg(arguments.whole(0, MAX_COUNT)),
            "url": _MAYBE_TEXT,
            "title": _ANY_TEXT,
            "frame": _FRAME,
        },
    },
    "browser_execute": {"evaluate": {"script": _text(MAX_SCRIPT), "frame": _FRAME}},
    "browser_instance": {
        "list": {},
        "launch": {
            "headed": Arg(arguments.flag),
            "windows": Arg(arguments.flag),
            "width": _SIZE,
            "height": _SIZE,
        },
        "close": {"instanceId": _INSTANCE_ID},
        "status": {"instanceId": _MAYBE_INSTANCE_ID},
    },
}


@dataclass(frozen=True, slots=True)
class Needs:
    """Constraints between the arguments of an action.

    At least one of `any_of` is required; each of `alone` excludes the others; each of `of_element`
    requires a selector.
    """

    any_of: tuple[str, ...]
    alone: tuple[str, ...] = ()
    of_element: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Useless:
    """An argument that has no effect for some values of another argument."""

    name: str
    beside: str
    values: tuple[str, ...]


USELESS: Final[Mapping[str, tuple[Useless, ...]]] = {
    "dialog": (
        Useless("text", "answer", ("dismiss", "leave", "stay")),
        Useless("expected", "answer", ("accept", "dismiss", "leave")),
    )
}
# Arguments of an action that have no effect without another one.
BESIDE: Final[Mapping[str, Mapping[str, str]]] = {"drag": {"target_alternatives": "target"}}
OF_ELEMENT: Final = ("state", "text", "contains", "value", "count")
NEEDS: Final[Mapping[str, Needs]] = {
    "wait_for": Needs(("selector", "text", "url", "gone", "load_state")),
    "select": Needs(("value", "label", "index"), alone=("value", "label", "index")),
    "drag": Needs(("target", "x", "y"), alone=("target",)),
    "expect": Needs((*OF_ELEMENT, "url", "title"), of_element=OF_ELEMENT),
}


def default_timeout_ms(action: str) -> int:
    """Return the time limit of an action whose command sets none."""
    return EXPECT_TIMEOUT_MS if action == "expect" else DEFAULT_TIMEOUT_MS


# Only the length of typed text is stored, unless the command sets `keep_text`.
TYPED: Final[Mapping[str, str]] = {
    "type": "text",
    "keyboard": "key",
    "press": "key",
    "dialog": "text",
}
# A task with such a command gets the windows that its pages open as tabs.
TAB_ACTIONS: Final = frozenset({"tabs", "new_tab", "switch_tab", "close_tab"})


NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_PLACE = re.compile(r"\{\{\s*([^{}]{0,120}?)\s*\}\}")
_REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,199})", re.ASCII)


def placeholders(text: str) -> list[str]:
    """Return the names between double braces in `text`, in order."""
    return [found[1] for found in _PLACE.finditer(text)]


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Replace every known `{{name}}` in `text`, without recursion into the values."""
    return _PLACE.sub(lambda found: variables.get(found[1], found[0]), text)


def is_reference(given: object) -> bool:
    """Return whether the value has the form of a secret reference, valid or not."""
    return isinstance(given, Mapping) and "secret" in given


def reference_name(given: Mapping[str, Any]) -> str:
    """Return NAME of `{"secret": "env:NAME"}`. Raises ValueError."""
    found = _REFERENCE.fullmatch(given["secret"]) if isinstance(given["secret"], str) else None
    if found is None or len(given) != 1:
        raise ValueError('a secret is given as {"secret": "env:NAME"}, and nothing beside it')
    return found[1]


def variable_text(given: object) -> str:
    """Convert a variable's value to the inserted text. Raises ValueError."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool | int | float):
        return json.dumps(given)
    raise ValueError("must be a text, a number or a truth value")


def stored_args(args: Mapping[str, Any], length_of: Callable[[str], int]) -> dict[str, Any]:
    """Return a command's arguments in their storable form.

    `length_of` returns the length of a typed text after its variables are filled in.
    """
    kept = dict(args)
    name = TYPED.get(str(args.get("action")), "")
    typed = args.get(name)
    if not isinstance(typed, str) or args.get("keep_text") is True or _names_only(typed):
        return kept
    if name == "key" and not is_typing(typed):
        return kept
    kept[name] = redact.MARK
    kept[f"{name}_length"] = length_of(typed)
    return kept


def stored_document(given: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return a task document without typed text, variable values and metadata.

    Metadata is returned to the client unchanged, so it is stored outside of the redacted part.
    """
    kept = {name: value for name, value in given.items() if name != "metadata"}
    if "variables" in kept:
        kept["variables"] = {
            name: value if is_reference(value) else redact.MARK
            for name, value in given["variables"].items()
            if name in variables
        }
    kept["commands"] = [
        {**each, "args": stored_args(each["args"], lambda text: len(filled(text, variables)))}
        for each in given["commands"]
    ]
    return kept


def _names_only(text: str) -> bool:
    """Return whether the text has placeholders only: `{{password}}` reveals no value."""
    return bool(_PLACE.search(text)) and not _PLACE.sub("", text).strip()
