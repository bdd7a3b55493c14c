"""`python -m tests.bench NAME [options]`: run one benchmark by its file's name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def run() -> int:
    """Hand the remaining words to the benchmark's `main()`; its return value ends the program."""
    names = sorted(place.stem for place in Path(__file__).parent.glob("[!_]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"Give one of: {', '.join(names)}", file=sys.stderr)
        return 2
    bench = importlib.import_module(f"tests.bench.{sys.argv[1]}")
    del sys.argv[1]
    return bench.main() or 0


if __name__ == "__main__":
    sys.exit(run())
