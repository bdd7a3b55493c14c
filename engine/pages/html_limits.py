"""Limit a page's markup before parsing, which could otherwise take minutes or gigabytes.

Measured: the parser's time grows with the square of the depth (20,000 open elements took 1.2 s)
and of one tag's attributes (20,000 took 5.7 s), and a million elements take 400 MB.
"""

from __future__ import annotations

import re

SMALL_CHARS = 64 * 1024  # characters; too small for deep nesting or very many elements
MAX_HTML_CHARS = 5 * 1024 * 1024  # twice the kept part of a page; 8 MiB took more than 100 MB
MAX_ELEMENTS = 250_000  # for each page, unless a crawl sets another limit
MAX_TEXT_KB = 2_048  # likewise, for the kept content of one page
TAGS_OF_AN_ELEMENT = 2
MAX_DEPTH = 5_000
MAX_ATTRIBUTES = 500  # for each tag
_LONG_CHARS = 4_096  # a tag with so many attributes is at least this long

# Elements that may stay open without nesting do not count.
_LEAVES = r"(?:p|li|br|hr|img|input|meta|link|td|th|tr|dt|dd|option|wbr|source|area|col)\b"
_OPENS = re.compile(rf"<(?!{_LEAVES})[a-z]", re.IGNORECASE)
_ENDS = re.compile(rf"</(?!{_LEAVES})[a-z]", re.IGNORECASE)
_CLOSES = re.compile(rf"{_ENDS.pattern}|/>", re.IGNORECASE)

# One attribute as in the HTML standard; possessive, so that it never backtracks.
_SPACE = r"[\t\n\f\r ]*+"
_VALUE = r"""(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >"'][^\t\n\f\r >]*+)?+"""
_ATTRIBUTE = rf"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+(?:{_SPACE}={_SPACE}{_VALUE})?+"
_HIDDEN = r"<!--(?:.*?-->|.*)|<(?i:script|style)\b(?:.*?</(?i:script|style)|.*)"
_TAG = rf"</?[a-zA-Z][^\t\n\f\r />]*+(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+"
_TOKEN = re.compile(
    rf"{_HIDDEN}|{_TAG}((?:{_ATTRIBUTE})++[^>]*+>?+)?+",
    re.DOTALL,
)
# A much faster match than a search of each tag: a page in which no tag has too many.
_NO_CROWD = re.compile(
    rf"(?:[^<]++|{_HIDDEN}|{_TAG}(?!{_ATTRIBUTE})|<(?!/?[a-zA-Z]))*+",
    re.DOTALL,
)


def bounded(html: str, max_elements: int = MAX_ELEMENTS) -> str:
    """Return `html`, shortened if necessary; a changed length shows that."""
    if len(html) < SMALL_CHARS:
        return _without_crowds(html) if _has_a_long_tag(html) else html
    html = html[:MAX_HTML_CHARS]
    max_tags = max_elements * TAGS_OF_AN_ELEMENT
    if html.count("<") > max_tags:
        html = html[: _place_of(html, max_tags)]
    if _most_depth(html) >= MAX_DEPTH:
        depth = sum(1 for _ in _OPENS.finditer(html)) - sum(1 for _ in _CLOSES.finditer(html))
        if depth >= MAX_DEPTH:
            html = html[:SMALL_CHARS]
    return _without_crowds(html)


def _most_depth(html: str) -> int:
    """Return an upper bound of the depth, which is faster to compute."""
    opened = html.count("<") - html.count("</")
    return opened if opened < MAX_DEPTH else opened - sum(1 for _ in _ENDS.finditer(html))


def _has_a_long_tag(html: str) -> bool:
    return len(html) > _LONG_CHARS and max(map(len, html.split(">"))) > _LONG_CHARS


def _place_of(html: str, number: int) -> int:
    """Return the position of the `number`th tag."""
    for count, found in enumerate(re.finditer("<", html), 1):
        if count == number:
            return found.start()
    return len(html)


def _without_crowds(html: str) -> str:
    """Remove tags with too many attributes."""
    if _NO_CROWD.fullmatch(html):
        return html
    return _TOKEN.sub(lambda found: "" if found[1] else found[0], html)
