"""How this program starts itself: the command line of `octask`, and processes of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any


def program_command() -> list[str]:
    """Return the command line of `octask`.

    A packaged program has no separate interpreter; its window starts the `octask` beside it.
    """
    if getattr(sys, "frozen", False):
        program = Path(sys.executable)
        return [str(program.with_name(f"octask{program.suffix}"))]
    # -P: a module in the working folder must not shadow one of ours
    return [sys.executable, "-P", "-m", "engine.cli"]


def apart() -> dict[str, Any]:
    """Return process options that detach a process from this terminal's Ctrl-C and hangup."""
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        return {"creationflags": flags}
    return {"start_new_session": True}
