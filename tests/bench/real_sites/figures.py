"""Options and measurements of one part of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.real_sites.comparing import difference, is_empty, is_links_equal, is_text_equal
from tests.bench.real_sites.reference import Seen


@dataclass(frozen=True)
class Options:
    """`pages` None leaves the number to the part; `only` chooses sites by a part of their name."""

    pages: int | None = None
    rounds: int = 8
    only: str = ""
    show: bool = False

    def wants(self, name: str) -> bool:
        return self.only in name


@dataclass
class Figures:
    """A table, and the facts for programs; `facts["ok"]` says whether each target was met."""

    heads: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Equality:
    """How many of the pages that were expected have the text and the links of the reference."""

    expected: int = 0
    text: int = 0
    links: int = 0
    both: int = 0
    empty_settled: int = 0
    unsettled: int = 0
    redacted: int = 0

    def add(
        self,
        pages: Sequence[Mapping[str, Any]],
        seen: Mapping[str, Seen],
        expected: int,
        show: str = "",
    ) -> None:
        """Count `pages`, of which `expected` should be there; `show` names the site to print."""
        self.expected += expected
        for page in pages:
            one = seen[page["url"]]
            text, links = is_text_equal(page, one), is_links_equal(page, one)
            self.text += text
            self.links += links
            self.both += text and links
            self.unsettled += not page["settled"]
            self.redacted += page.get("redacted", 0)
            has_more = bool(one.text.strip() or one.links)
            self.empty_settled += is_empty(page) and page["settled"] and has_more
            if show and not (text and links):
                print(f"{show}: {page['url']}: {_why(page, one, text=text)}")

    @property
    def share(self) -> float:
        return self.both / max(1, self.expected)


def _why(page: Mapping[str, Any], seen: Seen, *, text: bool) -> str:
    if page.get("error"):
        return str(page["error"])
    if not text:
        return difference(page, seen)
    return f"{page['links_found']} links, {len(seen.links)} seen"
