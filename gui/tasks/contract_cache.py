"""Cache of the latest contract counts for all views, without Qt and without file access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.contracts.forcing import Guard

# Most contracts kept; beyond that the cache is cleared and filled by visible rows.
MOST: Final = 5_000
_KNOWN: Final[dict[str, Guard]] = {}


def learn(found: Mapping[str, Guard]) -> frozenset[str]:
    """Store contract counts by contract id and return the ids that changed."""
    news = frozenset(one for one, said in found.items() if _KNOWN.get(one) != said)
    if len(_KNOWN) > MOST:
        _KNOWN.clear()
    _KNOWN.update(found)
    return news


def known(contract_id: str | None) -> Guard | None:
    """Return the cached counts of a contract, or None while they are unknown."""
    return None if contract_id is None else _KNOWN.get(contract_id)
