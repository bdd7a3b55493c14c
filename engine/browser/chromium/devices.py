"""Known devices by name: their size, user agent and input, as Playwright lists them.

Playwright tells its list only through its driver, which takes a second to start. `devices.json` is
a copy, made by `python -m tests.support.device_list`; a test compares both.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

MOST_NEAR: Final = 3


class Device(msgspec.Struct, frozen=True):
    """A device: `size` of its window and `screen` of the whole, in CSS pixels."""

    name: str
    user_agent: str
    size: tuple[int, int]
    screen: tuple[int, int]
    mobile: bool = False
    touch: bool = False


@cache
def devices() -> dict[str, Device]:
    """Return every known device by its name."""
    text = files("engine.browser").joinpath("devices.json").read_text("utf-8")
    stored = json.loads(text)
    agents = stored["agents"]
    return {
        name: Device(name, agents[agent], tuple(size), tuple(screen), bool(mobile), bool(touch))
        for name, (agent, size, screen, mobile, touch) in stored["devices"].items()
    }


def device_named(name: str) -> Device | None:
    """Return the device of this name, in any case and spacing, or None."""
    known = devices()
    return known.get(name) or _by_plain_name().get(_plain(name))


def names_near(name: str) -> list[str]:
    """Return the names that resemble `name`, the nearest first."""
    plain = _by_plain_name()
    wanted = _plain(name)
    inside = sorted((one for one in plain if wanted and wanted in one), key=len)
    near = difflib.get_close_matches(wanted, plain, n=MOST_NEAR, cutoff=0.5)
    found = dict.fromkeys([*inside, *near])
    return [plain[one].name for one in found][:MOST_NEAR]


@cache
def _by_plain_name() -> dict[str, Device]:
    return {_plain(name): device for name, device in devices().items()}


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())
