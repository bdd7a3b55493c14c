"""Start and end Chromium through Playwright, by force if necessary."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import psutil
from playwright.async_api import Error

from engine.browser.chromium.browser_options import Limits
from engine.browser.chromium.driver import Driver, Family, end
from engine.browser.chromium.locate import Found
from engine.browser.chromium.navigation_filter import NavigationFilter
from engine.browser.page.failures import NoScreen, browser_failure
from engine.browser.remote.remote_address import RemoteBrowserUnreachable, RemotePlace
from engine.egress.egress_policy import LOOPBACK
from engine.egress.proxy import Proxy
from engine.model.process_limits import FEW_FILES, most_open_files
from engine.model.process_memory import bytes_together, own_bytes, resident_bytes

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, ProxySettings

    from engine.browser.chromium.browser_options import BrowserVariant
    from engine.browser.remote.remote_browser import RemoteBrowser
    from engine.egress.proxy_listener import ProxyListener


# Memory measurements of browsers, with an end to renderers above the limit.
#
# Chromium lets a page use all available memory. The owner of a page learns of its end as a crash,
# and gets the reason from `Load.took_too_much`.

TOLD_S = 3.0  # delay within which a page's crash follows its renderer's end


class Load:
    """Last measurement of one browser, and the time a page was ended for its memory."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self.heavy = False  # a renderer exceeds half of its limit
        self.is_roomy = True  # all processes together are well below their limit
        self._ended_at = -TOLD_S

    def took_too_much(self) -> bool:
        """Return whether the last crash was a page ended for its memory."""
        return time.monotonic() - self._ended_at < TOLD_S

    def weigh(self, family: Family, limits: Limits) -> None:
        """Measure every process of the browser; end renderers above the limit. For a thread."""
        members = family.members()
        held = {member: resident_bytes(member) for member in members}
        largest = sorted(held, key=held.__getitem__, reverse=True)
        self.total_bytes = bytes_together(held)
        self.is_roomy = self.total_bytes <= limits.browser_bytes * 2 / 3
        suspects = [one for one in largest if held[one] > limits.renderer_bytes / 2]
        renderers = [one for one in suspects if family.is_renderer(one)]
        self.heavy = bool(renderers)
        self._end(one for one in renderers if _too_heavy(one, held[one], limits))

    def _end(self, heavy: Iterable[psutil.Process]) -> None:
        for one in heavy:
            self._ended_at = time.monotonic()  # set before the crash event
            end([one])


def _too_heavy(process: psutil.Process, held_bytes: int, limits: Limits) -> bool:
    most = limits.renderer_bytes
    return held_bytes > most and own_bytes(process) > most


LAUNCH_S = 20.0
CONNECT_S = 20.0  # to a browser that another machine has started
TRIES = 3
CLOSE_S = 2.0
ANSWER_S = 2.0
FLOOD_TOLD_S = 5.0  # delay of a crash event, also in a browser with a long queue
_SLOW = f"it did not answer within {LAUNCH_S:.0f} s"
_FLAGS = (
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
    # Names are resolved by the proxy alone; the browser itself resolves only this machine.
    # (No pattern: `127.*` would also match the name `127.leads.example`.)
    "--host-resolver-rules=MAP * ~NOTFOUND" + "".join(f", EXCLUDE {host}" for host in LOOPBACK),
    "--dns-prefetch-disable",
    "--no-pings",
    "--mute-audio",
    # WebRTC would expose addresses of this machine and send datagrams past the proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
# The headless shell has no popup blocker; the full browser has one (see below). With a person
# watching, the window that a click opens is part of the work.
NO_WINDOWS = "--block-new-web-contents"
# Of these two switches the last one wins, so Playwright's own values are repeated here.
_FEATURES_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,"
    "HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,TcpPortRandomizationWin,"
    "DnsOverHttps,OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    "msForceBrowserSignIn,msEdgeUpdateLaunchServicesPreferredVersion"
)
_POINTER = "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
FLAGS = (
    *_FLAGS,
    # A new frame host for each page of the same site costs a fifth of the CPU in a reused tab.
    f"--disable-features={_FEATURES_OFF},RenderDocument",
)
# Flags apply to a whole browser, so two crawls may need two browsers; they cost nothing, while
# a rule for each request would cost 40 % more CPU a page.
LEAN_FLAGS = (
    "--disable-remote-fonts",
    f"--blink-settings=imagesEnabled=false,{_POINTER}",
)
_ROOMY_SHM_BYTES = 2 * 1024**3
_EXIT = re.compile(r"exitCode=(-?\d+)")
_SAID = re.compile(r"\[err\] (?:\[[^\]]*\] ?)?(.+)")  # without the log's own prefix
NO_SCREEN = re.compile(r"Missing X server|\$DISPLAY|ozone_platform|Wayland display")


