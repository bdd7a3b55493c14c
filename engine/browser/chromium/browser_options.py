"""Options of a browser and of its contexts, and the limits after which it is replaced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from engine.archive.exchange import Archive
from engine.browser.chromium.consent_rules import ConsentRules
from engine.browser.chromium.devices import Device
from engine.browser.remote.remote_address import RemotePlace
from engine.egress.egress_policy import Policy
from engine.egress.own_headers import NO_HEADERS, OwnHeaders
from engine.model.addresses import Credentials
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import Hidden


class BrowserLook(msgspec.Struct, frozen=True):
    """What a task shows of itself to sites; by default what Chromium shows.

    `viewport` and `user_agent` take precedence over those of the `device`. `headers` go to the
    origins of the start addresses only.
    """

    user_agent: str | None = None
    device: Device | None = None
    viewport: tuple[int, int] | None = None
    locale: str | None = None
    timezone: str | None = None
    headers: OwnHeaders = NO_HEADERS

    @property
    def agent(self) -> str | None:
        """The user agent; None for that of the engine."""
        return self.user_agent or (self.device.user_agent if self.device else None)

    @property
    def size(self) -> tuple[int, int] | None:
        """The size of a page's window in CSS pixels; None for that of the kind."""
        return self.viewport or (self.device.size if self.device else None)

    def context_options(self, size: tuple[int, int] | None = None) -> dict[str, Any]:
        """Return Playwright's options of a context; `size` is that of the kind.

        One CSS pixel is one pixel of a picture, also on devices that draw more finely.
        """
        found: dict[str, Any] = {}
        if (shown := self.size or size) is not None:
            found["viewport"] = _size(shown)
        if self.device is not None:
            found |= {"is_mobile": self.device.mobile, "has_touch": self.device.touch}
            found |= {"screen": _size(self.device.screen), "device_scale_factor": 1}
        named = {"user_agent": self.agent, "locale": self.locale, "timezone_id": self.timezone}
        return found | {name: value for name, value in named.items() if value is not None}


def _size(size: tuple[int, int]) -> dict[str, int]:
    return {"width": size[0], "height": size[1]}


PLAIN: Final = BrowserLook()


class FetcherOptions(msgspec.Struct, frozen=True):
    """Browser options of one crawl: its policy, and the number of its tabs."""

    policy: Policy
    pages: int = 3
    credentials: Credentials | None = None
    block_resources: bool = True
    look: BrowserLook = PLAIN
    user_agent: str | None = None  # without one in the look; its client hints are Chromium's
    secrets: tuple[Hidden, ...] = ()  # masked in screenshots
    task_id: str = ""  # task to which the live view belongs
    sign_in: SignIn | None = None
    archive: Archive | None = None  # records what the pages receive
    consent: ConsentRules | None = None  # dismiss the consent banners of pages by these rules
    direct: bool = False  # connect to the browser without Playwright
    # Called with the reason when that fails, and Playwright is used; without it that is an error.
    on_fallback: Callable[[str], Awaitable[None]] | None = None


class InstanceOptions(msgspec.Struct, frozen=True):
    """Options of an instance: its policy, visibility, and handling of windows."""

    policy: Policy
    headed: bool = False
    windows: bool = False
    asks_person: bool = False  # the person who watches answers the dialogs of pages
    credentials: Credentials | None = None
    width: int = 1280
    height: int = 800
    look: BrowserLook = PLAIN
    secrets: tuple[Hidden, ...] = ()  # masked in screenshots
    task_id: str = ""  # task to which the live view belongs
    sign_in: SignIn | None = None
    remote: RemotePlace | None = None  # the machine of the browser, if it is another one


class BrowserVariant(NamedTuple):
    """Options that need separate browsers, because flags apply to a whole process."""

    lean: bool
    headed: bool = False
    windows: bool = False  # pages may open windows in a headless browser
    direct: bool = False  # with a connection of its own, for crawls alone
    remote: RemotePlace | None = None  # on another machine


MIB: Final = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """Limits for a machine with 4 GB and more; tests use smaller ones.

    A renderer above `renderer_bytes` is ended, and its page with it. A browser that loaded
    `browser_pages`, or whose processes together exceed `browser_bytes` after `least_pages`, gets no
    new work: a fresh one takes over. The same applies to Playwright's driver. `look_s` is the
    interval between two measurements.

    A browser without work ends after `idle_s`; one with windows, which only recordings use, after
    `headed_idle_s`.
    """

    renderer_bytes: int = 1_536 * MIB
    browser_bytes: int = 3_072 * MIB
    browser_pages: int = 1_000
    driver_bytes: int = 768 * MIB
    driver_pages: int = 5_000
    least_pages: int = 100
    look_s: float = 1.0
    idle_s: float = 300.0
    headed_idle_s: float = 60.0


DEFAULT: Final = Limits()
