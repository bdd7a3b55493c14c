"""Give a tab another user agent, with client hints that agree with it.

Playwright sets the user agent of a context, but its client hints name the real browser: a phone
with the brand `HeadlessChrome` is no phone. An override in the tab's own DevTools session, which is
younger than Playwright's, replaces them; frames in processes of their own and windows that pages
open get the same override before their first script runs. A browser that sends no client hints
(Safari, Firefox) has none here, too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from engine.browser.chromium.browser_options import BrowserLook

ATTACH_S: Final = 2.0
HINT_PREFIX: Final = "sec-ch-ua"
_FIRST_WITH_HINTS: Final = 89  # Chrome's first version that sends client hints to every site
_CHROME: Final = re.compile(r"\bChrome/(?P<whole>(?P<major>\d{1,4})(?:\.\d+){0,3})\b")
_WITHOUT_HINTS: Final = re.compile(r"\b(?:Edge|Silk)/")
_BRANDS: Final = (
    (re.compile(r"\bEdgA?/(\d+)"), "Microsoft Edge"),
    (re.compile(r"\bOPR/(\d+)"), "Opera"),
    (re.compile(r"\bSamsungBrowser/(\d+)"), "Samsung Internet"),
    (re.compile(r"\bVersion/4\.0 Chrome/(\d+)"), "Android WebView"),
    (re.compile(r"\bChrome/(\d+)"), "Google Chrome"),
)
_NO_BRAND: Final = ("Not)A;Brand", "99")  # every browser lists one that nobody has
_ANDROID: Final = re.compile(
    r"\bAndroid (?P<version>[\d.]+)(?:; [a-z]{2}-[a-z]{2})?"
    r"(?:; (?P<model>[^;]+?)(?: Build/[^;)]*)?)?\) AppleWebKit"
)
_WINDOWS: Final = re.compile(r"\bWindows NT (?P<version>[\d.]+)")
_MAC: Final = re.compile(r"\bMac OS X (?P<version>\d[\d_.]*)")
_ARM: Final = re.compile(r"\b(?:arm|aarch64)", re.IGNORECASE)


class System(NamedTuple):
    """The system that a user agent names: as a client hint, as `navigator.platform`, version."""

    hint: str
    platform: str
    version: str = ""
    model: str = ""


def system_of(agent: str) -> System:
    """Return the system that a user agent names."""
    if found := _ANDROID.search(agent):
        model = found["model"] or ""
        return System("Android", "Linux armv81", _three(found["version"]), model * (model != "K"))
    for device in ("iPhone", "iPad", "iPod"):
        if f"({device};" in agent:
            return System("iOS", device)
    if found := _WINDOWS.search(agent):
        return System("Windows", "Win32", _three(found["version"]))
    if found := _MAC.search(agent):
        return System("macOS", "MacIntel", _three(found["version"].replace("_", ".")))
    if "CrOS " in agent:
        return System("Chrome OS", "Linux x86_64")
    if "Linux" in agent or "X11" in agent:
        return System("Linux", "Linux x86_64")
    return System("", "")


def _three(version: str) -> str:
    """Return a version with three parts, as the hints have it."""
    return ".".join([*version.strip(".").split("."), "0", "0"][:3])


def metadata_of(agent: str) -> dict[str, Any] | None:
    """Return the client hints of the browser that `agent` names; None if it sends none."""
    chrome = _CHROME.search(agent)
    if chrome is None or int(chrome["major"]) < _FIRST_WITH_HINTS or _WITHOUT_HINTS.search(agent):
        return None
    system = system_of(agent)
    pattern, name = next(one for one in _BRANDS if one[0].search(agent))
    own = pattern.search(agent)
    version = own[1] if own is not None else chrome["major"]
    whole = chrome["whole"] if version == chrome["major"] else version
    listed = [(name, version, whole), ("Chromium", chrome["major"], chrome["whole"])]
    listed.append((*_NO_BRAND, _NO_BRAND[1]))
    mobile = system.hint == "Android"
    processor = "arm" if _ARM.search(agent) else "x86"
    return {
        "brands": [{"brand": one, "version": major} for one, major, _ in listed],
        "fullVersionList": [{"brand": one, "version": _four(full)} for one, _, full in listed],
        "mobile": " Mobile" in agent,
        "platform": system.hint,
        "platformVersion": system.version,
        "model": system.model,
        "architecture": "" if mobile else processor,
        "bitness": "" if mobile else "64",
        "wow64": False,
    }


def _four(version: str) -> str:
    return ".".join([*version.split("."), "0", "0", "0"][:4])


def override_of(look: BrowserLook) -> dict[str, Any] | None:
    """Return the parameters of `Emulation.setUserAgentOverride`; None for Chromium's own agent."""
    agent = look.agent
    if agent is None:
        return None
    found: dict[str, Any] = {"userAgent": agent}
    if platform := system_of(agent).platform:
        found["platform"] = platform
    if look.locale is not None:
        found["acceptLanguage"] = look.locale
    if (metadata := metadata_of(agent)) is not None:
        found["userAgentMetadata"] = metadata
    return found


