"""`octask`, the command line; the only package of the engine that reads the environment."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `octask`."""
    from engine.cli.guard import guarded
    from engine.cli.streams import repair_streams
    from engine.logging.logs import keep_owner_access

    keep_owner_access()
    repair_streams()
    sys.exit(guarded())
