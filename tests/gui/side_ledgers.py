"""Several ledgers on disk, and a window that shows them side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtWidgets import QApplication, QTreeWidgetItem

from engine.model.records import TaskView
from engine.service.router.ledger_paths import Beside
from gui.filters.sidebar import Sidebar
from gui.startup.session import Session
from tests.gui.result_ledgers import put_task
from tests.gui.windows import opened, until

LAPTOP, CI = "laptop", "ci"


def a_ledger(folder: Path, first: int = 1, tasks: int = 2, status: str = "COMPLETED") -> Path:
    """The folder of the tasks of a new home, with so many tasks."""
    for number in range(first, first + tasks):
        url = f"http://{folder.name}.test/{number}"
        put_task(folder, number, status=status, args_summary={"url": url})
    return folder / "tasks"


@asynccontextmanager
async def side_by_side(tmp_path: Path, *beside: Beside) -> AsyncIterator[Session]:
    """A window on a ledger of two tasks, with these beside it, wholly read."""
    a_ledger(tmp_path / "own")
    async with opened(tmp_path / "own") as session:
        for one in beside:
            session.window.beside.add(one)
        await all_read(session)
        yield session


async def all_read(session: Session) -> None:
    """Wait until every task that lies beside stands in the list."""
    window = session.window
    there = sum(sum(1 for _ in one.path.iterdir()) for one in session.bridge.ledgers)
    await until(lambda: window.model.total - window.beside.own_tasks == there, session.bridge.batch)


def views_of(session: Session, label: str) -> list[TaskView]:
    rows = session.window.model.all_rows()
    return sorted((row.view for row in rows if row.view.ledger == label), key=lambda v: v.task_id)


def facet(sidebar: Sidebar, key: str) -> QTreeWidgetItem | None:
    """The item of a facet, as long as it can be seen."""
    item = sidebar._items.by_key.get(key)
    head = item.parent() if item is not None else None
    return item if head is not None and not head.isHidden() else None


def clipboard() -> str:
    return QApplication.clipboard().text()
