"""`python -m tests.trust.window_texts HOME`: prints every text of a window that shows HOME.

Each task is selected in turn with its events, and all of them are copied: the clipboard, the
window's title and what it remembers are printed as well.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from engine.model.config import Settings
from gui.app import make_application
from gui.context.preferences import Memory
from gui.startup.crash_handler import CrashHandler
from gui.startup.loop import run
from gui.startup.session import Session
from tests.gui.text_walk import said_by
from tests.gui.windows import heard

LIMIT_S = 180.0


async def texts(app: QApplication, home: Path) -> list[str]:
    """All that the window says while each of its tasks is looked at."""
    session = Session(Settings.at(home=home), Memory(), CrashHandler())
    loaded = heard(session.window.bridge.loaded)
    session.open()
    said: list[str] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            await loaded
            table, window = session.window.table, session.window
            window.acts["details"].setChecked(True)
            for row in range(window.model.rowCount()):
                table.selectRow(row)
                await asyncio.sleep(0.2)  # its events are read meanwhile
                said += [one.text for one in said_by(app.allWidgets())]
            table.selectAll()
            for key in ("copy_ids", "copy_rows"):
                window.acts[key].trigger()
                said.append(app.clipboard().text())
    finally:
        session.window.remember()
        await session.close()
    return said


if __name__ == "__main__":
    application = make_application()
    shown = run(application, texts(application, Path(sys.argv[1])))
    sys.stdout.buffer.write("\n".join(dict.fromkeys(shown)).encode("utf-8", "replace"))
