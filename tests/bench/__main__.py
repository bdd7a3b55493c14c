"""`python -m tests.bench NAME [options]`: run one benchmark by its file's name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def run(words: list[str]) -> int:
    """Hand the words behind the name to that benchmark; what it returns is the exit code."""
    found = {place.stem: place for place in sorted(Path(__file__).parent.glob("[!_]*.py"))}
    names = [name for name, place in found.items() if "\ndef main(" in place.read_text("utf-8")]
    if not words or words[0] not in names:
        print(f"Give one of: {', '.join(names)}", file=sys.stderr)
        return 2
    bench = importlib.import_module(f"tests.bench.{words[0]}")
    return bench.main(words[1:]) or 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
