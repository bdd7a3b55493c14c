"""A window that is closed while its browser starts takes all of it along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from gui.startup.session import Session
from tests.gui.windows import opened

pytestmark = pytest.mark.usefixtures("patient_browser")


def at_once(_: Session) -> bool:
    return True


def starting(session: Session) -> bool:
    return session.bridge.look_at_health().browser in ("starting", "ready")  # it may be that quick


def driver_runs(_: Session) -> bool:
    return bool(psutil.Process().children())


def ready(session: Session) -> bool:
    return session.bridge.look_at_health().browser == "ready"


@pytest.mark.parametrize("stage", [at_once, starting, driver_runs, ready], ids=lambda f: f.__name__)
async def test_closing_during_launch(home: Path, stage: Callable[[Session], bool]) -> None:
    before = asyncio.all_tasks()
    async with opened(home) as session:
        session.bridge.warm()
        while not stage(session):
            await asyncio.sleep(0.005)
    left = {repr(task) for task in asyncio.all_tasks() - before}
    assert not any("playwright" in words for words in left), left
