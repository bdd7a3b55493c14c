"""Actions on one element of a tab with real input, and scripts of a host in its page.

An element is acted on when it is visible, at rest, enabled, and not covered. Typed text is
never repeated; only its length is reported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec
from playwright.async_api import Error

from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.command_errors import (
    ElementNotReady,
    NoSuchOption,
    ScriptFailed,
    StaleReference,
    WrongElement,
)
from engine.browser.interact.command_pages import DRAG_STEPS
from engine.browser.interact.page_outline import REFERENCE, Element, element
from engine.browser.interact.typed_content import (
    SETTLE_S,
    Expected,
    chunks,
    judge,
    parts_of,
    stopped,
)

READY_MS = 3_000  # a page that moves longer never comes to rest
# Values of fields with a picker, which take no other spelling.
EXAMPLES: Final = {
    "date": "2026-03-31",
    "time": "14:30",
    "month": "2026-03",
    "week": "2026-W14",
    "datetime-local": "2026-03-31T14:30",
    "color": "#3366cc",
}
BEGIN_PX = 6  # browsers begin a drag after a few pixels
KEYED_CHARS = 100  # longer texts are inserted at once: each key takes 1 ms


class ActionResult(msgspec.Struct, frozen=True):
    """Result of an action: the element afterwards (None: gone), and a sentence."""

    sentence: str
    element: Element | None


class Target:
    """One element of a tab, addressed by its reference."""

    def __init__(self, tab: AgentTab, ref: str) -> None:
        match = REFERENCE.fullmatch(ref)
        if match is None or int(match[1]) != tab.number:
            raise StaleReference(ref=ref)
        self.tab, self.ref, self.number = tab, ref, int(match[2])

    async def ready(self, *, hit: bool = True, editable: bool = False) -> tuple[Any, Element]:
        """Wait until the element can be acted on, and return its position.

        Raises:
            StaleReference: the element is gone.
            ElementNotReady: the element cannot be used; the error has the reason.
        """
        ask = {"limitMs": READY_MS, "hit": hit, "enabled": True, "editable": editable}
        reply = await self.ask("point", **ask)
        found = self.to_element(reply)
        if "problem" in reply:
            reason = str(reply["problem"])
            if reply.get("by"):
                reason += f" by {self.tab.mask.text(str(reply['by']), 120)}"
            raise ElementNotReady(element=found.called, reason=reason)
        return reply, found

    async def in_view(self) -> tuple[Any, Element]:
        """Scroll the element into view, which may be covered or disabled; return its position.

        Raises:
            StaleReference: the element is gone.
            ElementNotReady: the element is hidden, or out of reach.
        """
        reply = await self.ask("point", limitMs=READY_MS, hit=False, enabled=False, editable=False)
        found = self.to_element(reply)
        if "x" not in reply:
            raise ElementNotReady(element=found.called, reason=str(reply["problem"]))
        return reply, found

    async def ask(self, what: str, **ask: Any) -> dict[str, Any]:
        return await self.tab.ask_about(what, self.ref, self.number, **ask)

    def to_element(self, reply: dict[str, Any]) -> Element:
        return element(reply["item"], self.tab.number, self.tab.mask)

    async def now(self) -> Element | None:
        """Return the element's state after an action; None if the action removed it."""
        try:
            return self.to_element(await self.ask("describe"))
        except StaleReference:
            return None


async def interact(tab: AgentTab, ref: str, action: str, value: str, limit_ms: int) -> ActionResult:
    """Perform `action` on an element, wait until the page is at rest, and return the result.

    Args:
        action: one of `ACTIONS`.
        value: the text, the option or the key that the action needs; otherwise empty.

    Raises:
        StaleReference, ElementNotReady, WrongElement, NoSuchOption: concerning the element.
        PageError: the action led to a blocked address.
    """
    target = Target(tab, ref)
    sentence = await ACTIONS[action](target, value)
    await tab.settle(limit_ms)
    tab.check_refused()
    return ActionResult(sentence, await target.now())


