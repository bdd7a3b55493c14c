"""Search for exact values in a text or on a page, in all their spellings.

For each character: literal, percent-encoded (URL standard: `encodeURI`, `encodeURIComponent`,
forms, queries in older encodings), as a character reference (HTML standard: serialised attributes
and text), escaped in JSON and JavaScript (`\\uXXXX`, `\\xXX`), and behind a backslash (Markdown).
Each matches encoded once and several times, in any mixture, with hex digits in either case: the
spelling of one character does not depend on its neighbours. A value is also found whole: in base64,
alone or within a longer text, and in hex.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from html.entities import html5
from itertools import accumulate
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


# Decoding of escaped plain letters: `\u0041`, `\x41`, `&#65;`, `%41`, `\41 `.  Browsers write ASCII
# letters and digits literally; pages may not. A text is decoded, and every offset in the decoded
# text maps to one in the original. Other characters are left to `pattern_of`, except for those that
# only style sheets and `\u{…}` write so.

_HEX: Final = r"(?:3[0-9]|[46][1-9a-fA-F]|[57][0-9aA])"  # of ASCII letters and digits
_DECIMAL: Final = r"(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|9[07-9]|1[01][0-9]|12[0-2])"
_END: Final = r"(?![0-9a-fA-F])"
_NUMBER: Final = rf"(?:(?P<number>{_DECIMAL})(?![0-9])|[xX]0*(?P<digits>{_HEX}){_END})"
# Without one of these no letter is escaped, and nearly every text stops here. Each begins with a
# character of its own, which is found quickly.
_SHEET: Final = "[2-7][0-9a-fA-F]"
_SIGN: Final = rf"(?:{_HEX}|26(?:amp|[#%\\])|23[0-9xX]|5[cC][0-9a-fA-FuUxX\\%])"
_MAY_BE: Final = (
    ("%", re.compile(rf"%(?:25){{0,3}}{_SIGN}")),
    (
        "\\",
        re.compile(
            rf"\\(?:0{{4}}{_SHEET}|0{{0,3}}{_SHEET}{_END}|(?:x|u00)(?:25){{0,3}}{_SIGN}|u\{{|1[0-7]{{2}})"
        ),
    ),
    ("#", re.compile(rf"#0*(?:{_DECIMAL}(?![0-9])|[xX]0*{_HEX}{_END})")),
)


def _reading(most_slashes: int, numbered: str) -> re.Pattern[str]:
    more = f"(?:{BACKSLASH}){{0,{most_slashes - 1}}}"
    behind = (
        rf"{more}(?:(?:x|u00)(?:25){{0,3}}(?P<script>{_HEX})"
        rf"|u\{{(?P<braces>[0-9a-fA-F]{{1,6}})\}}|{numbered})"
    )
    begin = r"(?:(?<=%)(?:25){0,3}5[cC]|(?<=\\)(?:(?:x|u00)(?:25){0,3}5[cC])?)"
    ampersand = r"(?:(?<=&)|(?<=%)(?:25){0,3}26|(?<=\\)(?:x|u00)(?:25){0,3}26)"
    return re.compile(
        rf"[%\\&](?:(?<=%)(?:25){{0,3}}(?P<percent>{_HEX})|{begin}{behind}"
        rf"|{ampersand}(?:amp{SEMICOLON}){{0,3}}{HASH}{_NUMBER}{SEMICOLON}?)"
    )


_BY_SHEETS: Final = r"(?P<sheet>[0-9a-fA-F]{1,6})[ \t\n\r\f]?"
_BY_SCRIPTS: Final = r"(?P<octal>0?[4-7][0-7]|1[0-7]{2})"
# The number of backslashes and digits that belong to an escape is ambiguous.
_READINGS: Final = (_reading(8, _BY_SHEETS), _reading(1, _BY_SHEETS), _reading(8, _BY_SCRIPTS))


class DecodedText:
    """A text with the escapes of its letters decoded."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._plain_at, self._text_at = [0], [0]
        parts: list[str] = []
        length = last = 0
        for found in pattern.finditer(text):
            sign = _decoded(found)
            if sign is None:
                continue
            begin, end = found.span()
            parts += [text[last:begin], sign]
            length += begin - last
            self._plain_at += [length, length + 1]
            self._text_at += [begin, end]
            length, last = length + 1, end
        self.plain = "".join([*parts, text[last:]])

    def original_offset(self, at: int) -> int:
        """Map an offset of the decoded text to the original one."""
        part = bisect_right(self._plain_at, at) - 1
        return self._text_at[part] + at - self._plain_at[part]


def readings(text: str) -> Iterator[DecodedText]:
    """Yield every decoding that differs from the text and from the earlier ones."""
    if not any(sign in text and pattern.search(text) for sign, pattern in _MAY_BE):
        return
    known = {text}
    for pattern in _READINGS:
        found = DecodedText(text, pattern)
        if found.plain not in known:
            known.add(found.plain)
            yield found


def _decoded(found: re.Match[str]) -> str | None:
    """Decode an escape; None where it is invalid."""
    kind, digits = str(found.lastgroup), found[str(found.lastgroup)]
    code = int(digits, {"number": 10, "octal": 8}.get(kind, 16))
    is_sign = 0 < code < 0xD800 or 0xDFFF < code < 0x110000
    return chr(code) if is_sign else None


