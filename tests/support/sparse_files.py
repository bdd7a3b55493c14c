"""Task folders with huge files that hold nothing but holes, for tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.gui.result_ledgers import page, put_pages, put_task

needs_holes = pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="no support for holes")
HOLE = 2 * 1024**4  # reading it would take ten minutes


def dig(path: Path, behind: bytes = b"") -> None:
    """Append a hole to a file, and what was written behind it."""
    with path.open("ab") as file:
        file.truncate(file.tell() + HOLE)
        file.seek(0, os.SEEK_END)
        file.write(behind)


def event(note: str) -> bytes:
    return json.dumps({"ts": 1, "kind": "log", "data": {"note": note}}).encode() + b"\n"


def task_with_holes(home: Path, number: int, status: str = "COMPLETED") -> str:
    folder = put_task(home, number, status=status)
    put_pages(folder, page(1), page(2))
    (folder / "events.jsonl").write_bytes(event("before"))
    dig(folder / "events.jsonl", event("behind"))
    dig(folder / "pages.jsonl", json.dumps(page(3)).encode() + b"\n")
    dig(folder / "result.json", b'"behind"')
    return folder.name
