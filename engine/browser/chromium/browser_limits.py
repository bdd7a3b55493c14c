"""Limits of memory and pages after which a browser is replaced."""

from __future__ import annotations

from typing import Final

import msgspec

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
