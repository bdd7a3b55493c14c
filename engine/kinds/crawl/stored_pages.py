"""Pages that an earlier crawl stored, read to resume it: which are kept, and where they lead.

Records are on disk as redacted text, so an address that held a secret cannot be opened again: a
page with such an address, or with such a link, is loaded once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from engine.kinds.context import Span
from engine.ledger import journal
from engine.model.addresses import Address, Fragments, address_of
from engine.model.redact import MARK
from engine.pages.fetch import is_passing_status

_PICTURE: Final = re.compile(r"artifacts/page-(\d{1,9})\.png").fullmatch
_ANSWERS: Final = frozenset({"http", "content_type"})  # error codes of a page that was answered
_COUNTED: Final = (
    *("error", "error_code", "attempts", "compared", "empty", "settled", "redacted", "depth"),
    *("loads_cut", "clicks_cut", "worker"),
)


class StoredPage(NamedTuple):
    """One record of pages.jsonl.

    `answered`: the server answered, and a later request would get the same. `links` are the whole
    addresses of its links, `hidden_links` those with a redacted part; `links_missing` tells that
    more were found than stored. `counted` are the fields of the summary.
    """

    address: Address
    landed: Address | None
    depth: int
    failed: bool
    answered: bool
    links: tuple[str, ...]
    hidden_links: tuple[Address, ...]
    links_missing: bool
    links_not_web: int
    links_over: int
    picture: str
    counted: Mapping[str, Any]


def stored_page(line: bytes, fragments: Fragments) -> StoredPage | None:
    """Read a line of pages.jsonl; None if it is no page that could be told from others."""
    record = journal.page(line)
    url, landed, depth = record.get("url"), record.get("final_url"), record.get("depth")
    address = address_of(url) if isinstance(url, str) and MARK not in url else None
    if address is None or type(depth) is not int:
        return None
    if fragments == "routes":
        address = address.own
    failed = "error" in record
    given = [href for href in _hrefs(record.get("links")) if href]
    hidden = (address_of(href) for href in given if MARK in href)
    over = _number(record, "links_over_limit")
    picture = record.get("screenshot")
    return StoredPage(
        address=address,
        landed=address_of(landed) if isinstance(landed, str) and MARK not in landed else None,
        depth=depth,
        failed=failed,
        answered=not failed or _is_lasting(record),
        links=tuple(href for href in given if MARK not in href),
        hidden_links=tuple(one for one in hidden if one is not None),
        links_missing=len(given) < _number(record, "links_found") - over,
        links_not_web=_number(record, "links_not_web"),
        links_over=over,
        picture=picture if isinstance(picture, str) and _PICTURE(picture) else "",
        counted={name: record[name] for name in _COUNTED if name in record},
    )


def _is_lasting(record: Mapping[str, Any]) -> bool:
    """Return whether a failed page was answered, and not with a temporary error."""
    status = record.get("status")
    passing = isinstance(status, int) and is_passing_status(status)
    return record.get("error_code") in _ANSWERS and not passing


def _hrefs(links: object) -> Iterator[str]:
    for link in links if isinstance(links, list) else ():
        href = link.get("href") if isinstance(link, dict) else None
        if isinstance(href, str):
            yield href


def _number(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    return max(0, value) if type(value) is int else 0


class CarriedPages:
    """Pages that are kept: their places in the file and their pictures.

    `again` counts the stored pages that are loaded once more, `pictured` is the highest number of
    a picture.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.pictures: list[str] = []
        self.again = 0
        self.pictured = 0
        self._keys: set[str] = set()
        self._nearest: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, page: StoredPage, span: Span) -> None:
        self._keys.add(page.address.key)
        self.spans.append(span)
        if page.picture and (number := _PICTURE(page.picture)) is not None:
            self.pictures.append(page.picture)
            self.pictured = max(self.pictured, int(number[1]))

    def new_links(self, page: StoredPage) -> Iterator[Address]:
        """Yield the links that no kept page of this depth or above had: pages repeat menus."""
        for href in page.links:
            if self._nearest.get(href, page.depth + 1) > page.depth:
                self._nearest[href] = page.depth
                if (address := address_of(href)) is not None:
                    yield address.page("routes")