class Chromium:
    """One running browser with its navigation filter and its proxy.

    `worn` means that it gets no new work: a fresh one takes over while it finishes its pages.
    """

    def __init__(
        self,
        browser: Browser,
        navigation_filter: NavigationFilter,
        found: Found,
        driver: Driver | None,
        proxy: Proxy,
        remote: RemoteBrowser | None = None,
    ) -> None:
        """Take a started browser; one with a connection of its own has no driver.

        `remote` is the session of a browser on another machine, whose processes are not seen here.
        """
        self.browser = browser
        self.navigation_filter = navigation_filter
        self.proxy = proxy
        self.found = found
        self.driver = driver
        self.family: Family | None = None
        self.load = Load()
        self.pages = 0  # number of pages that crawls loaded with it
        self._flood_s = -FLOOD_TOLD_S
        self.worn = False
        self.dropped = False
        self.had_no_work = False  # that is why it was ended
        self.headed = False
        self._used_at_s = time.monotonic()
        self._wire: CDPSession | None = None
        self._waits: set[asyncio.Timeout] = set()
        self._aside: set[asyncio.Task[None]] = set()
        self.remote = remote
        browser.on("disconnected", lambda _: self._on_disconnected())

    @property
    def alive(self) -> bool:
        """Whether the browser and the driver, if it has one, are connected."""
        driven = self.driver is None or self.driver.alive
        return not self.dropped and self.browser.is_connected() and driven

    @property
    def is_direct(self) -> bool:
        """Whether it is connected without Playwright."""
        return self.driver is None

    @property
    def idle(self) -> bool:
        """Whether it has no open contexts and no waits."""
        return not self.browser.contexts and not self._waits

    @property
    def unused_s(self) -> float:
        """The time since `note_use`."""
        return time.monotonic() - self._used_at_s

    def note_use(self) -> None:
        """Put off its end as a browser without work: it has some, or is about to get some."""
        self._used_at_s = time.monotonic()

    @property
    def shared(self) -> bool:
        """Whether more than one page of one crawl may depend on it."""
        return len(self._waits) != 1 or len(self.browser.contexts) != 1

    @asynccontextmanager
    async def within(self, limit_s: float) -> AsyncIterator[asyncio.Timeout]:
        """Bound a wait for this browser: `TimeoutError` after `limit_s`, or when it dies.

        A call in progress when the browser dies may never be answered.
        """
        async with asyncio.timeout(limit_s) as wait:
            self._waits.add(wait)
            try:
                yield wait
            finally:
                self._waits.discard(wait)

    def _on_disconnected(self) -> None:
        end_waits(self._waits)

    def see_to(self, work: Coroutine[Any, Any, None]) -> None:
        """Run small work in the background; it must end when the browser ends."""
        doing = asyncio.create_task(work, name="work aside")
        self._aside.add(doing)
        doing.add_done_callback(self._aside.discard)

    async def know(self) -> None:
        """Find the browser's processes; unbounded."""
        self._wire = await self.browser.new_browser_cdp_session()
        if self.remote is not None:
            return
        told = await self._wire.send("SystemInfo.getProcessInfo")
        pids = (one["id"] for one in told["processInfo"] if one["type"] == "browser")
        self.family = Family.of(int(next(pids, 0)))
        if self.family is not None and self.driver is not None:
            self.driver.profiles.add(self.family.profile())

    async def answers(self, limit_s: float | None = None) -> bool:
        """Return whether the browser process responds within 2 s, in spite of hung pages."""
        try:
            async with asyncio.timeout(ANSWER_S if limit_s is None else limit_s):
                if self._wire is not None:
                    await self._wire.send("Browser.getVersion")
        except (TimeoutError, Error):
            return False
        return True

    async def network_answers(self) -> bool:
        """Return whether its network service, which all pages share, responds within 2 s.

        A server that sends interim answers (1xx) without end keeps it busy.
        """
        try:
            async with asyncio.timeout(ANSWER_S):
                if self._wire is not None:
                    await self._wire.send("Storage.getCookies")
        except TimeoutError:
            return False
        except Error:
            return True  # the browser is gone, which is another fault
        return True

    def give_up(self) -> None:
        """Abort all waits for this browser."""
        self.dropped = True
        self._on_disconnected()

    async def kill(self) -> None:
        """End it at once; waits for its pages raise an error."""
        self.give_up()
        if not await _close(self.browser) and self.family is not None:
            await asyncio.to_thread(self.family.end)  # it hangs, but its processes can be ended
        if self.remote is not None:
            await _on_proxy(self.proxy, self.remote.close)

    async def proxy_settings(self, listener: ProxyListener) -> ProxySettings:
        """Return Playwright's setting of a proxy for a context that uses `listener`.

        Raises:
            RemoteBrowserUnreachable: the connection to the other machine is lost.
        """
        if self.remote is None:
            return {"server": listener.server, "bypass": listener.bypass}
        # Its loopback addresses are another machine's: those of the task are opened from here.
        listener.has_bypass = False
        port = await self.proxy.run(self.remote.publish(listener.port))
        return {"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"}

    async def was_lost(self) -> bool:
        """Return whether a browser that is gone was on another machine, and its connection lost."""
        if self.remote is None or not self.proxy.is_running:
            return False
        return await self.proxy.run(self.remote.was_lost())

    def end_listener(self, listener: ProxyListener) -> None:
        """Close the port of a context."""
        if self.remote is not None:
            self.proxy.call(self.remote.withdraw, listener.port)
        self.proxy.end(listener)

    def ports(self) -> frozenset[int] | None:
        """Return the ports of its own connections, or None if unknown. For a thread."""
        return self.family.ports() if self.family is not None else None

    async def lacks_files(self) -> bool:
        """Return whether one of its processes may hardly open any more files."""
        most = most_open_files()
        if most is None or most >= FEW_FILES or self.family is None:
            return False
        return await asyncio.to_thread(self.family.lacks_files, most)

    async def end_flood(self) -> bool:
        """End the page that floods it, if one is busy; the other pages continue."""
        before_s, self._flood_s = self._flood_s, time.monotonic()  # set before the crash event
        ended = await self.calm()
        if not ended:
            self._flood_s = before_s
        return ended

    def was_flooded(self, since_s: float | None = None) -> bool:
        """Return whether a page was ended for flooding, recently or since `since_s`."""
        return self._flood_s > (time.monotonic() - FLOOD_TOLD_S if since_s is None else since_s)

    async def calm(self) -> bool:
        """End the page that keeps it busy, if there is one; return whether one was ended."""
        return self.family is not None and await asyncio.to_thread(self.family.end_flooding_page)


