"""The tools `browser_navigate` and `browser_interact`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error, FilePayload
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.interact.command_errors import CommandFailed
from engine.browser.interact.command_failures import gone, no_frame, too_slow
from engine.browser.interact.command_keys import is_typing
from engine.browser.interact.command_target import (
    LOOK_S,
    Call,
    Tool,
    count_frames,
    document,
    element,
    every,
    has_frames,
    missing_frame,
    script,
    target_element,
    whole_selector,
)
from engine.browser.interact.command_uploads import MAX_BYTES, UploadRefused
from engine.browser.interact.typed_content import (
    MAX_SHOWN,
    SETTLE_S,
    Expected,
    chunks,
    judge,
    parts_of,
    stopped,
)
from engine.browser.page.crawl_tab import BLANK, INTERRUPTED, leave_page
from engine.egress.egress_policy import without_credentials
from engine.model import redact
from engine.model.addresses import Glob
from engine.model.errors import BrowserGone

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Locator, Page, Response

    from engine.browser.chromium.browser_instance import Instance


# Tab commands of a task's instance: list, open, switch and close.

TAB_LOOK_S: Final = 0.1  # poll interval while a tab is about to open
MAX_TABS: Final = 20
TOO_MANY: Final = "too many tabs are open; close one first"
NO_TAB: Final = "no tab has this number, title or address"


async def tabs(call: Call) -> Any:
    current = await call.stage.page()
    listed = [await _describe_tab(call, page) for page in _instance(call).pages]
    for page, description in zip(_instance(call).pages, listed, strict=False):
        if page is current:
            description["current"] = True
    return {"tabs": listed}


async def open_tab(call: Call) -> Page:
    """Open a new tab, which becomes the current one."""
    instance = _instance(call)
    if len(instance.pages) >= MAX_TABS:
        raise CommandFailed(TOO_MANY)
    try:
        page = await instance.new_page()
    except BrowserGone:
        raise gone() from None
    instance.select(page)
    return page


async def switch_tab(call: Call) -> Any:
    """Switch to another tab; wait for one that a page is about to open."""
    await call.stage.page()  # ensures a first tab, for any tab number
    while True:
        found = await _find(call)
        if found is not None:
            break
        if call.left_ms <= 1:
            raise too_slow(call.waited_ms, str(call.args["tab"]), NO_TAB)
        await asyncio.sleep(min(TAB_LOOK_S, call.left_ms / 1000))
    _instance(call).select(found)
    await found.bring_to_front()
    await found.wait_for_load_state("domcontentloaded", timeout=call.left_ms)
    return await _describe_tab(call, found)


async def close_tab(call: Call) -> Any:
    """Close a tab, by default the current one; the newest of the others becomes current."""
    closing = await call.stage.page()
    if "tab" in call.args:
        found = await _find(call)
        if found is None:
            raise CommandFailed(NO_TAB)
        closing = found
    address = closing.url
    stays = _instance(call).dialogs.stay
    await closing.close(run_before_unload=stays)
    if stays and not closing.is_closed():  # the dialog of `beforeunload` ends the command
        await closing.wait_for_event("close", timeout=call.left_ms)
    return {"closed": True, "url": address, "tabs": len(_instance(call).pages)}


def _instance(call: Call) -> Instance:
    assert call.stage.instance is not None  # every page belongs to an instance
    return call.stage.instance


async def _find(call: Call) -> Page | None:
    """Find a tab by number, title or address pattern; return the newest of several."""
    wanted, pages = call.args["tab"], _instance(call).pages
    if isinstance(wanted, int):
        return pages[wanted] if wanted < len(pages) else None
    address = Glob(wanted)
    for page in reversed(pages):
        if address.matches(page.url) or await _title(page) == wanted:
            return page
    return None


async def _describe_tab(call: Call, page: Page) -> dict[str, Any]:
    number = _instance(call).pages.index(page) if page in _instance(call).pages else -1
    return {"tab": number, "url": page.url, "title": await _title(page)}


async def _title(page: Page) -> str:
    try:
        return " ".join((await page.title()).split())
    except Error:  # navigating, or closed
        return ""


DRAG_STEPS: Final = 10  # mouse moves: pages begin a drag only after some pixels
SLOWLY: Final = 1_000  # characters: longer texts are inserted at once, not key by key
_TAKES_FILES: Final = """(node) => {
  const field = node.tagName === "LABEL" && node.control || node;
  return field.tagName === "INPUT" && field.type === "file";
}"""
_DETACHED: Final = "Element is not attached"
_CLICKING: Final = "performing click action"  # in Playwright's log of an action
# Also for an element that the page detached, for which `is_checked` raises.
_IS_CHECKED: Final = """(node) => {
  const box = node.tagName === "LABEL" && node.control || node;
  return box.tagName === "INPUT" ? box.checked : box.getAttribute("aria-checked") === "true";
}"""
# Keeps the caret of a focused field; otherwise moves it behind the text. Returns the content before
# and after the caret; or the whole content and null, if the position is unknown.
_CARET: Final = """(element) => {
  const node = element.tagName === "LABEL" && element.control || element;
  const root = node.getRootNode();
  if (root.activeElement !== node && !node.contains(root.activeElement)) {
    node.focus();
    if ("value" in node) {
      node.setSelectionRange(node.value.length, node.value.length);
    } else {
      getSelection().selectAllChildren(node);
      getSelection().collapseToEnd();
    }
  }
  if (!("value" in node)) return [(node.innerText || "").trim(), null];
  if (typeof node.selectionStart !== "number") return [String(node.value), null];
  return [node.value.slice(0, node.selectionStart), node.value.slice(node.selectionEnd)];
}"""
# None if the page replaced or removed the field, such as a menu that opens something.
_CHOSEN: Final = """(node) => {
  const field = node.tagName === "LABEL" && node.control || node;
  return field.isConnected ? [...field.selectedOptions].map((one) => one.value) : null;
}"""
ONE_CHARACTER: Final = 'input[maxlength="1"], input[size="1"]'
REPLACED_MS: Final = 500
_LEFT: Final = ("context was destroyed", "context with specified id", "detached", "navigat")
_NO_PAGE: Final = (204, 205)
# Fields that keys cannot fill reliably: each locale types a date in another order.
_SET_AT_ONCE: Final = ["date", "time", "month", "week", "datetime-local", "color", "range"]


async def goto(call: Call) -> Any:
    url = without_credentials(call.args["url"])
    page = await _cleared_page(call)
    answers: list[Response] = []  # to this navigation; or to those of the page itself

    def remember(answer: Response) -> None:
        answers.append(answer)

    page.on("response", remember)
    try:
        response = await page.goto(url, wait_until="load", timeout=call.timeout_ms)
    except Error as failed:
        if not _is_disturbed(call, page, failed, answers) or not await _leave(call, page):
            raise _load_failure(call, page) or failed from failed
        try:
            response = await page.goto(url, wait_until="load", timeout=call.left_ms)
        except Error as again:
            raise _load_failure(call, page) or again from again
    finally:
        page.remove_listener("response", remember)
    if response is None:  # the previous page's own navigation was in the way
        response = _answer_of(page, answers)
    return await _location(page, response)


def _answer_of(page: Page, answers: list[Response]) -> Response | None:
    """Return the answer to the navigation that loaded the page, if there was one."""
    address = page.url.partition("#")[0]
    documents = (one for one in reversed(answers) if one.request.is_navigation_request())
    return next((one for one in documents if one.url == address), None)


def _is_disturbed(call: Call, page: Page, failed: Error, answers: list[Response]) -> bool:
    """Return whether the previous page may have navigated itself and cancelled this navigation."""
    if INTERRUPTED not in failed.message and "net::ERR_ABORTED" not in failed.message:
        return False
    instance = call.stage.instance
    if instance is None or instance.dialogs.kept_the_page or page.url == BLANK:
        return False
    if _load_failure(call, page) is not None:
        return False
    # An answer without a page cancels a navigation as well.
    return not any(
        each.status in _NO_PAGE and each.request.is_navigation_request() for each in answers
    )


async def _leave(call: Call, page: Page) -> bool:
    """Leave a page that keeps redirecting itself; return whether that succeeded."""
    assert call.stage.instance is not None  # see `_is_disturbed`
    wire = call.stage.instance.wire(page)
    with contextlib.suppress(Error, TimeoutError):
        await leave_page(page, wire)
        call.stage.instance.clear(page)  # its refusals do not concern the next page
        return True
    with contextlib.suppress(Error):
        await wire.send("Emulation.setScriptExecutionDisabled", {"value": False})
    return False


async def reload(call: Call) -> Any:
    page = await _cleared_page(call)
    try:
        response = await page.reload(wait_until="load", timeout=call.timeout_ms)
    except Error as failed:
        raise _load_failure(call, page) or failed from failed
    return await _location(page, response)


async def back(call: Call) -> Any:
    return await _through_history(call, -1, "there is no page to go back to")


async def forward(call: Call) -> Any:
    return await _through_history(call, 1, "there is no page to go forward to")


async def new_tab(call: Call) -> Any:
    page = await open_tab(call)
    return await goto(call) if "url" in call.args else await _location(page, None)


async def wait_for(call: Call) -> Any:
    """Wait until all conditions of the command are met."""
    page = await call.stage.page()
    selector, text = call.selector, call.args.get("text")
    call.about = text or call.args.get("load_state", "")
    if "url" in call.args:
        await _address(call, page, Glob(call.args["url"]))
    if "load_state" in call.args:
        await page.wait_for_load_state(call.args["load_state"], timeout=call.left_ms)
    if "gone" in call.args:
        await _wait_until_gone(call, page)
    if text is not None:
        named = f"internal:text={json.dumps(text)}i"  # the selector of Playwright's get_by_text
        holds = every(page, call).filter(has_text=text) if selector else every(page, call, named)
        await holds.filter(visible=True).first.wait_for(state="visible", timeout=call.left_ms)
    elif selector:
        found = every(page, call)
        await found.first.wait_for(state="visible", timeout=call.left_ms)
        call.matches = await found.count()
    await count_frames(call, page)
    return {"found": True, "url": page.url}


async def click(call: Call) -> Any:
    page = await _cleared_page(call)
    await (await element(call)).click(
        button=call.args.get("button", "left"),
        click_count=call.args.get("count", 1),
        modifiers=call.args.get("modifiers"),
        timeout=call.left_ms,
    )
    return _action_result(call, page)


async def check(call: Call) -> Any:
    return await _set_checked(call, wanted=True)


async def uncheck(call: Call) -> Any:
    return await _set_checked(call, wanted=False)


async def press(call: Call) -> Any:
    page = await _cleared_page(call)
    typing = not call.args.get("keep_text") and is_typing(call.args["key"])
    field = await _typed_into(call, secret=typing)
    await field.press(call.args["key"], timeout=call.left_ms)
    return _action_result(call, page)


async def type_text(call: Call) -> Any:
    """Type into a field, replacing its content or appending; then check what the field holds."""
    text, append = str(call.args["text"]), bool(call.args.get("append"))
    secret = not call.args.get("keep_text")
    field = await _typed_into(call, secret=secret)
    kind = str(await field.get_attribute("type", timeout=call.left_ms) or "").lower()
    expected = Expected(text)
    if append:
        before, after = await field.evaluate(_CARET, timeout=call.left_ms)
        expected = Expected(text, before, after)
    elif len(text) > SLOWLY or kind in _SET_AT_ONCE:
        await field.fill(text, timeout=call.left_ms)
    else:
        await field.fill("", timeout=call.left_ms)
    node = await field.element_handle(timeout=call.left_ms)
    if append or not (len(text) > SLOWLY or kind in _SET_AT_ONCE):
        if secret:
            await _type_secret(call, field, node, text)
        else:
            await field.press_sequentially(text, timeout=call.left_ms)
    await asyncio.sleep(SETTLE_S)
    found = await _held(call, field, node)
    secret = secret or bool(found.get("secret"))
    verdict = judge(expected, found, secret=secret, hide=call.stage.scrub.hide)
    if secret and verdict.sentence:
        _conceal(call, parts_of(text, found, len(text)))
    if verdict.failed:
        raise CommandFailed(verdict.sentence)
    call.note = verdict.sentence
    return {"typed": len(text)}


async def _type_secret(call: Call, field: Locator, node: ElementHandle, text: str) -> None:
    """Type into the focused field; stop as soon as the page moves the focus to another one.

    Only boxes for one character pass the focus on by purpose; they are masked as well.
    """
    page = await call.stage.page()
    await node.focus()
    for typed, part in chunks(text):
        found = await _held(call, field, node)
        if why := stopped(found, typed, len(text)):
            _conceal(call, parts_of(text, found, typed))
            raise CommandFailed(why)
        boxes = whole_selector(call, ONE_CHARACTER)
        if found["focus"] == "box" and boxes not in call.stage.masked:
            call.stage.masked.append(boxes)
        if call.left_ms <= 1:
            raise too_slow(call.waited_ms, call.selector)
        await page.keyboard.type(part)


async def _held(call: Call, field: Locator, node: ElementHandle) -> dict[str, Any]:
    """Describe the field; if the page replaced its element, the one in its place."""
    try:
        found: dict[str, Any] = await node.evaluate(script("held.js"))
        if found["focus"] == "gone" and await field.count():
            found = await field.evaluate(script("held.js"), timeout=min(call.left_ms, REPLACED_MS))
        if found["kind"] == "value" and found["focus"] != "gone":
            found["text"] = await node.input_value()
    except Error as failed:
        if not isinstance(failed, PlaywrightTimeout) and not any(
            sign in failed.message for sign in _LEFT
        ):
            raise
        return {"focus": "gone", "kind": "value"}
    return found


def _conceal(call: Call, parts: list[str]) -> None:
    for part in parts:
        call.stage.conceal(part)


async def _typed_into(call: Call, *, secret: bool) -> Locator:
    """Return the command's field; mask it in screenshots from now on if `secret`."""
    if secret:
        call.stage.masked.append(whole_selector(call, call.selector))
    field = await element(call)
    if secret and call.used:
        call.stage.masked.append(whole_selector(call, call.used))
    return field


