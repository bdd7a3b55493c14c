"""Reports of bulk actions: the number of successes, and the reasons of refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from engine.model.errors import EngineError, TaskNotFound, TaskUnreadable
from gui.commands.bulk_work import Outcome, Refusal, Reports
from gui.commands.deleting import Deleting
from gui.style.banners import Banner
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import a_view, task_id
from tests.gui.windows import opened, showing


def refusals(*errors: EngineError) -> list[Refusal]:
    return [Refusal(task_id(number), error) for number, error in enumerate(errors, 1)]


def missing(number: int) -> TaskNotFound:
    return TaskNotFound(task_id=task_id(number), root="/x")


def broken() -> TaskUnreadable:
    return TaskUnreadable(task_id=task_id(9), reason="no JSON", path="/x/9")


def lines(bar: Banner) -> list[str]:
    return bar._sentence.text().splitlines()


def close(bar: Banner) -> None:
    (button,) = bar.findChildren(QToolButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def tell(reports: Reports, *errors: EngineError, done: int = 0, left: int = 0) -> None:
    refused = refusals(*errors)
    outcome = Outcome(list(range(done)), refused, [task_id(50 + at) for at in range(left)])
    reports.tell("Some could not be re-run", refused, outcome)


async def test_a_partial_refusal_reports_counts_and_reasons(home: Path) -> None:
    async with opened(home) as session:
        reports = session.window.reports
        tell(reports, broken(), missing(1), missing(2), done=1200)
        assert lines(reports.bar) == [
            "1,200 done, 3 refused:",
            f"2 tasks: {missing(1).title}",
            f"1 task: {broken()}",
        ]
        tell(reports, missing(1), missing(1), done=1, left=4)
        assert lines(reports.bar) == ["1 done, 2 refused, 4 not tried:", f"2 tasks: {missing(1)}"]


async def test_where_nothing_went_well_the_reasons_stand_alone(home: Path) -> None:
    async with opened(home) as session:
        reports = session.window.reports
        tell(reports, missing(1))
        assert lines(reports.bar) == [str(missing(1))]


@pytest.mark.usefixtures("german")
async def test_the_tally_is_german_in_a_german_window(home: Path) -> None:
    async with opened(home) as session:
        tell(session.window.reports, missing(1), missing(1), done=12)
        first, second = lines(session.window.reports.bar)
        assert first == "12 erledigt, 2 verweigert:"
        assert second.startswith("2 Aufgaben: ")


async def test_deleting_tells_how_many_went_beside_those_that_could_not(home: Path) -> None:
    for number in (1, 2, 3):
        put_task(home, number)
    async with opened(home) as session:
        window = session.window
        views = {task_id(n): a_view(n) for n in (1, 2, 3)}
        views[task_id(7)] = a_view(7, "RUNNING")
        folder = put_task(home, 7, status="RUNNING")
        assert folder.exists()
        with showing(window.reports.bar) as told:
            deleting = window.findChild(Deleting)
            assert deleting is not None
            deleting._discard(views, delete=True)
            await told
        assert window.reports.bar.title == "1 task could not be let go"
        assert lines(window.reports.bar)[0] == "3 done, 1 refused:"
        assert folder.exists()


async def test_good_news_does_not_wipe_out_a_refusal_that_nobody_has_closed(home: Path) -> None:
    async with opened(home) as session:
        reports = session.window.reports
        tell(reports, missing(1))
        reports.say("2 rows copied.")
        assert reports.bar.title == "Some could not be re-run"
        assert reports.aside.title == "2 rows copied."
        reports._over.timeout.emit()
        assert reports.bar.title == "Some could not be re-run"
        assert reports.aside.title == ""
        close(reports.bar)
        reports.say("3 rows copied.")
        assert reports.bar.title == "3 rows copied."
        reports._over.timeout.emit()
        assert reports.bar.title == ""
