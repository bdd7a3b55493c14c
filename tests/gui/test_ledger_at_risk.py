"""The window on a ledger that is read-only, writable by others, or on a full disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QLabel

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.records import Health
from engine.service import engine
from tests.gui.windows import opened
from tests.support.disk_without_space import full_disk_at
from tests.support.engines import until

READY = Health(root="/r", engine="ready", browser="ready", slots=2)


def with_a_task(home: Path) -> str:
    root = home / "tasks"
    lease = Lease.acquire(root)
    try:
        return Ledger(root, lease=lease).create("crawl", {"url": "http://x.test/"}).task_id
    finally:
        lease.release()


@pytest.mark.case("R49")
@pytest.mark.skipif(os.name != "posix", reason="modes mean nothing on this system")
async def test_a_ledger_writable_by_others_shows_a_warning(home: Path) -> None:
    with_a_task(home)
    (home / "tasks").chmod(0o777)
    async with opened(home) as session:
        window = session.window
        sign = window.status.ground
        assert not sign.isHidden()
        assert sign.text == "Ledger at risk"
        assert "Anybody on this machine can write to" in sign.accessibleDescription()
        assert str(home / "tasks") in sign.accessibleDescription()
        assert window.model.total == 1
        assert window.acts["new"].isEnabled()
        assert "cannot be written" not in window.banner.title


@pytest.mark.case("R49")
async def test_a_private_ledger_is_not_spoken_of(home: Path) -> None:
    with_a_task(home)
    async with opened(home) as session:
        assert session.window.status.ground.isHidden()


@pytest.mark.case("R50")
async def test_a_read_only_ledger_is_listed(home: Path, read_only: Callable[[Path], None]) -> None:
    with_a_task(home)
    read_only(home / "tasks")
    async with opened(home) as session:
        window = session.window
        assert window.model.total == 1
        assert window.banner.title == "This ledger is read-only"
        said = [label.text() for label in window.banner.findChildren(QLabel)]
        assert any("tasks. Tasks can be watched" in text for text in said)
        for key in ("new", "paste", "sample"):
            assert not window.acts[key].isEnabled()
            assert "The ledger is read-only" in window.acts[key].toolTip()
        assert "Read-only" in window.status.engine.text


@pytest.mark.case("R51")
async def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "REOPEN_S", 0.05)
    ids: list[str] = []

    def fill(home: Path) -> None:
        ids.extend(with_a_task(home) for _ in range(2))
        shutil.rmtree(home / "tasks" / ".runners")

    with full_disk_at(tmp_path / "disk", fill) as home:
        async with opened(home) as session:
            window = session.window
            assert window.banner.title == "The ledger cannot be written now"
            assert "No space left on device" in window.banner.accessibleName()
            assert not window.acts["new"].isEnabled()
            await until(lambda: window.model.total == 2)
            assert all(window.model.view_of(one) is not None for one in ids)
            (home / "filler").unlink()
            await until(window.acts["new"].isEnabled)
            assert not window.banner.title


@pytest.mark.case("R53", "R55")
async def test_lasting_deafness_is_a_banner_and_goes_with_its_reason(home: Path) -> None:
    async with opened(home) as session:
        window, why = session.window, "the system's limit of file watches is used up"
        deaf = Health(root="/r", engine="ready", browser="ready", deaf=why)
        told = f"Looking every 1.5 s: {why}."
        window._show_health(msgspec.structs.replace(deaf, watcher="polling", watcher_reason=told))
        assert window.banner.title == "Changes are not heard"
        assert why in window.banner.accessibleName()
        assert window.status.watcher.text == "Polling"
        window._show_health(READY)
        assert not window.banner.title


async def test_a_disk_that_fills_up_is_told_with_what_becomes_of_the_tasks(home: Path) -> None:
    async with opened(home) as session:
        window, why = session.window, "Cannot write the task ledger: No space left on device"
        window._show_health(msgspec.structs.replace(READY, warnings=(why,)))
        assert window.banner.title == "The ledger cannot be written now"
        assert f"{why}. Make room" in window.banner.accessibleName()
        assert "What is finished is kept" in window.banner.accessibleName()
        window._show_health(READY)
        assert not window.banner.title
