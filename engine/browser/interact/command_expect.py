"""The action `expect`: an assertion that fails its command with what was there instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_failures import no_frame
from engine.browser.interact.command_stage import Call
from engine.browser.interact.command_target import count_frames, every, has_frames, missing_frame
from engine.kinds.commands.command_errors import CommandFailed
from engine.kinds.commands.command_table import OF_ELEMENT
from engine.model import redact
from engine.model.url_glob import Glob

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

MAX_SHOWN: Final = 200  # characters of an expected or a found text
LOOK_MS: Final = 2_000  # one look at an element that was there a moment ago
WAITS_S: Final = (0.1, 0.25, 0.5, 1.0)  # between two looks, as Playwright's assertions wait
OF_PAGE: Final = ("url", "title")
MISSING: Final = "there is no such element"
_NEGATIONS: Final[Mapping[str, str]] = {
    "hidden": "visible",
    "disabled": "enabled",
    "unchecked": "checked",
}
_OPPOSITES: Final = {**_NEGATIONS, **{value: key for key, value in _NEGATIONS.items()}}
_IS_SECRET: Final = """(node) => node.type === "password"
  || /(current|new)-password|one-time-code|cc-/.test(node.autocomplete || "")"""
Missed = tuple[str, object, str]  # the argument, what it expects, and what was found


async def expect(call: Call) -> Any:
    """Wait until everything that the command expects is so.

    Raises:
        CommandFailed: it was not within the command's time; the message holds what was there.
    """
    page, looks = await call.stage.page(), 0
    while True:
        there = _is_of_page(call) or await has_frames(call, page)
        missed = await _missed(call, page)
        if missed is None and there:
            await count_frames(call, page)
            return {"expected": True, "url": page.url}
        wait_s = WAITS_S[min(looks, len(WAITS_S) - 1)]
        left_s = call.left_ms / 1000
        if left_s <= 0.001:
            raise await _unmet(call, page, missed)
        await asyncio.sleep(min(wait_s, left_s))
        looks += 1


async def _missed(call: Call, page: Page) -> Missed | None:
    """The first expectation that is not met now."""
    for name, wanted in call.args.items():
        look = _LOOKS.get(name)
        found = await look(call, page, wanted) if look is not None else None
        if found is not None:
            return name, wanted, found
    return None


def _is_of_page(call: Call) -> bool:
    """Whether the command expects nothing of an element."""
    return not any(name in call.args for name in OF_ELEMENT)


async def _unmet(call: Call, page: Page, missed: Missed | None) -> CommandFailed:
    """What was there instead; where the frame is missing, that and nothing of its elements."""
    if missed is None or missed[0] not in OF_PAGE:
        frame = await missing_frame(call, page)
        if frame or missed is None:
            return no_frame(frame or call.frames[-1], call.timeout_ms)
    return CommandFailed(_sentence(call, *missed))


def _sentence(call: Call, name: str, wanted: object, found: str) -> str:
    is_text = isinstance(wanted, str) and name != "state"
    expected = _shown(call, str(wanted)) if is_text else str(wanted)
    if name in OF_PAGE:
        return f"expected {name} {expected}, found {found}"
    whole = redact.quoted(" >> ".join((*call.frames, call.selector)))
    return f"expected {name} {expected} of {whole}, found {found}"


def _shown(call: Call, text: str) -> str:
    """A text in quotes, on one line; what must not be told is hidden before it is cut."""
    line = redact.quoted(" ".join(call.stage.scrub.hide(text).split()))
    return f'"{line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"}"'


def _level(text: str) -> str:
    return " ".join(text.split())


async def _first(call: Call, page: Page) -> Locator | None:
    found = every(page, call)
    call.matches = await found.count()
    return found.first if call.matches else None


async def _of_element(
    call: Call, page: Page, read: Callable[[Locator], Awaitable[str | None]]
) -> str | None:
    """What `read` says of the element; it may go away while it is looked at."""
    element = await _first(call, page)
    if element is None:
        return MISSING
    try:
        return await read(element)
    except PlaywrightTimeout:
        return MISSING


async def _text(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = _level(await element.inner_text(timeout=LOOK_MS))
        return None if found == _level(wanted) else _shown(call, found)

    return await _of_element(call, page, read)


async def _contains(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = _level(await element.inner_text(timeout=LOOK_MS))
        return None if _level(wanted) in found else _shown(call, found)

    return await _of_element(call, page, read)


async def _value(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = await element.input_value(timeout=LOOK_MS)
        if found == wanted:
            return None
        secret = await element.evaluate(_IS_SECRET, timeout=LOOK_MS)
        return redact.MARK if secret else _shown(call, found)

    return await _of_element(call, page, read)


async def _count(call: Call, page: Page, wanted: int) -> str | None:
    found = await every(page, call).count()
    return None if found == wanted else str(found)


async def _state(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        asked = _NEGATIONS.get(wanted, wanted)
        if asked == "visible":
            is_so = await element.is_visible()
        elif asked == "enabled":
            is_so = await element.is_enabled(timeout=LOOK_MS)
        else:
            is_so = await element.is_checked(timeout=LOOK_MS)
        return None if is_so is (asked == wanted) else _OPPOSITES[wanted]

    found = await _of_element(call, page, read)
    return None if wanted == "hidden" and found == MISSING else found


async def _url(call: Call, page: Page, wanted: str) -> str | None:
    return None if Glob(wanted).matches(page.url) else _shown(call, page.url)


async def _title(call: Call, page: Page, wanted: str) -> str | None:
    try:
        found = _level(await page.title())
    except Error:  # the page is on its way to another document
        found = ""
    return None if found == _level(wanted) else _shown(call, found)


Look = Callable[[Call, "Page", Any], Awaitable[str | None]]  # what was found instead, or None
_LOOKS: Final[Mapping[str, Look]] = {
    "state": _state,
    "text": _text,
    "contains": _contains,
    "value": _value,
    "count": _count,
    "url": _url,
    "title": _title,
}
