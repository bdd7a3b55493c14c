"""Engines that reap only for a reason, and the states of their tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.model.config import Settings
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from tests.support.task_folders import task_id


@asynccontextmanager
async def opened_unreaped(
    home: Path, reap_s: float = 3_600, *, list_first: bool = True
) -> AsyncIterator[Engine]:
    """Open an engine as a window does."""
    engine = Engine(replace(Settings.at(home=home), reap_s=reap_s), accepts=True)
    await engine.open(list_first=list_first)
    try:
        yield engine
    finally:
        await engine.close()


def status(root: Path, number: int) -> str:
    entry = LedgerReader(root).read(task_id(number))
    return entry.status if isinstance(entry, TaskRecord) else "unreadable"
