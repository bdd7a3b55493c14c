"""Many addresses at once, sorted out: which can be opened, which are the same, which are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.kinds.arguments import web_address
from engine.model.addresses import address_of

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


class Sorting:
    """Judges addresses as a task would; two are one where a crawl would take them for one page.

    Line by line, so that a long list can be judged in slices.
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._refused: list[Refused] = []
        self._doubles = 0

    def add(self, line: int, text: str) -> None:
        """Judge what stands in this line."""
        address = address_of(text)
        try:
            web_address(text)
        except ValueError as wrong:
            self._refused.append(Refused(line, text, str(wrong)))
            return
        assert address is not None  # web_address saw to it
        key = address.own.key  # whatever a route stands for, it is opened as it was typed
        self._doubles += key in self._urls
        self._urls.setdefault(key, text)

    @property
    def found(self) -> AddressList:
        """What was judged so far."""
        return AddressList(tuple(self._urls.values()), self._doubles, tuple(self._refused))


def sort_out(lines: Iterable[tuple[int, str]]) -> AddressList:
    """All of them at once."""
    sorting = Sorting()
    for line, text in lines:
        sorting.add(line, text)
    return sorting.found
