"""A browser over the pipe, its contexts, and the settings of their tabs.

Tabs and frames get the settings that Playwright gives them: focus, media, fonts, and the size of
the window. Windows that pages open are closed at once.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from playwright.async_api import Error

from engine.browser.direct.devtools_connection import (
    CLOSED,
    NO_BODIES,
    Connection,
    Emitter,
    Session,
)
from engine.browser.direct.direct_page import DirectPage
from engine.browser.direct.process import BrowserProcess, start

_Shown = Mapping[str, Any]  # Playwright's options of a context: viewport, user_agent, locale, …
_Command = tuple[str, Mapping[str, Any]]
CLOSE_S: Final = 1.0  # below the limit of who closes it
WINDOW_S: Final = 2.0
_ATTACH: Final = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
_PAGES: Final = {**_ATTACH, "filter": [{"type": "page"}]}
# Chromium stops workers, too, and leaves them so where they are filtered out.
_PARTS: Final = {**_ATTACH, "filter": [{"type": "iframe"}, {"type": "worker"}]}
_MEDIA: Final = {
    "media": "",
    "features": [
        {"name": "prefers-color-scheme", "value": "light"},
        {"name": "prefers-reduced-motion", "value": "no-preference"},
        {"name": "forced-colors", "value": "none"},
        {"name": "prefers-contrast", "value": "no-preference"},
    ],
}
_FONTS: Final = (
    {
        "standard": "Times",
        "serif": "Times",
        "sansSerif": "Helvetica",
        "fixed": "Courier",
        "cursive": "Apple Chancery",
        "fantasy": "Papyrus",
    }
    if sys.platform == "darwin"
    else {
        "standard": "Times New Roman",
        "serif": "Times New Roman",
        "sansSerif": "Arial",
        "fixed": "Monospace",
        "cursive": "Comic Sans MS",
        "fantasy": "Impact",
    }
)
_GO: Final[_Command] = ("Runtime.runIfWaitingForDebugger", {})


class DirectBrowser(Emitter):
    """One browser; `launch` starts it."""

    def __init__(self, process: BrowserProcess) -> None:
        super().__init__()
        self.process = process
        self.connection = Connection(self._on_lost)
        self.root = self.connection.root
        self.version = ""
        self._contexts: dict[str, DirectContext] = {}
        self._pages: dict[str, DirectPage] = {}  # by their target
        self._closing: asyncio.Future[None] | None = None
        self.root.on("Target.attachedToTarget", self._on_attached)
        self.root.on("Target.detachedFromTarget", self._on_detached)
        self.root.on("Browser.downloadWillBegin", self._on_download)

    @classmethod
    async def launch(cls, program: str, flags: list[str]) -> DirectBrowser:
        """Start a browser and connect to it; unbounded.

        Raises:
            playwright.Error: it does not start; with what it said.
        """
        try:
            process = start(program, flags)  # some ms; on a thread a cancellation would lose it
        except OSError as failed:
            raise Error(str(failed.strerror)) from failed
        process.watch()
        browser = cls(process)
        try:
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: browser.connection, sock=process.pipe)
            told = await browser.root.send("Browser.getVersion")
            browser.version = str(told["product"]).partition("/")[2]
            await browser.root.send("Target.setAutoAttach", dict(_PAGES))
        except BaseException as failed:
            browser.connection.close()
            await process.end()
            if isinstance(failed, Error):
                code, said = process.exit_code, process.said.strip()
                raise Error(f"exitCode={code}\n[err] {said}") from failed
            raise
        return browser

    @property
    def contexts(self) -> list[DirectContext]:
        return list(self._contexts.values())

    def is_connected(self) -> bool:
        return not self.connection.lost

    async def new_browser_cdp_session(self) -> Session:
        """Open another session of the browser itself; unbounded."""
        told = await self.root.send("Target.attachToBrowserTarget")
        return self.connection.session(str(told["sessionId"]))

    async def new_context(
        self,
        *,
        proxy: Mapping[str, str],
        service_workers: str,
        accept_downloads: bool,
        **shown: Any,
    ) -> DirectContext:
        """Open a context with a fresh profile, without downloads; unbounded.

        Service workers are blocked by the script that `browser_instance.py` adds. `shown` are
        Playwright's options of what it shows of itself.
        """
        assert service_workers == "block"
        assert not accept_downloads
        assert shown.keys() <= _SERVED
        made = await self.root.send(
            "Target.createBrowserContext",
            {
                "disposeOnDetach": True,
                "proxyServer": proxy["server"],
                "proxyBypassList": proxy["bypass"],
            },
        )
        context = DirectContext(self, str(made["browserContextId"]), shown)
        self._contexts[context.id] = context
        denied = {"behavior": "deny", "browserContextId": context.id, "eventsEnabled": True}
        await self.root.send("Browser.setDownloadBehavior", denied)
        return context

    async def close(self) -> None:
        """End the browser and all its processes, by force after 1 s, also when cancelled."""
        self._closing = self._closing or asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.root.send("Browser.close")
        self.connection.close()
        await self.process.end()

    def add(self, page: DirectPage) -> None:
        """Record an open tab."""
        self._pages[page.target_id] = page

    def forget(self, context: DirectContext) -> None:
        """Remove a context that is closed."""
        self._contexts.pop(context.id, None)

    def _on_lost(self) -> None:
        self.run(self.process.end())
        pages, self._pages = tuple(self._pages.values()), {}
        contexts, self._contexts = tuple(self._contexts.values()), {}
        for page in pages:
            page.end()
        for context in contexts:
            context.emit("close", context)
        self.emit("disconnected", self)

    def _on_attached(self, event: dict[str, Any]) -> None:
        told = event["targetInfo"]
        session = self.connection.session(str(event["sessionId"]))
        target_id = str(told["targetId"])
        context = self._contexts.get(str(told.get("browserContextId", "")))
        if told["type"] != "page" or context is None or target_id in self._pages:
            return
        if context.expects(target_id, session, opener=str(told.get("openerId", ""))):
            return
        opener = self._pages.get(str(told.get("openerId", "")))
        window = DirectWindow(self, target_id)
        if opener is not None and opener.hears("popup"):
            opener.emit("popup", window)
        else:
            self.run(window.close())

    def _on_detached(self, event: dict[str, Any]) -> None:
        session = self.connection.forget(str(event["sessionId"]))
        page = self._pages.get(str(event.get("targetId", "")))
        if page is not None and page.session is session:
            del self._pages[page.target_id]
            page.end()

    def _on_download(self, event: dict[str, Any]) -> None:
        page = self._pages.get(str(event.get("frameId", "")))
        pages = [page] if page is not None else []
        for one in pages:
            one.emit("download", event)


class DirectWindow:
    """A window that a page opened; it waits, and loads nothing until it is closed."""

    def __init__(self, browser: DirectBrowser, target_id: str) -> None:
        self._browser = browser
        self._target_id = target_id

    async def close(self) -> None:
        """Close the window within 2 s."""
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(WINDOW_S):
                told = {"targetId": self._target_id}
                await self._browser.root.send("Target.closeTarget", told)


class DirectContext(Emitter):
    """One context with its tabs."""

    def __init__(self, browser: DirectBrowser, context_id: str, shown: _Shown) -> None:
        super().__init__()
        self.browser = browser
        self.id = context_id
        self._shown = shown
        self.pages: list[DirectPage] = []
        self._scripts: list[str] = []
        self._attached: dict[str, Session] = {}  # by the target of a tab that is being opened
        self._opening = 0

    async def add_init_script(self, script: str) -> None:
        """Run `script` first in each document of later tabs."""
        self._scripts.append(script)

    def expects(self, target_id: str, session: Session, *, opener: str) -> bool:
        """Take the session of a tab that is being opened; False for one that a page opened."""
        if opener or not self._opening:
            return False
        self._attached[target_id] = session
        return True

    async def new_page(self) -> DirectPage:
        """Open a tab; unbounded.

        Raises:
            playwright.Error: the browser is gone.
        """
        asked = {"url": "about:blank", "browserContextId": self.id}
        creating = self.browser.root.begin("Target.createTarget", asked)
        self._opening += 1
        creating.add_done_callback(self._on_created)
        try:
            # Chromium opens it also for a task that is cancelled.
            made = await asyncio.shield(creating)
            return await self._prepared(str(made["targetId"]))
        except BaseException:
            creating.add_done_callback(self._close_unwanted)
            raise

    def _on_created(self, _: asyncio.Future[dict[str, Any]]) -> None:
        self._opening -= 1

    def _close_unwanted(self, creating: asyncio.Future[dict[str, Any]]) -> None:
        """Close a tab that nobody waits for any more, when it has been opened."""
        if creating.cancelled() or creating.exception() is not None:
            return
        target_id = str(creating.result()["targetId"])
        self._attached.pop(target_id, None)
        self.browser.root.begin("Target.closeTarget", {"targetId": target_id})

    async def _prepared(self, target_id: str) -> DirectPage:
        """Give a tab that has been opened the settings of a page."""
        session = self._attached.pop(target_id)  # announced before the answer
        page = DirectPage(self, self.browser.root, session, target_id)
        self.browser.add(page)
        self.pages.append(page)
        page.on("close", self.pages.remove)
        self._hear_parts(session)
        window = (await session.send("Browser.getWindowForTarget"))["windowId"]
        bounds = {"windowId": window, "bounds": _size_of(self._shown)}
        await _all(
            session,
            [
                ("Network.enable", NO_BODIES),
                ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
                ("Browser.setWindowBounds", bounds),
                ("Emulation.setDeviceMetricsOverride", _metrics_of(self._shown)),
                ("Page.setFontFamilies", {"fontFamilies": _FONTS}),
                *self._document_settings(),
            ],
        )
        return page

    async def new_cdp_session(self, page: DirectPage) -> Session:
        """Open another session of a tab; unbounded."""
        told = {"targetId": page.target_id, "flatten": True}
        made = await self.browser.root.send("Target.attachToTarget", told)
        return self.browser.connection.session(str(made["sessionId"]))

    async def close(self) -> None:
        """Close the context and its tabs; unbounded."""
        try:
            told = {"browserContextId": self.id}
            await self.browser.root.send("Target.disposeBrowserContext", told)
        except Error as failed:
            if CLOSED not in failed.message:  # it is gone with its browser
                raise
        self.browser.forget(self)
        self.emit("close", self)

    def _document_settings(self) -> list[_Command]:
        scripts = [
            ("Page.addScriptToEvaluateOnNewDocument", {"source": one}) for one in self._scripts
        ]
        return [
            ("Page.enable", {}),
            # Without it no script runs first in a document that has none of its own.
            ("Runtime.enable", {}),
            ("Target.setAutoAttach", _PARTS),
            ("Emulation.setEmulatedMedia", _MEDIA),
            *_agent_commands(self._shown),
            *_document_commands(self._shown),
            *scripts,
            _GO,
        ]

    def _hear_parts(self, owner: Session) -> None:
        owner.on("Target.attachedToTarget", partial(self._on_part, owner))
        owner.on("Target.detachedFromTarget", partial(self._on_part_gone, owner))

    def _on_part(self, owner: Session, event: dict[str, Any]) -> None:
        """Prepare a frame with a process of its own, or a worker, which waits for that."""
        session = self.browser.connection.session(str(event["sessionId"]))
        owner.parts.add(session.id)
        self._hear_parts(session)
        is_frame = event["targetInfo"]["type"] == "iframe"
        # A worker may start workers of its own.
        worker = [("Target.setAutoAttach", _PARTS), *_agent_commands(self._shown), _GO]
        for method, params in self._document_settings() if is_frame else worker:
            session.begin(method, dict(params))

    def _on_part_gone(self, owner: Session, event: dict[str, Any]) -> None:
        owner.parts.discard(str(event["sessionId"]))
        self.browser.connection.forget(str(event["sessionId"]))


async def _all(session: Session, commands: list[_Command]) -> None:
    begun = [session.begin(method, dict(params)) for method, params in commands]
    for answer in await asyncio.gather(*begun, return_exceptions=True):
        if isinstance(answer, BaseException) and _IN_EFFECT not in str(answer):
            raise answer


# What a context shows of itself, from Playwright's options, by Playwright's commands.

_SERVED: Final = frozenset(
    {
        *("viewport", "screen", "device_scale_factor", "is_mobile", "has_touch"),
        *("user_agent", "locale", "timezone_id"),
    }
)
_IN_EFFECT: Final = "override is already in effect"  # by another tab of the same process
_SIZE: Final = {"width": 1280, "height": 720}
_SYSTEMS: Final = (
    ("Android", "arm", re.compile(r"Android (\d+(?:\.\d+)?(?:\.\d+)?)")),
    ("iOS", "arm", re.compile(r"iPhone OS (\d+(?:_\d+)?)")),
    ("iOS", "arm", re.compile(r"iPad; CPU OS (\d+(?:_\d+)?)")),
    ("macOS", "", re.compile(r"Mac OS X (\d+(?:_\d+)?(?:_\d+)?)")),
    ("Windows", "x86", re.compile(r"Windows\D+(\d+(?:\.\d+)?(?:\.\d+)?)")),
)


def _size_of(shown: _Shown) -> dict[str, int]:
    """Return the size of the window."""
    return dict(shown.get("viewport") or _SIZE)


def _metrics_of(shown: _Shown) -> dict[str, Any]:
    """Return the parameters of `Emulation.setDeviceMetricsOverride`."""
    size, mobile = _size_of(shown), bool(shown.get("is_mobile"))
    screen = shown.get("screen") or size
    is_wide = screen["width"] > screen["height"]
    turned = {"angle": 90 if mobile and is_wide else 0}
    return {
        "mobile": mobile,
        **size,
        "screenWidth": screen["width"],
        "screenHeight": screen["height"],
        "deviceScaleFactor": shown.get("device_scale_factor", 1),
        "screenOrientation": {
            **turned,
            "type": "portraitPrimary" if mobile and not is_wide else "landscapePrimary",
        },
    }


def _agent_commands(shown: _Shown) -> list[_Command]:
    """Return what documents and workers get."""
    agent, locale = shown.get("user_agent"), shown.get("locale")
    if not agent and not locale:
        return []
    told: dict[str, Any] = {"userAgent": agent or ""}
    if locale:
        told["acceptLanguage"] = locale
    if agent:
        told["userAgentMetadata"] = _hints_of(agent, mobile=bool(shown.get("is_mobile")))
    return [("Emulation.setUserAgentOverride", told)]


def _document_commands(shown: _Shown) -> list[_Command]:
    """Return what documents get alone; a process may have it already, which is an error."""
    found: list[_Command] = []
    if shown.get("has_touch"):
        found.append(("Emulation.setTouchEmulationEnabled", {"enabled": True}))
    if shown.get("locale"):
        found.append(("Emulation.setLocaleOverride", {"locale": shown["locale"]}))
    if shown.get("timezone_id"):
        found.append(("Emulation.setTimezoneOverride", {"timezoneId": shown["timezone_id"]}))
    return found


def _hints_of(agent: str, *, mobile: bool) -> dict[str, Any]:
    """Return the client hints that Playwright derives from a user agent."""
    platform, version, processor = "Windows", "", "x86"
    for name, own, pattern in _SYSTEMS:
        if found := pattern.search(agent):
            platform, version = name, found[1]
            processor = own or ("x86" if "Intel" in agent else "arm")
            break
    else:
        platform = "Linux" if "linux" in agent.lower() else platform
    return {
        "mobile": mobile,
        "model": "",
        "architecture": "arm" if "ARM" in agent else processor,
        "platform": platform,
        "platformVersion": version,
    }
