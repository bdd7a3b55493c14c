"""Without free descriptors an operation is refused, repeated later, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are set by setrlimit")

REPO = Path(__file__).resolve().parents[2]
TASKS = 500
# A process of its own, because a limit of descriptors concerns all of it.
PROGRAM = """
import asyncio, json, os, resource, sys, time
from pathlib import Path
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import Status
from engine.service.engine import Engine
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger

home, count = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

def hog(spare):
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(spare):
        os.close(held.pop())
    return held

def done(change, *given):
    while True:
        try:
            return change(*given)
        except EngineError as error:  # a look that is under way has one of the few just now
            if "Too many open files" not in str(error):
                raise
            time.sleep(0.01)  # nobody tells when there is a free one again

async def main():
    settings = Settings(home=home, root=home / "tasks")
    lease = Lease.acquire(settings.root)
    ledger = Ledger(settings.root, lease=lease)
    ids = [ledger.create("crawl", {"url": "http://site.test/"}).task_id for _ in range(count)]
    engine = Engine(settings, accepts=False)
    await engine.open()
    held = hog(0)
    changes = engine.tasks.changes()
    first = asyncio.ensure_future(anext(changes))
    said = {"refused": 0, "odd": []}
    for task_id in ids[:50]:
        try:
            ledger.claim(task_id)
        except EngineError as error:
            said["refused"] += "Too many open files" in str(error)
        except BaseException as error:
            said["odd"].append(repr(error))
    async with asyncio.timeout(100):
        while engine.health().watcher != "polling":
            await asyncio.sleep(0.01)
    for fd in held[:6]:  # as little as a task needs, and nobody else has any
        os.close(fd)
    for task_id in ids:
        done(ledger.claim, task_id)
        done(ledger.append_page, task_id, {"url": "http://site.test/"})
        done(ledger.finish, task_id, Status.COMPLETED)
    for fd in held[6:]:
        os.close(fd)
    async with asyncio.timeout(100):
        batch = await first
        seen = {view.task_id: view.entry.status for view in batch.views}
        while len(seen) < count or set(seen.values()) != {"COMPLETED"}:
            batch = await anext(changes)
            seen.update((view.task_id, view.entry.status) for view in batch.views)
    said["completed"] = sum(entry.status == "COMPLETED" for entry in ledger.list(limit=None))
    said["seen"] = len(seen)
    await changes.aclose()
    await engine.close()
    lease.release()
    print(json.dumps(said))

asyncio.run(main())
"""


@pytest.mark.case("R54")
def test_500_tasks_survive_a_lack_of_descriptors(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), str(TASKS)],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=REPO,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["odd"] == []
    assert said["refused"] == 50
    assert (said["completed"], said["seen"]) == (TASKS, TASKS)
