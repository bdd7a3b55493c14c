"""Compare a stored page with the reference: text byte for byte, links as a set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from engine.model.addresses import address_of
from engine.model.redact import MARK
from tests.bench.real_sites.reference import Seen


def words(text: str) -> str:
    """`text` with its white space made equal."""
    return " ".join(text.split())


def is_text_equal(page: Mapping[str, Any], seen: Seen) -> bool:
    """Byte for byte, but for counted redactions; only letters where there are shadow roots."""
    kept = page.get("content") or ""
    if seen.shadow.strip():
        return _is_composed_equal(kept, f"{seen.text}\n{seen.shadow}", page.get("redacted", 0))
    if kept == seen.text:
        return True
    count = page.get("redacted", 0)
    if not count or kept.count(MARK) > count + seen.text.count(MARK):
        return False
    parts = [re.escape(part) for part in kept.split(MARK)]
    return re.fullmatch(".*?".join(parts), seen.text, re.S) is not None


def _is_composed_equal(kept: str, expected: str, redacted: int) -> bool:
    """In any order: the reference tells each root for itself, and not what parts their words."""
    if Counter("".join(kept.split())) == Counter("".join(expected.split())):
        return True
    lost = Counter(expected.split()) - Counter(kept.split())
    more = Counter(kept.split()) - Counter(expected.split())
    return lost.total() <= redacted and all(MARK in word for word in more)


def is_words_equal(page: Mapping[str, Any], seen: Seen) -> bool:
    return words(page.get("content") or "") == words(seen.text)


def is_links_equal(page: Mapping[str, Any], seen: Seen) -> bool:
    """The kept links with their addresses, or only their number where no list of them is kept."""
    expected = addresses(seen.links)
    if "links" in page:
        return _shapes(link["href"] for link in page["links"]) == _shapes(seen.links)
    found: int = page.get("links_found", 0)
    return found == len(expected)


def addresses(links: Iterable[str]) -> set[str]:
    """Links to web pages, each once, as the program tells pages apart."""
    found = filter(None, map(address_of, links))
    return {address.page("routes").url for address in found}


def _shapes(links: Iterable[str]) -> Counter[str]:
    """The addresses with one sign for keys that an application makes anew at each load."""
    return Counter(re.sub(r"(?<=/)[\w-]{21}(?=/|$)", "*", url) for url in addresses(links))


def is_empty(page: Mapping[str, Any]) -> bool:
    return not (page.get("content") or "").strip() and not page.get("links_found")


def difference(page: Mapping[str, Any], seen: Seen) -> str:
    """Where the kept text leaves the reference's, for people who look for the reason."""
    kept = page.get("content") or ""
    if seen.shadow.strip():
        expected = Counter(f"{seen.text}\n{seen.shadow}".split())
        lost, more = expected - Counter(kept.split()), Counter(kept.split()) - expected
        return f"lost {lost.total()} of {expected.total()} words, {more.total()} too many"
    pairs = enumerate(zip(kept, seen.text, strict=False))
    at = next((n for n, (one, other) in pairs if one != other), min(len(kept), len(seen.text)))
    around = slice(max(0, at - 20), at + 40)
    return f"at {at} of {len(seen.text)}: kept {kept[around]!r}, seen {seen.text[around]!r}"
