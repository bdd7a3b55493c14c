"""A picture's perceptual hash: pictures that look alike have hashes that differ in few bits.

The usual pHash, in full so that others can compute the same: the luma of each pixel,
(299 R + 587 G + 114 B) / 1000, is averaged over 32 × 32 equal boxes (a pixel at (x, y) of a
w × h picture falls into column ⌊32 x / w⌋, row ⌊32 y / h⌋); of their two-dimensional DCT-II
the 8 × 8 lowest frequencies are rounded to whole numbers. Row by row, each but the first
gives a bit: is it more than the median of those 63? The first bit, the mean's, is 0. The 64
bits are written as 16 hex digits. Two pictures look alike below a distance of about 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import Final

GRID: Final = 32
KEPT: Final = 8
ALGORITHM: Final = "phash-dct-64"


def perceptual_hash(lumas: Sequence[float]) -> str:
    """The hash of a picture's 32 × 32 average lumas, row by row.

    Raises:
        ValueError: there are not 1,024 of them.
    """
    if len(lumas) != GRID * GRID:
        raise ValueError(f"{len(lumas)} lumas instead of {GRID * GRID}")
    rows = [_lowest(lumas[at : at + GRID]) for at in range(0, len(lumas), GRID)]
    columns = [_lowest([row[u] for row in rows]) for u in range(KEPT)]
    # Whole numbers: the last digits of a cosine are not the same on every machine.
    found = [round(columns[u][v]) for v in range(KEPT) for u in range(KEPT)]
    middle = median(found[1:])
    bits = "0" + "".join("1" if one > middle else "0" for one in found[1:])
    return f"{int(bits, 2):016x}"


def distance(one: str, other: str) -> int:
    """In how many of the 64 bits two hashes differ."""
    return (int(one, 16) ^ int(other, 16)).bit_count()


def _lowest(values: Sequence[float]) -> list[float]:
    return [sum(map(float.__mul__, map(float, values), _waves(u))) for u in range(KEPT)]


@cache
def _waves(u: int) -> tuple[float, ...]:
    return tuple(math.cos(math.pi * (2 * x + 1) * u / (2 * GRID)) for x in range(GRID))
