"""Seeded changes of bytes, as disks, editors and other programs make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

PIECES: Final = (
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r\n", b"\r", b"\0", b" "),
    *(b"null", b"true", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"1e-999", b"-", b"."),
    *(b"9" * 20, b"9" * 400, b"9" * 5_000, b"1e308", b"0x10", b"007", b"9007199254740993"),
    *(b'""', b"[]", b"{}", b"[" * 70, b"[" * 2_000, b'{"a":' * 70, b"]" * 70),
    *(b"\\ud800", b"\\udfff\\ud800", b"\\u0000", b"\\u2028", b"\\u001b[2J", b"\\x41", b"\\"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"),
    *("\u2028".encode(), "\ufeff".encode(), "\u202e".encode(), b"\x1b]0;x\x07", b"\xc2\x9b"),
    *(b"COMPLETED", b"running", b"../..", b"/etc/passwd", b"task_id", b"status", b"__class__"),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """`data` with one to four changes."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        _CHANGES[chance.randrange(len(_CHANGES))](found, at, chance)
    return bytes(found)


def many(data: bytes, number: int, seed: str) -> Iterator[bytes]:
    """`number` different spoiled forms of `data`; the same ones for the same seed."""
    chance = random.Random(seed)
    for _ in range(number):
        yield mutated(data, chance)


def _put(found: bytearray, at: int, chance: random.Random) -> None:
    found[at:at] = chance.choice(PIECES)


def _replace(found: bytearray, at: int, chance: random.Random) -> None:
    found[at : at + chance.randint(1, 8)] = chance.choice(PIECES)


def _flip(found: bytearray, at: int, chance: random.Random) -> None:
    if at < len(found):
        found[at] ^= 1 << chance.randrange(8)


def _drop(found: bytearray, at: int, chance: random.Random) -> None:
    del found[at : at + chance.randint(1, 12)]


def _cut(found: bytearray, at: int, _: random.Random) -> None:
    del found[at:]


def _double(found: bytearray, at: int, chance: random.Random) -> None:
    found[at:at] = found[at : at + chance.randint(1, 60)]


def _swap(found: bytearray, at: int, chance: random.Random) -> None:
    length, other = chance.randint(1, 10), chance.randrange(len(found) + 1)
    found[at : at + length], found[other : other + length] = (
        found[other : other + length],
        found[at : at + length],
    )


def _zeros(found: bytearray, at: int, chance: random.Random) -> None:
    found[at:] = b"\0" * min(len(found) - at, chance.randint(1, 4_096))


_CHANGES: Final[tuple[Callable[[bytearray, int, random.Random], None], ...]] = (
    *(_put, _put, _replace, _replace, _flip, _flip, _drop, _cut, _double, _swap, _zeros),
)
