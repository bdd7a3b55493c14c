"""`octask get` prints how many pages of a running crawl load at once, and what it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli import task_commands
from engine.cli.start import start
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.service.engine import Engine
from engine.verbs.schemas import kind_schema


async def test_get_tells_how_many_pages_of_a_running_crawl_load_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.at(home=home)
    settings.root.mkdir(parents=True)
    lease = Lease.acquire(settings.root)
    ledger = Ledger(settings.root, lease=lease)
    record = ledger.create("crawl", {"url": "https://example.com"})
    for number, before, reason in ((3, 0, "start"), (6, 3, "room"), (3, 6, "refused")):
        told = {"phase": "concurrency", "number": number, "before": before, "reason": reason}
        ledger.append_event(record.task_id, "log", told)
    for host, seconds in (("a.test", 1e-9), ("b.test", 60.0)):
        wait = {"phase": "wait", "host": host, "seconds": seconds, "reason": "retry_after"}
        ledger.append_event(record.task_id, "log", wait)
    engine = Engine(settings, accepts=False)
    await engine.open()
    try:
        waiting = await task_commands.fact_lines(engine, await engine.tasks.get(record.task_id))
        ledger.claim(record.task_id)
        running = await task_commands.fact_lines(engine, await engine.tasks.get(record.task_id))
        monkeypatch.setattr(task_commands, "MOST_SLICES", 1)
        cut_short = await task_commands.fact_lines(engine, await engine.tasks.get(record.task_id))
    finally:
        await engine.close(1)
        lease.release()
    assert waiting == []
    assert running == [
        "waits:     b.test asked to wait 60 s before it is asked again (Retry-After).",
        "at once:   3 (before: 6): the site asked for less (429 or 503)",
    ]
    assert cut_short == running[:1], "the last change may be in the events that were not read"


def test_help_and_schema_have_the_number_and_the_word() -> None:
    help_text = CliRunner().invoke(start, ["crawl", "--help"], terminal_width=100).output
    told = " ".join(help_text.split())
    assert "Pages that load at the same time (1 to 16, or auto; default: 3)." in told
    for kind in ("crawl", "crawl_sitemap"):
        number = {"type": "integer", "minimum": 1, "maximum": 16}
        found = kind_schema(kind)["properties"]["concurrency"]
        assert found["anyOf"] == [number, {"type": "string", "const": "auto"}]
        assert found["default"] == 3
