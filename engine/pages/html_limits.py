"""How much of a page's markup is parsed: what would take a parser minutes or gigabytes is left out.

Measured: the parser's time grows with the square of the depth (20,000 open elements took 1.2 s)
and of one tag's attributes (20,000 took 5.7 s), and a million elements take 400 MB.
"""

from __future__ import annotations

import re

SMALL_CHARS = 64 * 1024  # no deep nesting and no crowd of elements fits into less
MAX_HTML_CHARS = 5 * 1024 * 1024  # twice of what is kept of a page; 8 took more than 100 MB
MAX_ELEMENTS = 250_000  # of one page, unless a crawl asks for others
MAX_TEXT_KB = 2_048  # likewise, of what is kept of one page
TAGS_OF_AN_ELEMENT = 2
MAX_DEPTH = 5_000
MAX_ATTRIBUTES = 500  # of one tag
_LONG_CHARS = 4_096  # a tag with so many attributes is at least as long

# What may stay open without nesting deeper does not count.
_LEAVES = r"(?:p|li|br|hr|img|input|meta|link|td|th|tr|dt|dd|option|wbr|source|area|col)\b"
_OPENS = re.compile(rf"<(?!{_LEAVES})[a-z]", re.IGNORECASE)
_ENDS = re.compile(rf"</(?!{_LEAVES})[a-z]", re.IGNORECASE)
_CLOSES = re.compile(rf"{_ENDS.pattern}|/>", re.IGNORECASE)

# One attribute as the HTML standard reads it; nothing in here ever steps back.
_SPACE = r"[\t\n\f\r ]*+"
_VALUE = r"""(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >"'][^\t\n\f\r >]*+)?+"""
_ATTRIBUTE = rf"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+(?:{_SPACE}={_SPACE}{_VALUE})?+"
_HIDDEN = r"<!--(?:.*?-->|.*)|<(?i:script|style)\b(?:.*?</(?i:script|style)|.*)"
_TAG = rf"</?[a-zA-Z][^\t\n\f\r />]*+(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+"
_TOKEN = re.compile(
    rf"{_HIDDEN}|{_TAG}((?:{_ATTRIBUTE})++[^>]*+>?+)?+",
    re.DOTALL,
)
# Many times as quick as looking at each tag: a page in which no tag has too many.
_NO_CROWD = re.compile(
    rf"(?:[^<]++|{_HIDDEN}|{_TAG}(?!{_ATTRIBUTE})|<(?!/?[a-zA-Z]))*+",
    re.DOTALL,
)


def bounded(html: str, max_elements: int = MAX_ELEMENTS) -> str:
    """`html`, or less of it; its length tells which."""
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
    """What the depth cannot exceed, found sooner than the depth itself."""
    opened = html.count("<") - html.count("</")
    return opened if opened < MAX_DEPTH else opened - sum(1 for _ in _ENDS.finditer(html))


def _has_a_long_tag(html: str) -> bool:
    return len(html) > _LONG_CHARS and max(map(len, html.split(">"))) > _LONG_CHARS


def _place_of(html: str, number: int) -> int:
    """Where the `number`th tag begins."""
    for count, found in enumerate(re.finditer("<", html), 1):
        if count == number:
            return found.start()
    return len(html)


def _without_crowds(html: str) -> str:
    """Without the tags that have more attributes than any page needs."""
    if _NO_CROWD.fullmatch(html):
        return html
    return _TOKEN.sub(lambda found: "" if found[1] else found[0], html)
