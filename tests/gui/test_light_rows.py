"""Memory of a list of 100,000 tasks: the objects of each row, counted."""

from __future__ import annotations

from engine.model.records import EngineFields, TaskRecord, TaskView, Units, Unreadable
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.row import Row, make_row
from gui.tasks.task_order import VALUES
from tests.gui.task_views import DAY, NOW, task_id

MADE, BEGAN, ENDED = int(NOW) - 2 * DAY, int(NOW) - 2 * DAY + 5, int(NOW) - DAY


def ended(number: int = 1, **given: object) -> TaskView:
    """As a ledger has it: times in whole ms."""
    fields = {"created_at": MADE, "started_at": BEGAN, "ended_at": ENDED, **given}
    # each test gives fields of other types
    record = TaskRecord(task_id=task_id(number), kind="crawl", status="COMPLETED", **fields)  # type: ignore[arg-type]
    return TaskView(record, Units(done=20, total=20))


def row_of(view: TaskView) -> Row:
    return make_row(view, None, NOW)


def test_neither_a_row_nor_a_record_has_grown_unnoticed() -> None:
    assert len(Row.__struct_fields__) <= 24  # each takes 0.8 MB for 100,000 tasks
    assert len(TaskRecord.__struct_fields__) <= 23
    assert len(TaskView.__struct_fields__) <= 10
    assert len(EngineFields.__struct_fields__) <= 25


def test_the_times_that_a_row_shares_with_its_record_are_no_other_numbers() -> None:
    view = ended()
    row, record = row_of(view), view.entry
    assert isinstance(record, TaskRecord)
    assert row.started_at is record.started_at
    assert row.ended_at is record.ended_at
    assert (row.created_at, row.updated_at) == (record.created_at, record.ended_at)


def test_a_time_that_is_none_is_no_time_of_the_row() -> None:
    for odd in (0, -1, 10**18):
        row = row_of(ended(created_at=odd, ended_at=odd))
        assert (row.created_at, row.updated_at) == (None, BEGAN)
    lost = row_of(TaskView(Unreadable(task_id(1), "torn", "there", seen_at=MADE)))
    assert (lost.created_at, lost.updated_at, lost.done, lost.total) == (None, MADE, None, None)


def test_what_is_told_by_the_view_or_by_all_that_are_alike_is_told_by_the_row() -> None:
    row = row_of(ended(args_summary={"url": "https://docs.example:8080/a"}))
    assert (row.done, row.total, row.running, row.host) == (20, 20, False, "docs.example:8080")
    running = TaskView(TaskRecord(task_id=task_id(2), status="RUNNING", created_at=MADE))
    assert row_of(running).running


def test_whole_times_are_sorted_as_quickly_as_others() -> None:
    rows = [row_of(ended(n, created_at=MADE + n, ended_at=ENDED - n)) for n in range(5)]
    for key in ("age", "updated", "started", "ended", "took"):
        values, one_by_one = VALUES[key](rows), COLUMNS[COLUMN_AT[key]].sort
        assert values == [one_by_one(row) for row in rows]
        assert {type(value) for value in values} == {float}
