"""Completion of a query: fields, and values of the field before the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from engine.query.fields import FIELDS, OFFERED
from engine.query.parse import key_of, term

MOST_OFFERS: Final = 12
ROOT: Final = "root"
_BEFORE = re.compile(r"[^\s()\"]*$")
_AFTER = re.compile(r"[^\s()\"]*")


@dataclass(frozen=True, slots=True)
class Offer:
    """Completion `text` for the current word; `help` describes it, or is empty."""

    text: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Offers that can replace the characters from `start` to `end`."""

    start: int
    end: int
    offers: tuple[Offer, ...] = ()

    def put(self, text: str, offer: Offer) -> tuple[str, int]:
        """Insert this offer into `text`, and return the new cursor position.

        A field expects its value; behind a value the next condition may begin.
        """
        taken = offer.text if offer.text.endswith(":") else offer.text + " "
        rest = text[self.end :]
        if taken.endswith(" ") and rest.startswith(" "):
            rest = rest[1:]
        return text[: self.start] + taken + rest, self.start + len(taken)


def completion(
    text: str, cursor: int, known: Mapping[str, Iterable[str]], *, offer_all: bool = False
) -> Completion:
    """Complete the query at `cursor`.

    `known` gives the existing values of fields without a fixed set; `offer_all` offers every field
    where no word was begun. With a single ledger `root` is of no use: it is offered where it is
    `known`.
    """
    if _in_quotes(text[:cursor]):
        return Completion(cursor, cursor)
    begun = _BEFORE.search(text, 0, cursor)
    after = _AFTER.match(text, cursor)
    assert begun is not None  # both patterns match the empty string
    assert after is not None
    word = begun[0].lstrip("-")
    start = cursor - len(word)
    if not word and not offer_all:
        return Completion(start, cursor)
    key = key_of(word)
    if key is None:
        several = bool(known.get(ROOT))
        offers = [one for one in _fields(word) if several or one.text != f"{ROOT}:"]
    else:
        offers = list(_values(key.casefold(), word[len(key) + 1 :], known))
    fresh = [offer for offer in offers if offer.text != word]
    return Completion(start, after.end(), tuple(fresh[:MOST_OFFERS]))


def _in_quotes(text: str) -> bool:
    return len(re.findall(r'(?<!\\)"', text)) % 2 == 1


def _fields(word: str) -> Iterator[Offer]:
    folded = word.casefold()
    for name, field in FIELDS.items():
        if name.startswith(folded):
            yield Offer(f"{name}:", field.help)
    if len(folded) > 1:  # two letters of a state are enough to offer it
        yield from (Offer(f"status:{state}") for state in OFFERED if state.startswith(folded))


def _values(key: str, begun: str, known: Mapping[str, Iterable[str]]) -> Iterator[Offer]:
    field = FIELDS.get(key)
    if field is None:
        return
    values = [*field.values, *sorted(known.get(key, ()))]
    folded = begun.casefold()
    near = [value for value in values if value.casefold().startswith(folded)]
    inside = [value for value in values if folded in value.casefold() and value not in near]
    for value in (*near, *inside):
        yield Offer(f"{key}:{value}" if value in field.values else term(key, value))
