"""Edit one entry of a JSON or TOML text, and keep the rest: comments, order, spaces and line ends.

In JSON, comments and trailing commas are accepted, as editors write them. They are blanked out
first, so that the offsets of the standard decoder are offsets of the text; a second tokenizer is
not needed.

The standard library reads TOML but does not write it, so a table is edited by its lines. Lines
inside a long string can look like the header of a table: callers must parse the result and compare
it with what they expect.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

Keys = tuple[str, ...]

_STRING: Final = r'"(?:[^"\\\n]++|\\.)*+"'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_BLANKS: Final = " \t\r\n"
_BLANK: Final = re.compile(f"[{_BLANKS}]*")
_LINE_END: Final = re.compile(r"[ \t]*(?:\r?\n|$)")
_INDENT: Final = re.compile(r'^([ \t]+)"', re.MULTILINE)
_HEADER: Final = re.compile(r"\s*\[")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


class Uneditable(ValueError):
    """The text is valid, but its value cannot be replaced; `str()` gives the reason."""


def parse_json(text: str) -> Any:
    """Return the data of a text; None if it holds nothing but comments. Raises ValueError."""
    plain = _Source(text).plain
    if not plain.strip(_BLANKS):
        return None
    try:
        return json.loads(plain, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def json_with_value(text: str, path: Keys, value: Any) -> str:
    """Set the value at `path`; missing objects on the way are added. Raises Uneditable."""
    source = _Source(text)
    if not source.plain.strip(_BLANKS):
        lead = text.rstrip(_BLANKS)
        head = lead + source.line_end if lead else ""
        return head + source.dumped(_nested(path, value), "") + source.line_end
    scope = source.root()
    *outer, last = path
    for depth, name in enumerate(outer, 1):
        found = scope.member(name)
        if found is None:
            return source.with_member(scope, name, _nested(path[depth:], value))
        scope = source.object_at(found.value, name)
    found = scope.member(last)
    if found is None:
        return source.with_member(scope, last, value)
    new = source.dumped(value, source.indent_at(found.start))
    return text[: found.value] + new + text[found.end :]


def json_without_value(text: str, path: Keys) -> str:
    """Remove the member at `path`, with its comma; nothing happens if it is missing."""
    source = _Source(text)
    if not source.plain.strip(_BLANKS):
        return text
    scope = source.root()
    for name in path[:-1]:
        found = scope.member(name)
        if found is None:
            return text
        scope = source.object_at(found.value, name)
    found = scope.member(path[-1])
    return text if found is None else source.without_member(scope, found)


def is_bare_json(text: str, name: str) -> bool:
    """Return whether a member of the whole object is an empty object without any comment."""
    source = _Source(text)
    found = source.root().member(name)
    if found is None:
        return False
    part = slice(found.start, _skip(source.bare, found.end))  # up to its comma
    empty = not source.object_at(found.value, name).members
    return empty and text[part] == source.bare[part]


def _nested(path: Keys, value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    start: int  # of the name
    value: int  # start of the value
    end: int  # behind the value


@dataclass(frozen=True, slots=True)
class _Object:
    start: int  # of the opening brace
    end: int  # of the closing brace
    members: tuple[_Member, ...]

    def member(self, name: str) -> _Member | None:
        found = [member for member in self.members if member.name == name]
        if len(found) > 1:
            raise Uneditable(f'"{name}" is given twice')
        return found[0] if found else None


class _Source:
    """A text, and copies of the same length without comments and trailing commas."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = _COMMENT.sub(_unless_string(lambda found: _blanked(found[0])), text)
        self.plain = _LAST_COMMA.sub(_unless_string(self._comma), self.bare)
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        indent = _INDENT.search(self.plain)
        self.unit = indent[1] if indent else "  "

    def _comma(self, found: re.Match[str]) -> str:
        """Blank a trailing comma; one without a value before it is a mistake and stays."""
        at = found.start() - 1
        while at >= 0 and self.bare[at].isspace():
            at -= 1
        return " " if at >= 0 and self.bare[at] not in "[{,:" else ","

    def root(self) -> _Object:
        return self.object_at(_skip(self.plain, 0), "")

    def object_at(self, start: int, name: str) -> _Object:
        """Read the members of the object at an offset; the text is known to be valid."""
        plain = self.plain
        if plain[start] != "{":
            raise Uneditable(f'"{name}" is not an object' if name else "it is not an object")
        decode = json.JSONDecoder().raw_decode
        members = []
        at = _skip(plain, start + 1)
        while plain[at] != "}":
            key, after = decode(plain, at)
            value = _skip(plain, _skip(plain, after) + 1)
            _, end = decode(plain, value)
            members.append(_Member(key, at, value, end))
            at = _skip(plain, end)
            if plain[at] == ",":
                at = _skip(plain, at + 1)
        return _Object(start, at, tuple(members))

    def indent_at(self, at: int) -> str:
        """Return the white space at the beginning of the line of an offset."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def dumped(self, value: Any, indent: str) -> str:
        text = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return text.replace("\n", self.line_end + indent)

    def with_member(self, scope: _Object, name: str, value: Any) -> str:
        text, outer = self.text, self.indent_at(scope.start)
        end = len(
            text[: scope.end].rstrip(_BLANKS)
        )  # behind the last comment, so that it keeps its place
        if not scope.members:
            inner = outer + self.unit
            lead = self.line_end + inner + json.dumps(name) + ": "
            tail = self.line_end + outer + text[scope.end :]
            return text[:end] + lead + self.dumped(value, inner) + tail
        first, last = scope.members[0], scope.members[-1].end
        if "\n" in text[scope.start : scope.end]:
            inner = self.indent_at(first.start) or outer + self.unit
            lead, new = self.line_end + inner, self.dumped(value, inner)
        else:
            lead, new = " ", json.dumps(value, ensure_ascii=False)
        added = lead + json.dumps(name) + ": " + new
        if self.bare[_skip(self.bare, last)] == ",":
            return text[:end] + added + "," + text[end:]
        return text[:last] + "," + text[last:end] + added + text[end:]

    def without_member(self, scope: _Object, member: _Member) -> str:
        text, bare = self.text, self.bare
        comma = _skip(bare, member.end)
        followed = bare[comma] == ","
        end = comma + 1 if followed else member.end
        start = len(text[: member.start].rstrip(_BLANKS))
        alone = len(scope.members) == 1 and start == scope.start + 1
        if alone and not text[end : scope.end].strip(_BLANKS):
            return text[:start] + text[scope.end :]
        if not _LINE_END.match(text, end):  # something follows in the same line
            if followed:
                start, end = member.start, _skip(text, end)
            elif "\n" in text[start : member.start]:
                start = member.start  # the line end may close a comment
        head = text[:start]
        place = scope.members.index(member)
        if not followed and place:
            before = _skip(bare, scope.members[place - 1].end)
            head = text[:before] + text[before + 1 : start]
        return head + text[end:]


def _unless_string(change: Callable[[re.Match[str]], str]) -> Callable[[re.Match[str]], str]:
    return lambda found: found[0] if found[0].startswith('"') else change(found)


def _blanked(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _skip(text: str, at: int) -> int:
    """Return the offset of the next character that is no white space."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def parse_toml(text: str) -> dict[str, Any]:
    """Return the data of a text. Raises ValueError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def toml_table(path: Keys, values: Mapping[str, Any]) -> str:
    """Return a table of strings and lists of strings, with its header."""
    header = ".".join(name if _BARE_KEY.fullmatch(name) else _quoted(name) for name in path)
    return "\n".join((f"[{header}]", *_toml_lines(values), ""))


def toml_with_values(
    text: str, path: Keys, values: Mapping[str, Any], dropped: frozenset[str]
) -> str:
    """Set values of the table at `path` and drop others; a missing table is added at the end."""
    lines = text.split("\n")
    ending = "\r" if lines[0].endswith("\r") else ""
    at = _header_of(lines, path)
    if at is None:
        lead = text if not text or text.endswith("\n") else f"{text}{ending}\n"
        lead += f"{ending}\n" if lead else ""
        return lead + toml_table(path, values).replace("\n", f"{ending}\n")
    end = _end_of(lines, at)
    kept = [
        line
        for key, part in _assignments(lines[at + 1 : end])
        if key not in values and key not in dropped
        for line in part
    ]
    new = [line + ending for line in _toml_lines(values)]
    return "\n".join((*lines[: at + 1], *new, *kept, *lines[end:]))


def toml_without_table(text: str, path: Keys) -> str:
    """Remove the table at `path` and the tables in it, each with the blank line before it."""
    lines = text.split("\n")
    while (at := _header_of(lines, path, within=True)) is not None:
        end = _end_of(lines, at)
        if at and not lines[at - 1].strip():
            at -= 1
        del lines[at:end]
    return "\n".join(lines)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_lines(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        items = [_quoted(item) for item in value] if isinstance(value, list) else None
        yield f"{name} = " + (_quoted(value) if items is None else f"[{', '.join(items)}]")


def _header_of(lines: list[str], path: Keys, *, within: bool = False) -> int | None:
    """Return the line with the header of the table, or also of a table in it."""
    names = r"\s*\.\s*".join(
        f"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')" for name in path
    )
    deeper = r"(?:\s*\.[^\]\n]*)?" if within else ""
    header = re.compile(rf"\s*\[\s*{names}{deeper}\s*\]\s*(?:#.*)?")
    return next((at for at, line in enumerate(lines) if header.fullmatch(line)), None)


def _end_of(lines: list[str], at: int) -> int:
    """Return the line behind a table; comments before the next header belong to that one."""
    end = at + 1
    while end < len(lines) and not _HEADER.match(lines[end]):
        end += 1
    while end > at + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _assignments(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of each value with its key, and other lines with an empty key."""
    at = 0
    while at < len(lines):
        found = _KEY.match(lines[at])
        end = at + 1
        while found and end < len(lines) and not _is_complete(lines[at:end]):
            end += 1
        yield (found[1].strip("\"'") if found else ""), lines[at:end]
        at = end


def _is_complete(lines: list[str]) -> bool:
    try:
        tomllib.loads("\n".join((*lines, "")))
    except tomllib.TOMLDecodeError:
        return False
    return True
