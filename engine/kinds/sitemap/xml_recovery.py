"""Reading on in XML where a parser stops: at a bare `&`, at tags that nobody closed, at its end.

Only what a sitemap needs: elements with their attributes, and text. No entity is known but the
five of XML itself and numbers, so nothing grows; the text is gone through once, and no more of
it is held than one tag may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol

MAX_TAG: Final = 1024 * 1024  # what has no end is looked at again with every piece
LONGEST: Final = len("&#x10FFFF;")  # of a reference; its end may still be to come
_NAME: Final = r"[^\W\d][\w:.-]*+"
_GIVEN: Final = r"(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+"
_TAG: Final = re.compile(rf"<(?P<close>/?)(?P<name>{_NAME})(?P<given>{_GIVEN})>")
# One of which the rest is to come, maybe in the middle of a value.
_OPEN: Final = re.compile(rf"</?(?:{_NAME}{_GIVEN}(?:\"[^\"<]*+|'[^'<]*+)?)?\Z")
_ATTRIBUTE: Final = re.compile(rf"({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_REFERENCE: Final = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# What is passed over, by how it begins: where it ends, and whether what stands in it is text.
_APART: Final = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}
_DOCTYPE: Final = "<!doctype"


class Hears(Protocol):
    """What is told of the elements; it ends the reading with an error of its own."""

    def on_start(self, name: str, attributes: dict[str, str]) -> None: ...

    def on_text(self, text: str) -> None: ...

    def on_end(self, name: str) -> None: ...

    def on_doctype(self) -> None: ...


class NoEnd(Exception):
    """A tag, a comment or the like goes on for longer than any does."""


def recover(pieces: Iterable[str], hears: Hears) -> None:
    """Tell `hears` of every element, as they stand; ends that nothing began are told as well.

    Raises:
        NoEnd: the rest cannot be told apart any more.
    """
    left = ""
    for piece in pieces:
        text = left + piece
        left = text[_told(text, hears) :]
        if len(left) > MAX_TAG:
            raise NoEnd


def _told(text: str, hears: Hears) -> int:
    """Tell of all that is whole in `text`; returns where the rest begins."""
    at = 0
    while (found := text.find("<", at)) >= 0:
        if found > at:
            hears.on_text(plain(text[at:found]))
        at = found
        if tag := _TAG.match(text, at):
            _tell(tag, hears)
            at = tag.end()
        elif text.startswith(("<!", "<?"), at):
            end = _passed(text, at, hears)
            if end is None:
                return at
            at = end
        elif _OPEN.match(text, at):
            return at
        else:
            hears.on_text("<")  # nothing begins here
            at += 1
    begun = text.rfind("&", max(at, len(text) - LONGEST))
    end = len(text) if begun < 0 else begun
    if end > at:
        hears.on_text(plain(text[at:end]))
    return end


def _tell(tag: re.Match[str], hears: Hears) -> None:
    name = tag["name"]
    if tag["close"]:
        hears.on_end(name)
        return
    given = tag["given"]
    pairs = _ATTRIBUTE.findall(given) if "=" in given else ()
    hears.on_start(name, {key: plain(one or other) for key, one, other in pairs})
    if given.endswith("/"):
        hears.on_end(name)


def _passed(text: str, at: int, hears: Hears) -> int | None:
    """Where the comment or the like that begins here ends; None where more has to come."""
    if len(text) - at < len(_DOCTYPE):
        return None
    if text[at : at + len(_DOCTYPE)].lower() == _DOCTYPE:
        hears.on_doctype()
    begin = next(one for one in _APART if text.startswith(one, at))
    end = text.find(_APART[begin], at + len(begin))
    if end < 0:
        return None
    if begin == "<![CDATA[":
        hears.on_text(text[at + len(begin) : end])
    return end + len(_APART[begin])


def plain(text: str) -> str:
    """`text` with its references resolved; a bare `&` stays one."""
    return _REFERENCE.sub(_meant, text) if "&" in text else text


def _meant(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    code = int(found[2]) if found[2] else int(found[3], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