async def keyboard(call: Call) -> Any:
    page = await _cleared_page(call)
    await page.keyboard.press(str(call.args["key"]))
    return _action_result(call, page)


async def scroll(call: Call) -> Any:
    given = [call.args["direction"], call.args.get("amount", 0)]
    return await (await document(call)).evaluate(script("scroll.js"), given)


async def select(call: Call) -> Any:
    field = await element(call)
    named = {name: call.args[name] for name in ("value", "label", "index") if name in call.args}
    node = await field.element_handle(timeout=call.left_ms)
    chosen = await field.select_option(**named, timeout=call.left_ms)
    await asyncio.sleep(SETTLE_S)
    try:
        now = await node.evaluate(_CHOSEN)
    except Error as failed:
        if not any(sign in failed.message for sign in _LEFT):
            raise
        now = None  # the choice opened another page
    if now is not None and now != chosen:
        listed = redact.quoted(call.stage.scrub.hide(", ".join(now))[:MAX_SHOWN])
        raise CommandFailed(f'the page changed the choice: the field has "{listed}" selected')
    return {"selected": chosen}


async def hover(call: Call) -> Any:
    await (await element(call)).hover(timeout=call.left_ms)
    return {"done": True}


async def drag(call: Call) -> Any:
    """Drag one element to another or by pixels, with real mouse events."""
    page = await _cleared_page(call)
    source = await element(call)
    there = await target_element(call) if "target" in call.args else None
    await source.hover(timeout=call.left_ms)
    x, y = await _center(source, call)
    await page.mouse.down()
    try:
        if there is not None:
            await there.scroll_into_view_if_needed(timeout=call.left_ms)
            to_x, to_y = await _center(there, call)
        else:
            to_x, to_y = x + call.args.get("x", 0), y + call.args.get("y", 0)
        await page.mouse.move(to_x, to_y, steps=DRAG_STEPS)
        await page.mouse.move(to_x, to_y)  # some pages treat the first move as part of the way
    finally:
        await page.mouse.up()
    return _action_result(call, page)