async def _mouse(target: Target, *, button: Any = "left", times: int = 1) -> Element:
    spot, found = await target.ready()
    if spot["tag"] == "INPUT" and found.role == "file":
        reason = "takes files, which only a command task can give it: task_submit with upload."
        raise WrongElement(element=found.called, reason=reason)
    mouse = target.tab.page.mouse
    await mouse.click(spot["x"], spot["y"], button=button, click_count=times)
    return found


async def _click(target: Target, _: str) -> str:
    return f"Clicked {(await _mouse(target)).called}."


async def _double_click(target: Target, _: str) -> str:
    return f"Double-clicked {(await _mouse(target, times=2)).called}."


async def _right_click(target: Target, _: str) -> str:
    return f"Right-clicked {(await _mouse(target, button='right')).called}."


async def _hover(target: Target, _: str) -> str:
    spot, found = await target.ready()
    await target.tab.page.mouse.move(spot["x"], spot["y"])
    return f"The mouse is over {found.called}."


async def _drag(target: Target, to: str) -> str:
    onto = Target(target.tab, to)
    await onto.in_view()  # before the button is down: a reference may be of another page
    spot, found = await target.ready()
    mouse = target.tab.page.mouse
    await mouse.move(spot["x"], spot["y"])
    await mouse.down()
    try:
        # The drag begins before its end is scrolled into view: later the mouse is over another one.
        await mouse.move(spot["x"] + BEGIN_PX, spot["y"] + BEGIN_PX, steps=BEGIN_PX)
        end, there = await onto.in_view()
        await mouse.move(end["x"], end["y"], steps=DRAG_STEPS)
        await mouse.move(end["x"], end["y"])  # some pages treat the first move as part of the way
    finally:
        await mouse.up()
    return f"Dragged {found.called} to {there.called}."


async def _scroll_into_view(target: Target, _: str) -> str:
    _, found = await target.in_view()
    return f"{found.called} is in view."


async def _focus(target: Target, _: str) -> str:
    _, found = await target.ready(hit=False)
    if not (await target.ask("focus"))["ok"]:
        raise WrongElement(element=found.called, reason="takes no focus.")
    return f"{found.called} has the focus."


async def _press(target: Target, key: str) -> str:
    _, found = await target.ready(hit=False)
    await target.ask("focus")
    await target.tab.page.keyboard.press(key)
    return f"Pressed {key} in {found.called}."


async def _type(target: Target, text: str) -> str:
    return await _write(target, text, append=False)


async def _append(target: Target, text: str) -> str:
    return await _write(target, text, append=True)


async def _clear(target: Target, _: str) -> str:
    return await _write(target, "", append=False)


async def _write(target: Target, text: str, *, append: bool) -> str:
    _, found = await target.ready(hit=False, editable=True)
    secret = await _is_secret(target)
    if secret:
        target.tab.mask.add([text])
    reply = await target.ask("edit", append=append)
    if reply["how"] == "set" and (await target.ask("set", value=text)).get("refused"):
        example = EXAMPLES.get(found.type or found.role, "")
        such = f"; it must look like {example}" if example else ""
        raise WrongElement(
            element=found.called, reason=f"({found.type}) takes no such value{such}."
        )
    if reply["how"] == "no":
        raise WrongElement(element=found.called, reason="takes no text.")
    note = ""
    if reply["how"] == "keys":
        note = await _keys(target, found, reply, text, secret, append)
    if not text:
        return f"Cleared {found.called}. {note}".strip()
    return f"Typed {len(text)} characters into {found.called}. {note}".strip()


async def _is_secret(target: Target) -> bool:
    return "secret" in (await target.ask("describe"))["item"]


