"""Orders that are kept and mended are those that a sort from scratch makes, whatever changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.query import Filter, in_order
from engine.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from gui.columns import COLUMNS
from gui.known_orders import orders_of
from gui.rows import make_row
from gui.sort_values import VALUES
from gui.task_order import TaskOrder
from tests.gui.task_views import NOW

KEYS = ("status", "task", "age", "took", "ended", "failures", "progress", "updated")
TIMES: Sequence[Any] = (None, 0, -5, 10**20, float("nan"), NOW - 9000, NOW - 500.5, int(NOW))
STATES = ("RUNNING", "PENDING", "COMPLETED", "FAILED", "CANCELLED", "odd")


def a_record(number: int, draw: Any) -> TaskRecord:
    return TaskRecord(
        task_id=f"{number:04x}",
        kind=draw(st.sampled_from(("crawl", "task_run", "browser_task"))),
        status=draw(st.sampled_from(STATES)),
        pid=draw(st.sampled_from((None, 7, 4000))),
        created_at=NOW - draw(st.integers(1, 4)) * 1000,
        started_at=draw(st.sampled_from(TIMES)),
        ended_at=draw(st.sampled_from(TIMES)),
        args_summary={"url": f"https://{draw(st.sampled_from('abc'))}.example/"},
        error=draw(st.sampled_from((None, ErrorInfo("It broke", "timeout"), ErrorInfo("")))),
        phase=draw(st.sampled_from((None, "", "verify"))),
        engine=draw(
            st.sampled_from(
                (None, EngineFields(host="h"), EngineFields(forced_at=NOW, contract_id="c"))
            )
        ),
    )


@st.composite
def views(draw: Any) -> TaskView:
    number = draw(st.integers(0, 40))
    if draw(st.integers(0, 9)) == 0:
        return TaskView(Unreadable(f"{number:04x}", "torn", "/x", NOW))
    units = draw(st.sampled_from((None, Units(3, 9, "page", 1), Units(0), Units(5, 5))))
    return TaskView(a_record(number, draw), units, last_event_at=draw(st.sampled_from((None, NOW))))


@given(st.lists(views(), max_size=12))
def test_all_rows_at_once_say_what_each_says_alone(told: list[TaskView]) -> None:
    rows = [make_row(view, None, NOW) for view in told]
    for key, many in VALUES.items():
        column = next(column for column in COLUMNS if column.key == key)
        assert many(rows) == [column.sort(row) for row in rows], key


CHANGES = st.lists(
    st.one_of(
        views(),
        st.integers(0, 40),  # that one is gone
        st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=3),
        st.sampled_from(("", "status:failed", "took:>1s")),
    ),
    max_size=60,
)


@given(CHANGES)
def test_whatever_came_went_or_moved_the_order_is_that_of_a_new_sort(changes: list[Any]) -> None:
    order = TaskOrder()
    for change in changes:
        if isinstance(change, TaskView):
            order.take(change, NOW)
        elif isinstance(change, int):
            order.forget(f"{change:04x}")
        elif isinstance(change, list):
            order.set_sort(change)
        else:
            order.set_filter(Filter.of(change))
        known = order.arranged(NOW)
        passing = [row for row in order.rows.values() if order.passes(row, NOW)]
        wanted = in_order(passing, orders_of(order.sort_keys))
        assert known == [row.task_id for row in wanted]
