"""Damaged lines of a task that still runs are counted once, however often it is read."""

from __future__ import annotations

import json
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.results.units import UnitReader

ID = "0123456789abcdef"


def test_a_damaged_line_is_counted_once_while_a_task_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / ID
    folder.mkdir(parents=True)
    pages = folder / "pages.jsonl"
    since = number = lost = 0

    def becomes(status: str, *lines: str) -> int:
        """Write these lines, read on as a window does, and return the lines lost so far."""
        nonlocal since, number, lost
        record = {"task_id": ID, "kind": "crawl", "status": status, "created_at": 1}
        (folder / "meta.json").write_text(json.dumps({**record, "updated_at": 2}))
        with pages.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        part = UnitReader(LedgerReader(tmp_path / "tasks"), ID, since, number).part()
        number += len(part.units)
        since, lost = part.resume, lost + part.lost
        return lost

    assert becomes("RUNNING", "{}", "damaged", "{}") == 1
    for _ in range(3):
        assert becomes("RUNNING", "damaged") == 1, "the lines behind the last page are read again"
    assert becomes("RUNNING", "{}") == 4
    assert becomes("RUNNING", "damaged") == 4
    assert becomes("COMPLETED") == 5
    assert number == 3
