"""Extract a page's title, content in the requested form, and links.

The input is the browser's visible HTML, or the static engine's raw HTML, whose declarative shadow
roots are moved to where a browser shows them. All output is valid UTF-8 and bounded; it remains
untrusted text.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import msgspec

from engine.model import addresses as urls
from engine.model.addresses import Address, address_of, in_charset, link_address
from engine.pages import script_edits, style_sheets
from engine.pages.custom_fields import FieldRule, values_of
from engine.pages.fetch import (
    MAX_ELEMENTS,
    MAX_LINK_CHARS,
    MAX_LINKS,
    MAX_TEXT_KB,
    Fetched,
    OutputFormat,
    bounded,
)
from engine.pages.markdown_markup import markup_for_markdown
from engine.pages.meta_refresh import SELECTOR, refresh_to
from engine.pages.page_facts import RawFacts, fill_from_tree, rel_bits, rel_words
from engine.pages.rendered_text import rendered_text
from engine.pages.spaced_text import spaced_text
from engine.pages.text_blocks import rendered_blocks

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions
    from selectolax.lexbor import LexborHTMLParser, LexborNode


_LEADING: Final = f"a[href], area[href], frame[src], iframe[src], {SELECTOR}"
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


_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_LINK_BYTES = 2 * 1024 * 1024  # of one page's link list, as JSON
_MARKS_BYTES = 64  # at most, of `rel`, `external` and `by` of a link
MAX_TITLE_CHARS = 512
MAX_DESCRIPTION_CHARS = 2_048
MAX_LINK_TEXT_CHARS = 512
THREAD_FROM_CHARS = 64 * 1024  # smaller pages take under about 5 ms: a thread would cost more
HUGE_CHARS = 1024 * 1024

# Never displayed by browsers. The markdown converter drops scripts and hidden elements itself.
_UNSHOWN = (
    "textarea, video, audio, canvas, datalist, rp, meter, progress, iframe, noscript, template,"
    " object[data], object[type], dialog:not([open]), [popover]"
)
_UNSEEN = f"script, style, [hidden], {_UNSHOWN}"
_HIDES = re.compile(r"(?:^|;)\s*display\s*:\s*none\b", re.IGNORECASE)
_VISIBILITY = re.compile(r"(?:^|;)\s*visibility\s*:\s*([a-z]+)", re.IGNORECASE)
_STYLED_VISIBILITY = '[style*="visibility" i]'
_MAYBE_UNSHOWN = re.compile(
    r"<(?:textarea|video|audio|canvas|datalist|rp|meter|progress|iframe|noscript|template|object"
    r"|dialog|details)\b",
    re.IGNORECASE,
)
_SCRIPT_LINK = re.compile(r"\s*javascript:", re.IGNORECASE)
_POPOVER = re.compile(r"\spopover\b", re.IGNORECASE)
_NOSCRIPT = re.compile("<noscript", re.IGNORECASE)
_NOSCRIPT_PART = re.compile(
    r"<!--.*?-->|<(?:script|style|textarea|title|xmp)\b.*?</(?:script|style|textarea|title|xmp)"
    r"|(<noscript\b.*?(?:</noscript[^>]*+>|\Z))",
    re.IGNORECASE | re.DOTALL,
)
_PARTS = ("headings", "paragraphs", "links", "images", "blocks")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


Anchor = dict[str, Any]
"""A link: `href` and `text`; `rel` if all of the page's links to this address have such tokens, and
`external` if it leads to another host or port; `by` is `click` if only clicks lead to it."""


@dataclass(slots=True)
class _Link:
    """A link target of a page; `rel` are the bits that all links to it have."""

    address: Address
    text: str
    rel: int
    by_click: bool = False

    def anchor(self, page: Address | None) -> Anchor:
        """Return the link of `page` for its record."""
        found: Anchor = {"href": self.address.url, "text": self.text}
        if self.rel:
            found["rel"] = rel_words(self.rel)
        if page is None or (
            self.address.origin != page.origin and self.address.place != page.place
        ):
            found["external"] = True
        if self.by_click:
            found["by"] = "click"
        return found


class Extracted(msgspec.Struct, frozen=True):
    """Extraction result; `content` is text, or for `structured` an object.

    `links_found` counts before the limit, `links_skipped` counts links to no web page, and
    `links_over` those beyond the limit. `anchors` are `links` with their texts. `edited` counts the
    places where script edits were applied to a static page, `frames` the frames whose text is part
    of `content`. `values` are those of the custom fields.
    """

    title: str
    content: str | dict[str, Any]
    links: tuple[Address, ...]
    links_found: int
    truncated: bool
    links_skipped: int = 0
    links_over: int = 0
    anchors: tuple[Anchor, ...] = ()
    edited: int = 0
    frames: int = 0
    facts: RawFacts | None = None
    values: dict[str, Any] = {}


async def extract(
    fetched: Fetched,
    form: OutputFormat,
    max_text_kb: int = MAX_TEXT_KB,
    max_elements: int = MAX_ELEMENTS,
    rules: Sequence[FieldRule] = (),
) -> Extracted:
    """Extract from `fetched`; large pages use a thread, to keep the loop free."""
    size = sum(len(each.html) + len(each.text) for each in (fetched, *fetched.inner))
    size += sum(map(len, fetched.links))
    if size > THREAD_FROM_CHARS:
        given = (fetched, form, max_text_kb, max_elements, rules)
        return await off_the_loop(size, extract_now, *given)
    return extract_now(fetched, form, max_text_kb, max_elements, rules)


async def off_the_loop(
    size: int, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Run `work` on a page of `size` in a thread; huge pages one by one in the same thread.

    The tree of a huge page takes up to 80 MB, and memory freed in one thread is not reused by
    others.
    """
    pool = _huge_pages() if size >= HUGE_CHARS else None
    call = functools.partial(work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(pool, call)


@lru_cache(maxsize=1)
def _huge_pages() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="huge pages")


