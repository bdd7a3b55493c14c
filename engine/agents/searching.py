"""Search for elements of a page by words: the list of `find`, the target of `act`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.agents.errors import TargetUnclear
from engine.agents.grammar import ROLES, Goal
from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.page_outline import Element, element

# Ranking of elements by words in role, name and text. Deterministic: equal ranks keep page order.

_WORD = re.compile(r"\w+")
_EMPTY: Final = frozenset({"the", "a", "an", "of", "in", "on", "to", "for", "and"})
# Field -> weights of a word: whole word, word prefix, substring.
_WEIGHTS: Final[Mapping[str, tuple[int, int, int]]] = {
    "name": (12, 7, 4),
    "role": (6, 0, 0),
    "text": (4, 2, 1),
    "value": (3, 2, 1),
    "hint": (2, 1, 1),
}
EXACT: Final = 20  # weight if the name equals the query

PageElement = Mapping[str, Any]  # element as collected by `looking.js`


class Match(NamedTuple):
    """Element that contains query words: their number, the score, its index in the page."""

    words: int
    score: int
    at: int


def words_of(text: str) -> list[str]:
    """Return the casefolded words; stop words only if there are no others."""
    found = _WORD.findall(text.casefold())
    return [word for word in found if word not in _EMPTY] or found


def plain(text: str) -> str:
    """Normalise a name: casefolded, single spaces."""
    return " ".join(text.casefold().split())


def rank(query: str, elements: Sequence[PageElement]) -> list[Match]:
    """Return the elements that contain a word of `query`, best first."""
    words = list(dict.fromkeys(words_of(query)))
    found = (_match(query, words, at, element) for at, element in enumerate(elements))
    kept = [match for match in found if match.words]
    return sorted(kept, key=lambda match: (-match.words, -match.score, match.at))


def _match(query: str, words: list[str], at: int, element: PageElement) -> Match:
    fields = {key: str(element.get(key, "")).casefold() for key in _WEIGHTS}
    fields["role"] = " ".join(_role_words(str(element.get("role", ""))))
    split = {key: frozenset(_WORD.findall(text)) for key, text in fields.items()}
    scores = [
        max(_weight(word, key, fields[key], split[key]) for key in _WEIGHTS) for word in words
    ]
    exact = EXACT if plain(query) == plain(str(element.get("name", ""))) else 0
    return Match(sum(score > 0 for score in scores), sum(scores) + exact, at)


def _weight(word: str, key: str, text: str, split: frozenset[str]) -> int:
    whole, start, inside = _WEIGHTS[key]
    if word in split:
        return whole
    if start and any(one.startswith(word) for one in split):
        return start
    # One or two letters occur in almost any text.
    return inside if inside and len(word) > 2 and word in text else 0


def _role_words(role: str) -> Iterable[str]:
    """Return a role's name and its everyday names."""
    return [role, *(said for said, roles in ROLES.items() if role in roles and said != "box")]


ACTIVE: Final = frozenset(
    {"link", "button", "textbox", "searchbox", "spinbutton", "checkbox", "radio", "switch"}
    | {"slider", "combobox", "listbox", "option", "tab", "menuitem", "menuitemcheckbox"}
    | {"menuitemradio", "treeitem", "file", "color"}
)
# Roles that an action requires; other actions accept any element.
_FOR: Final[Mapping[str, frozenset[str]]] = {
    "type": frozenset({"textbox", "searchbox", "spinbutton", "combobox", "slider", "color"}),
    "clear": frozenset({"textbox", "searchbox", "spinbutton", "combobox"}),
    "select": frozenset({"combobox", "listbox"}),
    "check": frozenset({"checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"}),
    "uncheck": frozenset({"checkbox", "switch", "menuitemcheckbox"}),
}


def best_matches(goal: Goal, action: str, elements: Sequence[PageElement]) -> list[int]:
    """Return the indexes of the elements that best match `goal`: one if it is clear.

    The rules in order: equal name, same words, all words in the name, all words anywhere. Within a
    rule, interactive roles precede clickable elements, and those precede plain text. An empty list:
    no match.
    """
    able = [at for at, one in enumerate(elements) if _can(action, one)]
    readings = [(goal.words, ""), *([(goal.name, goal.role)] if goal.role else [])]
    for rule in (_has_name, _has_words, _holds_words, _mentions_words):
        for name, role in readings:
            fits = [at for at in able if _is_a(role, elements[at]) and rule(name, elements[at])]
            if fits:
                return _innermost(_most_interactive(fits, elements), elements)
    return []