async def dialog(call: Call) -> Any:
    """Set the answer to later dialogs: `leave` and `stay` concern `beforeunload` only."""
    await call.stage.page()
    assert call.stage.instance is not None  # every page belongs to an instance
    dialogs, answer = call.stage.instance.dialogs, call.args["answer"]
    if answer in ("leave", "stay"):
        dialogs.stay = answer == "stay"
        dialogs.expected = call.args.get("expected", False)
    else:
        dialogs.accept = answer == "accept"
        dialogs.text = call.args.get("text")
    return {"answer": answer}


async def upload(call: Call) -> Any:
    """Choose files in a file field, or in the chooser that a click on the element opens."""
    page = await _cleared_page(call)
    files, chosen = [], 0
    for name in call.args["files"]:
        try:
            data = await asyncio.to_thread(call.stage.uploads.read, name, MAX_BYTES - chosen)
        except UploadRefused as refused:
            raise CommandFailed(f"{name}: {refused}") from refused
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        files.append(FilePayload(name=PurePath(name).name, mimeType=kind, buffer=data))
        chosen += len(data)
    field = await element(call)
    if await field.evaluate(_TAKES_FILES, timeout=call.left_ms):
        await field.set_input_files(files, timeout=call.left_ms)
    else:
        async with page.expect_file_chooser(timeout=call.left_ms) as opening:
            await field.click(timeout=call.left_ms)
        await (await opening.value).set_files(files, timeout=call.left_ms)
    return {"files": list(call.args["files"]), "bytes": chosen, "url": page.url}


