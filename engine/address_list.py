"""Many addresses at once, sorted out: which can be opened, which are the same, which are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.work.addresses import address_of
from engine.work.arguments import web_address

MOST: Final = 5_000  # tasks that one list may become


class Refused(NamedTuple):
    """A line that is no address: where it stands (from 1 on), what it says, what is wrong."""

    line: int
    text: str
    reason: str


class AddressList(NamedTuple):
    """`urls` in their order, each once; `doubles` counts those that were named before."""

    urls: tuple[str, ...]
    doubles: int
    refused: tuple[Refused, ...]


def sort_out(lines: Iterable[tuple[int, str]]) -> AddressList:
    """Judge addresses as a task would; two are one where a crawl would take them for one page."""
    urls: dict[str, str] = {}
    refused: list[Refused] = []
    doubles = 0
    for line, text in lines:
        address = address_of(text)
        try:
            web_address(text)
        except ValueError as wrong:
            refused.append(Refused(line, text, str(wrong)))
            continue
        assert address is not None  # web_address saw to it
        doubles += address.key in urls
        urls.setdefault(address.key, text)
    return AddressList(tuple(urls.values()), doubles, tuple(refused))