def end_waits(waits: Iterable[asyncio.Timeout]) -> None:
    """Let waits for calls that may never be answered time out now."""
    now = asyncio.get_running_loop().time()
    for wait in waits:
        if not wait.expired():
            wait.reschedule(now)


async def launch(
    driver: Driver | None, found: Found, proxy: Proxy, variant: BrowserVariant
) -> Chromium:
    """Start `found` with a fresh profile and `proxy` as the only way out, in three tries.

    Without a driver it gets a connection of its own, for crawls alone.

    Raises:
        NoScreen: a window was requested without a screen.
        BrowserFailed: it did not start.
    """
    reason = ""
    for _ in range(1 if driver is None else TRIES):  # then Playwright is tried
        try:
            return await _try(driver, found, proxy, variant)
        except TimeoutError:
            reason = _SLOW
            break
        except Error as failed:
            if variant.headed and NO_SCREEN.search(failed.message):
                raise NoScreen() from None  # its log of many lines contains no other information
            reason = reason_of(failed.message)
            if _is_final(failed.message):
                break
    raise browser_failure(f"{found.path}: {reason}")


async def _try(
    driver: Driver | None, found: Found, proxy: Proxy, variant: BrowserVariant
) -> Chromium:
    if driver is None:
        browser = await _direct_browser(found, proxy, variant)
    else:
        browser = await _browser(driver, found, proxy, variant)
    return await _known(browser, found, driver, proxy, lean=variant.lean)


async def _known(
    browser: Browser,
    found: Found,
    driver: Driver | None,
    proxy: Proxy,
    remote: RemoteBrowser | None = None,
    *,
    lean: bool = False,
) -> Chromium:
    """Filter the documents of a started browser, and find its processes."""
    chromium: Chromium | None = None
    try:
        async with asyncio.timeout(LAUNCH_S):
            navigation_filter = await NavigationFilter.open(browser, without_media=lean)
            known = Chromium(browser, navigation_filter, found, driver, proxy, remote)
            await known.know()
            chromium = known
    finally:
        if chromium is None:  # unusable, and without another reference
            await _close(browser)
    return chromium


