"""An engine as a program has one: on the ledger of one home, closed again whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.kinds.context import Clock
from engine.model.config import Settings
from engine.service.engine import Engine

WAIT_S = 60.0


@asynccontextmanager
async def opened(
    home: Path, *, accepts: bool = True, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[Engine]:
    """An open engine; `settings` are fields of `Settings` that differ from the usual ones."""
    engine = Engine(replace(Settings.at(home=home), **settings), accepts=accepts, clock=clock)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def until(condition: Callable[[], object], limit_s: float = WAIT_S) -> None:
    """Wait for what no signal tells of (files, other processes), a minute at the most."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)
