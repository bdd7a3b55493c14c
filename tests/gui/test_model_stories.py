"""After any sequence of changes a list equals a new one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtTest import QAbstractItemModelTester

from engine.model.records import TaskView
from engine.query import Filter
from gui.tasks.columns import COLUMNS
from gui.tasks.facets import query_of
from gui.tasks.task_model import TaskModel
from tests.gui.task_views import a_view, task_id
from tests.gui.watched_lists import Clock, ids

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(
                    st.integers(1, 12),
                    st.sampled_from(["PENDING", "RUNNING", "FAILED", "COMPLETED", "odd"]),
                ),
                max_size=25,
            ),
        ),
        st.tuples(st.just("drop"), st.lists(st.integers(1, 12), max_size=6)),
        st.tuples(st.just("filter"), st.sampled_from(["", "h", "host1", "host2 crawl", "nothing"])),
        st.tuples(
            st.just("facets"),
            st.lists(
                st.sampled_from(["running", "failed", "all", "attention", "kind:crawl", "age:<1h"])
            ),
        ),
        st.tuples(
            st.just("sort"),
            st.lists(
                st.tuples(
                    st.sampled_from([column.key for column in COLUMNS] + ["?"]), st.booleans()
                ),
                max_size=3,
            ),
        ),
    ),
    max_size=12,
)


def the_filter(asked: dict[str, Any]) -> Filter:
    return Filter.of(f"{query_of(dict.fromkeys(asked['facets']))} {asked['filter']}")


@given(steps=STEPS)
def test_the_list_equals_a_fresh_model(qapp: object, steps: list[tuple[str, Any]]) -> None:
    model, known = TaskModel(now_ms=Clock()), dict[str, TaskView]()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    asked: dict[str, Any] = {"filter": "", "facets": [], "sort": []}
    for what, now in steps:
        if what == "put":
            views = [a_view(number, status) for number, status in now]
            known |= {view.task_id: view for view in views}
            model.put_many(views)
        elif what == "drop":
            gone = {task_id(number) for number in now}
            known = {name: view for name, view in known.items() if name not in gone}
            model.drop_many(gone)
        else:
            asked[what] = now
            model.set_filter(the_filter(asked))
            model.set_sort(asked["sort"])
    fresh = TaskModel(now_ms=Clock())
    fresh.put_many(known.values())
    fresh.set_filter(the_filter(asked))
    assert set(ids(model)) == set(ids(fresh))
    assert all((model.row_of(name) >= 0) == (fresh.row_of(name) >= 0) for name in known)
    for one in (model, fresh):
        one.set_sort([*asked["sort"], ("id", False)])
    assert ids(model) == ids(fresh)
    assert model.counts() == fresh.counts()
    del tester