async def launch_remote(
    driver: Driver, place: RemotePlace, proxy: Proxy, variant: BrowserVariant
) -> Chromium:
    """Have a browser started on another machine, and connect to it.

    Raises:
        RemoteBrowserToken, RemoteBrowserUnreachable
    """
    from engine.browser.remote.remote_browser import START_S, RemoteBrowser

    made: list[RemoteBrowser] = []
    opened = RemoteBrowser.open(place, made, headed=variant.headed, windows=variant.windows)
    opening = asyncio.create_task(proxy.run(opened, START_S + ANSWER_S), name="a remote browser")
    chromium: Chromium | None = None
    try:
        remote = await asyncio.shield(opening)
        connecting = driver.playwright.chromium.connect(remote.endpoint, timeout=CONNECT_S * 1000)
        found = Found(f"{remote.browser} at {place.address}", "")
        async with asyncio.timeout(CONNECT_S):
            chromium = await _known(await connecting, found, driver, proxy, remote)
    except (Error, TimeoutError) as failed:
        message = getattr(failed, "message", "").partition("\n")[0]
        reason = message.rstrip(".") or "it does not answer"
        raise RemoteBrowserUnreachable(address=place.address, reason=reason) from failed
    finally:
        if chromium is None:  # also after a cancellation, which does not end the start itself
            await asyncio.shield(_take_remote_back(proxy, opening, made))
    return chromium


async def _take_remote_back(
    proxy: Proxy, opening: asyncio.Task[RemoteBrowser], made: list[RemoteBrowser]
) -> None:
    """End a start; only the proxy's loop knows the session that it has `made` meanwhile."""
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)

    async def close_all() -> None:
        for remote in made:
            await remote.close()

    await _on_proxy(proxy, close_all)


async def _on_proxy(proxy: Proxy, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close something on the proxy's loop, unless that has ended, and all connections with it."""
    if not proxy.is_running:
        return
    try:
        await proxy.run(work(), CLOSE_S)
    except TimeoutError:
        return
    except asyncio.CancelledError:
        if proxy.is_running:  # else it was closed meanwhile, which cancels the work
            raise


def own_flags(variant: BrowserVariant) -> list[str]:
    windows = () if variant.headed or variant.windows else (NO_WINDOWS,)
    return [*FLAGS, *(LEAN_FLAGS if variant.lean else ()), *windows]


async def _direct_browser(found: Found, proxy: Proxy, variant: BrowserVariant) -> Browser:
    from engine.browser.direct.direct_browser import DirectBrowser
    from engine.browser.direct.process import switches

    listener = await proxy.blocking_listener()
    flags = switches(
        own_flags(variant),
        without=dropped_defaults(),
        proxy=listener.server,
        bypass=listener.bypass,
        sandbox=not is_root(),
    )
    async with asyncio.timeout(LAUNCH_S):
        started = await DirectBrowser.launch(found.path, flags)
    return cast("Browser", started)  # it has the part of the interface that crawls use


async def _browser(driver: Driver, found: Found, proxy: Proxy, variant: BrowserVariant) -> Browser:
    blocking_listener = await proxy.blocking_listener()
    launching = asyncio.ensure_future(
        driver.playwright.chromium.launch(
            executable_path=found.path,
            headless=not variant.headed,
            args=own_flags(variant),
            # For requests outside any context; the bypass removes Chromium's implicit exceptions.
            proxy={"server": blocking_listener.server, "bypass": blocking_listener.bypass},
            ignore_default_args=dropped_defaults(),
            chromium_sandbox=not is_root(),
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=LAUNCH_S * 1000,
        )
    )
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        driver.take_back(launching)  # the driver is unaware of the cancellation, and continues
        raise


async def _close(browser: Browser) -> bool:
    """Close it; return False when it did not close within 2 s."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await browser.close()
    except TimeoutError:
        return False
    except Error:
        return True  # gone already
    return True


def dropped_defaults() -> list[str]:
    """Return Playwright's own switches that are left out.

    Pop-ups stay blocked. Chromium keeps its limit of 200 changes of a page's address in 10 s:
    without it one page fills the browser's queue, and all other pages wait for seconds. Shared
    memory on a disk is for containers with a tiny /dev/shm.
    """
    dropped = ["--disable-popup-blocking", "--disable-ipc-flooding-protection"]
    if sys.platform == "linux" and os.path.isdir("/dev/shm"):
        shm = os.statvfs("/dev/shm")
        if shm.f_bavail * shm.f_frsize >= _ROOMY_SHM_BYTES:
            dropped.append("--disable-dev-shm-usage")
    return dropped


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _is_final(message: str) -> bool:
    """Return whether another try would take as long and fail the same way."""
    return "Timeout" in message or "Connection closed" in message


def reason_of(message: str) -> str:
    """Summarize Playwright's report of many lines in one."""
    if "Timeout" in message:
        return _SLOW
    code = _EXIT.search(message)
    said = _SAID.search(message)
    parts = [f"it ended at once (exit code {code.group(1)})"] if code else []
    parts += [said.group(1).strip()[:200]] if said else []
    return "; ".join(parts) or message.partition("\n")[0][:200]
