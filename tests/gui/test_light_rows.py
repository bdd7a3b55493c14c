"""Memory of a list of 100,000 tasks: the objects of each row, counted."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.model.records import (
    EngineFields,
    ErrorInfo,
    TaskRecord,
    TaskView,
    Units,
    Unreadable,
)
from engine.model.status import ORPHANED_CODE, moment, standing, updated_at
from engine.query import Filter, haystack
from engine.query.attention_reasons import reasons
from engine.text import words
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.row import Row, make_row, traits
from gui.tasks.task_model import TaskModel
from gui.tasks.task_order import VALUES
from tests.gui.task_views import DAY, NOW, a_view, task_id

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
    assert len(Row.__struct_fields__) <= 14  # each takes 0.8 MB for 100,000 tasks
    assert len(TaskRecord.__struct_fields__) <= 23
    assert len(TaskView.__struct_fields__) <= 11
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


TIMES = st.sampled_from([None, 0, -1, 10**18, MADE, BEGAN, ENDED, int(NOW), float(NOW) - 0.5])
ENDED_VIEWS = st.builds(
    TaskView,
    st.builds(
        TaskRecord,
        task_id=st.just(task_id(1)),
        kind=st.sampled_from(["crawl", "browser_task", "odd"]),
        status=st.sampled_from(["COMPLETED", "FAILED", "CANCELLED"]),
        created_at=TIMES.filter(lambda at: at is not None),
        started_at=TIMES,
        ended_at=TIMES,
        last_activity_at=TIMES,
        args_summary=st.sampled_from(
            [{}, {"url": "https://A.example:80/x"}, {"sitemap_url": "https://b.example/s.xml"}]
        ),
        error=st.sampled_from(
            [None, ErrorInfo("lost", ORPHANED_CODE), ErrorInfo("late", "timeout")]
        ),
        budget_status=st.sampled_from([None, "ok", "exceeded"]),
        engine=st.sampled_from([None, EngineFields(client="Claude", route="mcp")]),
    ),
    st.sampled_from([None, Units(0, 0), Units(1, 2), Units(2, 2), Units(9, None), Units(3, 2)]),
    TIMES,
    ledger=st.sampled_from(["", "nas"]),
)


BUSY = TaskRecord(
    task_id(1), "crawl", "COMPLETED", None, MADE, BEGAN, ENDED, last_activity_at=ENDED + 1
)


@example(TaskView(BUSY), False)
@example(TaskView(replace(BUSY, last_activity_at=None), last_event_at=ENDED + 2), False)
@given(ENDED_VIEWS, st.booleans())
def test_the_short_way_to_the_row_of_an_ended_task_leads_to_the_same_values(
    view: TaskView, awaited: bool
) -> None:
    row, found = make_row(view, None, NOW, awaited=awaited), reasons(view, NOW)
    assert row.about is traits(view, NOW, found, found, awaited)
    assert (row.standing, row.needs) == (standing(view), found)
    assert row.updated_at == updated_at(view)
    assert row.created_at == moment(view.entry.created_at)
    if (units := view.units) is None:
        assert row.share is None
    elif not units.total:
        assert row.share == -1 / (units.done + 1)
    else:
        assert row.share == min(1.0, units.done / units.total)


def test_the_texts_of_a_row_are_made_when_they_are_read(qapp: object) -> None:
    model = TaskModel(now_ms=lambda: NOW)
    model.put_many([a_view(number) for number in range(1, 9)])
    model.set_sort([("task", False), ("status", True)])
    model.set_filter(Filter.of("status:completed kind:crawl age:<1d"))
    rows = model.all_rows()
    assert {(row.made_name, row.made_haystack) for row in rows} == {("", "")}
    row = rows[0]
    assert (row.name, row.haystack) == (words.task_name(row.view), haystack(row.view))
    assert (row.made_name, row.made_haystack) == (row.name, row.haystack)
    assert (row.status, row.kind) == (words.status_word(row.view), words.kind_name("crawl"))


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["COMPLETED", "FAILED", "PENDING"]))))
def test_tasks_of_one_batch_are_counted_as_those_that_come_one_by_one(
    told: list[tuple[int, Any]],
) -> None:
    views = [a_view(number, status) for number, status in told]
    together, apart = (TaskModel(now_ms=lambda: NOW) for _ in range(2))
    for model in (together, apart):
        model.set_filter(Filter.of("-status:failed"))
    together.put_many(views)
    for view in views:
        apart.put_many([view])
    for model in (together, apart):
        model.set_sort([("id", False)])
    assert together.ids == apart.ids
    assert together.counts() == apart.counts()
    for facet in ("kind:crawl", "age:<1h", "host:host3.example"):
        assert together.facets.of(facet, NOW) == apart.facets.of(facet, NOW)
