"""Orders made from sort columns equal those of a sort from scratch, after any change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from engine.query import Filter, in_order
from gui.tasks.columns import COLUMNS
from gui.tasks.row import make_row
from gui.tasks.task_order import VALUES, TaskOrder, orders_of
from tests.gui.task_views import NOW

TIMED = ("age", "updated", "started", "ended", "took", "average")
KEYS = ("status", "task", "failures", "progress", "host", "client", *TIMED)
TIMES: Sequence[Any] = (None, 0, -5, 10**20, float("nan"), NOW - 9000, NOW - 500.5, int(NOW))
TIMES = (*TIMES, 5e-324, 1e-300)  # so short a time makes an average endless
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
                (
                    None,
                    EngineFields(host="h", route="cli"),
                    EngineFields(host="h", route="ftp"),
                    EngineFields(forced_at=NOW, contract_id="c", client="Zed", route="mcp"),
                )
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


def some(steps: Iterator[None], number: int) -> None:
    for _ in islice(steps, number):
        pass


CHANGES = st.lists(
    st.one_of(
        views(),
        st.integers(0, 40),  # that one is gone
        st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=3),
        st.sampled_from(("", "status:failed", "took:>1s", "took:>=0s took:<9s", "e took:=0s")),
        st.tuples(st.sets(st.sampled_from(KEYS)), st.integers(0, 9)),
        st.none(),  # a few more steps of the prefetch
    ),
    max_size=60,
)


@given(CHANGES)
def test_whatever_came_went_or_moved_the_order_is_that_of_a_new_sort(changes: list[Any]) -> None:
    order = TaskOrder()
    steps: Iterator[None] = iter(())
    for change in changes:
        few = None
        if isinstance(change, TaskView):
            order.take(change, NOW)
        elif isinstance(change, int):
            order.forget(f"{change:04x}")
        elif isinstance(change, list):
            order.set_sort(change)
        elif isinstance(change, tuple):
            steps = order.prepare_columns(sorted(change[0]))
            some(steps, change[1])
        elif change is None:
            some(steps, 3)
        else:
            order.replace(order.arranged(NOW))
            order.set_filter(Filter.of(change))
            few = order.narrowed(NOW)
        known = order.arranged(NOW)
        passing = [row for row in order.rows.values() if order.passes(row, NOW)]
        wanted = in_order(passing, orders_of(order.sort_keys))
        assert known == [row.task_id for row in wanted]
        assert few is None or few == known


@settings(max_examples=40)
@given(st.lists(views(), min_size=1, max_size=25), st.sampled_from(KEYS), st.booleans(), st.data())
def test_stepwise_orders_are_correct(told: list[TaskView], key: str, down: bool, data: Any) -> None:
    order = TaskOrder()
    for view in told:
        order.take(view, NOW)
    steps = order.prepare_columns([key])
    some(steps, data.draw(st.integers(0, 12)))
    for change in data.draw(st.lists(st.one_of(views(), st.integers(0, 40)), max_size=6)):
        if isinstance(change, int):
            order.forget(f"{change:04x}")
        else:
            order.take(change, NOW)
    some(steps, 10**6)
    further = data.draw(st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=2))
    order.set_sort([(key, down), *further])
    wanted = in_order(list(order.rows.values()), orders_of(order.sort_keys))
    assert order.arranged(NOW) == [row.task_id for row in wanted]


def ended(number: int, took: int) -> TaskView:
    record = TaskRecord(
        task_id=f"{number:05x}",
        kind="crawl",
        status="COMPLETED",
        created_at=NOW - number,
        started_at=NOW - 10_000,
        ended_at=NOW - 10_000 + took,
    )
    return TaskView(record)


def test_most_go_and_the_rest_is_put_in_order_by_what_is_its_own() -> None:
    order = TaskOrder()
    for number in range(3000):
        order.take(ended(number, number * 7919 % 6007), NOW)
    for number in range(2500):
        assert order.forget(f"{number:05x}")
    order.take(ended(2600, 1), NOW)
    order.take(ended(9000, 0), NOW)
    for key in TIMED:
        order.set_sort([(key, True)])
        wanted = in_order(list(order.rows.values()), orders_of(order.sort_keys))
        assert order.arranged(NOW) == [row.task_id for row in wanted], key
    order.set_filter(Filter.of("took:<3s"))
    passing = {row.task_id for row in order.rows.values() if order.passes(row, NOW)}
    assert set(order.arranged(NOW)) == passing
    assert 2 < len(passing) < len(order.rows)


def test_most_rows_are_removed_while_a_column_is_read_in_steps() -> None:
    order = TaskOrder()
    for number in range(3000):
        order.take(ended(number, number * 7919 % 6007), NOW)
    steps = order.prepare_columns(["took", "task"])
    some(steps, 2)
    for number in range(2900):
        assert order.forget(f"{number:05x}")
    some(steps, 10**6)
    order.set_sort([("took", False)])
    wanted = in_order(list(order.rows.values()), orders_of(order.sort_keys))
    assert order.arranged(NOW) == [row.task_id for row in wanted]


def test_most_go_and_others_come_and_equals_still_stand_as_they_came() -> None:
    order = TaskOrder()
    record = TaskRecord(task_id="", kind="crawl", status="COMPLETED", created_at=NOW)
    names = [f"{number * 7919 % 6007:04x}" for number in range(6000)]
    for at, name in enumerate(names):
        order.take(TaskView(replace(record, task_id=name)), NOW)
        if at > 1500:
            assert order.forget(names[at - 1500])
    order.set_sort([("status", False)])
    assert order.arranged(NOW) == [*names[:1], *names[4500:]]
