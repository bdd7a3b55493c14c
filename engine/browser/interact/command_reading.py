"""The tools `browser_content` and `browser_execute`: read pages and run scripts.

A page is also read after a failed command, for what it showed then.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_errors import CommandFailed
from engine.browser.interact.command_failures import no_frame
from engine.browser.interact.command_target import (
    Call,
    Stage,
    Tool,
    count_frames,
    document,
    element,
    every,
    frame_element,
    has_frames,
    missing_frame,
    script,
)
from engine.browser.page import extraction_options
from engine.browser.page.screenshot_masking import MaskingFailed, box_of, masked_screenshot
from engine.browser.page.secret_mask import without_secret_values
from engine.model import redact
from engine.model.addresses import Glob
from engine.secrets.value_search import Echoes

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page


# The action `expect`: an assertion whose failure reports the actual value.

MAX_SHOWN: Final = 200  # characters of an expected or an actual text
READ_MS: Final = 2_000  # limit for reading an element that just existed
WAITS_S: Final = (0.1, 0.25, 0.5, 1.0)  # poll intervals, as in Playwright's assertions
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
Missed = tuple[str, object, str]  # the argument, its expected value, and the actual one


async def expect(call: Call) -> Any:
    """Wait until all expectations of the command are met.

    Raises:
        CommandFailed: one was not met within the command's time; the message has the actual value.
    """
    page, attempts = await call.stage.page(), 0
    while True:
        there = _is_of_page(call) or await has_frames(call, page)
        missed = await _first_unmet(call, page)
        if missed is None and there:
            await count_frames(call, page)
            return {"expected": True, "url": page.url}
        wait_s = WAITS_S[min(attempts, len(WAITS_S) - 1)]
        left_s = call.left_ms / 1000
        if left_s <= 0.001:
            raise await _expectation_error(call, page, missed)
        await asyncio.sleep(min(wait_s, left_s))
        attempts += 1


async def _first_unmet(call: Call, page: Page) -> Missed | None:
    """Return the first expectation that is not met now."""
    for name, wanted in call.args.items():
        check = _CHECKS.get(name)
        found = await check(call, page, wanted) if check is not None else None
        if found is not None:
            return name, wanted, found
    return None


def _is_of_page(call: Call) -> bool:
    """Return whether the command expects nothing of an element."""
    return not any(name in _CHECKS and name not in OF_PAGE for name in call.args)


async def _expectation_error(call: Call, page: Page, missed: Missed | None) -> CommandFailed:
    """Return the error with the actual value; or with the missing frame."""
    if missed is None or missed[0] not in OF_PAGE:
        frame = await missing_frame(call, page)
        if frame or missed is None:
            return no_frame(frame or call.frames[-1], call.timeout_ms)
    return CommandFailed(_sentence(call, *missed))


def _sentence(call: Call, name: str, wanted: object, found: str) -> str:
    is_text = isinstance(wanted, str) and name != "state"
    expected = _quoted(call, str(wanted)) if is_text else str(wanted)
    if name in OF_PAGE:
        return f"expected {name} {expected}, found {found}"
    whole = redact.quoted(" >> ".join((*call.frames, call.selector)))
    return f"expected {name} {expected} of {whole}, found {found}"


def _quoted(call: Call, text: str) -> str:
    """Quote a text on one line; secrets are hidden before it is cut."""
    line = redact.quoted(" ".join(call.stage.scrub.hide(text).split()))
    return f'"{line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"}"'


def _level(text: str) -> str:
    return " ".join(text.split())


async def _first(call: Call, page: Page) -> Locator | None:
    found = every(page, call)
    call.matches = await found.count()
    return found.first if call.matches else None


async def _read_element(
    call: Call, page: Page, read: Callable[[Locator], Awaitable[str | None]]
) -> str | None:
    """Return the result of `read` for the element, which may disappear meanwhile."""
    element = await _first(call, page)
    if element is None:
        return MISSING
    try:
        return await read(element)
    except PlaywrightTimeout:
        return MISSING


async def _text(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = _level(await element.inner_text(timeout=READ_MS))
        return None if found == _level(wanted) else _quoted(call, found)

    return await _read_element(call, page, read)


async def _contains(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = _level(await element.inner_text(timeout=READ_MS))
        return None if _level(wanted) in found else _quoted(call, found)

    return await _read_element(call, page, read)


async def _value(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        found = await element.input_value(timeout=READ_MS)
        if found == wanted:
            return None
        secret = await element.evaluate(_IS_SECRET, timeout=READ_MS)
        return redact.MARK if secret else _quoted(call, found)

    return await _read_element(call, page, read)


async def _count(call: Call, page: Page, wanted: int) -> str | None:
    found = await every(page, call).count()
    return None if found == wanted else str(found)


async def _state(call: Call, page: Page, wanted: str) -> str | None:
    async def read(element: Locator) -> str | None:
        positive = _NEGATIONS.get(wanted, wanted)
        if positive == "visible":
            is_so = await element.is_visible()
        elif positive == "enabled":
            is_so = await element.is_enabled(timeout=READ_MS)
        else:
            is_so = await element.is_checked(timeout=READ_MS)
        return None if is_so is (positive == wanted) else _OPPOSITES[wanted]

    found = await _read_element(call, page, read)
    return None if wanted == "hidden" and found == MISSING else found


async def _url(call: Call, page: Page, wanted: str) -> str | None:
    return None if Glob(wanted).matches(page.url) else _quoted(call, page.url)


async def _title(call: Call, page: Page, wanted: str) -> str | None:
    try:
        found = _level(await page.title())
    except Error:  # navigating to another document
        found = ""
    return None if found == _level(wanted) else _quoted(call, found)


# A check returns the actual value, or None if the expectation is met.
Check = Callable[[Call, "Page", Any], Awaitable[str | None]]
_CHECKS: Final[Mapping[str, Check]] = {
    "state": _state,
    "text": _text,
    "contains": _contains,
    "value": _value,
    "count": _count,
    "url": _url,
    "title": _title,
}


MAX_TEXT: Final = 256 * 1024  # characters of one result
MAX_ITEMS: Final = 20_000  # values in one script result
MAX_DEPTH: Final = 20
MAX_PNG: Final = 8 * 1024 * 1024
_NO_NUMBER: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # not in JSON
_DOM_LIMITS: Final = {"nodes": 1_000, "text": 300, "depth": 60}
_PNG_SIZE_AT: Final = 16  # offset of width and height in a PNG, four bytes each
# A script of statements may `return`; an expression's value is the result; both may await.
_EXPRESSION = "(async () => {{ return (\n{}\n) }})"
_BODY = "(async () => {{\n{}\n}})"
_CALL = "{}().then((value) => typeof value === 'function' ? value() : value)"


async def screenshot(call: Call) -> Any:
    """Save a PNG as an artifact of the task, with typed texts masked wherever they appear."""
    page = await call.stage.page()
    shown = await element(call) if call.selector else await frame_element(call)
    if shown is not None:
        await shown.scroll_into_view_if_needed(timeout=call.timeout_ms)
        await count_frames(call, page)
    try:
        data = await masked_picture(call.stage, page, call.timeout_ms, shown)
    except MaskingFailed:
        raise CommandFailed("the page shows a secret that could not be painted over") from None
    if len(data) > MAX_PNG:
        raise CommandFailed("the picture is larger than 8 MiB")
    path = await call.stage.artifact(f"command-{call.number + 1:03d}.png", data)
    width, height = (int.from_bytes(data[at : at + 4]) for at in (_PNG_SIZE_AT, _PNG_SIZE_AT + 4))
    return {"path": path, "width": width, "height": height, "bytes": len(data)}


async def masked_picture(
    stage: Stage, page: Page, timeout_ms: float, shown: Locator | None = None
) -> bytes:
    """Return a PNG of the window, or of the element `shown`, without typed texts.

    Raises:
        MaskingFailed, playwright.Error.
    """
    how: dict[str, Any] = {
        "type": "png",
        "animations": "disabled",
        "mask": [page.locator(selector) for selector in stage.masked],
        "mask_color": "#888888",
        "timeout": timeout_ms,
    }
    shoot = partial((shown or page).screenshot, **how)
    clip = partial(box_of, shown) if shown is not None else None
    assert stage.instance is not None  # every page belongs to an instance
    return await masked_screenshot(
        page, stage.instance.wire(page), Echoes(stage.hidden), shoot, clip
    )


async def get_text(call: Call) -> Any:
    found = await element(call)
    text = await found.inner_text(timeout=call.left_ms)
    composed = await found.evaluate(_composed("textOf(node, 1e7, 1e6).text"), timeout=call.left_ms)
    return _cut("text", (text if composed is None else str(composed)).strip())


async def get_html(call: Call) -> Any:
    composed = _composed("withRoots(node, roots)")
    if not call.selector:
        where = await document(call)
        html = await where.content()
        root = await where.evaluate(f"() => ({composed})(document.documentElement)")
        if root is not None:
            html = html[: max(0, html.lower().find("<html"))] + str(root)
        return _cut("html", without_secret_values(html))
    found = await element(call)
    html = await found.evaluate(
        f"(node) => ({composed})(node) ?? node.outerHTML", timeout=call.left_ms
    )
    return _cut("html", without_secret_values(str(html)))


@cache
def _composed(what: str) -> str:
    """Return a function of a node: the result of `shown.js`, or null without shadow roots."""
    return f"""(node) => {{
        const shown = {extraction_options.script("shown")};
        const roots = shown.rootsOf(node);
        const isInside = node.getRootNode().nodeType === 11;
        return roots.length || isInside ? shown.{what} : null;
    }}"""


async def get_viewport_dom(call: Call) -> Any:
    shown = await document(call)
    return plain(await shown.evaluate(script("viewport.js"), dict(_DOM_LIMITS)))


async def evaluate(call: Call) -> Any:
    where, source = await document(call), str(call.args["script"])
    function = await _compiled(call, await call.stage.page(), source)
    value = await where.evaluate(_CALL.format(function))
    read = _Plain()
    found = {"value": read.value(value, 0)}
    return {**found, "truncated": True} if read.is_cut else found


CONTENT: Final[Mapping[str, Tool]] = {
    "screenshot": screenshot,
    "get_text": get_text,
    "get_html": get_html,
    "get_viewport_dom": get_viewport_dom,
    "expect": expect,
}
EXECUTE: Final[Mapping[str, Tool]] = {"evaluate": evaluate}


async def _compiled(call: Call, page: Page, source: str) -> str:
    """Compile `source` to a function, as an expression if possible, without running it.

    The browser compiles it, because trying and failing would run a script twice.
    """
    assert call.stage.instance is not None  # every page belongs to an instance
    wire, failed = call.stage.instance.wire(page), ""
    await wire.send("Runtime.enable")
    for shape in (_EXPRESSION, _BODY):
        function = shape.format(source)
        request = {"expression": function, "sourceURL": "", "persistScript": False}
        answer = await wire.send("Runtime.compileScript", request)
        if "exceptionDetails" not in answer:
            await wire.send("Runtime.disable")
            return function
        description = answer["exceptionDetails"].get("exception", {}).get("description", "")
        failed = str(description).partition("\n")[0]
    raise CommandFailed(f"the script cannot be read: {failed}")


def _cut(name: str, text: str) -> dict[str, Any]:
    if len(text) <= MAX_TEXT:
        return {name: text}
    return {name: text[:MAX_TEXT], "truncated": True, "length": len(text)}


def plain(given: Any) -> Any:
    """Convert a value from a page, which may be anything, to plain JSON of bounded size."""
    return _Plain().value(given, 0)


class _Plain:
    def __init__(self) -> None:
        self._items = 0
        self._room = MAX_TEXT
        self.is_cut = False

    def value(self, given: Any, depth: int) -> Any:
        self._items += 1
        if given is None or isinstance(given, bool):
            return given
        if isinstance(given, int):  # a BigInt: JSON readers lose digits beyond 2^53
            return given if abs(given) <= 2**53 else str(given)
        if isinstance(given, float):
            return given if math.isfinite(given) else _NO_NUMBER[str(given)]
        if self._items > MAX_ITEMS or depth > MAX_DEPTH:
            self.is_cut = True
            return "…"
        if isinstance(given, Mapping):
            return {
                self._text(str(key)): self.value(item, depth + 1) for key, item in given.items()
            }
        if isinstance(given, list | tuple):
            kept = given[: MAX_ITEMS - self._items]
            self.is_cut = self.is_cut or len(kept) < len(given)
            return [self.value(item, depth + 1) for item in kept]
        return self._text(given.isoformat() if isinstance(given, datetime) else str(given))

    def _text(self, text: str) -> str:
        kept = text[: self._room]
        self._room -= len(kept)
        self.is_cut = self.is_cut or len(kept) < len(text)
        return kept if len(kept) == len(text) else kept + "…"


# What the page showed when a command failed: its address, a masked picture and its source.
#
# Every part has a limit of its own, because the page may hang; a part that cannot be had is left
# out with the reason. Typed texts and secrets are removed as in the results of commands.

PICTURE_S: Final = 3.0
SOURCE_S: Final = 2.0
EVIDENCE_S: Final = PICTURE_S + SOURCE_S + 1.0
MOST_SOURCE: Final = 1024 * 1024  # characters
_EDGE: Final = 64 * 1024  # characters; a secret that a cut splits would not be found
SLOW: Final = "the page did not answer"


async def failure_evidence(stage: Stage, number: int, found: dict[str, str]) -> None:
    """Keep what the page shows after the failure of command `number`, as artifacts of the task.

    `found` gets `url`, `screenshot` and `source` (paths in the task's folder), each if it could be
    had, and `missing` with the reason for a missing picture; nothing without an open page.

    Raises:
        EngineError: an artifact could not be written.
    """
    instance = stage.instance
    page = instance.current if instance is not None and instance.alive else None
    if page is None or page.is_closed():
        return
    name = f"command-{number + 1:03d}-failed"
    found["url"] = stage.scrub.text(page.url)
    png, missing = await _tried(lambda: _picture(stage, page), PICTURE_S)
    if png is not None:
        found["screenshot"] = await stage.artifact(f"{name}.png", png)
    elif missing:
        found["missing"] = missing
    html, _ = await _tried(page.content, SOURCE_S)
    if html is not None:
        source = await asyncio.to_thread(_clean, stage, html)
        found["source"] = await stage.artifact(f"{name}.html", source)


async def _picture(stage: Stage, page: Page) -> bytes:
    data = await masked_picture(stage, page, round(PICTURE_S * 1_000))
    if len(data) > MAX_PNG:
        raise MaskingFailed
    return data


async def _tried(take: Callable[[], Awaitable[Any]], limit_s: float) -> tuple[Any, str]:
    """Return the part, or None and why there is none."""
    try:
        async with asyncio.timeout(limit_s):
            return await take(), ""
    except MaskingFailed:
        return None, "the page shows a secret that could not be painted over"
    except (TimeoutError, PlaywrightTimeout):
        return None, SLOW
    except Error:
        return None, "the page was gone"


def _clean(stage: Stage, html: str) -> bytes:
    """Return the masked source; of a long one the start, without the edge of the cut."""
    cut = html[: MOST_SOURCE + _EDGE]
    kept = str(stage.scrub.published({"html": without_secret_values(cut)})["html"])
    most = MOST_SOURCE if len(cut) == len(html) else min(MOST_SOURCE, len(kept) - _EDGE)
    return kept[: max(0, most)].encode("utf-8", "replace")
