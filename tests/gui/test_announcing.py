"""Changes outside the focus are announced once to screen readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from pytestqt.qtbot import QtBot

from gui.style import accessibility
from gui.style.banners import Banner
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened


class _Listener:
    """Stands where Qt hands events on to the screen reader."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def isActive(self) -> bool:
        return True

    def updateAccessibility(self, event: QAccessibleAnnouncementEvent) -> None:
        self.said.append(event.message())


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    listener = _Listener()
    monkeypatch.setattr(accessibility, "QAccessible", listener)
    return listener.said


def end(home: Path, number: int, **changes: object) -> None:
    file = home / "tasks" / task_id(number) / "meta.json"
    told = json.loads(file.read_text()) | changes
    new = file.with_suffix(".new")
    new.write_text(json.dumps(told | {"ended_at": told["created_at"] + 60_000}))
    new.replace(file)


async def test_a_task_that_fails_and_one_that_ends_are_said(home: Path, said: list[str]) -> None:
    put_task(home, 1, status="RUNNING")
    put_task(home, 2, status="RUNNING", args_summary={"url": "http://other.test/"})
    async with opened(home) as session:
        said.clear()
        error = {"code": "NAV_FAILED", "message": "no answer"}
        end(home, 1, status="FAILED", error=error)
        await settled(lambda: [one for one in said if "fail" in one])
        assert any("site.test" in one for one in said)
        end(home, 2, status="COMPLETED")
        await settled(lambda: [one for one in said if "other.test" in one])
        assert session.window.model.total == 2


def test_what_a_bar_says_is_said_aloud(qtbot: QtBot, said: list[str]) -> None:
    bar = Banner()
    qtbot.addWidget(bar)
    bar.tell("3 tasks go to the trash.", "For 8 seconds they can be had back.")
    assert said == ["3 tasks go to the trash. For 8 seconds they can be had back."]


def test_nothing_is_made_while_nobody_listens(qapp: object) -> None:
    assert not QAccessible.isActive()
    accessibility.announce(Banner(), "nobody hears this")