async def _keys(
    target: Target, found: Element, field: dict[str, Any], text: str, secret: bool, append: bool
) -> str:
    """Type with keys, check what the field then holds, and return a warning or nothing.

    Raises:
        WrongElement: the field holds something else, or the page moved the focus of a secret.
    """
    keyboard = target.tab.page.keyboard
    if not text:
        if not field["empty"]:
            await keyboard.press("Delete")
    elif len(text) > KEYED_CHARS or "\n" in text or "\r" in text:
        # Inserted as if pasted: a Return key would submit a form of one line.
        text = " ".join(text.splitlines()) if field["oneLine"] else text
        if secret:
            await _look(target, found, text, 0)
        await keyboard.insert_text(text)
    elif secret:
        for typed, part in chunks(text):
            await _look(target, found, text, typed)
            await keyboard.type(part)
    else:
        await keyboard.type(text)
    await asyncio.sleep(SETTLE_S)
    held = await _held(target)
    expected = Expected(text, str(field["value"]), None) if append else Expected(text)
    verdict = judge(expected, held, secret=secret, hide=target.tab.mask.content)
    if secret and verdict.sentence:
        target.tab.mask.add(parts_of(text, held, len(text)))
    if verdict.failed:
        raise WrongElement(element=found.called, reason=f"was typed into, but {verdict.sentence}.")
    return f"{verdict.sentence[:1].upper()}{verdict.sentence[1:]}." if verdict.sentence else ""


async def _look(target: Target, found: Element, text: str, typed: int) -> None:
    """Stop before the next part of a secret if the page moved the focus to another field."""
    held = await _held(target)
    if why := stopped(held, typed, len(text)):
        target.tab.mask.add(parts_of(text, held, typed))
        raise WrongElement(element=found.called, reason=f"was typed into, but {why}.")


async def _held(target: Target) -> dict[str, Any]:
    try:
        return await target.ask("holds")
    except StaleReference:
        return {"focus": "gone", "kind": "value"}


async def _select(target: Target, option: str) -> str:
    _, found = await target.ready(hit=False)
    reply = await target.ask("choose", option=option)
    mask = target.tab.mask
    if reply.get("how") == "no":
        reason = "is no select field; click it, and then the option that it shows."
        raise WrongElement(element=found.called, reason=reason)
    if "why" in reply:
        offered = ", ".join(mask.content(str(one), 100) for one in reply["options"])
        raise NoSuchOption(element=found.called, reason=reply["why"], options=offered or "none")
    await asyncio.sleep(SETTLE_S)
    try:
        after = await target.ask("chosen", label=reply["chosen"])
    except StaleReference:  # the choice opened another page
        after = {"kept": True}
    if not after["kept"]:
        now = ", ".join(mask.content(str(one), 100) for one in after["now"])
        reason = f'changed after the choice: it has "{now}" selected.'
        raise WrongElement(element=found.called, reason=reason)
    return f'Selected "{mask.content(str(reply["chosen"]), 100)}" in {found.called}.'


async def _check(target: Target, _: str) -> str:
    return await _set_checked(target, "checked")


async def _uncheck(target: Target, _: str) -> str:
    return await _set_checked(target, "not checked")


async def _set_checked(target: Target, wanted: str) -> str:
    found = await target.now()
    if found is None:
        raise StaleReference(ref=target.ref)
    if not {"checked", "not checked", "mixed"} & set(found.states):
        raise WrongElement(element=found.called, reason="is nothing that can be checked.")
    if found.role == "radio" and wanted == "not checked":
        raise WrongElement(element=found.called, reason="is unchecked by checking another.")
    if wanted in found.states:
        return f"{found.called} was {wanted} already."
    await _mouse(target)
    after = await target.now()
    if after is not None and wanted not in after.states:
        raise WrongElement(element=found.called, reason="was clicked and did not change.")
    return f"{found.called} is {wanted} now."