def extract_now(
    fetched: Fetched,
    form: OutputFormat,
    max_text_kb: int = MAX_TEXT_KB,
    max_elements: int = MAX_ELEMENTS,
    rules: Sequence[FieldRule] = (),
) -> Extracted:
    """As `extract`, immediately on this thread."""
    most = max_text_kb * 1024
    own = _extracted(fetched, form, most, max_elements, rules)
    inner = [_extracted(each, form, most, max_elements) for each in fetched.inner]
    return _joined(own, inner, most) if inner else own


def _extracted(
    fetched: Fetched,
    form: OutputFormat,
    most: int,
    max_elements: int,
    rules: Sequence[FieldRule] = (),
) -> Extracted:
    if not fetched.html:
        content, cut = clip(clean(fetched.text), most)
        structured = _plain_structure(fetched, content)
        kept = structured if form == "structured" else content
        return Extracted(_title(fetched.title), kept, (), 0, cut or fetched.truncated)
    page = _Page(fetched, max_elements, rules)
    if form == "structured":
        made, cut = _fitted(page.structure(), most)
        return page.extracted(made, cut)
    text = (
        page.markdown() if form == "markdown" else ""
    ) or page.text()  # the converter ends at 1,024 levels, and fails at some pages
    return page.extracted(*clip(clean(text), most))


def _joined(own: Extracted, inner: Sequence[Extracted], most: int) -> Extracted:
    """Join a page with the content of its frames, in the browser engine's order."""
    whole = (own, *inner)
    links: dict[str, Address] = {}
    anchors: dict[str, Anchor] = {}
    for each in whole:
        for address in each.links:
            links.setdefault(address.key, address)
        for anchor in each.anchors:
            known = anchors.setdefault(anchor["href"], anchor)
            if known is not anchor:
                _merge(known, anchor)
    content, cut = _contents([each.content for each in whole], most)
    kept, lost = _within(tuple(anchors.values()), MAX_LINK_BYTES)
    over = sum(each.links_over for each in whole)
    return Extracted(
        title=own.title,
        content=content,
        links=tuple(islice(links.values(), MAX_LINKS)),
        links_found=len(links) + over,
        truncated=cut or lost or any(each.truncated for each in whole),
        links_skipped=sum(each.links_skipped for each in whole),
        links_over=over + max(0, len(links) - MAX_LINKS),
        anchors=kept,
        edited=own.edited,
        facts=own.facts,
        values=own.values,
        frames=sum(has_words(each.content) for each in inner),
    )


