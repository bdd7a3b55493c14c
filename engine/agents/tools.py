"""The eight tools on a locked tab. Loaded with the first call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine.agents.errors import InstructionRefused
from engine.agents.grammar import Step, parse
from engine.agents.reply import MOST_TEXT_BYTES, Image, ToolReply, reply
from engine.agents.searching import find_elements, find_target
from engine.agents.sessions import QueuedTab, Session, Sessions
from engine.browser.interact import element_actions
from engine.browser.interact.agent_tab import AgentTab, Visit
from engine.browser.interact.dialogs import LEAVING
from engine.browser.interact.element_actions import ActionResult, Target, interact
from engine.browser.interact.host_script import evaluate
from engine.browser.interact.page_outline import REFERENCE, Element, page
from engine.browser.page.screenshot import picture
from engine.kinds.arguments import web_address

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
    return reply(_arrival(tab, visit), {"tab_id": tab.id, **_visited(tab, visit)})


def _arrival(tab: AgentTab, visit: Visit) -> str:
    status = f" (HTTP {visit.status})" if visit.status else ""
    text = f'{tab.id} is at {visit.url} "{visit.title}"{status}.'
    if not visit.settled:
        text += " The page has not come to rest yet."
    return text + _dialogs(tab)


def _visited(tab: AgentTab, visit: Visit) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(visit)
    return {**data, "dialogs": tab.dialogs} if tab.dialogs else data


def _dialogs(tab: AgentTab) -> str:
    asked = f"{LEAVING}:"
    return "".join(
        f"\nThe page asked whether to leave it, and was left. {said.removeprefix(asked)}".rstrip()
        if said.startswith(asked)
        else f"\nA dialog was dismissed: {said}"
        for said in tab.dialogs
    )


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
    visit = await tab.where()
    text = f"{sentence}\n{element}" if element is not None else sentence
    data: dict[str, Any] = {"tab_id": tab.id, "done": sentence, **_visited(tab, visit)}
    if element is not None:
        data["element"] = _plain(element)
    return reply(f"{text}\n{_arrival(tab, visit)}", data)


async def _javascript(call: Call) -> ToolReply:
    value = await evaluate(call.tab, call.given["code"], call.limit_ms)
    text = json.dumps(value, ensure_ascii=False)
    data: dict[str, Any] = {"tab_id": call.tab.id, "url": (await call.tab.where()).url}
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
