"""The text of an element in one line, with a blank where the page begins another line.

The parser's own text glues neighbouring blocks: a link with a heading and a paragraph would be
named `TitleText`, a heading `Two<br>lines` would be `Twolines`. `shown.js` does the same in a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from engine.pages.rendered_text import LINE_TAGS

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# Also of drawings, whose titles are no part of the words around them.
APART: Final = LINE_TAGS | {"svg", "text", "title", "desc"}
_MOST_NODES: Final = 500  # an element with more gets the parser's text: elements may be nested
_TEXT: Final = "-text"


def spaced_text(node: LexborNode, left_out: frozenset[str] = frozenset()) -> str:
    """Return the text of an element, without the elements in it whose names are `left_out`."""
    inner = [one.tag for one in islice(node.traverse(), 1, _MOST_NODES + 2)]
    if len(inner) > _MOST_NODES:
        is_plain = not left_out
    else:
        is_plain = APART.isdisjoint(inner) and left_out.isdisjoint(inner)
    return node.text(deep=True) if is_plain else "".join(_pieces(node, left_out))


def _pieces(node: LexborNode, left_out: frozenset[str]) -> Iterator[str]:
    open_elements = [(node.iter(include_text=True), "")]
    while open_elements:
        children, end = open_elements[-1]
        child = next(children, None)
        if child is None:
            open_elements.pop()
            yield end
        elif child.tag == _TEXT:
            yield child.text()
        elif child.tag not in left_out:
            gap = " " if child.tag in APART else ""
            yield gap
            open_elements.append((child.iter(include_text=True), gap))
