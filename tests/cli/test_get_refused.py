"""`octask get` prints the blocked requests of a task's browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli import task_commands
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.service.engine import Engine


@pytest.mark.case("R65")
async def test_get_tells_which_addresses_were_refused_and_why(home: Path) -> None:
    settings = Settings.at(home=home)
    settings.root.mkdir(parents=True)
    lease = Lease.acquire(settings.root)
    ledger = Ledger(settings.root, lease=lease)
    record = ledger.create("crawl", {"url": "https://example.com"})
    for place in ("169.254.169.254:80", "10.0.0.1:8080\x1b[31m", "169.254.169.254:80"):
        told = {"phase": "egress", "note": "Refused", "place": place, "reason": "private address"}
        ledger.append_event(record.task_id, "log", told)
    engine = Engine(settings, accepts=False)
    await engine.open()
    try:
        view = await engine.tasks.get(record.task_id)
        lines = await task_commands.fact_lines(engine, view)
    finally:
        await engine.close(1)
        lease.release()
    assert lines == [
        "refused:   2 addresses",
        "  169.254.169.254:80: private address",
        "  10.0.0.1:8080\ufffd[31m: private address",
    ]
