"""Declarative shadow roots of a static page, moved to where a browser shows them.

A `<template shadowrootmode>` replaces its host's children; these fill the slots that name them.
Children without a slot are hidden. A closed root is displayed too, but neither engine's scripts
can read it: of its host only slotted children are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from engine.pages import style_sheets

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_DEPTH: Final = 20  # of nested roots
MAX_ROOTS: Final = 10_000  # for each page, as in the browser engine
_DECLARED: Final = re.compile(r"<template\b[^>]*\bshadowrootmode\b", re.IGNORECASE)
_HOSTS: Final = frozenset(
    {"article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"header", "main", "nav", "p", "section", "span"}
)
_MODES: Final = frozenset({"open", "closed"})
# As the parser serializes it: attributes in double quotes, one space before each.
_TEMPLATE: Final = re.compile(r'<template(?: [^\s="]+(?:="[^"]*")?)*>(.*)</template>', re.DOTALL)


def flattened(html: str) -> str:
    """Move the content of declared shadow roots into their hosts, and fill their slots."""
    return _flattened(html, 0) if "hadow" in html and _DECLARED.search(html) else html


def _flattened(html: str, depth: int) -> str:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    mark = token_hex(8)
    made: list[str] = []
    # Innermost first: a host among another host's children is part of these.
    for template in reversed(_declared(tree)):
        host = template.parent
        assert host is not None
        children = [child for child in host.iter(include_text=True) if child != template]
        shown = _shown(template, children, depth)
        for child in [template, *children]:
            child.decompose()
        host.insert_child(f"{mark}-{len(made)}.")
        made.append(shown)
    whole = tree.html or ""
    for at in reversed(range(len(made))):
        whole = whole.replace(f"{mark}-{at}.", made[at], 1)
    return whole


def _declared(tree: LexborHTMLParser) -> list[LexborNode]:
    """Return the templates that become shadow roots in a browser: the first of each host."""
    hosts: dict[int, LexborNode] = {}
    for template in tree.css("template[shadowrootmode]"):
        mode, host = (template.attributes.get("shadowrootmode") or "").lower(), template.parent
        name = "" if host is None else host.tag or ""
        if host is not None and mode in _MODES and (name in _HOSTS or "-" in name):
            hosts.setdefault(host.mem_id, template)
    return list(hosts.values())[:MAX_ROOTS]


def _shown(template: LexborNode, children: Iterable[LexborNode], depth: int) -> str:
    """Return the markup of a root with the children in its slots."""
    from selectolax.lexbor import LexborHTMLParser

    found = _TEMPLATE.fullmatch(template.html or "")
    inner = "" if found is None else found[1]
    if depth < MAX_DEPTH and _DECLARED.search(inner):
        inner = _body_of(_flattened(f"<body>{inner}", depth + 1))
    tree = LexborHTMLParser(f"<body>{inner}")
    sheets = [style_sheets.parse_sheet(style.text() or "").rules for style in tree.css("style")]
    style_sheets.apply(tree, inner, sheets)
    mark, filled = token_hex(8), dict[str, str]()
    assigned = dict(_by_slot(children))
    for number, slot in enumerate(tree.css("slot")):
        given = assigned.pop(slot.attributes.get("name") or "", None)
        if given is not None:
            filled[f"{mark}-{number}."] = given
            slot.replace_with(f"{mark}-{number}.")
    if (template.attributes.get("shadowrootmode") or "").lower() == "closed":
        return "".join(filled.values())
    # The page's style sheets do not apply inside a root, so class and id are removed.
    for node in tree.css("[class], [id]"):
        for name in ("class", "id"):
            if name in node.attributes:
                del node.attrs[name]
    for node in tree.css("style, link"):
        node.decompose()
    shown = "" if tree.body is None else _body_of(tree.html or "")
    for place, given in filled.items():
        shown = shown.replace(place, given, 1)
    return shown


def _by_slot(children: Iterable[LexborNode]) -> Iterator[tuple[str, str]]:
    """Yield the markup of a host's children for each slot that they name."""
    slots: dict[str, str] = {}
    for child in children:
        if child.is_comment_node:
            continue
        name = (child.attributes.get("slot") or "") if child.is_element_node else ""
        slots[name] = slots.get(name, "") + (child.html or "")
    yield from slots.items()


def _body_of(html: str) -> str:
    _, _, rest = html.partition("<body")
    return rest.partition(">")[2].rpartition("</body>")[0]
