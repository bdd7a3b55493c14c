"""Texts of secondary cells, the fullest budget, and changes by time alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import EngineFields, TaskRecord, TaskView, Units, Unreadable
from engine.model.status import Reason
from engine.query.attention_reasons import seen
from engine.text import words
from gui.tasks.columns import COLUMN_AT, COLUMNS, hint, spoken
from gui.tasks.row import fullest_of, make_row
from gui.tasks.task_model import TaskModel
from gui.tasks.task_order import VALUES
from tests.gui.task_views import MINUTE, NOW, SECOND, a_view, task_id
from tests.gui.watched_lists import Clock


def with_engine(view: TaskView, **given: Any) -> TaskView:
    entry = msgspec.structs.replace(view.entry, engine=EngineFields(**given))
    return msgspec.structs.replace(view, entry=entry)


COMMANDS: list[Any] = [3, {"args": {"selector": "x"}}, {"args": {"url": "https://Shop.test:81/a"}}]


def cell(view: TaskView, key: str) -> str:
    return COLUMNS[COLUMN_AT[key]].text(make_row(view, None, NOW), NOW)


@pytest.mark.parametrize(
    ("view", "key", "said"),
    [
        (a_view(1), "host", "host1.example"),
        (a_view(1, args={"commands": COMMANDS}), "host", "shop.test:81"),
        (a_view(1, "FAILED", error=("No answer", "timeout")), "error", "No answer [timeout]"),
        (a_view(1), "took", "5.0 s"),
        (a_view(1, "RUNNING", age=90 * SECOND), "took", "1 min 29 s"),
        (a_view(1, done=20), "average", "4.0/s"),
        (TaskView(a_view(1).entry, units=Units(20, 20, None, 0, 10)), "average", "2.0/s"),
        (
            a_view(1, "FAILED", last_activity_at=NOW - MINUTE + 2001, error=("gone", "orphaned")),
            "took",
            "2.0 s",
        ),
        (a_view(1, "FAILED", last_activity_at=NOW - MINUTE + 2001), "took", "5.0 s"),
        (a_view(1, "RUNNING", phase="verify"), "phase", "verify"),
        (with_engine(a_view(1), parent_task_id=task_id(7)), "parent", task_id(7)),
        (with_engine(a_view(1), contract_id="aa"), "contract", "met"),
        (with_engine(a_view(1), contract_id="aa", forced_at=NOW), "contract", "forced"),
        (with_engine(a_view(1, "RUNNING"), contract_id="aa"), "contract", "open"),
        (
            with_engine(a_view(1, "FAILED", error=("76", "bulk_incomplete")), contract_id="aa"),
            "contract",
            "not met",
        ),
        (with_engine(a_view(1, pid=4312), host="box"), "owner", "process 4312 on box"),
        (a_view(1, client="claude-code", route="mcp"), "client", "claude-code"),
        (a_view(1, client="a\u202eb\nc", route="mcp"), "client", "a\ufffdb c"),
        (a_view(1, client="x" * 500), "client", "x" * 79 + "…"),
        (a_view(1, route="cli"), "client", "Command line"),
        (a_view(1, route="http"), "client", "HTTP"),
        (a_view(1, route="ftp"), "client", ""),
        (a_view(1), "client", ""),
        (TaskView(Unreadable("ab", "not JSON", "/x", NOW)), "error", "not JSON"),
        (TaskView(a_view(1, "RUNNING").entry, units=Units(1, 4, "a\nb", 1)), "doing", "a b"),
        (TaskView(a_view(1).entry, units=Units(4, 4, None, 3)), "failures", "3"),
    ],
)
def test_a_secondary_cell_says(view: TaskView, key: str, said: str) -> None:
    assert cell(view, key) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"client": "claude-code", "route": "mcp"}, "claude-code over MCP"),
        ({"client": "MCP", "route": "cli"}, "MCP on the command line"),
        ({"client": "a\u202eb\nc", "route": "http"}, "a\ufffdb c over HTTP"),
        ({"client": "{client}", "route": "ftp"}, "{client}"),
        ({"route": "mcp"}, "a client over MCP"),
        ({"route": "cli"}, "the command line"),
        ({"route": "ftp"}, ""),
        ({}, ""),
    ],
)
def test_the_tip_of_the_client_says_how_the_request_came(given: dict[str, str], said: str) -> None:
    row = make_row(a_view(1, **given), None, NOW)
    assert hint(row, COLUMNS[COLUMN_AT["client"]], NOW) == said


ORPHAN = a_view(1, "FAILED", error=("The process that ran it is gone.", "orphaned"))


@pytest.mark.parametrize(
    ("view", "badge", "tip"),
    [
        (ORPHAN, "⚑ orphaned", "Orphaned: the process that ran it ended first."),
        (with_engine(a_view(1), forced_at=NOW), "⚑ forced", "Completed by force, "),
        (with_engine(a_view(1), resumes=True), "resumed", "It goes on where an earlier task"),
    ],
    ids=["orphaned", "forced", "resumed"],
)
def test_what_the_state_does_not_say_is_a_badge_with_a_tip_and_spoken(
    view: TaskView, badge: str, tip: str
) -> None:
    row, column = make_row(view, None, NOW), COLUMNS[COLUMN_AT["task"]]
    assert words.badges(view) == [badge]
    assert tip in hint(row, column, NOW)
    assert spoken(row, column, NOW).endswith(f", {badge}")
    assert column.differs(
        make_row(a_view(1, str(getattr(view.entry, "status", ""))), None, NOW), row
    )


def test_a_task_that_failed_by_itself_has_no_badge() -> None:
    assert words.badges(a_view(1, "FAILED", error=("x", "crashed"))) == []


def test_clients_sort_by_name_and_nameless_ones_by_route() -> None:
    named = [{"client": "Zed"}, {"client": "ada", "route": "mcp"}]
    given: list[dict[str, str]] = [{}, {"route": "mcp"}, *named]
    rows = [make_row(a_view(n, **one), None, NOW) for n, one in enumerate(given, 1)]
    values = [COLUMNS[COLUMN_AT["client"]].sort(row) for row in rows]
    assert values == VALUES["client"](rows) == [None, "mcp", "zed", "ada"]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.key)
def test_every_column_can_be_asked_of_what_cannot_be_read(column: Any) -> None:
    row = make_row(TaskView(Unreadable("ab", "not JSON", "/x", 0)), None, NOW)
    assert isinstance(column.text(row, NOW), str)
    column.sort(row)
    assert not column.differs(row, row)


ENVELOPE = {"kind": "browser_task", "args": {}}


@pytest.mark.parametrize(
    ("policy", "counters", "said", "level"),
    [
        ({"maxToolCalls": 50}, {"toolCalls": 41}, "82 % calls", "warning"),
        ({"maxToolCalls": 50}, {"toolCalls": 50}, "100 % calls", "warning"),
        ({"maxToolCalls": 50}, {"toolCalls": 60}, "120 % calls", "exceeded"),
        ({"maxToolCalls": 50}, {"toolCalls": 2, "failureStreak": 4}, "100 % failures", "warning"),
        ({"maxWallMs": MINUTE}, {}, "50 % time", "ok"),
        ({"checkpointEveryCalls": 4, "maxToolCalls": 9}, {"toolCalls": 8}, "88 % calls", "warning"),
    ],
)
def test_the_fullest_budget_is_told_with_its_share(
    policy: dict[str, int], counters: dict[str, int], said: str, level: str
) -> None:
    view = a_view(1, "RUNNING", age=30 * SECOND, policy=policy, counters=counters, **ENVELOPE)
    assert isinstance(view.entry, TaskRecord)
    found = fullest_of(view.entry, NOW)
    assert found is not None
    assert (found.text, found.level) == (said, level)
    assert 0 <= found.fraction <= 1


@given(
    st.dictionaries(
        st.sampled_from(["maxToolCalls", "maxWallMs", "allowedDomains", "x"]),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    ),
    st.dictionaries(st.sampled_from(["toolCalls", "failureStreak"]), st.integers() | st.text()),
    st.sampled_from([None, "ok", "warning", "exceeded", "\x00"]),
)
def test_no_policy_of_a_stranger_breaks_a_row(
    policy: dict[str, Any], counters: dict[str, Any], status: str | None
) -> None:
    fields = {"policy": policy, "counters": counters, "budget_status": status}
    row = make_row(a_view(1, "RUNNING", **fields), None, NOW)
    text = COLUMNS[COLUMN_AT["budget"]].text(row, NOW)
    assert not text or row.worst is not None


@pytest.mark.parametrize(("calls", "said"), [(34, ""), (35, "70 % calls"), (60, "120 % calls")])
def test_a_budget_is_told_in_the_list_from_seven_tenths_of_its_limit(calls: int, said: str) -> None:
    given = {"policy": {"maxToolCalls": 50}, "counters": {"toolCalls": calls}, **ENVELOPE}
    row = make_row(a_view(1, "RUNNING", **given), None, NOW)
    column = COLUMNS[COLUMN_AT["budget"]]
    assert column.text(row, NOW) == hint(row, column, NOW).partition(",")[0] == said


@pytest.mark.parametrize(
    ("kind", "said"),
    [("oc_evidence_bundle", "Evidence"), ("browser_task", "Agent task"), ("<b>x\n", "<b>x")],
)
def test_a_kind_is_told_by_its_name_for_people(kind: str, said: str) -> None:
    row = make_row(a_view(1, kind=kind), None, NOW)
    assert COLUMNS[COLUMN_AT["kind"]].text(row, NOW).strip() == said
    assert row.about.kind == kind


def test_ears_hear_how_near_a_budget_is_in_a_word() -> None:
    given = {"policy": {"maxToolCalls": 50}, "counters": {"toolCalls": 41}, **ENVELOPE}
    row = make_row(a_view(1, "RUNNING", **given), None, NOW)
    assert spoken(row, COLUMNS[COLUMN_AT["budget"]], NOW) == "Budget: 82 % calls, near"


def test_a_limit_of_time_runs_out_in_the_list_while_nothing_is_told() -> None:
    clock = Clock()
    model = TaskModel(now_ms=clock)
    given = {"policy": {"maxWallMs": MINUTE}, "counters": {"toolCalls": 1}, **ENVELOPE}
    model.put_many([a_view(1, "RUNNING", age=30 * SECOND, done=1, quiet=0, **given)])
    model.tick()
    assert model.counts()["attention"] == 0
    clock.now_ms += 31 * SECOND
    model.tick()
    assert model.row_at(0).needs == (Reason.BUDGET,)
    assert model.counts()["attention"] == 1


def test_a_stall_that_was_acknowledged_shows_again_after_the_next_silence() -> None:
    clock = Clock()
    model = TaskModel(now_ms=clock)
    model.put_many([a_view(1, "RUNNING", age=10 * MINUTE, done=1, total=9, quiet=9 * MINUTE)])
    row = model.row_at(0)
    assert row.needs == (Reason.STALLED,)
    model.acknowledge({row.task_id: [seen(row.view, Reason.STALLED)]}, [row.task_id])
    assert model.row_at(0).needs == ()
    assert model.row_at(0).stalled  # its time left is still not told
    moved = TaskView(row.view.entry, units=Units(2, 9), last_event_at=NOW)
    model.put_many([moved])
    assert not model.row_at(0).stalled
    clock.now_ms += 90 * MINUTE
    model.tick()
    assert model.row_at(0).needs == (Reason.STALLED,)