def _most_interactive(fits: list[int], elements: Sequence[PageElement]) -> list[int]:
    classes = {at: _interactivity(str(elements[at].get("role"))) for at in fits}
    best = min(classes.values())
    return [at for at in fits if classes[at] == best]


def _interactivity(role: str) -> int:
    return 0 if role in ACTIVE else 1 if role == "clickable" else 2


def _innermost(fits: list[int], elements: Sequence[PageElement]) -> list[int]:
    """Drop elements that have the name only because they contain another match."""
    around: set[int] = set()
    for at in fits:
        above = int(elements[at].get("above", -1))
        while above >= 0:
            around.add(above)
            above = int(elements[above].get("above", -1))
    return [at for at in fits if at not in around]


def _can(action: str, element: PageElement) -> bool:
    roles = _FOR.get(action)
    return roles is None or str(element.get("role")) in roles


def _is_a(role: str, element: PageElement) -> bool:
    return not role or str(element.get("role")) in ROLES[role]


def _has_name(name: str, element: PageElement) -> bool:
    return not name or plain(str(element.get("name", ""))) == plain(name)


def _has_words(name: str, element: PageElement) -> bool:
    return set(words_of(name)) == set(words_of(str(element.get("name", ""))))


def _holds_words(name: str, element: PageElement) -> bool:
    return set(words_of(name)) <= set(words_of(str(element.get("name", ""))))


def _mentions_words(name: str, element: PageElement) -> bool:
    told = " ".join(str(element.get(key, "")) for key in ("name", "text", "hint", "value"))
    return bool(words_of(name)) and set(words_of(name)) <= set(_WORD.findall(told.casefold()))


MOST = 5_000  # elements of one page that are searched
SHOWN = 8  # candidates listed for an unclear instruction


class Hit(NamedTuple):
    """Found element, with its text where it differs from the name."""

    element: Element
    text: str


async def find_elements(tab: AgentTab, query: str, limit: int) -> tuple[list[Hit], int]:
    """Return the best `limit` elements for the query, and the number of all matches."""
    items = await _collect(tab)
    matches = rank(query, items)
    return await _hits(tab, items, [match.at for match in matches[:limit]]), len(matches)


async def find_target(tab: AgentTab, goal: Goal, action: str) -> str:
    """Return the reference of the only element that matches `goal`.

    Raises:
        TargetUnclear: several match, or none; the error lists near matches.
    """
    if goal.ref:
        return goal.ref
    items = await _collect(tab)
    fits = best_matches(goal, action, items)
    if len(fits) == 1:
        return (await _hits(tab, items, fits))[0].element.ref
    near = fits or [match.at for match in rank(goal.words, items)]
    hits = await _hits(tab, items, near[:SHOWN])
    named = tab.mask.text(goal.words, 100)
    if fits:
        reason = f"{len(fits)} elements fit '{named}': "
    else:
        reason = f"No element fits '{named}'" + ("; near it are: " if hits else ".")
    candidates = ", ".join(hit.element.called for hit in hits)
    example = hits[0].element.ref if hits else "ref_1_7"
    raise TargetUnclear(reason=reason, candidates=candidates, example=example)


async def _collect(tab: AgentTab) -> list[dict[str, Any]]:
    told = await tab.world.ask("collect", most=MOST)
    return list(told["items"])


async def _hits(tab: AgentTab, items: Sequence[dict[str, Any]], at: list[int]) -> list[Hit]:
    """Assign references to these elements."""
    numbers = (await tab.world.ask("number", at=at))["refs"]
    hits = []
    for place, number in zip(at, numbers, strict=True):
        item = items[place]
        found = element({**item, "ref": number}, tab.number, tab.mask)
        text = str(item.get("text", ""))
        told = "" if plain(text) == plain(str(item["name"])) else tab.mask.content(text, 200)
        hits.append(Hit(found, told))
    return hits
