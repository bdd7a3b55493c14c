"""How much a browser may hold and how long it is kept, before a fresh one takes over."""

from __future__ import annotations

from typing import Final

import msgspec

MIB: Final = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """The defaults suit a machine with 4 GB and up; tests give smaller ones.

    A renderer above `renderer_bytes` is ended, and with it the page that it holds. A browser
    that took `browser_pages`, or whose processes hold more than `browser_bytes` together
    after `least_pages`, gets no new work: a fresh one takes over. The same holds for
    Playwright's driver. `look_s` is the pause between two looks.
    """

    renderer_bytes: int = 1_536 * MIB
    browser_bytes: int = 3_072 * MIB
    browser_pages: int = 1_000
    driver_bytes: int = 768 * MIB
    driver_pages: int = 5_000
    least_pages: int = 100
    look_s: float = 1.0


DEFAULT: Final = Limits()