def request_headers(look: BrowserLook, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a window's first request, which Chromium made before any override."""
    agent, metadata = look.agent or "", metadata_of(look.agent or "")
    kept = {name: one for name, one in given.items() if not name.lower().startswith(HINT_PREFIX)}
    kept = {name: one for name, one in kept.items() if name.lower() != "user-agent"}
    kept["User-Agent"] = agent
    if metadata is None or not any(name.lower() == HINT_PREFIX for name in given):
        return kept
    brands = ", ".join(f'"{one["brand"]}";v="{one["version"]}"' for one in metadata["brands"])
    kept[HINT_PREFIX] = brands
    kept[f"{HINT_PREFIX}-mobile"] = "?1" if metadata["mobile"] else "?0"
    kept[f"{HINT_PREFIX}-platform"] = f'"{metadata["platform"]}"'
    return kept


async def present(wire: CDPSession, look: BrowserLook) -> None:
    """Give the tab of `wire`, and its frames in other processes, the look's user agent.

    Raises:
        playwright.Error: the tab is gone.
    """
    override = override_of(look)
    if override is None:
        return
    await wire.send("Emulation.setUserAgentOverride", override)
    frames = _Frames(wire, override)
    wire.on("Target.attachedToTarget", frames.on_attached)
    wire.on("Target.receivedMessageFromTarget", frames.on_message)
    await wire.send("Target.setAutoAttach", _AUTO_ATTACH)


# Without `flatten`, messages to a frame pass through its tab's session: Playwright has no other.
SEND_S: Final = 10.0
_AUTO_ATTACH: Final = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": False,
    "filter": [{"type": "iframe"}],
}


class _Frames:
    """Frames of a tab that run in processes of their own, at any depth.

    A frame waits until its override is set. Messages to a nested frame are wrapped once more for
    each frame around it; `path` are the sessions from the outermost frame inwards.
    """

    def __init__(self, wire: CDPSession, override: Mapping[str, Any]) -> None:
        self._wire = wire
        self._override = override
        self._number = 0

    async def on_attached(self, event: Mapping[str, Any]) -> None:
        await self._prepare((str(event["sessionId"]),))

    async def on_message(self, event: Mapping[str, Any]) -> None:
        path: tuple[str, ...] = (str(event["sessionId"]),)
        message = json.loads(event["message"])
        while message.get("method") == "Target.receivedMessageFromTarget":
            path = (*path, str(message["params"]["sessionId"]))
            message = json.loads(message["params"]["message"])
        if message.get("method") == "Target.attachedToTarget":
            await self._prepare((*path, str(message["params"]["sessionId"])))

    async def _prepare(self, path: tuple[str, ...]) -> None:
        with suppress(Error, TimeoutError):  # the frame, the tab or the browser is gone
            async with asyncio.timeout(SEND_S):
                await self._send(path, "Emulation.setUserAgentOverride", self._override)
                await self._send(path, "Target.setAutoAttach", _AUTO_ATTACH)
                await self._send(path, "Runtime.runIfWaitingForDebugger", {})

    async def _send(self, path: tuple[str, ...], method: str, params: Mapping[str, Any]) -> None:
        for session in reversed(path):
            self._number += 1
            message = json.dumps({"id": self._number, "method": method, "params": params})
            method = "Target.sendMessageToTarget"
            params = {"sessionId": session, "message": message}
        await self._wire.send(method, dict(params))


async def present_window(session: CDPSession, target_id: str, look: BrowserLook) -> None:
    """Give a new window the look's user agent while its first request waits.

    `session` is the browser's. The window is no tab yet; it keeps this override until it closes.
    """
    override = override_of(look)
    if override is None:
        return
    answered = asyncio.Event()

    def hear(event: Mapping[str, Any]) -> None:
        if event.get("targetId") == target_id:
            answered.set()

    session.on("Target.receivedMessageFromTarget", hear)
    try:
        async with asyncio.timeout(ATTACH_S):
            target = {"targetId": target_id, "flatten": False}
            attached = await session.send("Target.attachToTarget", target)
            message = {"id": 1, "method": "Emulation.setUserAgentOverride", "params": override}
            told = {"sessionId": attached["sessionId"], "message": json.dumps(message)}
            await session.send("Target.sendMessageToTarget", told)
            await answered.wait()
    except (TimeoutError, Error):
        return  # the window closed, or is not ready: its own session sets the override later
    finally:
        session.remove_listener("Target.receivedMessageFromTarget", hear)
