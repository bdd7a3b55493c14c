"""What the contracts of tasks say by now, for who shows them; knows no Qt and reads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.contracts.forcing import Guard

MOST: Final = 5_000  # kept; beyond, all are asked for anew as they come into sight
_KNOWN: Final[dict[str, Guard]] = {}


def learn(found: Mapping[str, Guard]) -> frozenset[str]:
    """Remember these, by contract; which of them say something new."""
    news = frozenset(one for one, said in found.items() if _KNOWN.get(one) != said)
    if len(_KNOWN) > MOST:
        _KNOWN.clear()
    _KNOWN.update(found)
    return news


def known(contract_id: str | None) -> Guard | None:
    """What this contract says; None while nobody knows."""
    return None if contract_id is None else _KNOWN.get(contract_id)
