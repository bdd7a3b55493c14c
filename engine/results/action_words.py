"""Actions of a recording in words: `Click button “Send the order”`.

Used for the rows of a recording in every face, and in English for the commands that replay it.
Records are from disk and may be edited: a field of another shape counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.text import messages

Say = Callable[..., str]
_CLICKS: Final = {2: "double_click", 3: "triple_click"}
_HISTORY: Final = frozenset({"reload", "back", "forward"})


def action_words(action: Mapping[str, Any], *, english: bool = False) -> str:
    """Return the action in words; "" for a type that no recording has."""
    kind = action.get("type")
    if not isinstance(kind, str):
        return ""
    say = _english if english else messages.say
    maker = _WORDS.get(kind)
    if maker is not None:
        return maker(action, say)
    return say(f"action.{kind}", what=_element(action, say)) if kind in _PLAIN else ""


def element_words(action: Mapping[str, Any]) -> str:
    """Return the action's element in English: its role and name, else its selector."""
    return _element(action, _english)


def _element(action: Mapping[str, Any], say: Say) -> str:
    role = _text(action, "role") or _text(action, "tag") or "element"
    name = plain_label(_text(action, "name"))
    message = f"role.{role}"
    role = say(message) if message in messages.ENGLISH else role
    if not name:
        return _text(action, "selector") or role
    return say("action.element", role=role, name=name)


def plain_label(name: str) -> str:
    """Convert `Password: *` to `Password`, because text after the colon would pass for a secret."""
    return name.rstrip(" \t\n*:：") or name


def _english(message_id: str, /, **fields: object) -> str:
    return messages.ENGLISH[message_id].format(**fields)


def _text(action: Mapping[str, Any], name: str) -> str:
    value = action.get(name)
    return value if isinstance(value, str) else ""


def _texts(action: Mapping[str, Any], name: str) -> str:
    values = action.get(name)
    return ", ".join(map(str, values)) if isinstance(values, list) else ""


def _number(action: Mapping[str, Any], name: str) -> int:
    value = action.get(name)
    return value if type(value) is int else 0


def _navigate(action: Mapping[str, Any], say: Say) -> str:
    how = _text(action, "how")
    if how in _HISTORY:
        return say(f"action.{how}")
    return say("action.navigate", url=_text(action, "asked") or _text(action, "url"))


def _click(action: Mapping[str, Any], say: Say) -> str:
    how = _CLICKS.get(_number(action, "count"), "click")
    button = _text(action, "button")
    what = _element(action, say)
    return say(f"action.{how}.button" if button else f"action.{how}", what=what, button=button)


def _key(action: Mapping[str, Any], say: Say) -> str:
    alone = not _text(action, "selector")
    message = "action.key" if alone else "action.key.in"
    return say(message, key=_text(action, "key"), what=_element(action, say))


def _check(action: Mapping[str, Any], say: Say) -> str:
    return say("action.check" if action.get("on") else "action.uncheck", what=_element(action, say))


def _typing(action: Mapping[str, Any], say: Say) -> str:
    text = _text(action, "text")
    return say("action.type" if text else "action.clear", text=text, what=_element(action, say))


def _choice(action: Mapping[str, Any], say: Say) -> str:
    return say("action.select", values=_texts(action, "values"), what=_element(action, say))


def _upload(action: Mapping[str, Any], say: Say) -> str:
    return say("action.upload", files=_texts(action, "files"), what=_element(action, say))


def _scroll(action: Mapping[str, Any], say: Say) -> str:
    if _text(action, "selector"):
        return say("action.scroll.in", what=_element(action, say))
    down, right = _number(action, "dy"), _number(action, "dx")
    if down:
        return say("action.scroll.down" if down > 0 else "action.scroll.up", pixels=abs(down))
    return say("action.scroll.right" if right > 0 else "action.scroll.left", pixels=abs(right))


def _dialog(action: Mapping[str, Any], say: Say) -> str:
    accepts, name = action.get("answer") == "accepted", _text(action, "name")
    if action.get("dialog") == "beforeunload":
        return say("action.leave" if accepts else "action.stay")
    how = "accept" if accepts else "dismiss"
    return say(f"action.{how}.named" if name else f"action.{how}", name=name)


def _close_tab(action: Mapping[str, Any], say: Say) -> str:
    return say("action.close_tab", tab=_number(action, "tab") + 1)


def _arrived(action: Mapping[str, Any], say: Say) -> str:
    return say("action.navigated", url=_text(action, "url"))


_PLAIN: Final = frozenset({"hover", "drag", "drop", "window"})
_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any], Say], str]]] = {
    "navigate": _navigate,
    "navigated": _arrived,
    "click": _click,
    "check": _check,
    "upload": _upload,
    "type": _typing,
    "select": _choice,
    "key": _key,
    "scroll": _scroll,
    "dialog": _dialog,
    "close_tab": _close_tab,
}
