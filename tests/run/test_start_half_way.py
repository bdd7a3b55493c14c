"""An interrupted start, by the caller or the engine, leaves no task without owner."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.errors import ShuttingDown
from engine.model.records import TERMINAL
from engine.service.engine import Engine

ROUNDS = 15


def crawl_of(site: Any) -> dict[str, Any]:
    return {"url": site.url, "engine": "static", "delay_ms": 0, "max_pages": 1}


def left(home: Path) -> list[str]:
    """The states of all tasks in the home."""
    ledger = Ledger(home / "tasks")
    # Never unreadable here.
    return [str(record.status) for record in ledger.list(limit=None)]  # type: ignore[union-attr]


async def test_a_task_whose_asker_went_away_is_run_all_the_same(home: Path, site: Any) -> None:
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        for turns in range(ROUNDS):
            asking = asyncio.create_task(engine.requests.start("crawl", crawl_of(site)))
            for _ in range(turns % 4):
                await asyncio.sleep(0)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        async with asyncio.timeout(90):
            while not left(home) or set(left(home)) - TERMINAL:
                await asyncio.sleep(0.05)
    finally:
        await engine.close()
    assert left(home)  # else nothing was begun


async def test_what_is_started_while_the_engine_closes_ends_with_it(tmp_path: Path) -> None:
    refused = 0
    for turns in range(ROUNDS):
        home = tmp_path / str(turns)
        engine = Engine(Settings.at(home=home), accepts=True)
        await engine.open()
        args = {"url": "http://127.0.0.1:9/", "engine": "static", "timeout_ms": 1_000}
        starting = asyncio.create_task(engine.requests.start("crawl", args))
        for _ in range(turns % 5):
            await asyncio.sleep(0)
        await engine.close()
        try:
            await starting
        except ShuttingDown:
            refused += 1
        assert set(left(home)) <= TERMINAL
        assert not [name for name in os.listdir(home / "tasks") if name.endswith(".tmp")]
    assert refused
