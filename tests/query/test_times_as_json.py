"""The times of a task as programs read them."""

from __future__ import annotations

import json

import pytest

from engine.model.records import TaskRecord, TaskView
from engine.verbs.json_answers import view_data


@pytest.mark.parametrize("at", [1_763_773_200_123, 1_763_773_200_123.75])
def test_the_time_of_the_last_change_is_a_whole_number_of_ms(at: float) -> None:
    view = TaskView(TaskRecord("3fa1c09be2d47765", "crawl", created_at=1), last_event_at=at)
    told = json.dumps(view_data(view)["view"]["updated_at"])
    assert told == "1763773200123"
