"""Decode bodies to text, and classify content types."""

from __future__ import annotations

import codecs
import re

_META_CHARSET = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?\s*([a-zA-Z0-9_:.\-]+)""", re.IGNORECASE
)
_MARKUP = re.compile(rb"\s*+(?:<|\Z)")
_PARAMETER = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The web uses these names for windows-1252 (WHATWG Encoding).
_WESTERN = frozenset({"ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin-1", "latin1", "l1"})
_NO_CHARSETS = ("utf-7", "utf7", "unicode", "raw", "punycode", "idna", "undefined", "rot")
_FALLBACK = "windows-1252"
_HEAD_BYTES = 1_024  # search limit of browsers for a <meta charset>

_TEXT_ENDINGS = ("/json", "+json", "/xml", "+xml")
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


def media_type(content_type: str) -> str:
    """Return the bare media type: `text/html` for `text/HTML; charset=x`."""
    return content_type.partition(";")[0].strip().lower()


def is_html(content_type: str, body: bytes | bytearray = b"") -> bool:
    """Return whether it is a web page; without a type the body's first character decides."""
    kind = media_type(content_type)
    return kind in HTML_TYPES or (not kind and _MARKUP.match(body) is not None)


def is_text(content_type: str) -> bool:
    """Return whether it is text other than a web page that is kept unchanged."""
    kind = media_type(content_type)
    if kind in HTML_TYPES:
        return False
    if kind.startswith("text/"):
        return True
    return kind != "image/svg+xml" and kind.endswith(_TEXT_ENDINGS)


def decode(body: bytes | bytearray, content_type: str, *, cut: bool = False) -> str:
    """Decode `body` by BOM, header or <meta>; else as UTF-8, else windows-1252. Never fails.

    With `cut` the end is missing, possibly within a character.
    """
    return decoded(body, content_type, cut=cut)[0]


def decoded(body: bytes | bytearray, content_type: str, *, cut: bool = False) -> tuple[str, str]:
    """As `decode`, with the character set."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    declared = charset_named(_label(body, content_type))
    if declared is not None:
        return body.decode(declared, "replace"), declared
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as broken:
        only_its_end = cut and broken.start >= len(body) - 3
        charset = "utf-8" if only_its_end else _FALLBACK
        return body.decode(charset, "replace"), charset


def charset_named(label: str) -> str | None:
    """Return the codec that the web means by this name; None if it is no character set."""
    label = label.lower()
    if not label or label.startswith(_NO_CHARSETS):
        return None
    if label in _WESTERN:
        return _FALLBACK
    try:
        known = codecs.lookup(label)
    except (LookupError, ValueError):  # unknown, or contains a NUL
        return None
    # `hex` and `zip` are codecs too, but not character sets.
    return str(known.name) if getattr(known, "_is_text_encoding", True) else None


def _label(body: bytes | bytearray, content_type: str) -> str:
    if found := _PARAMETER.search(content_type):
        return found[1]
    meta = _META_CHARSET.search(body[:_HEAD_BYTES])
    label = meta[1].decode("ascii") if meta else ""
    # In UTF-16 this ASCII search would not have found the label.
    return "utf-8" if label.lower().startswith("utf-16") else label
