"""All spellings that a browser or a page makes of an exact value, as one regular expression.

For each character: literal, percent-encoded (URL standard: `encodeURI`, `encodeURIComponent`,
forms, queries in older encodings), as a character reference (HTML standard: serialised attributes
and text), escaped in JSON and JavaScript (`\\uXXXX`, `\\xXX`), and behind a backslash (Markdown).
Each matches encoded once and several times, in any mixture, with hex digits in either case: the
spelling of one character does not depend on its neighbours.

ASCII letters and digits have only one spelling (see `value_search` for escaped ones). A value is
also found whole: in base64, alone or within a longer text, and in hex.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from html.entities import html5
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

# Backslashes, encoded or not, and other text before a character's hex digits. All backslashes
# belong to the former: if both parts matched some, a text of many of them would have too many ways
# to match.
BACKSLASH: Final = r"\\(?:(?:x|u00)(?:25){0,3}5[cC])?|%(?:25){0,3}5[cC]"
SLASHES: Final = rf"(?:{BACKSLASH}){{0,8}}"
LEAD: Final = r"(?:%|(?<=[\\cC])(?:x|u0{0,2}))(?:25){0,3}"
SEMICOLON: Final = f"(?:;|{SLASHES}{LEAD}3[bB])"
AMPERSAND: Final = f"(?:&|{LEAD}26)(?:amp{SEMICOLON}){{0,3}}"
HASH: Final = f"(?:#|{SLASHES}{LEAD}23)0*"
BLANK: Final = (
    rf"(?:\xc2\xa0|\s|\+|{SLASHES}(?:(?<=\\)[nrtvf]"
    rf"|{LEAD}(?:20|09|0[aAbBcCdD]|2[bB]|(?:[cC]2{SLASHES}{LEAD})?[aA]0|810{SLASHES}{LEAD}842)"
    rf"|{AMPERSAND}(?:{HASH}(?:32|43|160|9|1[0-3]|[xX]0*(?:2[0bB]|[aA]0|9|[a-dA-D]))"
    rf"|nbsp|Tab|NewLine|plus){SEMICOLON}))"
)
SLASH: Final = (
    rf"(?:[\\/]|(?:%|(?<=[\\cC])(?:x|u00))(?:25){{0,3}}(?:5[cC]|2[fF])"
    rf"|{AMPERSAND}(?:{HASH}(?:92|47|[xX]0*(?:5[cC]|2[fF]))|bsol|sol){SEMICOLON})"
)


SHORT: Final = 4  # characters: shorter values match only as a word
LONG: Final = 400  # characters: of longer values, which are texts, only the usual spellings match
_ESCAPES: Final = {"\b": "b", "\0": "0"}
# Encodings of pages that are not UTF-8; their forms are sent in the same encoding.
_ENCODINGS: Final = (
    *("utf-8", "cp1252", "iso8859-2", "iso8859-15", "cp1250", "cp1251", "koi8-r", "cp1253"),
    *("cp1254", "cp932", "euc-jp", "gb18030", "big5hkscs", "cp950", "cp949"),
)
# A form writes a space as a plus, and a path a backslash as a slash: their runs are one part.
_PARTS = re.compile(r"[A-Za-z0-9]+|/*\\[\\/]*|\+*[ \t\n\v\f\r\xa0][ \t\n\v\f\r\xa0+]*|.", re.DOTALL)
_WHITE = re.compile(r"[ \t\n\v\f\r\xa0]")
_RUN = re.compile(r"[A-Za-z0-9]+")
# The beginning of a word in a text, and in an encoded one.
_WORD_BEGINS: Final = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"


_CARRIED_ALONE: Final = 6  # bytes: base64 or hex of shorter values matches only alone
_BASE64: Final = "[A-Za-z0-9+/_-]"
_BASE64_SIGNS: Final = {
    "+": "(?:[ +-]|%(?:25){0,3}2[bB])",
    "/": r"(?:\\?[/_]|%(?:25){0,3}2[fF])",
}


class Form(NamedTuple):
    """One form of a value: searched only in texts that contain `sign`; `pattern` has no groups.

    Without a pattern it matches all spellings of the value.
    """

    sign: str
    value: str
    pattern: str = ""

    @property
    def regex(self) -> str:
        return self.pattern or pattern_of(self.value)


def forms_of(value: str) -> Iterator[Form]:
    """Yield the forms in which `value` may occur in a text."""
    yield Form(sign_of(value), value)
    if len(value) < SHORT:
        return
    for data in _bytes_of(value):
        for pattern, core in _in_base64(data):
            yield Form(sign_of(core), value, pattern)
        for digits in dict.fromkeys((data.hex(), data.hex().upper())):
            alone = f"(?<![0-9A-Fa-f]){digits}(?![0-9A-Fa-f])"
            yield Form(digits, value, alone if len(data) < _CARRIED_ALONE else digits)


def _bytes_of(value: str) -> list[bytes]:
    """Encode as UTF-8, and as `btoa` encodes a text."""
    found = [value.encode("utf-8", "replace")]
    if not value.isascii() and max(value) <= "\xff":
        found.append(value.encode("latin-1"))
    return found


def _in_base64(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the pattern and known letters for each offset in a group of three bytes.

    A letter that also holds bits of a neighbour is unknown, and matches any.
    """
    for lead in range(3 if len(data) >= _CARRIED_ALONE else 1):
        letters = b64encode(bytes(lead) + data).decode()
        bits = 8 * (lead + len(data))
        core = letters[lead + 1 if lead else 0 : bits // 6]
        spelt = "".join(_BASE64_SIGNS.get(one, one) for one in core)
        begin = f"{_BASE64}?" if lead else ""
        end = f"{_BASE64}?" if bits % 6 else ""
        found = f"{begin}{spelt}{end}(?:=|%(?:25){{0,3}}3[dD]){{0,2}}"
        if len(data) < _CARRIED_ALONE:
            found = f"(?<!{_BASE64}){found}(?!{_BASE64})"
        yield found, core


def sign_of(value: str) -> str:
    """Part of `value` that is unchanged in every spelling; empty where there is none."""
    return max(_RUN.findall(value), key=len, default="")


@lru_cache(maxsize=512)
def pattern_of(value: str) -> str:
    """Build the regular expression for all spellings of `value`, without groups.

    A page's text has no white space at the ends of a value, and less of it within.
    """
    core = value.strip()
    if not core:
        return r"(?!)"  # white space alone is no secret
    lead = value.index(core)
    trail = len(value) - lead - len(core)
    if len(core) > LONG:
        return "|".join(map(re.escape, _whole_encodings(core)))
    parts = _PARTS.findall(core)
    befores = ["", *parts[:-1]]
    signs = [
        _part(part, after_slash="\\" in before) for before, part in zip(befores, parts, strict=True)
    ]
    found = f"{_around(lead)}{''.join(signs)}{_around(trail)}"
    return found if len(value) >= SHORT else rf"{_WORD_BEGINS}{found}(?!\w)"


def _whole_encodings(text: str) -> dict[str, None]:
    """Encode a long text as a whole by each encoding, the longest first."""
    ways = {text, " ".join(text.split()), quote(text, safe="", errors="replace")}
    ways |= {quote(text, safe="!'()*~", errors="replace"), quote_plus(text, errors="replace")}
    ways |= {escape(text), escape(text, quote=False)}
    ways |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return dict.fromkeys(sorted(ways, key=len, reverse=True))


def _around(blanks: int) -> str:
    return f"{BLANK}{{0,{blanks}}}" if blanks else ""


def _part(text: str, *, after_slash: bool) -> str:
    if "\\" in text:
        return f"{SLASH}{{{len(text)},{8 * len(text) + 8}}}"
    if _WHITE.search(text):
        return f"{BLANK}{{{max(1, text.count('+'))},{2 * len(text)}}}"
    if text.isascii() and text.isalnum():
        return text
    return _character(text) if after_slash else f"{SLASHES}{_character(text)}"


@lru_cache(maxsize=1_024)
def _character(sign: str) -> str:
    code = ord(sign)
    # Characters of the encodings themselves come last: of `%25` more than `%` must match.
    ways = [_reference(code), *_encoded(sign), *_escaped(code), re.escape(sign)]
    if code > 127 and not 0xD800 <= code <= 0xDFFF:  # a header's bytes, decoded as Latin-1
        ways.append(re.escape(sign.encode().decode("latin-1")))
    if sign == "\0" or 0xD800 <= code <= 0xDFFF:  # the replacement character that browsers use
        ways += ["\ufffd", *_encoded("\ufffd")]
    if sign.isspace():
        ways.append(r"\s")
    return f"(?:{'|'.join(dict.fromkeys(ways))})"


def _encoded(sign: str) -> list[str]:
    """Percent-encode in each encoding that has the character."""
    if sign.isascii():
        return [_percent(sign.encode())]
    found = []
    for encoding in _ENCODINGS:
        try:
            found.append(_percent(sign.encode(encoding)))
        except UnicodeEncodeError:
            continue
    return found


def _percent(data: bytes) -> str:
    """Percent-encode the bytes of one character; in older encodings a later byte may be a
    letter."""
    first, *rest = [f"{LEAD}{_hex(f'{byte:02x}')}" for byte in data]
    later = [f"{SLASHES}{way}" for way in rest]
    plain = [re.escape(chr(byte)) if byte < 0x7F else "" for byte in data[1:]]
    return first + "".join(
        f"(?:{way}|{also})" if also else way for way, also in zip(later, plain, strict=True)
    )


def _escaped(code: int) -> list[str]:
    """Escape as JSON and JavaScript do; below 256 `_encoded` covers that already."""
    short = _ESCAPES.get(chr(code))
    if code < 128:
        return [rf"(?<=\\){short}"] if short else []
    units = chr(code).encode("utf-16-be", "surrogatepass").hex()
    parts = [units[at : at + 4].removeprefix("00") for at in range(0, len(units), 4)]
    return [SLASHES.join(f"{LEAD}{_hex(part)}" for part in parts)]


def _reference(code: int) -> str:
    names = "".join(f"|{name}" for name in _names().get(chr(code), ()))
    number = f"{HASH}(?:{code}|[xX]0*{_hex(f'{code:x}')})"
    return f"{AMPERSAND}(?:{number}{names}){SEMICOLON}"


@lru_cache(maxsize=1)
def _names() -> dict[str, list[str]]:
    """Names of character references (HTML standard) by their character."""
    found: dict[str, list[str]] = {}
    for name, sign in html5.items():
        if name.endswith(";"):
            found.setdefault(sign, []).append(name[:-1])
    return found


def _hex(digits: str) -> str:
    return "".join(one if one.isdigit() else f"[{one}{one.upper()}]" for one in digits)
