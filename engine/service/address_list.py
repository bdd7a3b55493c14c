"""Validation of address lists: valid, duplicate and invalid lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.kinds.arguments import web_address
from engine.model.addresses import address_of

MOST: Final = 5_000  # maximum tasks of one list


class Refused(NamedTuple):
    """Invalid line: its number (from 1), its text, and the reason."""

    line: int
    text: str
    reason: str


class AddressList(NamedTuple):
    """Unique `urls` in input order; `doubles` counts duplicates."""

    urls: tuple[str, ...]
    doubles: int
    refused: tuple[Refused, ...]


class Sorting:
    """Validate addresses as a task would; two are duplicates if a crawl treats them as one page.

    Line by line, so that a long list can be validated in slices.
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._refused: list[Refused] = []
        self._doubles = 0

    def add(self, line: int, text: str) -> None:
        """Validate one line."""
        address = address_of(text)
        try:
            web_address(text)
        except ValueError as wrong:
            self._refused.append(Refused(line, text, str(wrong)))
            return
        assert address is not None  # web_address validated it
        key = address.own.key  # a route is opened as it was typed
        self._doubles += key in self._urls
        self._urls.setdefault(key, text)

    @property
    def found(self) -> AddressList:
        """The result of all lines so far."""
        return AddressList(tuple(self._urls.values()), self._doubles, tuple(self._refused))


def sort_out(lines: Iterable[tuple[int, str]]) -> AddressList:
    """Validate all lines at once."""
    sorting = Sorting()
    for line, text in lines:
        sorting.add(line, text)
    return sorting.found