NAVIGATE: Final[Mapping[str, Tool]] = {
    "goto": goto,
    "reload": reload,
    "back": back,
    "forward": forward,
    "wait_for": wait_for,
    "tabs": tabs,
    "new_tab": new_tab,
    "switch_tab": switch_tab,
    "close_tab": close_tab,
}
INTERACT: Final[Mapping[str, Tool]] = {
    "click": click,
    "check": check,
    "uncheck": uncheck,
    "press": press,
    "type": type_text,
    "keyboard": keyboard,
    "scroll": scroll,
    "select": select,
    "hover": hover,
    "drag": drag,
    "upload": upload,
    "dialog": dialog,
}


async def _address(call: Call, page: Page, wanted: Glob) -> None:
    try:
        await page.wait_for_url(wanted.matches, timeout=call.left_ms)
    except PlaywrightTimeout:
        at = redact.quoted(call.stage.scrub.hide(page.url))
        raise too_slow(call.waited_ms, wanted.pattern, f"the address is {at}") from None


async def _wait_until_gone(call: Call, page: Page) -> None:
    """Wait until nothing visible matches `gone`, in a frame that exists or existed."""
    while not await has_frames(call, page):
        if call.left_ms <= LOOK_S * 1_000:
            raise no_frame(await missing_frame(call, page) or call.frames[-1], call.timeout_ms)
        await asyncio.sleep(LOOK_S)
    still = every(page, call, f"{call.args['gone']} >> visible=true")
    try:
        await still.first.wait_for(state="detached", timeout=call.left_ms)
    except PlaywrightTimeout:
        raise too_slow(call.waited_ms, call.args["gone"], "it is still there") from None


