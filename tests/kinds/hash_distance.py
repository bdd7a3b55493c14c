"""How far two perceptual hashes are apart."""

from __future__ import annotations


def distance(one: str, other: str) -> int:
    """Count the bits in which two 64-bit hashes differ."""
    return (int(one, 16) ^ int(other, 16)).bit_count()
