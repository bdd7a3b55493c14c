"""Custom fields of a page: values that the operator asks for by CSS selector.

A rule is one line, `NAME = SELECTOR @ATTRIBUTE`: the name, with `[]` behind it for the values of
every match, a selector, and maybe an attribute, without which the value is the text. Both engines
read the document itself, hidden elements included, as they do for the facts. Values are untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.model.addresses import link_address
from engine.model.display import display

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_FIELDS: Final = 50
MAX_VALUES: Final = 200  # of one field with `[]`
MAX_VALUE_CHARS: Final = 2_048
ADDRESSES: Final = frozenset({"action", "cite", "data", "formaction", "href", "poster", "src"})
_RULE: Final = re.compile(
    r"\s*([A-Za-z][\w-]{0,63})\s*(\[\s*\])?\s*=\s*(.+?)(?:\s+@\s*([A-Za-z_:][\w:.-]*))?\s*",
    re.DOTALL,
)


class FieldRule(NamedTuple):
    """One custom field. `many`: the values of all matches, else that of the first one."""

    name: str
    selector: str
    attribute: str = ""
    many: bool = False


def field_rule(line: str) -> FieldRule:
    """Read a rule. Raises ValueError with the reason."""
    found = _RULE.fullmatch(line)
    if found is None:
        said = display(line.strip(), 80)
        raise ValueError(f"{said}: is no field. Write NAME = SELECTOR, such as price = .price")
    name, many, selector, attribute = found.groups()
    if not is_selector(selector):
        raise ValueError(f"{name}: {selector} is not a CSS selector")
    return FieldRule(name, selector, (attribute or "").lower(), many is not None)


def field_rules(lines: Iterable[str]) -> tuple[FieldRule, ...]:
    """Read the rules of all lines that are not blank. Raises ValueError with the reason."""
    rules = tuple(map(field_rule, filter(str.strip, lines)))
    if len(rules) > MAX_FIELDS:
        raise ValueError(f"must be at most {MAX_FIELDS} fields")
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"has the field {twice} twice")
    return rules


def is_selector(text: str) -> bool:
    """Return whether the static engine can use it, whose selectors are a part of a browser's."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p></p>").css(text)
    except (SelectolaxError, ValueError):
        return False
    return True


def values_of(tree: LexborHTMLParser, rules: Iterable[FieldRule], base: str) -> dict[str, Any]:
    """Return the values of a parsed document; fields without a match are left out.

    A field with `many` has a list.
    """
    found: dict[str, Any] = {}
    for rule in rules:
        values = [_value(node, rule, base) for node in tree.css(rule.selector)[:MAX_VALUES]]
        values = [value for value in values if value is not None]
        if values:
            found[rule.name] = values if rule.many else values[0]
    return found


def _value(node: LexborNode, rule: FieldRule, base: str) -> str | None:
    if not rule.attribute:
        from engine.pages.spaced_text import spaced_text  # every command would load it

        return _level(spaced_text(node))
    given = node.attributes
    if rule.attribute not in given:
        return None
    value = given[rule.attribute] or ""
    address = link_address(base, value) if rule.attribute in ADDRESSES else None
    return _level(value if address is None else address.url)


def leveled(value: str | list[str]) -> str | list[str]:
    """Return the value of a field, each text on one line and within its limit."""
    return _level(value) if isinstance(value, str) else list(map(_level, value))


def _level(text: str) -> str:
    return " ".join(text[: 8 * MAX_VALUE_CHARS].split())[:MAX_VALUE_CHARS]