async def _center(element: Locator, call: Call) -> tuple[float, float]:
    box = await element.bounding_box(timeout=call.left_ms)
    if box is None:
        raise CommandFailed("the element is not shown anywhere")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def _set_checked(call: Call, *, wanted: bool) -> Any:
    """Check or uncheck one element; the click may remove it from the page.

    A locator would then resolve to the next match, and check that as well. An element that the page
    replaced before the click is searched again.
    """
    page = await _cleared_page(call)
    while True:
        node = await (await element(call)).element_handle(timeout=call.left_ms)
        try:
            await node.set_checked(wanted, timeout=call.left_ms)
        except Error as failed:
            if _DETACHED not in failed.message:
                raise
            if _CLICKING not in failed.message and call.left_ms > 1:
                continue
            if await node.evaluate(_IS_CHECKED) is not wanted:
                raise
        return {"checked": wanted, **_action_result(call, page)}


async def _cleared_page(call: Call) -> Page:
    """Return the page, after clearing its earlier refusals."""
    page = await call.stage.page()
    if call.stage.instance is not None:
        call.stage.instance.clear(page)
    return page


async def _through_history(call: Call, by: int, missing: str) -> Any:
    page = await _cleared_page(call)
    wire = call.stage.instance.wire(page) if call.stage.instance else None
    if wire is not None:
        # Playwright answers an impossible step like a step within the same page.
        history = await wire.send("Page.getNavigationHistory")
        if not 0 <= history["currentIndex"] + by < len(history["entries"]):
            raise CommandFailed(missing)
    go = page.go_back if by < 0 else page.go_forward
    try:
        response = await go(wait_until="load", timeout=call.timeout_ms)
    except Error as failed:
        raise _load_failure(call, page) or failed from failed
    return await _location(page, response)


async def _location(page: Page, response: Response | None) -> dict[str, Any]:
    found: dict[str, Any] = {"url": page.url, "title": await page.title()}
    if response is not None:
        found["status"] = response.status
    return found


def _action_result(call: Call, page: Page) -> dict[str, Any]:
    refused = _refusal(call, page)
    if refused is not None:
        raise refused
    return {"done": True, "url": page.url}


def _load_failure(call: Call, page: Page) -> CommandFailed | None:
    """Return the reason of a failed load, if it was blocked or the connection failed."""
    known = call.stage.instance.why(page) if call.stage.instance else None
    return CommandFailed(str(known)) if known is not None else None


def _refusal(call: Call, page: Page) -> CommandFailed | None:
    """Return the navigation filter's refusal to this page since the command began."""
    refused = call.stage.instance.refused(page) if call.stage.instance else None
    return CommandFailed(str(refused)) if refused is not None else None
