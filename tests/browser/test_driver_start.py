"""A browser start that is called off leaves nothing running."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from engine.browser.launch import Driver


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.1, 0.2])
async def test_a_cancelled_start_ends_its_process_and_its_tasks(after_s: float) -> None:
    before = set(psutil.Process().children(recursive=True))
    start = asyncio.create_task(Driver.start())
    await asyncio.sleep(after_s)  # anywhere in the start
    start.cancel()
    await asyncio.wait({start})
    if not start.cancelled():  # it was ready before the cancel reached it
        await start.result().stop(5)
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert left == []
