"""A value whose plain letters a page escapes, or that it carries in base64 or hex, is known."""

from __future__ import annotations

import json
import random
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.secrets.given_secrets import Scrub
from engine.secrets.value_search import readings

MARK = "[redacted]"
PLAIN = "".join(map(chr, range(33, 127)))
VALUES = st.text(st.sampled_from(PLAIN * 3 + "äß€ñя日😀"), min_size=6, max_size=40)


def _units(sign: str) -> list[str]:
    data = sign.encode("utf-16-be")
    return [data[at : at + 2].hex() for at in range(0, len(data), 2)]


def _bytes(text: str, form: str) -> str:
    return "".join(form.format(byte) for byte in text.encode())


# How one sign can be written by a page, each whatever sign it is.
WAYS: dict[str, Callable[[str], str]] = {
    "json": lambda sign: "".join(f"\\u{unit}" for unit in _units(sign)),
    "upper": lambda sign: "".join(f"\\u{unit.upper()}" for unit in _units(sign)),
    "hex": lambda sign: f"\\x{ord(sign):02x}" if sign < "\x7f" else WAYS["json"](sign),
    "braces": lambda sign: f"\\u{{{ord(sign):x}}}",
    "octal": lambda sign: f"\\{ord(sign):03o}" if sign < "\x7f" else WAYS["json"](sign),
    "decimal": lambda sign: f"&#{ord(sign)};",
    "zeros": lambda sign: f"&#0{ord(sign)};",
    "reference": lambda sign: f"&#x{ord(sign):X};",
    "sheet": lambda sign: f"\\{ord(sign):x} ",
    "six digits": lambda sign: f"\\{ord(sign):06x}",
    "percent": lambda sign: _bytes(sign, "%{:02x}"),
    "twice": lambda sign: _bytes(sign, "%25{:02X}"),
}
AFTER: tuple[Callable[[str], str], ...] = (
    str,
    escape,
    lambda text: json.dumps(text)[1:-1],
    lambda text: quote(text, safe=""),
)


def kept(value: str, text: str) -> str:
    return Scrub([(value, MARK)], key_shapes=False).hide(text)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25)
@given(value=VALUES)
def test_a_value_wholly_in_escapes_is_found(way: str, value: str) -> None:
    written = "".join(map(WAYS[way], value))
    assert kept(value, f"<{written}>").replace(" ", "") == f"<{MARK}>"


@pytest.mark.parametrize("after", AFTER)
@settings(max_examples=10)
@given(value=st.from_regex(r"[A-Za-z0-9!?*~_. -]{4,30}[A-Za-z0-9]", fullmatch=True))
@pytest.mark.parametrize("way", ["json", "hex", "decimal", "reference", "percent"])
def test_double_encoding_is_found(way: str, after: Callable[[str], str], value: str) -> None:
    written = after("".join(map(WAYS[way], value)))
    assert kept(value.strip(), f"<{written}>").strip("<>\\ ") in (MARK, f"&#32;{MARK}") or (
        value != value.strip()
    )


@given(value=st.from_regex(r"[A-Za-z0-9!?*~_.-]{6,30}", fullmatch=True), seed=st.integers(0, 999))
def test_so_is_one_in_which_only_some_letters_are_escaped(value: str, seed: int) -> None:
    draw = random.Random(seed)
    ways = ("json", "hex", "decimal", "reference", "six digits", "percent")
    written = "".join(
        WAYS[draw.choice(ways)](sign) if draw.random() < 0.5 else sign for sign in value
    )
    assert kept(value, f"<{written}>") == f"<{MARK}>"


@given(value=VALUES, before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_base64_and_hex_values_are_found(value: str, before: bytes, after: bytes) -> None:
    data = before + value.encode() + after
    for encoded in (b64encode(data), urlsafe_b64encode(data), b64encode(data).rstrip(b"=")):
        clean = kept(value, f"<{encoded.decode()}>")
        assert MARK in clean
        assert len(clean) - len(MARK) - 2 <= (len(before) + len(after)) * 8 // 6 + 4
    for digits in (data.hex(), data.hex().upper()):
        assert MARK in kept(value, f"<{digits}>")


def test_a_value_in_base64_as_a_page_makes_it_of_letters_of_one_byte() -> None:
    encoded = b64encode("Größe!7ü".encode("latin-1")).decode()
    assert kept("Größe!7ü", f"({encoded})") == f"({MARK})"
    assert kept("Größe!7ü", f"?a={quote(encoded, safe='')}&") == f"?a={MARK}&"


def test_a_short_value_in_base64_or_hex_is_found_only_where_it_stands_alone() -> None:
    encoded, digits = b64encode(b"w1n!").decode(), b"w1n!".hex()
    assert kept("w1n!", f"a {encoded} b {digits}") == f"a {MARK} b {MARK}"
    within = f"xx{encoded.rstrip('=')}xx ab{digits}cd"
    assert kept("w1n!", within) == within


@given(text=st.text(st.sampled_from("Wn7!%\\xu0&#;25{}[] 419aAmp"), max_size=60))
def test_what_is_not_the_value_stays_as_the_page_wrote_it(text: str) -> None:
    assert kept("Entirely-else.9", text) == text


@given(text=st.text(st.sampled_from("Wn7!%\\xu0&#;25{}[] 419aAmp"), max_size=60))
def test_every_place_of_a_reading_is_one_of_the_text(text: str) -> None:
    for reading in readings(text):
        places = [reading.original_offset(at) for at in range(len(reading.plain) + 1)]
        assert places == sorted(places)
        assert places[0] in (0, len(text)) or reading.plain
        assert places[-1] == len(text)


def test_a_page_made_of_escapes_is_read_in_time() -> None:
    for part in ("\\u0041", "&#65;", "%2541", "\\41 ", "\\\\\\", "&amp;amp;#", "%5C"):
        kept("Winter-26", part * 20_000)


def test_equal_decodings_are_searched_once() -> None:
    assert [reading.plain for reading in readings("%41bc")] == ["Abc"]
    assert len(list(readings(r"\41 bc"))) == 2  # a style sheet, a script