def _merge(known: Anchor, other: Anchor) -> None:
    """Add a link of a frame to one of the page that leads to the same address."""
    known["text"] = known["text"] or other["text"]
    if rel := rel_words(rel_bits(known.pop("rel", "")) & rel_bits(other.get("rel"))):
        known["rel"] = rel


def _contents(
    contents: Sequence[str | dict[str, Any]], most: int
) -> tuple[str | dict[str, Any], bool]:
    texts = [each for each in contents if isinstance(each, str)]
    if texts:
        return clip("\n\n".join(text for text in texts if text.strip()), most)
    objects = [each for each in contents if isinstance(each, dict)]
    whole = dict(objects[0])
    for name, part in whole.items():
        if isinstance(part, list):
            whole[name] = [item for each in objects for item in each.get(name, ())]
    return _fitted(whole, most)


def has_words(content: str | dict[str, Any]) -> bool:
    """Return whether the content has any words."""
    if isinstance(content, str):
        return bool(content.strip())
    return any(content.get(part) for part in ("headings", "paragraphs", "blocks"))


class _Page:
    """One page's tree, parsed once for several extractions."""

    def __init__(self, fetched: Fetched, max_elements: int, rules: Sequence[FieldRule]) -> None:
        self._fetched = fetched
        self._html = bounded(clean(fetched.html), max_elements)
        self._rendered = fetched.engine == "browser"
        self._tree = parse_html(self._html) if self._rendered else parse_static(self._html)
        self._edits = () if self._rendered else fetched.edits
        self.edited = script_edits.apply(self._tree, self._edits)
        self.title = _title(fetched.title or _text_of(self._tree.css_first("head > title")))
        self._base = self._base_url()
        self.links_skipped = fetched.links_skipped if self._rendered else 0
        self._raw_facts = RawFacts()
        self.links, self.links_found, self.anchors = self._links()
        self.facts = fetched.facts if self._rendered else self._facts()
        self.values = fetched.values
        if not self._rendered:
            self.values = values_of(self._tree, rules, self._base)
        styles = () if self._rendered else fetched.styles
        known = self._html + "".join(edit.html for edit in self._edits)
        styled = bool(styles) and style_sheets.apply(self._tree, known, styles)
        self._changed = styled or bool(self._edits)

    def extracted(self, content: str | dict[str, Any], cut: bool) -> Extracted:
        cut = cut or self._fetched.truncated or len(self._html) < len(self._fetched.html)
        anchors, lost = _within(self.anchors, MAX_LINK_BYTES)
        counts = (self.links_skipped, self.links_over)
        fields = (self.links, self.links_found, cut or lost, *counts, anchors)
        own = Extracted(self.title, content, *fields, edited=self.edited, facts=self.facts)
        return msgspec.structs.replace(own, values=self.values)

    def markdown(self) -> str:
        """Return the page as markdown; "" if the converter fails, as at some lists in `<pre>`."""
        from html_to_markdown import ConversionError, convert

        html = self._html
        if not self._rendered and (
            self._write_addresses() or self._changed or _is_unshown_in(html)
        ):
            self._remove(_UNSHOWN)
            html = self._tree.html or html
        try:
            made = convert(markup_for_markdown(html), _markdown_options(self._base))
        except ConversionError:
            return ""
        return made.content or ""

    def _write_addresses(self) -> bool:
        """Write addresses as the browser engine does; the converter takes all queries for UTF-8."""
        charset, changed = self._fetched.charset, False
        as_utf8 = charset.startswith("utf") or self._html.isascii()
        if as_utf8 and "javascript:" not in self._html.lower():
            return False
        for node in self._tree.css("a[href], img[src]"):
            name = "src" if node.tag == "img" else "href"
            given = node.attributes.get(name) or ""
            if name == "href" and _SCRIPT_LINK.match(given):
                del node.attrs[name]
                changed = True
            elif (written := in_charset(given, charset)) != given:
                node.attrs[name] = written
                changed = True
        return changed

    def text(self) -> str:
        if self._rendered:
            return self._fetched.text
        return rendered_text(self._markup())

    def _markup(self) -> str:
        root = self._tree.root
        return "" if root is None else root.html or ""

    def structure(self) -> dict[str, Any]:
        blocks = rendered_blocks(self._markup())
        if not self._rendered:
            self._remove(_UNSEEN)  # after the links were collected
        body = self._tree.body
        found = {"title": self.title, "description": self._description(), "lang": self._lang()}
        if body is None:
            return {
                **found,
                "headings": [],
                "paragraphs": [],
                "links": [],
                "images": [],
                "blocks": [],
            }
        headings = body.css(", ".join(_HEADINGS))
        return {
            **found,
            "headings": [
                {"level": _HEADINGS.index(h.tag or "h1") + 1, "text": _words(h)} for h in headings
            ],
            "paragraphs": [text for p in body.css("p") if (text := _words(p))],
            "links": list(self.anchors),
            "images": list(self._images(body)),
            "blocks": blocks,
        }

    def _images(self, body: LexborNode) -> Iterator[dict[str, str]]:
        for image in body.css("img[src]")[:MAX_LINKS]:
            address = self._address(image.attributes.get("src") or "")
            if address is not None:
                alt = clean(image.attributes.get("alt") or "")
                yield {"src": address.url, "alt": alt[:MAX_LINK_TEXT_CHARS]}

    def _links(self) -> tuple[tuple[Address, ...], int, tuple[Anchor, ...]]:
        """Return each address once, in order of appearance, with the first text that names it."""
        found: dict[str, _Link] = {}
        page = address_of(self._fetched.final_url)
        place = "" if page is None else page.place
        for given, text_of, rel in self._given_links(place):
            if given is None:
                continue
            address = given.page("routes")
            known = found.get(address.key)
            if known is None:
                text = text_of() if len(found) < MAX_LINKS else ""
                found[address.key] = _Link(address, text, rel)
                continue
            known.text = known.text or text_of()
            known.rel &= rel
        for link in self._clicked_links(page):
            found.setdefault(link.address.key, link)
        kept = list(islice(found.values(), _most([link.address for link in found.values()])))
        self.links_over = len(found) - len(kept) + self._fetched.links_over
        anchors = tuple(link.anchor(page) for link in kept)
        links = tuple(link.address for link in kept)
        return links, len(found) + self._fetched.links_over, anchors

    def _clicked_links(self, page: Address | None) -> Iterator[_Link]:
        """Yield the links to other pages than this one that clicks found."""
        own = "" if page is None else page.page("routes").key
        for url, text in self._fetched.clicked:
            given = address_of(url)
            address = None if given is None else given.page("routes")
            if address is not None and address.key != own:
                name = " ".join(clean(text).split())[:MAX_LINK_TEXT_CHARS]
                yield _Link(address, name, 0, by_click=True)

    def _given_links(self, place: str) -> Iterator[tuple[Address | None, Callable[[], str], int]]:
        """Yield the address of each link, a call for its text, and the bits of its `rel`."""
        if self._rendered:
            fetched = self._fetched
            texts, rels = (
                chain(fetched.link_texts, repeat("")),
                chain(fetched.link_rels, repeat("0")),
            )
            for link, text, bits in zip(fetched.links, texts, rels, strict=False):
                yield address_of(link), functools.partial(clean, text), int(bits)
            return
        for anchor, given in self._anchors():
            address = self._address(given)
            self.links_skipped += address is None
            rel = anchor.attributes.get("rel")
            if address is not None and anchor.tag not in {"frame", "iframe", "meta"}:
                self._raw_facts.count_link(address, place, rel)
            yield address, functools.partial(_name_of, anchor), rel_bits(rel)

    def _address(self, href: str) -> Address | None:
        return link_address(self._base, in_charset(href, self._fetched.charset))

    def _facts(self) -> RawFacts:
        return fill_from_tree(self._raw_facts, self._tree, self._base, self._fetched.charset)

    def _anchors(self) -> Iterator[tuple[LexborNode, str]]:
        """Yield elements that lead to another page with the address as it is written."""
        for anchor in self._tree.css(_LEADING):
            given = anchor.attributes
            if anchor.tag in {"frame", "iframe"}:
                if _same_host(self._base, given.get("src") or ""):
                    yield anchor, given.get("src") or ""
            elif anchor.tag == "meta":
                if refresh := refresh_to(anchor):
                    yield anchor, refresh.to
            else:
                # The parser finds both by "href"; the second is that of older drawings.
                yield anchor, given.get("href" if "href" in given else "xlink:href") or ""

    def _base_url(self) -> str:
        """Return the base of relative links: `<base href>`, or the page's address."""
        base = None if self._rendered else self._tree.css_first("base[href]")
        href = "" if base is None else base.attributes.get("href") or ""
        address = link_address(self._fetched.final_url, href) if href else None
        found = self._fetched.final_url if address is None else address.url
        return found.partition("#")[0]

    def _remove(self, unseen: str) -> None:
        """Remove matching elements from the tree, and the hidden content of closed details."""
        for node in self._tree.css(unseen):
            node.decompose()
        for node in self._tree.css('[style*="display" i]'):
            if _HIDES.search(node.attributes.get("style") or ""):
                node.decompose()
        self._remove_invisible()
        for details in self._tree.css("details:not([open])"):
            summary = details.css_first("summary")
            child = details.first_child
            while child is not None:
                following = child.next
                if summary is None or child != summary:
                    child.decompose()
                child = following

    def _remove_invisible(self) -> None:
        """Remove invisible elements with their content, unless a part of it is visible."""
        kept: list[LexborNode] = []
        for node in reversed(self._tree.css(_STYLED_VISIBILITY)):  # innermost first
            if _is_invisible(node) and all(map(_is_invisible, node.css(_STYLED_VISIBILITY))):
                node.decompose()
            else:
                kept.append(node)
        for node in kept:  # the markdown converter would drop it with its visible part
            node.attrs["style"] = _VISIBILITY.sub("", node.attributes.get("style") or "")

    def _description(self) -> str:
        meta = self._tree.css_first('meta[name="description" i]')
        found = "" if meta is None else meta.attributes.get("content") or ""
        return clean(self._fetched.description or found).strip()[:MAX_DESCRIPTION_CHARS]

    def _lang(self) -> str:
        root = self._tree.css_first("html")
        return clean("" if root is None else root.attributes.get("lang") or "").strip()[:64]


