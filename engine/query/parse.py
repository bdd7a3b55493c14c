"""Parser from query text to a tree, and how the tree is written again; mistakes are QueryErrors.

    query  := either            either := both ("OR" both)*
    both   := one (["AND"] one)*        one := ("NOT" | "-") one | "(" either ")" | term
    term   := [field ":" [comparison]] value        value := word | "in quotes"

Between quotes `"` is a quote and `\\` a backslash. AND, OR and NOT count in capitals only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from engine.model.errors import QueryError


class UnknownField(QueryError):
    """A word before a colon is no known field."""

    code = "unknown_field"
    sentence = "Unknown field ‘{given}’. {hint}"
    advice_text = "Put the word in quotes to look for it as text."


class UnknownValue(QueryError):
    """A field with a fixed set of values got another one."""

    code = "unknown_value"
    sentence = "‘{given}’ is no value of {field}:. {hint}"


class BadComparison(QueryError):
    """A number, a duration or a comparison has the wrong form for its field."""

    code = "bad_comparison"
    sentence = "‘{given}’ cannot be compared in {field}:. Write it like {example}."


class MissingPart(QueryError):
    """A required part is missing: a value, or the operand of OR, NOT or a bracket."""

    code = "missing_part"
    sentence = "{after} needs something after it."


class UnclosedMark(QueryError):
    """A quote or a bracket is not closed."""

    code = "unclosed_mark"
    sentence = "The {mark} at position {at} has no other half."


class QueryTooLong(QueryError):
    """A query exceeds the limit of length or nesting."""

    code = "query_too_long"
    sentence = "The filter is too long or nested too deep ({limit})."


COMPARISONS: Final = ("<=", ">=", "<", ">", "=")
KEYWORDS: Final = frozenset({"AND", "OR", "NOT"})
_PLAIN = re.compile(r"[^\s()\"]+")
_KEY = re.compile(r"[A-Za-z][A-Za-z_0-9]*:")


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


def key_of(word: str, numbered: Collection[str] = ()) -> str | None:
    """Return the field that a word begins with; None for an address (`https://…`, `node1:80`).

    Only the fields `numbered` have digits in their names.
    """
    found = _KEY.match(word)
    if found is None or word.startswith("//", found.end()):
        return None
    key = found[0][:-1]
    return key if key.replace("_", "").isalpha() or key.lower() in numbered else None


MAX_CHARACTERS: Final = 4096
MAX_DEPTH: Final = 50  # brackets and NOTs: far below the limit of recursion
_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"[^\s()\"]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_LEADS = re.compile(r"-+")


@dataclass(frozen=True, slots=True)
class Token:
    """Word, bracket, dash or quoted text, with its position."""

    kind: str  # "word", "quoted", "(", ")", "-"
    text: str
    at: int
    joined: bool = False  # directly behind the previous token


def parse(text: str, numbered: Collection[str] = ()) -> Node:
    """Parse `text`; an empty query matches everything.

    Only the fields `numbered` have digits in their names.

    Raises:
        QueryError: one of its kinds, with the position of the mistake.
    """
    if len(text) > MAX_CHARACTERS:
        raise QueryTooLong(MAX_CHARACTERS, limit=f"{MAX_CHARACTERS} characters")
    return _Reader(list(_tokens(text)), len(text), numbered).parse_all()


def loose_terms(text: str) -> Iterator[Term | QueryError]:
    """Yield every condition of `text` regardless of structure; for an invalid one its error."""
    tokens, broken = [], None
    try:
        for token in _tokens(text[:MAX_CHARACTERS]):
            tokens.append(token)  # noqa: PERF402 - tokens before a mistake count
    except QueryError as error:
        broken = error
    yield from _Reader(tokens, len(text)).parse_terms()
    if broken is not None:
        yield broken


def _tokens(text: str) -> Iterator[Token]:
    at, end = 0, -1
    while at < len(text):
        blank = _BLANK.match(text, at)
        if blank is not None:
            at = blank.end()
            continue
        for token, stop in _next(text, at):
            yield Token(token.kind, token.text, token.at, token.at == end)
            at = end = stop


def _next(text: str, at: int) -> Iterator[tuple[Token, int]]:
    """Yield the token at `at`, with its end; a word's leading dashes are separate tokens."""
    if text[at] in "()":
        yield Token(text[at], text[at], at), at + 1
        return
    if text[at] == '"':
        found = _QUOTED.match(text, at)
        if found is None:
            raise UnclosedMark(at, mark="quote", at=at + 1)
        yield Token("quoted", _ESCAPED.sub(r"\1", found[1]), at), found.end()
        return
    found = _WORD.match(text, at)
    assert found is not None  # neither blank, bracket nor quote
    dashes = _LEADS.match(found[0])
    lead = dashes.end() if dashes is not None else 0
    follows = found.end() < len(text) and text[found.end()] in '("'
    if lead == len(found[0]) and not follows:  # a dash alone is text
        yield Token("quoted", found[0], at), found.end()
        return
    for number in range(lead):
        yield Token("-", "-", at + number), at + number + 1
    if lead < len(found[0]):
        yield Token("word", found[0][lead:], at + lead), found.end()


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[Token], end: int, numbered: Collection[str] = ()) -> None:
        self._tokens, self._numbered = tokens, numbered
        self._end = end
        self._next = 0
        self._depth = 0

    def parse_all(self) -> Node:
        if not self._tokens:
            return EVERYTHING
        node = self._parse_or("")
        left = self._peek()
        if left is not None:  # `_parse_or` stops early before a closing bracket only
            raise UnclosedMark(left.at, mark="bracket", at=left.at + 1)
        return node

    def parse_terms(self) -> Iterator[Term | QueryError]:
        """Yield the conditions in order, without a tree."""
        while (token := self._peek()) is not None:
            self._next += 1
            if token.kind != "word" or token.text in KEYWORDS:
                continue
            try:
                node = self._parse_term(token)
            except QueryError as error:
                yield error
                continue
            if isinstance(node, Term):
                yield node

    def _parse_or(self, after: str) -> Node:
        parts = [self._parse_and(after)]
        while self._accept_word("OR"):
            parts.append(self._parse_and("OR"))
        return parts[0] if len(parts) == 1 else Or(tuple(_flatten(parts, Or)))

    def _parse_and(self, after: str) -> Node:
        parts = [self._parse_one(after)]
        while True:
            if self._accept_word("AND"):
                parts.append(self._parse_one("AND"))
                continue
            token = self._peek()
            if token is None or token.kind == ")" or _is_word(token, "OR"):
                break
            parts.append(self._parse_one(""))
        return parts[0] if len(parts) == 1 else And(tuple(_flatten(parts, And)))

    def _parse_one(self, after: str) -> Node:
        token = self._peek()
        if token is None or token.kind == ")" or _is_word(token, "OR") or _is_word(token, "AND"):
            self._missing(after, token)
        self._next += 1
        if token.kind == "-" or _is_word(token, "NOT"):
            return self._nested(
                token, lambda: Not(self._parse_one("NOT" if token.text == "NOT" else "-"))
            )
        if token.kind == "(":
            return self._nested(token, lambda: self._parse_bracket(token))
        if token.kind == "quoted":
            return Text(token.text, True, token.at)
        return self._parse_term(token)

    def _parse_bracket(self, opened: Token) -> Node:
        node = self._parse_or("(")
        token = self._peek()
        if token is None or token.kind != ")":
            raise UnclosedMark(opened.at, mark="bracket", at=opened.at + 1)
        self._next += 1
        return node

    def _parse_term(self, token: Token) -> Node:
        key = key_of(token.text, self._numbered)
        if key is None:
            return Text(token.text, False, token.at)
        rest = token.text[len(key) + 1 :]
        comparison = next((each for each in COMPARISONS if rest.startswith(each)), "")
        value, quoted = rest[len(comparison) :], False
        follower = self._peek()
        if not value and follower is not None and follower.kind == "quoted" and follower.joined:
            self._next += 1
            value, quoted = follower.text, True
        if not value and not quoted:
            raise MissingPart(token.at + len(token.text), after=f"{key}:{comparison}")
        return Term(key.lower(), value, comparison, quoted, token.at)

    def _nested(self, token: Token, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise QueryTooLong(token.at, limit=f"{MAX_DEPTH} levels")
        node = read()
        self._depth -= 1
        return node

    def _missing(self, after: str, token: Token | None) -> NoReturn:
        at = token.at if token is not None else self._end
        if not after and token is not None and token.kind == ")":
            raise UnclosedMark(at, mark="bracket", at=at + 1)
        raise MissingPart(at, after=after or "The beginning")

    def _accept_word(self, word: str) -> bool:
        token = self._peek()
        if token is None or not _is_word(token, word):
            return False
        self._next += 1
        return True

    def _peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None


def _is_word(token: Token, word: str) -> bool:
    return token.kind == "word" and token.text == word


def _flatten(parts: list[Node], kind: type[And] | type[Or]) -> Iterator[Node]:
    """Flatten `a (b c)` to `a b c`: redundant brackets are dropped."""
    for part in parts:
        if isinstance(part, (And, Or)) and isinstance(part, kind):
            yield from part.parts
        else:
            yield part
