"""How wide the columns are where room is short: some shrink, a few give way. Knows no Qt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What a column would like, in pixels. `fills` takes what the others leave.

    `fixed` was given its width by a person and keeps it; `yields` above 0 lets it vanish
    where the room is too short for all, the highest first.
    """

    key: str
    usual: int
    least: int
    fills: bool = False
    fixed: bool = False
    yields: int = 0


def fitted(shares: Sequence[Share], room: int) -> dict[str, int]:
    """The width of each column that stays, so that all of them fit into `room`.

    Where even that is too much, the list has to be scrolled, and nothing is made narrow for it.
    """
    staying = _staying(shares, room)
    if _total(staying) > room:
        return {share.key: share.usual for share in shares}
    spare = max(0, room - _total(staying))
    wanted = sum(share.usual - share.least for share in staying if not share.fixed)
    part = min(1.0, spare / wanted) if wanted else 0.0
    widths = {
        share.key: share.usual
        if share.fixed
        else share.least + int((share.usual - share.least) * part)
        for share in staying
    }
    filling = next((share for share in staying if share.fills and not share.fixed), None)
    if filling is not None:
        others = sum(width for key, width in widths.items() if key != filling.key)
        widths[filling.key] = max(filling.least, room - others)
    return widths


def _staying(shares: Sequence[Share], room: int) -> list[Share]:
    staying = list(shares)
    for share in sorted(shares, key=lambda share: -share.yields):
        if not share.yields or _total(staying) <= room:
            break
        staying.remove(share)
    return staying


def _total(shares: Iterable[Share]) -> int:
    return sum(map(_least, shares))


def _least(share: Share) -> int:
    return share.usual if share.fixed else share.least
