"""The stored files of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.line_files import whole_lines


def stored(home: Path, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "comet-runs" / f"{run_id}.json").read_bytes())
    return found


def transitions(home: Path) -> list[dict[str, Any]]:
    files = sorted((home / "audit").glob("*/lifecycle.jsonl"))
    return [line for file in files for line in whole_lines(file)]
