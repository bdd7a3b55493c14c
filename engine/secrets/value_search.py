"""Search for exact values in a text, in all their spellings (`spellings`, escaped letters)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from engine.secrets.spellings import BACKSLASH, HASH, SEMICOLON, forms_of

# Decoding of escaped plain letters: `\u0041`, `\x41`, `&#65;`, `%41`, `\41 `.  Browsers write ASCII
# letters and digits literally; pages may not. A text is decoded, and every offset in the decoded
# text maps to one in the original. Other characters are left to `spellings`, except for those that
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
