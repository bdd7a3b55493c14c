"""`octask`, the command line; the only package of the engine that reads the environment."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `octask`."""
    from engine.cli.guard import guarded
    from engine.cli.streams import repair_streams
    from engine.logging.logs import keep_owner_access
    from engine.model.process_limits import raise_open_files

    keep_owner_access()
    raise_open_files()
    repair_streams()
    sys.exit(guarded())
