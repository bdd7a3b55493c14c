"""`python -m tests.trust.recorded HOME SITE`: a recording in which secrets are typed, exported.

It prints what was recorded, and every export of it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.export.recordings import FORMATS, export_recording
from engine.ledger.reader import LedgerReader
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.recording.conftest import Operator, until
from tests.support.line_files import whole_lines
from tests.trust.planted import PLANTED

P = PLANTED


async def record(home: Path, site: str) -> None:
    """Type into a page that shows everything again, in its title and console as well."""
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        args = {"url": f"{site}/form", "headless": True, "screenshots": "each"}
        task_id = (await engine.requests.start("recording", args)).task_id
        pages = home / "tasks" / task_id / "pages.jsonl"
        await until(lambda: whole_lines(pages))
        operator = Operator(engine.instances.living()[-1].pages[0], lambda: whole_lines(pages))
        await operator.type("#f", P["typed text"])
        await operator.type("#p", P["typed password"])
        await operator.click("#echo")
        await operator.recorded("click")
        await engine.commands.stop(task_id)
        print(await engine.tasks.wait(task_id))
        for form in FORMATS:
            place = home.parent / "exports" / f"recording.{form}"
            look = LedgerReader(engine.settings.root)
            print(await asyncio.to_thread(export_recording, look, task_id, form, place))
    finally:
        await engine.close()


if __name__ == "__main__":
    log_to_file()
    asyncio.run(record(Path(sys.argv[1]), sys.argv[2]))
