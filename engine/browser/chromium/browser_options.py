"""Options of a browser and of its contexts, and the limits after which it is replaced."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from engine.archive.exchange import Archive
from engine.egress.egress_policy import Policy
from engine.model.addresses import Credentials
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import Hidden


class FetcherOptions(msgspec.Struct, frozen=True):
    """Browser options of one crawl: its policy, and the number of its tabs."""

    policy: Policy
    pages: int = 3
    credentials: Credentials | None = None
    block_resources: bool = True
    locale: str | None = None
    user_agent: str | None = None  # None: Chromium's own
    secrets: tuple[Hidden, ...] = ()  # masked in screenshots
    task_id: str = ""  # task to which the live view belongs
    sign_in: SignIn | None = None
    archive: Archive | None = None  # records what the pages receive


class InstanceOptions(msgspec.Struct, frozen=True):
    """Options of an instance: its policy, visibility, and handling of windows."""

    policy: Policy
    headed: bool = False
    windows: bool = False
    asks_person: bool = False  # the person who watches answers the dialogs of pages
    credentials: Credentials | None = None
    width: int = 1280
    height: int = 800
    secrets: tuple[Hidden, ...] = ()  # masked in screenshots
    task_id: str = ""  # task to which the live view belongs
    sign_in: SignIn | None = None


class BrowserVariant(NamedTuple):
    """Options that need separate browsers, because flags apply to a whole process."""

    lean: bool
    headed: bool = False
    windows: bool = False  # pages may open windows in a headless browser


MIB: Final = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """Limits for a machine with 4 GB and more; tests use smaller ones.

    A renderer above `renderer_bytes` is ended, and its page with it. A browser that loaded
    `browser_pages`, or whose processes together exceed `browser_bytes` after `least_pages`, gets no
    new work: a fresh one takes over. The same applies to Playwright's driver. `look_s` is the
    interval between two measurements.
    """

    renderer_bytes: int = 1_536 * MIB
    browser_bytes: int = 3_072 * MIB
    browser_pages: int = 1_000
    driver_bytes: int = 768 * MIB
    driver_pages: int = 5_000
    least_pages: int = 100
    look_s: float = 1.0


DEFAULT: Final = Limits()
