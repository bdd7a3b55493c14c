"""Looking for elements of a page by words: `find`'s list, and the one that `act` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.agents.errors import TargetUnclear
from engine.agents.grammar import Goal
from engine.agents.matching import aim, plain, rank
from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.page_outline import Element, element

MOST = 5_000  # elements of one page that are compared
SHOWN = 8  # candidates that an unclear instruction is answered with


class Hit(NamedTuple):
    """An element that was found, and its text where that says more than its name."""

    element: Element
    text: str


async def found_elements(tab: AgentTab, query: str, limit: int) -> tuple[list[Hit], int]:
    """The best `limit` elements for these words, and how many there are."""
    items = await _collect(tab)
    matches = rank(query, items)
    return await _hits(tab, items, [match.at for match in matches[:limit]]), len(matches)


async def meant(tab: AgentTab, goal: Goal, action: str) -> str:
    """The reference of the one element that `goal` names.

    Raises:
        TargetUnclear: several, or none; the error lists what comes near.
    """
    if goal.ref:
        return goal.ref
    items = await _collect(tab)
    fits = aim(goal, action, items)
    if len(fits) == 1:
        return (await _hits(tab, items, fits))[0].element.ref
    near = fits or [match.at for match in rank(goal.words, items)]
    hits = await _hits(tab, items, near[:SHOWN])
    named = tab.veil.text(goal.words, 100)
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
    """Give these elements their references."""
    numbers = (await tab.world.ask("number", at=at))["refs"]
    hits = []
    for place, number in zip(at, numbers, strict=True):
        item = items[place]
        found = element({**item, "ref": number}, tab.number, tab.veil)
        text = str(item.get("text", ""))
        told = "" if plain(text) == plain(str(item["name"])) else tab.veil.content(text, 200)
        hits.append(Hit(found, told))
    return hits
