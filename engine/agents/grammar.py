"""Grammar of `act`: one step in plain words, parsed without guessing. Pure.

    click|open TARGET                    double-click TARGET        right-click TARGET
    type|enter|write TEXT into|in TARGET fill TARGET with TEXT      clear TARGET
    select|choose|pick TEXT in|from TARGET
    check|tick TARGET                    uncheck|untick TARGET
    hover [over] TARGET                  focus [on] TARGET
    press KEY [in TARGET]
    scroll up|down [N pixels]            scroll to top|bottom       scroll to TARGET
    go back|forward                      reload|refresh             go to|visit ADDRESS

TEXT is in quotes ('…', "…", “…”), or unquoted if it contains neither quotes nor the keyword after
it. TARGET is a reference (ref_1_7) or a name, quoted or not, optionally with a role: the Save
button, link "Home". Articles are ignored. A second step ("… then …") is rejected: one call is one
step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.agents.reply import InstructionRefused
from engine.browser.interact.command_keys import NAMED, read_key
from engine.browser.interact.page_outline import REFERENCE

MOST_PIXELS = 100_000


class Goal(NamedTuple):
    """Target element: a reference, or a name with an optional role.

    `words` is the whole target text, since an element may be named "Save button".
    """

    words: str
    name: str = ""
    role: str = ""
    ref: str = ""


class Step(NamedTuple):
    """One step: an action, on an element or the page, with a text, key or direction."""

    action: str
    goal: Goal | None = None
    value: str = ""
    pixels: int = 0


_QUOTES: Final = {"'": "'", '"': '"', "“": "”", "‘": "’", "„": "“", "«": "»"}
_TEXT = r"""(?P<text>'[^']*'|"[^"]*"|“[^”]*”|‘[^’]*’|„[^“]*“|«[^»]*»|.+?)"""
_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|“[^”]*”|‘[^’]*’|„[^“]*“|«[^»]*»""")
_SECOND = re.compile(r"\bthen\b|;\s*\S|[\r\n]", re.I)
# Everyday name of a role -> ARIA roles.
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "button": ("button", "clickable"),
    "link": ("link",),
    "field": ("textbox", "searchbox", "spinbutton", "combobox", "slider", "color"),
    "box": ("textbox", "searchbox", "spinbutton", "combobox", "checkbox"),
    "input": ("textbox", "searchbox", "spinbutton", "combobox", "slider", "color"),
    "textbox": ("textbox", "searchbox"),
    "checkbox": ("checkbox", "switch"),
    "radio": ("radio",),
    "switch": ("switch", "checkbox"),
    "dropdown": ("combobox", "listbox"),
    "menu": ("combobox", "listbox", "button", "menuitem"),
    "list": ("listbox", "combobox"),
    "option": ("option", "radio", "menuitem"),
    "tab": ("tab",),
    "heading": ("heading",),
    "image": ("image",),
    "slider": ("slider",),
}
_ARTICLE = re.compile(r"(?:the|a|an)\s+", re.I)
_SHORT_KEYS: Final = {
    "return": "Enter",
    "esc": "Escape",
    "del": "Delete",
    "space bar": "Space",
    "spacebar": "Space",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "page up": "PageUp",
    "page down": "PageDown",
    "ctrl": "Control",
    "cmd": "Meta",
    "command": "Meta",
    "option": "Alt",
}
_KEYS_PLAIN: Final = {name.lower(): name for name in NAMED}


def parse(instruction: str) -> Step:
    """Parse `instruction` to a step.

    Raises:
        InstructionRefused: it is not in the grammar; the reason says why.
    """
    said = instruction.strip().rstrip(".!").strip()
    if not said:
        raise InstructionRefused(reason="The instruction is empty.")
    if _SECOND.search(_QUOTED.sub("''", said)):
        raise InstructionRefused(reason="The instruction has more than one step.")
    for pattern, read in _RULES:
        match = pattern.fullmatch(said)
        if match is not None:
            return read(match)
    verb = said.split(None, 1)[0][:40]
    if form := _FORMS.get(verb.lower()):
        raise InstructionRefused(reason=f"A step with '{verb}' has the form: {verb} {form}.")
    raise InstructionRefused(reason=f"'{verb}' is not the beginning of a step that is known.")


def goal(said: str) -> Goal:
    """Parse the words of a target.

    Raises:
        InstructionRefused: there are no words.
    """
    words = _ARTICLE.sub("", said.strip(), count=1).strip()
    if REFERENCE.fullmatch(words):
        return Goal(words, ref=words)
    name, role = _name_and_role(words)
    if not name and not role:
        raise InstructionRefused(reason="The instruction names no element.")
    return Goal(unquoted(words), name, role)


def unquoted(text: str) -> str:
    """Strip the quotes around `text`."""
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    if closing and len(text) >= 2 and text.endswith(closing):
        return text[1:-1]
    return text


def _name_and_role(words: str) -> tuple[str, str]:
    first, _, rest = words.partition(" ")
    if first.lower() in ROLES and rest.strip():
        named = re.sub(r"^(?:named|called|labelled)\s+", "", rest.strip(), flags=re.I)
        return unquoted(named), first.lower()
    before, _, last = words.rpartition(" ")
    if last.lower() in ROLES and before.strip():
        return unquoted(before), last.lower()
    if words.lower() in ROLES:
        return "", words.lower()
    return unquoted(words), ""


def _on(action: str) -> Callable[[re.Match[str]], Step]:
    return lambda match: Step(action, goal(match["target"]))


def _with(action: str) -> Callable[[re.Match[str]], Step]:
    return lambda match: Step(action, goal(match["target"]), unquoted(match["text"]))


def _plain(action: str) -> Callable[[re.Match[str]], Step]:
    return lambda match: Step(action)


def _press(match: re.Match[str]) -> Step:
    target = match["target"]
    return Step("press", goal(target) if target else None, _key(unquoted(match["key"])))


def _key(said: str) -> str:
    said = re.sub(r"^(?:the\s+)?(.+?)(?:\s+key)?$", r"\1", said.strip(), flags=re.I)
    if len(said) == 1:
        return said
    parts = [part.strip() for part in said.split("+")]
    key = "+".join(_key_name(part) for part in parts)
    try:
        return read_key(key)
    except ValueError as wrong:
        raise InstructionRefused(
            reason=f"That is no key: {wrong}. To use a button, say: click {said[:40]}."
        ) from wrong


def _key_name(part: str) -> str:
    plain = part.lower()
    known = _SHORT_KEYS.get(plain) or _KEYS_PLAIN.get(plain.replace(" ", ""))
    return known or part


def _scroll(match: re.Match[str]) -> Step:
    pixels = int(match["pixels"] or 0)
    if pixels > MOST_PIXELS:
        raise InstructionRefused(reason=f"At most {MOST_PIXELS:,} pixels can be scrolled.")
    return Step("scroll", value=match["way"].lower(), pixels=pixels)


def _edge(match: re.Match[str]) -> Step:
    return Step("scroll", value=match["way"].lower())


def _go(match: re.Match[str]) -> Step:
    return Step("goto", value=unquoted(match["url"]))


def _way(match: re.Match[str]) -> Step:
    return Step(match["way"].lower())


_TARGET = r"(?P<target>.+)"
_WORDS: Final[tuple[tuple[str, Callable[[re.Match[str]], Step]], ...]] = (
    (r"(?:go|navigate)\s+(?P<way>back|forward)", _way),
    (r"(?:go\s+|navigate\s+)?(?P<way>back|forward)", _way),
    (r"(?:reload|refresh)(?:\s+the\s+page|\s+page)?", _plain("reload")),
    (r"(?:go\s+to|navigate\s+to|visit|open)\s+(?P<url>['\"]?https?:\S+)", _go),
    (rf"double[- ]?click\s+(?:on\s+)?{_TARGET}", _on("double_click")),
    (rf"right[- ]?click\s+(?:on\s+)?{_TARGET}", _on("right_click")),
    (rf"(?:click|open)\s+(?:on\s+)?{_TARGET}", _on("click")),
    (rf"(?:type|enter|write)\s+{_TEXT}\s+(?:into|in)\s+{_TARGET}", _with("type")),
    (r"fill\s+(?:in\s+)?(?P<target>.+?)\s+with\s+(?P<text>.+)", _with("type")),
    (rf"(?:clear|empty)\s+{_TARGET}", _on("clear")),
    (rf"(?:select|choose|pick)\s+{_TEXT}\s+(?:in|from)\s+{_TARGET}", _with("select")),
    (rf"(?:check|tick)\s+{_TARGET}", _on("check")),
    (rf"(?:uncheck|untick)\s+{_TARGET}", _on("uncheck")),
    (rf"hover\s+(?:over\s+|on\s+)?{_TARGET}", _on("hover")),
    (rf"focus\s+(?:on\s+)?{_TARGET}", _on("focus")),
    (rf"press\s+(?P<key>.+?)(?:\s+(?:in|on)\s+{_TARGET})?", _press),
    (
        r"scroll\s+(?P<way>up|down)(?:\s+(?:by\s+)?(?P<pixels>[0-9]{1,9})(?:\s*(?:pixels?|px))?)?",
        _scroll,
    ),
    (r"scroll\s+to\s+(?:the\s+)?(?P<way>top|bottom)(?:\s+of\s+the\s+page)?", _edge),
    (rf"scroll\s+(?:to\s+)?{_TARGET}(?:\s+into\s+view)?", _on("scroll_into_view")),
)
_RULES: Final = tuple((re.compile(words, re.I | re.S), read) for words, read in _WORDS)
_INTO: Final = "TEXT into TARGET"
_IN: Final = (
    "TEXT in TARGET, for a select field; for a radio button or a shown option: click TARGET"
)
# What follows the verbs that need more than a target.
_FORMS: Final = {
    **dict.fromkeys(("type", "enter", "write"), _INTO),
    **dict.fromkeys(("select", "choose", "pick"), _IN),
    "fill": "TARGET with TEXT",
    "scroll": "up, down, to top, to bottom or to TARGET",
}
