"""A task that ended at once: every part of the window says alike how long it took."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.records import TaskEvent
from engine.results.units import unit_of
from engine.text.words import took, why
from gui.details.commands_tab import StepModel
from gui.details.facts import facts
from gui.details.timeline_spans import duration
from gui.details.unit_columns import PAGE_COLUMNS
from gui.engine_link.task_events import event_row
from gui.tasks.columns import took as took_cell
from gui.tasks.row import make_row
from tests.gui.result_ledgers import page
from tests.gui.task_views import NOW, a_view


@pytest.mark.parametrize("ms", [1, 40, 940, 1_040, 61_000])
def test_a_time_is_told_by_one_rule_wherever_it_stands(ms: int) -> None:
    view = a_view(1, ended_at=NOW - 60_000 + 1 + ms)  # begun 1 ms after it was asked for
    call = TaskEvent(NOW, "tool_call", {"tool": "click", "durationMs": ms})
    (response,) = (one for one in PAGE_COLUMNS if one.key == "response")
    steps = StepModel()
    steps.show_steps([{"status": "success", "startedAt": NOW, "completedAt": NOW + ms}])
    said = took(ms)
    assert took_cell(make_row(view, None, NOW), NOW) == said
    assert f"after {said}" in why(view, NOW)
    assert any(f"after {said}" in str(one) for one in facts(view, NOW))
    assert event_row(call).text == f"click, {said}"
    assert response.text(unit_of(page(0, response_ms=ms), 0)) == said
    assert steps.index(0, 4).data() == said
    assert duration(ms) == said


def test_a_task_that_ended_in_the_same_millisecond_did_not_take_nothing() -> None:
    view = a_view(1, ended_at=NOW - 60_000 + 1)
    assert took_cell(make_row(view, None, NOW), NOW) == "under 1 ms"
    assert why(view, NOW) == "Finished after under 1 ms."


def test_the_end_of_a_task_whose_clock_was_set_back_names_no_duration() -> None:
    assert "after" not in ended(ended_at=NOW - 600_000)


def test_the_end_of_an_orphan_is_told_apart_from_its_last_sign_of_life() -> None:
    begun = NOW - 60_000 + 1
    dead = {"ended_at": NOW, "error": ("its process is gone", "orphaned")}
    assert ended(**dead, last_activity_at=begun + 18_000).endswith(", last heard of after 18 s")
    assert ended(**dead).endswith(f", after {took(NOW - begun)}")


def ended(**given: Any) -> str:
    """The line of the Overview about the end of a failed task."""
    _, found = facts(a_view(1, "FAILED", **given), NOW)
    return next(one.text for one in found if one.field == "ended")
