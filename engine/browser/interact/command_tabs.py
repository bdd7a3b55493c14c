"""The tabs of a task's instance as commands: listed, opened, chosen and closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.interact.command_failures import gone, too_slow
from engine.browser.interact.command_stage import Call
from engine.kinds.commands.command_errors import CommandFailed
from engine.model.errors import BrowserGone
from engine.model.url_glob import Glob

if TYPE_CHECKING:
    from playwright.async_api import Page

    from engine.browser.chromium.browser_instance import Instance

LOOK_S: Final = 0.1  # between two looks for a tab that is yet to open
MAX_TABS: Final = 20
TOO_MANY: Final = "too many tabs are open; close one first"
NO_TAB: Final = "no tab has this number, title or address"


async def tabs(call: Call) -> Any:
    current = await call.stage.page()
    listed = [await _told(call, page) for page in _instance(call).pages]
    for page, told in zip(_instance(call).pages, listed, strict=False):
        if page is current:
            told["current"] = True
    return {"tabs": listed}


async def open_tab(call: Call) -> Page:
    """A new tab, which the commands after it act on."""
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
    """Go on in another tab; waits for one that a page is yet to open."""
    await call.stage.page()  # a first tab is there, whatever the number
    while True:
        found = await _find(call)
        if found is not None:
            break
        if call.left_ms <= 1:
            raise too_slow(call.waited_ms, str(call.args["tab"]), NO_TAB)
        await asyncio.sleep(min(LOOK_S, call.left_ms / 1000))
    _instance(call).select(found)
    await found.bring_to_front()
    await found.wait_for_load_state("domcontentloaded", timeout=call.left_ms)
    return await _told(call, found)


async def close_tab(call: Call) -> Any:
    """Close a tab, else the one that is worked in; the newest of the others comes next."""
    closing = await call.stage.page()
    if "tab" in call.args:
        found = await _find(call)
        if found is None:
            raise CommandFailed(NO_TAB)
        closing = found
    address = closing.url
    stays = _instance(call).dialogs.stay
    await closing.close(run_before_unload=stays)
    if stays and not closing.is_closed():  # where the page asks, the command ends with that
        await closing.wait_for_event("close", timeout=call.left_ms)
    return {"closed": True, "url": address, "tabs": len(_instance(call).pages)}


def _instance(call: Call) -> Instance:
    assert call.stage.instance is not None  # whoever has a page has an instance
    return call.stage.instance


async def _find(call: Call) -> Page | None:
    """The tab of this number or title, or of an address that matches; the newest of several."""
    wanted, pages = call.args["tab"], _instance(call).pages
    if isinstance(wanted, int):
        return pages[wanted] if wanted < len(pages) else None
    address = Glob(wanted)
    for page in reversed(pages):
        if address.matches(page.url) or await _title(page) == wanted:
            return page
    return None


async def _told(call: Call, page: Page) -> dict[str, Any]:
    number = _instance(call).pages.index(page) if page in _instance(call).pages else -1
    return {"tab": number, "url": page.url, "title": await _title(page)}


async def _title(page: Page) -> str:
    try:
        return " ".join((await page.title()).split())
    except Error:  # on its way to another document, or closed
        return ""
