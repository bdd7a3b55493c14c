"""The eight tools on a locked tab, and their search for elements by words.

Loaded with the first call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from engine.agents.grammar import ROLES, Goal, Step, parse
from engine.agents.reply import (
    MOST_TEXT_BYTES,
    Image,
    InstructionRefused,
    TargetUnclear,
    ToolReply,
    reply,
)
from engine.agents.sessions import QueuedTab, Session, Sessions
from engine.browser.chromium.browser_instance import LEAVING
from engine.browser.interact import element_actions
from engine.browser.interact.agent_tab import AgentTab, Refused, Visit
from engine.browser.interact.element_actions import ActionResult, Target, evaluate, interact
from engine.browser.interact.page_outline import REFERENCE, Element, element, page
from engine.browser.page.screenshot import picture
from engine.kinds.arguments import web_address

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
    """Return the elements that contain a word of `query`, best first.

    An element around another match of the same name, as a list item around a link, is left out,
    unless it is the one that can be used.
    """
    words = list(dict.fromkeys(words_of(query)))
    found = [_match(query, words, at, element) for at, element in enumerate(elements)]
    kept = {match.at: match for match in found if match.words}
    around = _wrappers(kept, elements)
    shown = [match for match in kept.values() if match.at not in around]
    return sorted(shown, key=lambda match: (-match.words, -match.score, match.at))


def _wrappers(matches: Mapping[int, Match], elements: Sequence[PageElement]) -> set[int]:
    """Return the matches that only pass on the name of another match inside them.

    A link around a heading or a button around an image is what can be used, so it is none; nor is
    what has more of the words, as a heading around a link that was asked for as a heading.
    """
    names = [plain(str(one.get("name", ""))) for one in elements]
    uses = [_interactivity(str(one.get("role"))) for one in elements]
    return {
        above
        for at, match in matches.items()
        if names[at]
        for above in _ancestors(at, elements)
        if names[above] == names[at] and above in matches
        if uses[above] >= uses[at] and matches[above].words <= match.words
    }


def _ancestors(at: int, elements: Sequence[PageElement]) -> Iterator[int]:
    above = int(elements[at].get("above", -1))
    while above >= 0:
        yield above
        above = int(elements[above].get("above", -1))


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
    around = {above for at in fits for above in _ancestors(at, elements)}
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


# `act`: parsed by `grammar`, target found by `searching`.


async def act(tab: AgentTab, instruction: str, limit_ms: int) -> ActionResult:
    """Execute one step in words.

    Raises:
        InstructionRefused: it is not in the grammar. TargetUnclear: the element is ambiguous.
        ElementNotReady, WrongElement, NoSuchOption, PageError: see `interact`.
    """
    step = parse(instruction)
    if step.goal is None:
        return ActionResult(await _on_page(tab, step, limit_ms), None)
    ref = await find_target(tab, step.goal, step.action)
    return await element_actions.interact(tab, ref, step.action, step.value, limit_ms)


async def _on_page(tab: AgentTab, step: Step, limit_ms: int) -> str:
    if step.action == "press":
        return await element_actions.press(tab, step.value, limit_ms)
    if step.action == "scroll":
        return await element_actions.scroll(tab, step.value, step.pixels, limit_ms)
    if step.action == "goto":
        await tab.go(_address(step.value), limit_ms)
        return "Opened the address."
    if step.action == "reload":
        await tab.travel("reload", limit_ms)
        return "Loaded the page again."
    await tab.travel("back" if step.action == "back" else "forward", limit_ms)
    return f"Went {step.action}."


def _address(said: str) -> str:
    try:
        return web_address(said)
    except ValueError as wrong:
        raise InstructionRefused(reason=f"The address {wrong}.") from wrong


MOST_ITEMS = 5_000  # elements of one page in a reply
VALUE_CUT = "\n… cut: at most 1,000 items of a list, 8 levels and 256 KiB are returned"
MOST_PAGE = 2 * 1024 * 1024  # characters of one page that are examined
TITLE_S = 1.0
_MAY_LEAVE: Final = frozenset({"navigate", "act"})  # tools that also work while a tab shows no page


@dataclass(frozen=True, slots=True)
class Call:
    """One call on its tab. `limit_ms` bounds all its waits."""

    tab: AgentTab
    given: Mapping[str, Any]

    @property
    def limit_ms(self) -> int:
        return int(self.given["timeout_ms"])


async def run(
    sessions: Sessions,
    agent: str,
    tool: str,
    given: Mapping[str, Any],
    budgets: Mapping[str, Any] | None,
) -> ToolReply:
    """Run one tool call of an agent on its locked tab.

    Raises:
        OwnershipError, TabNotFound, NoTabOpen, … : see `Agents.call`.
    """
    if tool == "tabs_context":
        return await _tabs_context(sessions.find(agent))
    async with sessions.using(agent) as session:
        held, is_new = await _tab_of_call(sessions, session, tool, given)
        limit_s = given["timeout_ms"] / 1000
        try:
            async with held.locked(limit_s) as tab, tab.within(limit_s):
                tab.allowlist.narrow(budgets)
                session.current = tab.id
                if tool not in _MAY_LEAVE:
                    tab.check_shown()
                with tab.answering(given.get("dialogs") == "accept", given.get("prompt")):
                    answer = await _TOOLS[tool](Call(tab, given))
        except BaseException:
            if is_new:  # a new tab whose first call failed is empty
                await held.tab.close()
            raise
        finally:
            session.drop_closed()
        return answer


async def _tab_of_call(
    sessions: Sessions, session: Session, tool: str, given: Mapping[str, Any]
) -> tuple[QueuedTab, bool]:
    """Return the tab of a call, and whether it was opened for it."""
    action = str(given.get("action") or tool)
    wanted = given["tab_id"] or _tab_of(given.get("ref"))
    opens = tool == "navigate" and given["action"] == "goto"
    if opens and (given["new_tab"] or (wanted is None and session.current is None)):
        return await sessions.open_tab(session), True
    return sessions.tab_for(session, wanted, action), False


def _tab_of(ref: str | None) -> str | None:
    match = REFERENCE.fullmatch(ref or "")
    return f"tab_{match[1]}" if match else None


async def _navigate(call: Call) -> ToolReply:
    tab, action = call.tab, call.given["action"]
    if action == "close":
        await tab.close()
        return reply(f"Closed {tab.id}.", {"tab_id": tab.id, "closed": True})
    if action == "goto":
        visit = await tab.go(call.given["url"], call.limit_ms, call.given["wait_for"])
    else:
        visit = await tab.travel(action, call.limit_ms)
    refused = tab.take_refused()
    data = {"tab_id": tab.id, **_visited(tab, visit, refused)}
    return reply(_arrival(tab, visit, refused), data)


def _arrival(tab: AgentTab, visit: Visit, refused: Sequence[Refused]) -> str:
    status = f" (HTTP {visit.status})" if visit.status else ""
    text = f'{tab.id} is at {visit.url} "{visit.title}"{status}.'
    if not visit.settled:
        text += " The page has not come to rest yet."
    return text + _dialogs(tab) + "".join(map(_refusal, refused))


_REFUSED: Final = {
    "download": "A download was refused{url}. This browser keeps no files.",
    "window": "A new window was refused{url}. To open an address beside this tab, use navigate "
    "with new_tab.",
}


def _refusal(refused: Refused) -> str:
    url = f": {refused.url}" if refused.url else ""
    return "\n" + _REFUSED[refused.what].format(url=url)


def _visited(tab: AgentTab, visit: Visit, refused: Sequence[Refused]) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(visit)
    if tab.dialogs:
        data["dialogs"] = tab.dialogs
    if refused:
        data["refused"] = msgspec.to_builtins(refused)
    return data


def _dialogs(tab: AgentTab) -> str:
    found = "".join(f"\n{_answered(tab, said)}" for said in tab.dialogs)
    asks = any(said.startswith(("confirm:", "prompt:")) for said in tab.dialogs)
    if asks and tab.answered == "dismissed":
        found += "\nTo accept such a dialog, repeat the call with dialogs: accept."
    return found


def _answered(tab: AgentTab, said: str) -> str:
    asked = f"{LEAVING}:"
    if said.startswith(asked):
        said = said.removeprefix(asked)
        return f"The page asked whether to leave it, and was left. {said}".rstrip()
    return f"A dialog was {tab.answered}: {said}"


async def _read_page(call: Call) -> ToolReply:
    tab, given = call.tab, call.given
    ask = {
        "activeOnly": given["filter"] == "interactive",
        "maxChars": MOST_PAGE,
        "maxItems": MOST_ITEMS,
    }
    if given["ref"] is None:
        told = await tab.world.ask("read", **ask, within=0)
    else:
        target = Target(tab, given["ref"])
        told = await tab.ask_about("read", target.ref, target.number, **ask, within=target.number)
    read = page(told, tab.number, tab.mask, given["offset"], given["max_chars"])
    head = f"{tab.id}: {read.title}\n{read.url}\n"
    tail = f"\n\n… read on with offset {read.next_offset}" if read.next_offset is not None else ""
    tail += "\n\n… the page goes on; it is too long to be told" if read.cut else ""
    data = {
        "tab_id": tab.id,
        "url": read.url,
        "title": read.title,
        "elements": [_plain(element) for element in read.elements],
        "total_chars": read.total_chars,
        "next_offset": read.next_offset,
        "truncated": read.cut,
    }
    return reply(f"{head}\n{read.text}{tail}", data)


def _plain(element: Element) -> dict[str, Any]:
    return dict(msgspec.to_builtins(element))


async def _find(call: Call) -> ToolReply:
    tab, query = call.tab, call.given["query"]
    matches, total = await find_elements(tab, query, call.given["limit"])
    rows = [f"{match.element}{f' {match.text}' if match.text else ''}" for match in matches]
    many = "1 element matches" if total == 1 else f"{total} elements match"
    text = "\n".join([f'{tab.id}: {many} "{tab.mask.text(query, 200)}".', *rows])
    data = {
        "tab_id": tab.id,
        "total": total,
        "matches": [{**_plain(match.element), "text": match.text} for match in matches],
    }
    return reply(text, data)


async def _interact(call: Call) -> ToolReply:
    tab, given = call.tab, call.given
    value = given["value"] or ""
    deed = await interact(tab, given["ref"], given["action"], value, call.limit_ms)
    return await _done(call, deed.sentence, deed.element)


async def _act(call: Call) -> ToolReply:
    deed = await act(call.tab, call.given["instruction"], call.limit_ms)
    return await _done(call, deed.sentence, deed.element)


async def _done(call: Call, sentence: str, element: Element | None) -> ToolReply:
    """Build the reply of an action: the element and the tab after it."""
    tab = call.tab
    visit, refused = await tab.where(), tab.take_refused()
    text = f"{sentence}\n{element}" if element is not None else sentence
    data: dict[str, Any] = {"tab_id": tab.id, "done": sentence, **_visited(tab, visit, refused)}
    if element is not None:
        data["element"] = _plain(element)
    return reply(f"{text}\n{_arrival(tab, visit, refused)}", data)


async def _javascript(call: Call) -> ToolReply:
    value, is_cut = await evaluate(call.tab, call.given["code"], call.limit_ms)
    text = json.dumps(value, ensure_ascii=False)
    data: dict[str, Any] = {"tab_id": call.tab.id, "url": (await call.tab.where()).url}
    refused = call.tab.take_refused()
    if refused:
        data["refused"] = msgspec.to_builtins(refused)
    if is_cut:
        data["truncated"] = True
        text += VALUE_CUT
    text += "".join(map(_refusal, refused))
    if len(text.encode("utf-8", "replace")) > MOST_TEXT_BYTES:
        return reply(text, {**data, "truncated": True})
    return reply(text, {**data, "value": value})


async def _screenshot(call: Call) -> ToolReply:
    tab, given = call.tab, call.given
    taken = await picture(tab, ref=given["ref"], full_page=given["full_page"])
    text = f"A picture of {tab.id}: {taken.width} × {taken.height} pixels."
    text += " The page goes on below it." if taken.cut else ""
    size = {"width": taken.width, "height": taken.height, "size_bytes": len(taken.png)}
    return reply(text, {"tab_id": tab.id, **size, "cut": taken.cut}, Image(taken.png))


async def _tabs_context(session: Session | None) -> ToolReply:
    if session is None:
        return reply("No tab is open.", {"tabs": []})
    tabs = [
        {
            "tab_id": held.tab.id,
            "url": held.tab.address,
            "title": await held.tab.title(TITLE_S),
            "current": held.tab.id == session.current,
        }
        for held in session.tabs.values()
    ]
    rows = [
        f'{"*" if tab["current"] else " "} {tab["tab_id"]} {tab["url"]} "{tab["title"]}"'
        for tab in tabs
    ]
    return reply("\n".join(rows) or "No tab is open.", {"tabs": tabs})


_TOOLS: Final[Mapping[str, Callable[[Call], Awaitable[ToolReply]]]] = {
    "navigate": _navigate,
    "read_page": _read_page,
    "find": _find,
    "interact": _interact,
    "act": _act,
    "javascript_tool": _javascript,
    "page_screenshot": _screenshot,
}