# A port is no secret: behind a host, where an address continues or ends.
_HOST_BEFORE = re.compile(r"(?:(?://|\b)(?:[\w-]+\.)+[\w-]+|\blocalhost|//[\w-]+|\]):$", re.ASCII)
_AFTER_PORT = re.compile(r"[/?#\s\"'<>)\],;\\]|\.?$")
_MOST_HOST = 300  # characters


class Span(NamedTuple):
    """Range of a text, and the index of the value in it."""

    begin: int
    end: int
    which: int


class Search:
    """Searches for `values`; of several matches at one place the longest counts."""

    def __init__(self, values: Sequence[str]) -> None:
        forms = [(at, form) for at, value in enumerate(values) for form in forms_of(value)]
        self._forms = forms
        self._ports = {at for at, value in enumerate(values) if _may_be_port(value)}

    def __bool__(self) -> bool:
        return bool(self._forms)

    def spans(self, text: str) -> list[Span]:
        """Return every match, in order and without overlap."""
        if not self._forms:
            return []
        found = list(self._matches(text))
        for reading in readings(text):
            for begin, end, which in self._matches(reading.plain):
                found.append(
                    Span(reading.original_offset(begin), reading.original_offset(end), which)
                )
        return _merged(found)

    def _matches(self, text: str) -> Iterator[Span]:
        for which, form in self._forms:
            # Each pattern alone: joined, nearly every text would need another pattern compiled.
            for found in _compiled(form.regex).finditer(text) if form.sign in text else ():
                if found.end() > found.start() and not self._is_port(text, found, which):
                    yield Span(*found.span(), which)

    def _is_port(self, text: str, found: re.Match[str], which: int) -> bool:
        if which not in self._ports or not _AFTER_PORT.match(text, found.end()):
            return False
        before = text[max(0, found.start() - _MOST_HOST) : found.start()]
        return _HOST_BEFORE.search(before) is not None


@lru_cache(maxsize=2_048)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def _may_be_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 5


def _merged(found: list[Span]) -> list[Span]:
    """Merge overlapping spans."""
    kept: list[Span] = []
    for one in sorted(found, key=lambda span: (span.begin, -span.end, span.which)):
        if kept and one.begin < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return kept


SHORTEST: Final = 3
_WORD: Final = 4  # shorter ones match only as a word: "the" occurs in half of all texts
_DIGITS: Final = 6  # so many digits are one number, however they are grouped
_GAPS: Final = re.compile(r"[\s\u00ad\u200b-\u200d\u2060\ufeff]+")
_GROUPS: Final = re.compile(r"[-./()+]+")


class Echoes:
    """Search for `values` anywhere in a text, and for `whole` only as the complete text.

    Pages show them differently from how they were typed: in capitals, over several elements, a
    card's number in groups, or in another spelling. Values of three characters and more are
    searched, in memory only.
    """

    def __init__(self, values: Iterable[str], whole: Iterable[str] = ()) -> None:
        values = list(dict.fromkeys(values))
        self._search = Search([value for value in values if len(value.strip()) >= _WORD])
        found = {
            normalised for value in values if len(normalised := _normalised(value)) >= SHORTEST
        }
        self._values = [value for value in found if len(value) >= _WORD]
        words = "|".join(re.escape(value) for value in found if len(value) < _WORD)
        self._words = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        ungrouped = (_GROUPS.sub("", value) for value in self._values)
        self._numbers = [one for one in ungrouped if one.isdigit() and len(one) >= _DIGITS]
        self._whole = {
            normalised for one in whole if len(normalised := _normalised(one)) >= SHORTEST
        }

    def __bool__(self) -> bool:
        return bool(self._values or self._words or self._whole)

    def within(self, texts: Sequence[str]) -> set[int]:
        """Indexes of texts that show one of the values, alone or together with their neighbours."""
        normalised_texts = [_normalised(text) for text in texts]
        found = {
            at
            for at, normalised in enumerate(normalised_texts)
            if self._matches_alone(texts[at], normalised)
        }
        found |= _covered_by(normalised_texts, self._values)
        found |= self._matches_spelled(texts)
        if self._numbers:
            found |= _covered_by(
                [_GROUPS.sub("", normalised) for normalised in normalised_texts], self._numbers
            )
        return found

    def _matches_spelled(self, texts: Sequence[str]) -> set[int]:
        """Indexes of texts that show a value in another spelling, alone and joined."""
        found = {at for at, text in enumerate(texts) if self._search.spans(text)}
        starts = list(accumulate(map(len, texts), initial=0))[:-1]
        for begin, end, _ in self._search.spans("".join(texts)):
            found |= _covered(starts, begin, end)
        return found

    def _matches_alone(self, text: str, normalised: str) -> bool:
        return normalised in self._whole or bool(
            self._words and self._words.search(text.casefold())
        )


def _normalised(text: str) -> str:
    return _GAPS.sub("", text.casefold())


def _covered_by(texts: Sequence[str], values: Iterable[str]) -> set[int]:
    """Indexes of texts that a value covers in their concatenation."""
    whole = "".join(texts)
    starts = list(accumulate(map(len, texts), initial=0))[:-1]
    found: set[int] = set()
    for value in values:
        at = whole.find(value)
        while at >= 0:
            found |= _covered(starts, at, at + len(value))
            at = whole.find(value, at + 1)
    return found


def _covered(starts: Sequence[int], begin: int, end: int) -> set[int]:
    """Indexes of texts that the range from `begin` to `end` of their concatenation covers."""
    return set(range(bisect_right(starts, begin) - 1, bisect_right(starts, end - 1)))
