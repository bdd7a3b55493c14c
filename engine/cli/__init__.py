"""`octask`, the command line; the only package of the engine that reads the environment."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `octask`."""
    from engine.cli.guard import guarded, mend_streams

    mend_streams()
    sys.exit(guarded())