def _is_unshown_in(html: str) -> bool:
    """Return whether hidden elements are possible. The second search is slow."""
    if _MAYBE_UNSHOWN.search(html):
        return True
    level = html.lower()
    if "visibility" in level:
        return True
    return "popover" in level and _POPOVER.search(html) is not None


def _is_invisible(node: LexborNode) -> bool:
    """Return whether its style hides it and descendants without own visibility."""
    values = _VISIBILITY.findall(node.attributes.get("style") or "")
    return bool(values) and values[-1].lower() in {"hidden", "collapse"}


def _most(addresses: Sequence[Address]) -> int:
    """Return how many of these links are kept for one page."""
    chars = 0
    for number, address in enumerate(addresses[:MAX_LINKS]):
        chars += len(address.url)
        if chars > MAX_LINK_CHARS:
            return number
    return MAX_LINKS


def parse_html(html: str) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(html)


def parse_static(html: str) -> LexborHTMLParser:
    """Parse as a browser with scripts does: content of `noscript` is no element.

    Declared shadow roots are moved into their hosts.
    """
    if _NOSCRIPT.search(html):
        html = _NOSCRIPT_PART.sub(lambda found: "" if found[1] else found[0], html)
    return parse_html(flattened(html))


def _markdown_options(base: str) -> ConversionOptions:
    import html_to_markdown as lib

    return lib.ConversionOptions(
        **_markdown_signs(),
        extract_metadata=False,
        base_url=base,
    )


