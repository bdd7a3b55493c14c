"""Edit one table of a TOML text by its lines, and keep all others.

The standard library reads TOML but does not write it. Lines inside a long string can look like the
header of a table: callers must parse the result and compare it with what they expect.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEADER: Final = re.compile(r"\s*\[")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


def parse(text: str) -> dict[str, Any]:
    """Return the data of a text. Raises ValueError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def table_text(path: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """Return a table of strings and lists of strings, with its header."""
    header = ".".join(name if _BARE_KEY.fullmatch(name) else _text(name) for name in path)
    return "\n".join((f"[{header}]", *_lines(values), ""))


def with_values(
    text: str, path: tuple[str, ...], values: Mapping[str, Any], dropped: frozenset[str]
) -> str:
    """Set values of the table at `path` and drop others; a missing table is added at the end."""
    lines = text.split("\n")
    ending = "\r" if lines[0].endswith("\r") else ""
    at = _header_of(lines, path)
    if at is None:
        lead = text if not text or text.endswith("\n") else f"{text}{ending}\n"
        lead += f"{ending}\n" if lead else ""
        return lead + table_text(path, values).replace("\n", f"{ending}\n")
    end = _end_of(lines, at)
    kept = [
        line
        for key, part in _assignments(lines[at + 1 : end])
        if key not in values and key not in dropped
        for line in part
    ]
    new = [line + ending for line in _lines(values)]
    return "\n".join((*lines[: at + 1], *new, *kept, *lines[end:]))


def without_table(text: str, path: tuple[str, ...]) -> str:
    """Remove the table at `path` and the tables in it, each with the blank line before it."""
    lines = text.split("\n")
    while (at := _header_of(lines, path, within=True)) is not None:
        end = _end_of(lines, at)
        if at and not lines[at - 1].strip():
            at -= 1
        del lines[at:end]
    return "\n".join(lines)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        items = [_text(item) for item in value] if isinstance(value, list) else None
        yield f"{name} = " + (_text(value) if items is None else f"[{', '.join(items)}]")


def _header_of(lines: list[str], path: tuple[str, ...], *, within: bool = False) -> int | None:
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
