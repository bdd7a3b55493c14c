"""Calls of the window while the ledger is still opening."""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable
from gui.engine_link.bridge import Bridge
from tests.support.engines import until
from tests.support.task_folders import task_id, write_meta


async def test_early_calls_wait_for_the_ledger(tmp_path: Path) -> None:
    write_meta(tmp_path / "tasks", 1, "COMPLETED")
    bridge = Bridge(Settings.at(home=tmp_path), accepts=False)
    answers: list[str] = []
    failures: list[EngineError] = []
    bridge.failed.connect(failures.append)
    bridge.ask(
        lambda engine: engine.tasks.get(task_id(1)),
        lambda view: answers.append(view.task_id),
        name="early",
    )
    await asyncio.sleep(0)
    assert not answers
    bridge.open()
    try:
        await until(lambda: answers)
    finally:
        await bridge.close()
    assert (answers, failures) == ([task_id(1)], [])


async def test_it_fails_with_the_reason_where_the_ledger_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("no folder")
    bridge = Bridge(Settings.at(home=tmp_path), accepts=False)
    failures: list[EngineError] = []
    bridge.ask(
        lambda engine: engine.tasks.get(task_id(1)), lambda _: None, failures.append, name="early"
    )
    bridge.open()
    try:
        await until(lambda: failures)
    finally:
        await bridge.close()
    assert isinstance(failures[0], LedgerUnusable)
