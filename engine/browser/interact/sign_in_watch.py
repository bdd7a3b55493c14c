"""Observes a browser while somebody signs in, and reads the sign-in afterwards.

The sites are those whose pages were shown in a window; an embedded site that only sets cookies is
none of them. The login pages are those on which a field for a password got the focus.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.page.failures import net_failure, no_answer
from engine.model.addresses import address_of
from engine.model.errors import BrowserGone, PageError
from engine.profiles.profile import MAX_PAGES, MAX_SITES, SignInSeen, page_key
from engine.profiles.storage_state import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.async_api import Frame, Page

    from engine.browser.chromium.browser_instance import Instance

READ_S: Final = 20.0
LOOK_S: Final = 2.0
_ON_PASSWORD: Final = """(() => addEventListener("focusin", (event) => {
  const [field] = event.composedPath();
  if (field instanceof HTMLInputElement && field.type === "password") window["%s"]?.();
}, true))();"""
_HAS_PASSWORD: Final = "() => document.querySelector('input[type=password]') !== null"


class SignInWatch:
    """Watches one instance from before its first page; `start` it, and `read` it at the end."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._sites: dict[str, None] = {}
        self._login_pages: dict[str, None] = {}
        self._last_url = ""
        self._asks = False
        self._cookies: list[dict[str, Any]] = []

    async def start(self) -> None:
        """Begin. Raises BrowserGone."""
        name = f"_{secrets.token_hex(8)}"
        context = self._instance.context
        try:
            async with self._instance.within(READ_S):
                await context.expose_binding(name, self._on_password)
                await context.add_init_script(_ON_PASSWORD % name)
        except (Error, TimeoutError) as gone:
            raise BrowserGone(url="a window to sign in") from gone
        context.on("page", self._follow)
        for page in context.pages:
            self._follow(page)

    async def open(self, url: str, limit_s: float) -> None:
        """Go to the page where the sign-in begins.

        Raises:
            PageError: it cannot be opened; the error has the reason.
            BrowserGone: the browser died, or its window was closed.
        """
        page = await self._instance.page()
        try:
            await page.goto(url, wait_until="commit", timeout=limit_s * 1_000)
        except PlaywrightTimeout as slow:
            raise no_answer(round(limit_s * 1_000)) from slow
        except Error as failed:
            if not self._instance.alive or page.is_closed():
                raise BrowserGone(url=url) from failed
            refused = self._instance.why(page) or net_failure(failed.message)
            raise refused or PageError("navigation", "the page cannot be opened") from failed

    async def look(self) -> None:
        """Keep the cookies and the page as they are now, in case the browser is ended."""
        page = self._instance.current
        try:
            async with self._instance.within(LOOK_S):
                self._cookies = [dict(one) for one in await self._instance.context.cookies()]
                if page is not None:
                    self._last_url = page.url
                    self._asks = bool(await page.evaluate(_HAS_PASSWORD))
        except (Error, TimeoutError):
            return  # the page is loading, or has closed

    async def read(self) -> SignInSeen:
        """Return what the sign-in left: also after its windows were closed.

        A browser that was ended has the cookies of the last look alone.
        """
        await self.look()
        whole: Mapping[str, Any] = {"cookies": self._cookies, "origins": []}
        with suppress(Error, TimeoutError):
            async with self._instance.chromium.within(READ_S):
                whole = dict(await self._instance.context.storage_state(indexed_db=True))
        return SignInSeen(
            sites=tuple(self._sites)[:MAX_SITES],
            login_pages=tuple(self._login_pages),
            last_url=self._last_url,
            asks=self._asks,
            everything=dict(whole),
        )

    def _follow(self, page: Page) -> None:
        page.on("framenavigated", self._on_navigated)

    def _on_navigated(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            return
        address = address_of(frame.url)
        if address is not None:
            self._last_url = frame.url
            self._sites.setdefault(host_of(address))

    def _on_password(self, source: Any) -> None:
        address = address_of(source["page"].url)
        if address is not None and len(self._login_pages) < MAX_PAGES:
            self._login_pages.setdefault(page_key(address))