@lru_cache(maxsize=1)
def _markdown_signs() -> dict[str, Any]:
    """Return the library's defaults as enum members: strings cost 0.1 ms a page."""
    import html_to_markdown as lib

    preset = lib.PreprocessingPreset.STANDARD
    return {
        # Its preprocessing would drop headers and navigation.
        "preprocessing": lib.PreprocessingOptions(enabled=False, preset=preset),
        "heading_style": lib.HeadingStyle.ATX,
        "list_indent_type": lib.ListIndentType.SPACES,
        "highlight_style": lib.HighlightStyle.DOUBLE_EQUAL,
        "whitespace_mode": lib.WhitespaceMode.NORMALIZED,
        "newline_style": lib.NewlineStyle.SPACES,
        "code_block_style": lib.CodeBlockStyle.BACKTICKS,
        "inline_data_media": lib.InlineDataMedia.ALT_TEXT_ONLY,
        "hidden_content": lib.HiddenContent.DROP,
        "url_escape_style": lib.UrlEscapeStyle.ANGLE,
        "link_style": lib.LinkStyle.INLINE,
        "output_format": lib.OutputFormat.MARKDOWN,
        "tier_strategy": lib.TierStrategy.AUTO,
    }


def _same_host(base: str, href: str) -> bool:
    address = link_address(base, href)
    if address is None:
        return False
    there, here = urls.parse(address.origin), urls.parse(base)
    return there is not None and here is not None and there.host == here.host


