"""What a context shows of itself, from Playwright's options, by Playwright's commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Shown = Mapping[str, Any]  # Playwright's options of a context: viewport, user_agent, locale, …
Command = tuple[str, Mapping[str, Any]]
SERVED: Final = frozenset(
    {
        *("viewport", "screen", "device_scale_factor", "is_mobile", "has_touch"),
        *("user_agent", "locale", "timezone_id"),
    }
)
IN_EFFECT: Final = "override is already in effect"  # by another tab of the same process
_SIZE: Final = {"width": 1280, "height": 720}
_SYSTEMS: Final = (
    ("Android", "arm", re.compile(r"Android (\d+(?:\.\d+)?(?:\.\d+)?)")),
    ("iOS", "arm", re.compile(r"iPhone OS (\d+(?:_\d+)?)")),
    ("iOS", "arm", re.compile(r"iPad; CPU OS (\d+(?:_\d+)?)")),
    ("macOS", "", re.compile(r"Mac OS X (\d+(?:_\d+)?(?:_\d+)?)")),
    ("Windows", "x86", re.compile(r"Windows\D+(\d+(?:\.\d+)?(?:\.\d+)?)")),
)


def size_of(shown: Shown) -> dict[str, int]:
    """Return the size of the window."""
    return dict(shown.get("viewport") or _SIZE)


def metrics_of(shown: Shown) -> dict[str, Any]:
    """Return the parameters of `Emulation.setDeviceMetricsOverride`."""
    size, mobile = size_of(shown), bool(shown.get("is_mobile"))
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


def agent_commands(shown: Shown) -> list[Command]:
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


def document_commands(shown: Shown) -> list[Command]:
    """Return what documents get alone; a process may have it already, which is an error."""
    found: list[Command] = []
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