Action = Callable[[Target, str], Awaitable[str]]
ACTIONS: Final[dict[str, Action]] = {
    "click": _click,
    "double_click": _double_click,
    "right_click": _right_click,
    "hover": _hover,
    "drag": _drag,
    "focus": _focus,
    "type": _type,
    "append": _append,
    "clear": _clear,
    "press": _press,
    "select": _select,
    "check": _check,
    "uncheck": _uncheck,
    "scroll_into_view": _scroll_into_view,
}


async def press(tab: AgentTab, key: str, limit_ms: int) -> str:
    """Press a key in the focused element."""
    await tab.page.keyboard.press(key)
    await tab.settle(limit_ms)
    tab.check_refused()
    return f"Pressed {key}."


async def scroll(tab: AgentTab, to: str, pixels: int, limit_ms: int) -> str:
    """Scroll the page: `to` is up, down, top or bottom; 0 pixels: nine tenths of the view."""
    reply = await tab.world.ask("scroll", to=to, pixels=pixels)
    await tab.settle(limit_ms)
    return f"Scrolled to {reply['y']} of {reply['most']} pixels."


MOST_ECHO = 256 * 1024
SLACK_S = 0.5  # the browser ends a script at the limit itself; only a promise takes longer
# DevTools' text for an error before the first line ran; a later one says "in promise".
_NOT_BEGUN = "Uncaught"
_ENDED = "Internal error"  # its message about a script ended at the limit


class ScriptValue(NamedTuple):
    """Value of a script as JSON, and whether a part of it was left out."""

    value: Any
    is_cut: bool


async def evaluate(tab: AgentTab, code: str, limit_ms: int) -> ScriptValue:
    """Run `code` and return its value as JSON; elements, cycles and functions become texts.

    Raises:
        ScriptFailed: the script threw, is not JavaScript, or took longer than `limit_ms`.
    """
    await tab.world.ask("page")  # registers the secrets before the script can remove them
    expression = code.rstrip().rstrip(";")
    answer = await _run(tab, f"({expression}\n)", limit_ms)
    if _is_no_expression(answer):
        answer = await _run(tab, f"{{{code}\n}}", limit_ms)
    await tab.settle(min(limit_ms, 1_000))
    await tab.world.ask("page")
    if "exceptionDetails" in answer:
        raise ScriptFailed(reason=tab.mask.text(_error_text(answer["exceptionDetails"]), 1_000))
    tab.check_refused()
    cut, _, text = str(answer["result"].get("value", "")).partition("\n")
    return ScriptValue(tab.mask.value(json.loads(text or "null")), cut == "cut")


async def _run(tab: AgentTab, body: str, limit_ms: int) -> dict[str, Any]:
    wire = tab.instance.wire(tab.page)
    expression = f"(async () => {body})().then({_plainly()})"
    request = {
        "expression": expression,
        "awaitPromise": True,
        "returnByValue": True,
        "userGesture": True,
        "timeout": limit_ms,
    }
    try:
        async with asyncio.timeout(limit_ms / 1000 + SLACK_S):
            answer: dict[str, Any] = await wire.send("Runtime.evaluate", request)
    except (TimeoutError, Error) as failed:
        if isinstance(failed, Error) and _ENDED not in failed.message:
            raise
        limit_s = f"{limit_ms / 1000:g}"
        raise ScriptFailed(reason=f"The script did not end within {limit_s} s.") from failed
    return answer


@cache
def _plainly() -> str:
    script = files("engine.browser").joinpath("plainly.js").read_text("utf-8").strip()
    return f"{script.removesuffix(';')}({MOST_ECHO})"


def _is_no_expression(answer: dict[str, Any]) -> bool:
    details = answer.get("exceptionDetails", {})
    kind = details.get("exception", {}).get("className")
    return (details.get("text"), kind) == (_NOT_BEGUN, "SyntaxError")


def _error_text(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    text = str(thrown.get("description") or thrown.get("value") or details.get("text", ""))
    return text.partition("\n    at ")[0] or "The script failed."
