"""Child processes inherit no lease, lock or file of a ledger."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import psutil
import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.support.far_limits import be_patient
from tests.support.processes import open_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to look in")


async def test_browser_and_driver_hold_no_lease_and_no_lock_of_ours(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are started while a lease and a task's lock are held."""
    be_patient(monkeypatch)
    engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
    await engine.open()
    inside, go_on = threading.Event(), threading.Event()

    def hold(raw: dict[str, object]) -> None:
        inside.set()
        assert go_on.wait(190)

    ledger = engine._maintenance.ledger
    task_id = ledger.claim(ledger.create("crawl", {}).task_id).task_id
    holding = asyncio.create_task(asyncio.to_thread(ledger.mutate, task_id, hold))
    try:
        await asyncio.to_thread(inside.wait, 60)
        async with engine._parts.browser.instance(InstanceOptions(Policy(None))):
            ours = {path for path in open_files(os.getpid()) if path.startswith(str(home))}
            children = psutil.Process().children(recursive=True)
            theirs = {path for child in children for path in open_files(child.pid)}
        assert any("/.runners/" in path for path in ours)
        assert any(path.endswith(f"{task_id}/lock") for path in ours)
        assert len(children) >= 3  # the driver, the browser, its helpers
        assert not {path for path in theirs if path.startswith(str(home))}
    finally:
        go_on.set()
        await holding
        await engine.close()
