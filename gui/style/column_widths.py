"""Column widths for limited room: some columns shrink, a few are hidden. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """Wanted width of a column in pixels; `fills` takes the remaining room.

    A `fixed` column keeps the width that the user set. With `yields` above 0 a column is hidden
    where the room is too small for all, the highest value first.
    """

    key: str
    usual: int
    least: int
    fills: bool = False
    fixed: bool = False
    yields: int = 0


def fitted(shares: Sequence[Share], room: int) -> dict[str, int]:
    """Return the width of each remaining column, so that all fit into `room`.

    Where they do not fit even at their smallest, all keep their usual width and the list scrolls.
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
