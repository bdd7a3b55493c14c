"""Facts about a page for audits: what its head declares, and counts of its parts.

Both engines collect the same raw facts of the document itself (not of its frames or shadow roots):
the browser in `take.js` from the live document, the static engine from the parsed answer. Hidden
elements count, because search engines read them too. All texts are untrusted and bounded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.model.addresses import link_address
from engine.pages.spaced_text import spaced_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from engine.model.addresses import Address

MAX_TEXT: Final = 512  # characters of one text
MAX_SCRIPTS: Final = 20  # JSON-LD scripts that are read
MAX_SCRIPT_CHARS: Final = 64 * 1024  # of one JSON-LD script
MAX_TYPES: Final = 20
RELS: Final = ("nofollow", "ugc", "sponsored")  # of a link, by which it asks not to be counted
_MAX_DEPTH: Final = 8  # of nested JSON-LD
_PIECE_CHARS: Final = 64 * 1024
_SPACE: Final = re.compile(r"\s")
_UNSAID: Final = "script, style, noscript, template"


@lru_cache(maxsize=256)
def rel_bits(rel: str | None) -> int:
    """Return which of `RELS` are in the attribute `rel` of a link, the first as bit 0."""
    tokens = rel.lower().split() if rel else ()
    return sum((name in tokens) << at for at, name in enumerate(RELS)) if tokens else 0


def rel_words(bits: int) -> str:
    """Return the names of these bits, as in the attribute."""
    return " ".join(name for at, name in enumerate(RELS) if bits >> at & 1)


class RawFacts(msgspec.Struct, rename="camel"):
    """Facts as an engine found them; `linked_data` are JSON-LD scripts, `items` microdata types.

    `canonical` is resolved, "" where it is none or no web address. `words` counts the words of all
    text outside of scripts and styles.
    """

    charset: str = ""
    language: str = ""
    canonical: str = ""
    description: str = ""
    robots: str = ""
    h1: str = ""
    h1_count: int = 0
    words: int = 0
    links_internal: int = 0
    links_external: int = 0
    links_nofollow: int = 0
    images: int = 0
    images_without_alt: int = 0
    linked_data: list[str] = []
    items: list[str] = []

    def count_link(self, address: Address, place: str, rel: str | None) -> None:
        """Count a link of a page on the host and port `place`."""
        if address.place == place:
            self.links_internal += 1
        else:
            self.links_external += 1
        if rel:
            self.links_nofollow += "nofollow" in rel.lower().split()


def page_facts(
    raw: RawFacts, *, content_type: str, robots_header: str, content: object
) -> dict[str, Any]:
    """Return the facts of one page in their stable order; empty texts are left out.

    `robots_header` is X-Robots-Tag. `content` is the page's content, of which the hash tells equal
    pages apart from different ones; it has none where there is no text.
    """
    texts = {
        "content_type": content_type,
        "charset": raw.charset.lower(),
        "language": raw.language,
        "canonical": raw.canonical,
        "description": raw.description,
        "robots": ", ".join(filter(None, (raw.robots, robots_header))),
        "h1": raw.h1,
    }
    counts = {
        "h1_count": raw.h1_count,
        "words": raw.words,
        "links_internal": raw.links_internal,
        "links_external": raw.links_external,
        "links_nofollow": raw.links_nofollow,
        "images": raw.images,
        "images_without_alt": raw.images_without_alt,
    }
    found: dict[str, Any] = {name: _level(text) for name, text in texts.items()}
    found = {name: text for name, text in found.items() if text} | counts
    if types := structured_types(raw.linked_data, raw.items):
        found["structured_data"] = types
    if isinstance(content, str) and content and not content.isspace():
        found["content_hash"] = _hash_of_words(content)
    return found


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces that end between words: a list of a million words takes 60 MB."""
    at = 0
    while at < len(text):
        space = _SPACE.search(text, at + _PIECE_CHARS)
        end = len(text) if space is None else space.end()
        yield text[at:end]
        at = end


def _hash_of_words(text: str) -> str:
    digest, is_first = hashlib.blake2b(digest_size=8), True
    for piece in _pieces(text):
        if words := " ".join(piece.split()):
            digest.update(("" if is_first else " ").encode() + words.encode("utf-8", "replace"))
            is_first = False
    return digest.hexdigest()


def _count_words(text: str) -> int:
    return sum(len(piece.split()) for piece in _pieces(text))


def structured_types(linked_data: Iterable[str], items: Iterable[str]) -> list[str]:
    """Return the types of JSON-LD and microdata, such as `Product`, each once and in order."""
    found: dict[str, None] = {}
    for text in linked_data:
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            continue
        found.update(dict.fromkeys(_types(value, 0)))
    found.update(dict.fromkeys(name for one in items for name in one.split()))
    short = dict.fromkeys(_level(name).rstrip("/#").rpartition("/")[2] for name in found)
    return [name for name in short if name][:MAX_TYPES]


def _types(value: object, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            yield from _types(one, depth + 1)
    elif isinstance(value, Mapping):
        given = value.get("@type")
        names = given if isinstance(given, list) else [given]
        yield from (name for name in names if isinstance(name, str) and name)
        yield from _types(value.get("@graph"), depth + 1)


# Names that browsers have for codecs.
_WEB_NAMES: Final = {
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "gb18030": "gbk",
    "big5hkscs": "big5",
    "euc_jp": "euc-jp",
}


def fill_from_tree(raw: RawFacts, tree: LexborHTMLParser, base: str, charset: str) -> RawFacts:
    """Fill in the facts of a parsed answer, but for its links; `base` is that of its addresses."""
    root, body = tree.css_first("html"), tree.body
    raw.charset, raw.language = _WEB_NAMES.get(charset, charset), _attribute(root, "lang")
    canonical = _attribute(tree.css_first('link[rel~="canonical" i][href]'), "href")
    address = link_address(base, canonical) if canonical else None
    raw.canonical = "" if address is None else address.url
    raw.description = _attribute(tree.css_first('meta[name="description" i]'), "content")
    raw.robots = _attribute(tree.css_first('meta[name="robots" i]'), "content")
    headings = tree.css("h1")
    raw.h1_count = len(headings)
    raw.h1 = spaced_text(headings[0])[: 8 * MAX_TEXT] if headings else ""
    raw.words = 0 if body is None else _words(body)
    images = tree.css("img")
    raw.images = len(images)
    raw.images_without_alt = sum("alt" not in image.attributes for image in images)
    scripts = tree.css('script[type="application/ld+json" i]')[:MAX_SCRIPTS]
    raw.linked_data = [text for one in scripts if len(text := one.text()) <= MAX_SCRIPT_CHARS]
    raw.items = [_attribute(one, "itemtype") for one in tree.css("[itemtype]")[:MAX_TYPES]]
    return raw


def _words(body: LexborNode) -> int:
    """Count the words of each text outside of scripts; a part of a word in an element is one."""
    words = _count_words(body.text(deep=True, separator=" "))
    for node in body.css(_UNSAID):
        if not _is_within_unsaid(node):
            words -= _count_words(node.text(deep=True, separator=" "))
    return max(0, words)


def _is_within_unsaid(node: LexborNode) -> bool:
    around = node.parent
    while around is not None and around.tag != "body":
        if around.tag in {"noscript", "template"}:
            return True
        around = around.parent
    return False


def _attribute(node: LexborNode | None, name: str) -> str:
    given = "" if node is None else node.attributes.get(name) or ""
    return given[: 8 * MAX_TEXT]


def _level(text: str) -> str:
    return " ".join(text[: 8 * MAX_TEXT].split())[:MAX_TEXT]
