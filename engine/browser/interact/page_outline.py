"""A page as text: the result of `looking.js` as lines for people and programs.

    # [ref_1_1 heading "Order"]
    [ref_1_2 textbox "Name" value="Ada" required]
    See the [link "manual" -> https://example.com/manual] first.

Text in brackets is an element; everything else is the page's own text, which is untrusted data:
it can never look like an element.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from engine.browser.page.secret_mask import SecretMask

NAME_CHARS = 200
VALUE_CHARS = 200
MOST_OPTIONS = 20
REFERENCE = re.compile(r"ref_([1-9][0-9]{0,5})_([1-9][0-9]{0,8})")
_SPACES = re.compile(r"\s+")
_FORGED = re.compile(r"\[\s*(?=ref_)")  # page text that would look like an element


class Element(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a page, redacted.

    `value` is a field's content; a secret field has `hidden` instead.
    """

    ref: str
    role: str
    name: str = ""
    value: str = ""
    hidden: bool = False
    states: tuple[str, ...] = ()
    level: int = 0
    href: str = ""
    type: str = ""
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Format the element as in a page's lines."""
        parts = [self.ref, self.role, f'"{self.name}"' if self.name else ""]
        parts += [f"type={self.type}" if self.type else ""]
        parts += [
            "value=[hidden]" if self.hidden else f'value="{self.value}"' if self.value else ""
        ]
        parts += [*self.states, f"-> {self.href}" if self.href else ""]
        if self.options:
            parts.append("options: " + ", ".join(f'"{one}"' for one in self.options))
        return f"[{' '.join(filter(None, parts))}]"

    @property
    def called(self) -> str:
        """Name of the element in a sentence: `button "Save" (ref_1_4)`."""
        return f'{self.role} "{self.name}" ({self.ref})' if self.name else f"{self.role} {self.ref}"


def reference(tab: int, number: int) -> str:
    """Format the reference of an element: the tab number, and its number in the tab."""
    return f"ref_{tab}_{number}"


def element(data: dict[str, Any], tab: int, mask: SecretMask) -> Element:
    """Convert a script's description of an element, redacted."""
    secret = "secret" in data
    return Element(
        ref=reference(tab, int(data.get("ref", 0))),
        role=_quoted(mask.content(str(data.get("role", "")), 40)),
        name=_quoted(mask.content(str(data.get("name", "")), NAME_CHARS)),
        value="" if secret else _quoted(mask.content(str(data.get("value", "")), VALUE_CHARS)),
        hidden=bool(secret and data["secret"]),
        states=tuple(map(str, data.get("states", ()))),
        level=int(data.get("level", 0)),
        href=mask.text(str(data.get("href", "")), 500),
        type=mask.content(str(data.get("type", "")), 40),
        options=tuple(
            _quoted(mask.content(str(one), 100)) for one in data.get("options", ())[:MOST_OPTIONS]
        ),
    )


def _quoted(text: str) -> str:
    return _FORGED.sub("(", text.replace('"', "'"))


class Page(msgspec.Struct, frozen=True):
    """The lines of a page, the elements in them, and where they were cut."""

    url: str
    title: str
    text: str
    elements: tuple[Element, ...]
    total_chars: int
    next_offset: int | None
    cut: bool


def page(data: dict[str, Any], tab: int, mask: SecretMask, offset: int, most: int) -> Page:
    """Return whole lines of a page from `offset` on, of at most `most` characters."""
    elements = [element(one, tab, mask) for one in data["items"]]
    rows = [(_line(parts, elements, mask), _within(parts, elements)) for parts in data["lines"]]
    texts: list[str] = []
    shown: list[Element] = []
    at, room, following = 0, most, None
    for text, inside in rows:
        size = len(text) + 1
        if at >= offset and following is None:
            if size > room and texts:
                following = at
            else:
                texts.append(text[:room])
                shown.extend(inside)
                room -= size
        at += size
    return Page(
        url=mask.text(str(data["url"]), 2_048),
        title=mask.content(str(data["title"]), 500),
        text="\n".join(texts),
        elements=tuple(shown),
        total_chars=at,
        next_offset=following,
        cut=bool(data["cut"]),
    )


def _line(parts: Sequence[str | int], elements: list[Element], mask: SecretMask) -> str:
    return _SPACES.sub(" ", "".join(_part(part, elements, mask) for part in parts)).strip()


def _part(part: str | int, elements: list[Element], mask: SecretMask) -> str:
    if isinstance(part, str):
        return _FORGED.sub("(", mask.content(part))
    one = elements[part]
    return f" {'#' * one.level + ' ' if one.level else ''}{one} "


def _within(parts: Sequence[str | int], elements: list[Element]) -> list[Element]:
    return [elements[part] for part in parts if isinstance(part, int)]
