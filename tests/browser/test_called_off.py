"""Cancelled requests to the browser leave nothing open."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psutil
import pytest

from engine.browser.chromium.browser_instance import open_context
from engine.browser.chromium.browser_options import BrowserVariant
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.launch import Chromium
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserFailed, ShuttingDown


@asynccontextmanager
async def browser() -> AsyncIterator[Chromium]:
    session = BrowserSession()
    try:
        await session.warm()
        yield await session._chromium(BrowserVariant(lean=True))
    finally:
        await session.aclose()


async def contexts_of(chromium: Chromium) -> list[Any]:
    wire = await chromium.browser.new_browser_cdp_session()
    told = await wire.send("Target.getBrowserContexts")
    await wire.detach()
    return list(told["browserContextIds"])


async def test_a_context_that_is_called_off_while_it_opens_is_closed() -> None:
    async with browser() as chromium:
        for after_s in (0.0, 0.001, 0.003, 0.006, 0.01, 0.015):
            opening = asyncio.create_task(open_context(chromium, Policy(None)))
            await asyncio.sleep(after_s)  # somewhere on its way
            opening.cancel()
            await asyncio.wait({opening})
            if not opening.cancelled():
                await opening.result()[0].close()
        until = time.monotonic() + 60
        while not chromium.idle or await contexts_of(chromium):
            assert time.monotonic() < until, "contexts stay open that nobody knows"
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("after_s", [0.0, 0.1])
async def test_closing_a_session_during_launch_leaves_no_process(after_s: float) -> None:
    before = set(psutil.Process().children(recursive=True))
    session = BrowserSession()
    warming = asyncio.create_task(session.warm())
    await asyncio.sleep(after_s)
    await session.aclose()
    with suppress(ShuttingDown, BrowserFailed):  # it was ready before, on a quick machine
        await warming
    until = time.monotonic() + 60
    while set(psutil.Process().children(recursive=True)) - before:
        assert time.monotonic() < until, "processes were left"
        await asyncio.sleep(0.02)
    assert "forward proxy" not in {one.name for one in threading.enumerate()}
