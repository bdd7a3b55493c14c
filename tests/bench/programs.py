"""Work of the window's thread in one go while its engine is opened to other programs.

The switch in Settings, the first request of a program, the page of the address, a request of the
older protocol, and the switch off: each may hold the window up for 100 ms at most.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.bench.report import report

WORK_MS = 100.0


def main(words: Sequence[str] = ()) -> int:
    argparse.ArgumentParser(prog="tests.bench programs", description=__doc__).parse_args(words)
    from gui.app import make_application
    from gui.startup.loop import run

    with tempfile.TemporaryDirectory(prefix="oc-programs-") as folder:
        facts = run(make_application(), _measured(Path(folder) / "home"))
    report("programs", ("what", "busy ms"), list(facts.items()), facts)
    return 1 if max(facts.values()) >= WORK_MS else 0


async def _measured(home: Path) -> dict[str, float]:
    from tests.gui.program_client import play
    from tests.gui.windows import opened, until
    from tests.loop_monitor import Heartbeat

    found: dict[str, float] = {}
    async with opened(home) as session:
        programs, preferences = session.bridge.programs, session.window.preferences
        preferences.set("programs.port", 0)
        beat = Heartbeat()
        beat.start()
        preferences.set("programs.serve", True)
        await until(lambda: programs.status.state == "running", programs.changed)
        found["start"] = beat.take().busy_ms
        file, url = programs.status.token_file, programs.status.url
        assert file is not None
        await play(file, "envelope")
        found["first"] = beat.take().busy_ms
        await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())
        found["page"] = beat.take().busy_ms
        await play(file, "envelope", "legacy")
        found["legacy"] = beat.take().busy_ms
        preferences.set("programs.serve", False)
        await until(lambda: programs.status.state == "off", programs.changed)
        found["stop"] = beat.take().busy_ms
        beat.stop()
    return found
