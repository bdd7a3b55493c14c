"""Task folders made by hand, and other processes that change them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OURS = "from tests.support.task_folders import *"


def task_id(number: int) -> str:
    return f"{number:016x}"


def write_meta(root: Path, number: int, status: str = "RUNNING", **fields: Any) -> Path:
    """Stage and rename, as every writer of the ledger does."""
    folder = root / task_id(number)
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"task_id": folder.name, "kind": "crawl", "status": status, "created_at": number}
    meta |= {"pid": os.getpid(), "args_summary": {}} | fields
    staged = folder / ".meta.json.test.tmp"
    staged.write_text(json.dumps(meta))
    staged.replace(folder / "meta.json")
    return folder


def elsewhere(script: str, *args: object) -> subprocess.Popen[str]:
    """Run `script` in another process, which can import this module's functions."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys, time\n{OURS}\n{script}", *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )


def now_ns() -> int:
    """A clock that all processes of this machine share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
