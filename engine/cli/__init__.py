"""`octask`, the command line; the only package of the engine that reads the environment."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `octask`."""
    from engine.cli.guard import guarded, repair_streams

    repair_streams()
    sys.exit(guarded())
