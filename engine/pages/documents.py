"""Decode bodies to text, and classify content types."""

from __future__ import annotations

import codecs
import re

_META_CHARSET = re.compile(
    rb"""<meta\b[^<>]+charset\s*=\s*["']?\s*([a-zA-Z0-9_:.\-]+)""", re.IGNORECASE
)
_HIDDEN = re.compile(rb"<(?:(!--)|(script|style)\b)", re.IGNORECASE)
_ENDS = {
    b"!--": re.compile(rb"-->"),
    b"script": re.compile(rb"</script", re.IGNORECASE),
    b"style": re.compile(rb"</style", re.IGNORECASE),
}
_MARKUP = re.compile(rb"\s*+(?:<|\Z)")
_BODY = re.compile(  # or where the head ends without such a tag
    rb"<(?:/head|body|p|div|h[1-6]|table|ul|a|section|main|header|nav|span|center|font|img|br)\b",
    re.IGNORECASE,
)
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
# Codecs whose names mean larger sets on the web, and names that only the web has.
_LARGER = {
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "gb_2312", "gb_2312-80"), "gb18030"),
    **dict.fromkeys(("shift_jis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc_kr", "windows-949"), "cp949"),
    **dict.fromkeys(("big5", "x-x-big5", "cn-big5"), "big5hkscs"),
    **dict.fromkeys(("tis-620", "iso8859-11", "windows-874", "dos-874"), "cp874"),
    **{f"x-cp{number}": f"cp{number}" for number in range(1250, 1259)},
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac-cyrillic"),
    "ascii": _FALLBACK,
    "iso8859-1": _FALLBACK,
    "iso8859-9": "cp1254",
    "x-euc-jp": "euc_jp",
    "iso-8859-8-i": "iso8859-8",
    "unicode-1-1-utf-8": "utf-8",
}
_HEAD_BYTES = 1_024  # that browsers search for a <meta charset>, and further to the head's end
_MOST_HEAD_BYTES = 64 * 1_024
_XML = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([a-zA-Z0-9_:.\-]+)["']""")

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
        known = codecs.lookup(_LARGER.get(label, label))
    except (LookupError, ValueError):  # unknown, or contains a NUL
        return None
    # `hex` and `zip` are codecs too, but not character sets.
    if not getattr(known, "_is_text_encoding", True):
        return None
    return _LARGER.get(known.name, str(known.name))


def _label(body: bytes | bytearray, content_type: str) -> str:
    if parameter := _PARAMETER.search(content_type):
        return parameter[1]
    head = _without_hidden(body[:_MOST_HEAD_BYTES])
    found = (one[1].decode("ascii") for one in _META_CHARSET.finditer(head, 0, _head_end(head)))
    label = next((one for one in found if charset_named(one)), "")
    if not label and (declaration := _XML.match(head)):  # counts less than an element
        label = declaration[1].decode("ascii")
    # In UTF-16 this ASCII search would not have found the label.
    return "utf-8" if label.lower().startswith("utf-16") else label


def _without_hidden(head: bytes | bytearray) -> bytes:
    """Blank what comments, scripts and styles contain, in linear time."""
    shown = bytearray(head)
    at = 0
    while hidden := _HIDDEN.search(head, at):
        end = _ENDS[(hidden[1] or hidden[2]).lower()].search(head, hidden.end())
        at = len(head) if end is None else end.start()
        shown[hidden.start() : at] = b" " * (at - hidden.start())
    return bytes(shown)


def _head_end(head: bytes) -> int:
    """Return where the search for a <meta charset> ends."""
    first = _BODY.search(head)
    return len(head) if first is None else max(first.start(), _HEAD_BYTES)