_UNSAID: Final = frozenset({"script", "style", "template"})


def _name_of(anchor: LexborNode) -> str:
    """Return a link's name: its words, or those of its image or its label."""
    text = _words(anchor, _UNSAID)
    if not text:
        picture = anchor.css_first("img[alt]:not([alt=''])") or anchor
        names = (picture.attributes.get("alt"), anchor.attributes.get("aria-label"))
        text = " ".join(clean(next((name for name in names if name), "")).split())
    return text[:MAX_LINK_TEXT_CHARS]


def _within(anchors: tuple[Anchor, ...], most: int) -> tuple[tuple[Anchor, ...], bool]:
    """Return as many of the links as fit, and whether some were cut."""
    room = most
    for number, anchor in enumerate(anchors):
        room -= len(anchor["href"]) + len(anchor["text"].encode()) + len('{"href":"","text":""},')
        if len(anchor) > len(("href", "text")):
            room -= _MARKS_BYTES
        if room < 0:
            return anchors[:number], True
    return anchors, False


def _text_of(node: LexborNode | None) -> str:
    return "" if node is None else node.text(deep=True)


def _words(node: LexborNode, left_out: frozenset[str] = frozenset()) -> str:
    return " ".join(clean(spaced_text(node, left_out)).split())


def _title(text: str) -> str:
    return " ".join(clean(text).split())[:MAX_TITLE_CHARS]


def clean(text: str) -> str:
    """Replace lone surrogates and NUL, which are invalid in UTF-8 or break its readers."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def clip(text: str, limit_bytes: int) -> tuple[str, bool]:
    """Cut `text` to `limit_bytes` of UTF-8 between characters; return whether it was cut."""
    if len(text) * 4 <= limit_bytes:
        return text, False
    raw = text.encode()
    if len(raw) <= limit_bytes:
        return text, False
    return raw[:limit_bytes].decode("utf-8", "ignore"), True


def _plain_structure(fetched: Fetched, text: str) -> dict[str, Any]:
    return {
        "title": _title(fetched.title),
        "description": "",
        "lang": "",
        "headings": [],
        "paragraphs": [text] if text else [],
        "links": [],
        "images": [],
        "blocks": [{"type": "code", "text": text}] if text else [],
    }


def _fitted(found: dict[str, Any], most: int) -> tuple[dict[str, Any], bool]:
    """Fit the structure into the content's limit: shorten lists, the longest first."""
    cut = False
    while (size := len(msgspec.json.encode(found))) > most:
        lists = {name: part for name, part in found.items() if isinstance(part, list)}
        longest = max(lists, key=lambda name: len(msgspec.json.encode(lists[name])))
        kept = int(len(lists[longest]) * most / size * 0.9)
        if kept == 0 and len(lists[longest]) <= 1:
            found[longest] = [clip(str(part), most // 4)[0] for part in lists[longest]]
        else:
            found[longest] = lists[longest][: max(kept, 1)]
        cut = True
    return found, cut
