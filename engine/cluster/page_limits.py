"""Limits of a page between worker and engine: the types to decode it with, and how to meet them.

A small message can hold millions of tiny objects. These types refuse a list by its announced
length, before any of it is built, and have no room for documents within documents of frames. What a
page may have more of on one machine is cut on the worker.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from engine.model.addresses import address_of
from engine.pages.asset_loading import MAX_ADDED
from engine.pages.custom_fields import MAX_FIELDS, MAX_VALUES
from engine.pages.fetch import MAX_CLICKED, MAX_LINKS, ClickedLink, Fetched, Redirect
from engine.pages.page_facts import MAX_SCRIPTS, MAX_TYPES, RawFacts
from engine.pages.style_sheets import Rule

MOST_HEADER_CHARS: Final = 64 * 1024
MOST_URL_CHARS: Final = 2 * 1024 * 1024  # as Chromium; also of all redirects of a page
MOST_RETRY_S: Final = 1e9
MOST_REDIRECTS: Final = 20
MOST_INNER: Final = 100
MOST_SHEETS: Final = MAX_ADDED + 20
MOST_RULES: Final = 200_000  # of a page and its frames
_MOST_SCRIPT_NAMES: Final = 50_000

_Nothing = Meta(max_length=0)
# A sheet is decoded when the rules of the sheets before it are known.
_RULES: Final = tuple[
    tuple[
        str,
        Annotated[tuple[str, ...], Meta(max_length=1_000)],
        tuple[int, int, int, int],
        Annotated[tuple[tuple[str, str, bool], ...], Meta(max_length=1_000)],
    ],
    ...,
]
_FACTS_LIMITS: Final[dict[str, Any]] = {
    "linked_data": Annotated[list[str], Meta(max_length=MAX_SCRIPTS)],
    "items": Annotated[list[str], Meta(max_length=MAX_TYPES)],
}


def _limited(record: type[msgspec.Struct], limits: dict[str, Any], **options: Any) -> Any:
    """Return a type like `record` that decodes some fields with other types."""
    fields: list[Any] = []
    for one in msgspec.structs.fields(record):
        kind = limits.get(one.name, one.type)
        if one.required:
            fields.append((one.name, kind))
        elif one.default is not msgspec.NODEFAULT:
            fields.append((one.name, kind, one.default))
        else:
            fields.append((one.name, kind, msgspec.field(default_factory=one.default_factory)))
    return msgspec.defstruct(f"Limited{record.__name__}", fields, **options)


_LIMITS: Final[dict[str, Any]] = {
    "redirects": Annotated[list[Redirect], Meta(max_length=MOST_REDIRECTS)],
    "script_names": Annotated[frozenset[str], Meta(max_length=_MOST_SCRIPT_NAMES)],
    "edits": Annotated[tuple[str, ...], _Nothing],
    "consent": Annotated[dict[str, str], _Nothing],
    "styles": Annotated[tuple[msgspec.Raw, ...], Meta(max_length=MOST_SHEETS)],
    "facts": _limited(RawFacts, _FACTS_LIMITS, rename="camel") | None,
    "links": Annotated[list[str], Meta(max_length=MAX_LINKS)],
    "link_texts": Annotated[list[str], Meta(max_length=MAX_LINKS)],
    "clicked": Annotated[list[tuple[str, str]], Meta(max_length=MAX_CLICKED)],
    "values": Annotated[
        dict[str, str | Annotated[list[str], Meta(max_length=MAX_VALUES)]],
        Meta(max_length=MAX_FIELDS),
    ],
}
_EMPTY: Final = Annotated[list[str], _Nothing]
_INNER_LIMITS: Final = dict.fromkeys(
    ("inner", "links", "link_texts", "clicked", "redirects"), _EMPTY
)
_LimitedInner = _limited(Fetched, {**_LIMITS, **_INNER_LIMITS})
_INNER = Annotated[list[_LimitedInner], Meta(max_length=MOST_INNER)]  # type: ignore[valid-type]  # a made type
LimitedPage: Final = _limited(Fetched, {**_LIMITS, "inner": _INNER})


def whole_page(limited: Any) -> Fetched:
    """Return the page of a decoded `LimitedPage`.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError: its style sheets are none, or too many.
    """
    left = [MOST_RULES]
    page = _whole(limited, left)
    page.inner = [_whole(one, left) for one in limited.inner]
    page.clicked = [ClickedLink(*one) for one in limited.clicked]
    return page


def _whole(limited: Any, left: list[int]) -> Fetched:
    """Return a page of its decoded fields; `left` is how many rules there may still be."""
    given = {name: getattr(limited, name) for name in Fetched.__struct_fields__}
    if (facts := given["facts"]) is not None:
        given["facts"] = RawFacts(*(getattr(facts, name) for name in RawFacts.__struct_fields__))
    sheets = []
    for raw in limited.styles:
        sheet = msgspec.msgpack.decode(raw, type=Annotated[_RULES, Meta(max_length=left[0])])
        left[0] -= len(sheet)
        sheets.append(tuple(Rule(*one) for one in sheet))
    return Fetched(**{**given, "styles": tuple(sheets)})


def clamped(page: Fetched) -> Fetched:
    """Cut what a page may have more of on one machine, as the engine would not use it."""
    left = MOST_RULES
    for one in (page, *page.inner):
        one.content_type = one.content_type[:MOST_HEADER_CHARS]
        one.robots_header = one.robots_header[:MOST_HEADER_CHARS]
        if one.retry_after_s is not None:
            one.retry_after_s = min(one.retry_after_s, MOST_RETRY_S)
        sheets = []
        for sheet in one.styles[:MOST_SHEETS]:
            sheets.append(sheet[:left])
            left -= len(sheets[-1])
        one.styles = tuple(sheets)
    hops = [hop for hop in page.redirects if address_of(hop.url) is not None]
    page.redirects = hops[-MOST_REDIRECTS:]
    return page
