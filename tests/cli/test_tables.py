"""Tables of tasks fit the terminal: names and whole ids first."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from engine.cli.show import rich_table
from engine.model.records import TaskRecord, TaskView, Units

URL = "https://example.com/a/page/of/the/shop"
TITLES = {"Id", "Status", "Kind", "Progress", "Age", "Updated", "Task"}


def a_view(number: int) -> TaskView:
    record = TaskRecord(
        f"{number:016x}",
        "crawl",
        "COMPLETED",
        created_at=1_780_000_000_000,
        ended_at=1_780_000_050_000,
        args_summary={"url": URL},
    )
    return TaskView(record, units=Units(20, 20, failed=6))


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (50, {"Kind", "Age", "Updated", "Progress"}),
        (70, {"Kind", "Age", "Updated"}),
        (80, {"Kind", "Age"}),
        (140, set()),
    ],
)
def test_a_table_has_the_names_of_tasks_however_narrow_the_terminal(
    width: int, left_out: set[str]
) -> None:
    views = list(map(a_view, range(3)))
    drawn = io.StringIO()
    Console(width=width, file=drawn, color_system=None).print(rich_table(views, width))
    head, *lines = drawn.getvalue().splitlines()
    assert set(head.split()) == TITLES - left_out
    for line, view in zip(lines, views, strict=True):
        assert line.startswith(view.task_id)
        assert "example.com/a/page" in line
        assert ("20/20 · 6 failed" in line) == ("Progress" not in left_out)


def test_an_empty_table_has_its_titles() -> None:
    drawn = io.StringIO()
    Console(width=100, file=drawn, color_system=None).print(rich_table([], 100))
    assert set(drawn.getvalue().split()) == TITLES
