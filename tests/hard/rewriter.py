"""A tool that rewrites a file in place: truncated, absent, whole again, every few ms."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

PERIOD_S = 0.005


def rewrite(path: Path, seconds: float) -> None:
    """End with the whole file in its place."""
    data = path.read_bytes()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        path.write_bytes(data[: len(data) // 2])
        time.sleep(PERIOD_S)  # the gap between two writes is what is tested
        path.unlink()
        time.sleep(PERIOD_S)  # the gap between two writes is what is tested
        path.write_bytes(b"")
        time.sleep(PERIOD_S)  # the gap between two writes is what is tested
        path.write_bytes(data)
        time.sleep(PERIOD_S)  # the gap between two writes is what is tested
    stage = path.with_name(".whole.tmp")
    stage.write_bytes(data)
    os.replace(stage, path)


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), float(sys.argv[2]))
