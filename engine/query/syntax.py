"""The tree of a query, and how it is written down again.

    query  := either            either := both ("OR" both)*
    both   := one (["AND"] one)*        one := ("NOT" | "-") one | "(" either ")" | term
    term   := [field ":" [comparison]] value        value := word | "in quotes"

Between quotes `\"` is a quote and `\\` a backslash. AND, OR and NOT count in capitals only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

COMPARISONS: Final = ("<=", ">=", "<", ">", "=")
KEYWORDS: Final = frozenset({"AND", "OR", "NOT"})
_PLAIN = re.compile(r"[^\s()\"]+")
_KEY = re.compile(r"[A-Za-z][A-Za-z_]*:")


@dataclass(frozen=True, slots=True)
class Text:
    """Free text; quoted text is literal, `*` included."""

    value: str
    quoted: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Term:
    """Field with its value: `age:<1h` is key `age`, comparison `<`, value `1h`."""

    key: str
    value: str
    comparison: str = ""
    quoted: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


Node = Text | Term | Not | And | Or
EVERYTHING: Final = And(())


def written(node: Node) -> str:
    """Format `node` as a query that parses to the same tree."""
    if isinstance(node, And):
        return " ".join(_grouped(part, And) for part in node.parts)
    if isinstance(node, Or):
        return " OR ".join(_grouped(part, Or) for part in node.parts)
    if isinstance(node, Not):
        return "-" + _grouped(node.part, Not)
    if isinstance(node, Text):
        return _value(node.value, node.quoted)
    return f"{node.key}:{node.comparison}{_value(node.value, node.quoted)}"


def _grouped(part: Node, inside: type[And | Or | Not]) -> str:
    """Add brackets where the parts would otherwise be split or joined with their neighbours."""
    loose = isinstance(part, (And, Or)) and not (inside is Or and isinstance(part, And))
    return f"({written(part)})" if loose else written(part)


def _value(value: str, quoted: bool) -> str:
    return in_quotes(value) if quoted else value


def in_quotes(text: str) -> str:
    """Quote `text` as a query for the literal text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def term(key: str, value: str, *, quoted: bool = False) -> str:
    """Build a query for a field with this literal value, quoted where necessary."""
    plain = not quoted and _PLAIN.fullmatch(value) and value[:1] not in "<>=" and "*" not in value
    return f"{key}:{value if plain else in_quotes(value)}"


def is_plain(word: str) -> bool:
    """Return whether this unquoted word parses as free text and nothing else."""
    return (
        _PLAIN.fullmatch(word) is not None
        and word not in KEYWORDS
        and not word.startswith("-")
        and (key_of(word) is None)
    )


def key_of(word: str) -> str | None:
    """Return the field that a word begins with; None for an address (`https://…`)."""
    found = _KEY.match(word)
    if found is None or word.startswith("//", found.end()):
        return None
    return found[0][:-1]
