from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import EngineFields, TaskView, Unreadable
from engine.query import Filter, subject
from gui.filters.active_filter import condition_of
from gui.tasks.columns import COLUMNS
from gui.tasks.facets import AGES, BUDGET, CLIENT, HOST, KIND, OLDER, group_of, query_of
from gui.tasks.row import asked, make_row
from gui.tasks.task_order import TaskOrder
from tests.gui.task_views import DAY, HOUR, MINUTE, NOW, a_view, task_id

QUERIES = [
    "status:failed",
    "status:attention OR status:running",
    "-status:live",
    'status:"odd"',
    "kind:crawl* host:host1.example",
    "host:*.example -host:host2.example",
    "budget:near OR budget:exceeded",
    "age:<1h",
    "updated:>1d",
    "took:>1s",
    "done:>3",
    "failed:>0",
    "has:result",
    "has:error timeout",
    "error:timeout",
    "error:*out*",
    "error:page*out",
    "name:n*t*y",
    "url:host1",
    "id:00000000",
    "name:night",
    "owner:gone",
    "owner:foreign (shop OR host1)",
    "(status:failed age:<1d) OR done:>3",
    "forced:no",
    "client:claude-code",
    "client:*code OR route:cli",
    "-route:mcp has:client",
]
VIEWS = st.builds(
    a_view,
    st.integers(1, 9),
    st.sampled_from(["PENDING", "RUNNING", "FAILED", "COMPLETED", "CANCELLED", "ODD"]),
    age=st.sampled_from([MINUTE, 2 * HOUR, 3 * DAY, 9 * DAY]),
    kind=st.sampled_from(["crawl", "crawl_sitemap", "commands"]),
    args=st.sampled_from(
        [
            {"url": "https://host1.example/a"},
            {"url": "https://Host2.example:8443/b"},
            {"url": "https://host1.example/", "sitemap_url": "https://host2.example/map"},
            {},
        ]
    ),
    budget_status=st.sampled_from([None, "ok", "warning", "exceeded"]),
    done=st.sampled_from([None, 2, 7]),
    error=st.sampled_from([None, ("page timeout", "timeout"), ("x" * 2100 + " timeout", None)]),
    name=st.sampled_from([None, "Nightly"]),
    client=st.sampled_from([None, "", "claude-code", "two words", "cli", "x" * 300]),
    route=st.sampled_from([None, "mcp", "cli", "ftp"]),
    orphaned=st.booleans(),
    foreign=st.booleans(),
) | st.builds(Unreadable, st.just(task_id(3)), st.just("torn"), st.just("meta.json")).map(TaskView)


@given(VIEWS, st.sampled_from(QUERIES))
def test_a_row_is_found_by_what_finds_its_task(view: TaskView, query: str) -> None:
    wanted, row = Filter.of(query), make_row(view, None, NOW)
    found = wanted.passes(subject(view), NOW)
    assert wanted.passes(asked(row), NOW) == found
    assert bool(wanted.keep([row], NOW, asked)) == found


@given(st.lists(st.tuples(VIEWS, st.booleans()), max_size=25))
def test_incremental_counts_equal_a_full_count(steps: list[tuple[TaskView, bool]]) -> None:
    order = TaskOrder()
    for view, goes in steps:
        order.take(view, NOW)
        if goes:
            order.forget(view.task_id)
    rows = list(order.rows.values())
    groups = (KIND, HOST, CLIENT, BUDGET)
    facets = [each for group in groups for each in order.facets.most(group, 99)]
    for facet in (*facets, *AGES, OLDER):
        found = len(Filter.of(facet).keep(rows, NOW, asked))
        # A second address finds its task, too; a facet counts the host that the list shows.
        if group_of(facet) == HOST:
            found = sum(1 for row in rows if row.host and facet == f"host:{row.host}")
        assert order.facets.of(facet, NOW) == found
    assert {row.about.kind for row in rows} - {""} == {
        facet.partition(":")[2] for facet in order.facets.most(KIND, 99)
    }


def test_facets_of_a_group_widen_and_of_two_groups_narrow() -> None:
    assert query_of(["failed", "kind:crawl", "running", "kind:commands", "nonsense"]) == (
        "(status:failed OR status:running) (kind:crawl OR kind:commands)"
    )
    assert query_of(["attention"]) == "status:attention"
    assert query_of(["age:<1h"]) == "age:<1h"
    assert query_of(["client:x", "route:cli", "kind:crawl"]) == "(client:x OR route:cli) kind:crawl"
    assert query_of([]) == ""


@pytest.mark.parametrize("facet", ["all", "?", "kind:", "nosuch:1", "", "url:x", "route:"])
def test_what_is_no_facet_belongs_to_no_group(facet: str) -> None:
    assert group_of(facet) == ""


@given(VIEWS)
def test_the_condition_of_a_cell_finds_its_own_row(view: TaskView) -> None:
    row = make_row(view, None, NOW)
    for column in COLUMNS:
        condition = condition_of(row, column.key, NOW)
        if condition:
            assert Filter.of(condition).passes(asked(row), NOW), (column.key, condition)


def test_a_budget_that_ran_out_by_time_alone_is_counted_as_exceeded() -> None:
    view = a_view(1, "RUNNING", age=HOUR, kind="browser_task", budget_status="ok")
    timed = msgspec.structs.replace(view.entry, policy={"maxWallMs": 1_000})
    row = make_row(msgspec.structs.replace(view, entry=timed), None, NOW)
    assert condition_of(row, "budget", NOW) == "budget:exceeded"
    assert Filter.of("budget:exceeded").passes(asked(row), NOW)


@pytest.mark.parametrize(
    ("column", "given", "condition"),
    [
        ("status", {}, "status:failed"),
        ("kind", {"kind": "my kind"}, 'kind:"my kind"'),
        ("host", {}, "host:host1.example"),
        ("task", {}, "url:https://host1.example/"),
        ("budget", {"budget_status": "warning"}, "budget:near"),
        ("error", {"error": ("slow", "timeout")}, "code:timeout"),
        ("age", {"age": 2 * HOUR}, "age:<1d"),
        ("age", {"age": 30 * DAY}, "age:>=7d"),
        ("client", {"client": "two words", "route": "mcp"}, 'client:"two words"'),
        ("client", {"route": "cli"}, "route:cli"),
        ("client", {"route": "ftp"}, ""),
        ("client", {}, ""),
        ("rate", {}, ""),
    ],
)
def test_a_cell_stands_for_a_condition(column: str, given: dict[str, Any], condition: str) -> None:
    row = make_row(a_view(1, "FAILED", **given), None, NOW)
    assert condition_of(row, column, NOW) == condition


@pytest.mark.parametrize(
    ("column", "fields", "condition"),
    [
        ("contract", EngineFields(contract_id="c" * 16), "has:contract"),
        ("contract", EngineFields(), ""),
        ("forced", EngineFields(forced_at=int(NOW)), "forced:yes"),
        ("forced", EngineFields(), "forced:no"),
        ("parent", EngineFields(parent_task_id=task_id(2)), f"parent:{task_id(2)}"),
    ],
)
def test_cells_convert_to_conditions(column: str, fields: EngineFields, condition: str) -> None:
    view = a_view(1, "FAILED")
    view = msgspec.structs.replace(view, entry=msgspec.structs.replace(view.entry, engine=fields))
    assert condition_of(make_row(view, None, NOW), column, NOW) == condition
