"""The sort columns of a long list are read in idle time, and not for a hidden window."""

from __future__ import annotations

from pathlib import Path

import pytest

from gui.startup.session import Session
from gui.tasks.task_model import MADE_FOR_SORT
from gui.window import list_area
from gui.window.list_area import ColumnPrefetch
from tests.gui.windows import opened
from tests.support.engines import until
from tests.support.task_folders import write_meta


@pytest.fixture(autouse=True)
def _a_few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_area, "FEWEST", 5)
    monkeypatch.setattr(list_area, "SOON_MS", 0)
    monkeypatch.setattr(list_area, "BUSY_MS", 5)
    monkeypatch.setattr(list_area, "BUSY_SHARE", 2.0)  # however slow the machine is
    monkeypatch.setattr(list_area, "HIDDEN_MS", 5)


def ledger(place: Path) -> Path:
    for number in range(30):
        write_meta(place / "home" / "tasks", number, "COMPLETED")
    return place / "home"


def prefetch_of(session: Session) -> ColumnPrefetch:
    found = session.window.findChild(ColumnPrefetch)
    assert isinstance(found, ColumnPrefetch)
    return found


def is_ready(session: Session, *keys: str) -> bool:
    return not session.window.model.lacks_columns(keys)


async def test_every_column_in_sight_can_be_sorted_by_without_a_sort(tmp_path: Path) -> None:
    async with opened(ledger(tmp_path)) as session:
        prefetch = prefetch_of(session)
        await until(lambda: not prefetch.is_busy)
        columns = session.window.table.header().columns
        shown = [one.key for one in columns if not one.hidden]
        assert is_ready(session, *(key for key in shown if key not in MADE_FOR_SORT))
        assert not is_ready(session, *MADE_FOR_SORT)  # no memory for what no one has asked for
        assert not is_ready(session, "host")


async def test_a_column_that_is_shown_later_is_made_ready_too(tmp_path: Path) -> None:
    async with opened(ledger(tmp_path)) as session:
        prefetch = prefetch_of(session)
        await until(lambda: not prefetch.is_busy)
        session.window.table.header().show_column("host", True)
        assert prefetch.is_busy
        await until(lambda: not prefetch.is_busy)
        assert is_ready(session, "host")


async def test_nothing_is_made_while_the_window_is_hidden(tmp_path: Path) -> None:
    async with opened(ledger(tmp_path)) as session:
        prefetch, window = prefetch_of(session), session.window
        await until(lambda: not prefetch.is_busy)
        window.hide()
        window.table.header().show_column("host", True)
        turns: list[None] = []
        prefetch.turned.connect(lambda: turns.append(None))
        await until(lambda: len(turns) > 5)
        assert prefetch.is_busy
        window.show()
        await until(lambda: not prefetch.is_busy)
        assert is_ready(session, "host")


async def test_prefetch_waits_for_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_area, "BUSY_SHARE", -1.0)
    async with opened(ledger(tmp_path)) as session:
        prefetch, turns = prefetch_of(session), list[None]()
        prefetch.turned.connect(lambda: turns.append(None))
        await until(lambda: len(turns) > 5)
        assert prefetch.is_busy
        assert not is_ready(session, "task")
