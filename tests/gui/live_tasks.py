"""Tasks of a whole window on a real engine: started here, or written by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.records import EngineFields, Status, TaskRecord
from gui.startup.session import Session
from tests.gui.windows import heard, until

# The longest limit there is: a page that never answers is still being asked for at the end.
FAST = {"delay_ms": 0, "max_pages": 3, "engine": "static", "timeout_ms": 600_000}


def status_of(session: Session, task_id: str) -> str:
    view = session.window.model.view_of(task_id)
    return view.entry.status if view and isinstance(view.entry, TaskRecord) else ""


async def ended(session: Session, task_id: str) -> str:
    """The final state of a task as the table shows it."""

    def look() -> str:
        status = status_of(session, task_id)
        return status if status in ("COMPLETED", "FAILED", "CANCELLED") else ""

    return str(await until(look, session.bridge.batch))


async def start(session: Session, **args: Any) -> str:
    told = heard(session.bridge.started)
    session.bridge.start("crawl", args)
    (record,) = await told
    await until(lambda: status_of(session, record.task_id), session.bridge.batch)
    return str(record.task_id)


async def running(session: Session, url: str) -> str:
    """A task that runs and does not end by itself."""
    task_id = await start(session, url=url, **FAST)
    await until(lambda: status_of(session, task_id) == "RUNNING", session.bridge.batch)
    return task_id


def written_by_another(home: Path, count: int = 1) -> list[str]:
    """Tasks that another process has put into the ledger."""
    root = home / "tasks"
    root.mkdir(parents=True, exist_ok=True)
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    ids = []
    for number in range(count):
        args = {"url": f"https://example.com/{number}"}
        record = ledger.create("crawl", args, engine=EngineFields())
        ledger.claim(record.task_id)
        ledger.finish(record.task_id, Status.COMPLETED)
        ids.append(str(record.task_id))
    lease.release()
    return ids
