"""Sanitise untrusted text for display, in one function for every user interface.

Text of pages and folders may hold line breaks, terminal escapes, direction overrides (which make
`gpj.exe` read as `exe.jpg`) and lone surrogates (which no encoder accepts). None of it may reach
a label, a terminal or the clipboard.
"""

from __future__ import annotations

import re

ELLIPSIS = "…"
_REPLACEMENT = "\ufffd"
_BLANKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")
# Controls, direction marks and overrides, invisible operators, surrogates, interlinear marks, the
# byte-order mark and tag characters. Joiners (U+200C, U+200D) stay: Persian, Indic scripts and
# emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNSAFE_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def display(text: str, limit: int = 0) -> str:
    """Return `text` on one line without unsafe characters; cut at `limit` characters.

    Line breaks and tabs become one space, each unsafe character U+FFFD. 0 means no limit.
    """
    text = _roughly(text, limit)
    if not text.isprintable():  # true for most texts, and far cheaper than a pattern
        text = _UNSAFE.sub(_REPLACEMENT, _BLANKS.sub(" ", text))
    return elide_right(text, limit) if limit else text


def display_lines(text: str, limit: int = 0) -> str:
    """As `display`, but keep line feeds, for blocks such as pretty-printed JSON."""
    text = _roughly(text, limit)
    if text.isprintable():
        return elide_right(text, limit) if limit else text
    levelled = text.replace("\r\n", "\n").replace("\t", "  ")
    safe = _UNSAFE_LINES.sub(_REPLACEMENT, re.sub("[\v\f\r\x85\u2028\u2029]", "\n", levelled))
    return elide_right(safe, limit) if limit else safe


def _roughly(text: str, limit: int) -> str:
    """Cut a far too long text first, since sanitising a megabyte costs 40 ms."""
    most = 4 * limit + 64
    return text if not limit or len(text) <= most else text[:most] + ELLIPSIS


def elide_right(text: str, limit: int) -> str:
    """Cut to at most `limit` characters at the end."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + ELLIPSIS


def elide_middle(text: str, limit: int) -> str:
    """Cut to at most `limit` characters in the middle (addresses, paths, ids)."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - 1)
    tail = keep // 2
    return text[: keep - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def clipboard_cell(text: str) -> str:
    """Return `text` as one clipboard cell: no line breaks, and never a formula.

    A cell that a spreadsheet would evaluate gets an apostrophe in front (OWASP).
    """
    # Checked before `display` replaces a leading tab or return; spreadsheets strip a leading quote.
    bare = text.lstrip().lstrip('"').lstrip()
    risky = text.startswith(_FORMULA_STARTS) or bare.startswith(_FORMULA_STARTS)
    return "'" + display(text) if risky else display(text)
