from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex
from PySide6.QtTest import QAbstractItemModelTester

from engine.model.records import TaskView, Units, Unreadable
from engine.query import Filter
from engine.query.subject import took_all
from engine.text import words
from gui.details.facts import facts
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.task_model import ID_ROLE, TaskModel
from gui.tasks.task_order import TaskOrder, lasted
from tests.gui.task_views import DAY, HOUR, MINUTE, NOW, SECOND, a_view, task_id
from tests.gui.watched_lists import Clock, ids

DISPLAY, TOOL_TIP, SPOKEN = 0, 3, 11


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def model(qapp: object, clock: Clock) -> Iterator[TaskModel]:
    """A model that Qt's own tester watches: any broken rule ends the test."""
    model = TaskModel(now_ms=clock)
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    yield model
    del tester


def cell(model: TaskModel, number: int, column: str, role: int = DISPLAY) -> str:
    return str(model.data(model.index(model.row_of(task_id(number)), COLUMN_AT[column]), role))


class Repaints:
    """The cells that the model named in `dataChanged`, as (task number, column key)."""

    def __init__(self, model: TaskModel) -> None:
        self.cells: list[tuple[str, str]] = []
        self._model = model
        model.dataChanged.connect(self._note)

    def _note(self, first: QModelIndex, last: QModelIndex) -> None:
        for row in range(first.row(), last.row() + 1):
            for column in range(first.column(), last.column() + 1):
                self.cells.append((self._model.id_at(row), COLUMNS[column].key))


def test_the_newest_task_is_on_top(model: TaskModel) -> None:
    model.put_many([a_view(n, age=n * HOUR) for n in (3, 1, 2)])
    assert ids(model) == [task_id(1), task_id(2), task_id(3)]


def test_a_later_task_is_inserted_in_order(model: TaskModel) -> None:
    model.put_many([a_view(1, age=1 * HOUR), a_view(3, age=3 * HOUR)])
    held = QPersistentModelIndex(model.index(1, 0))
    model.put_many([a_view(2, age=2 * HOUR)])
    assert ids(model) == [task_id(1), task_id(2), task_id(3)]
    assert held.row() == 2


def test_only_the_cells_that_differ_are_repainted(model: TaskModel) -> None:
    running = a_view(1, "RUNNING", done=1, total=9, quiet=1000, age=60 * SECOND)
    model.put_many([running, a_view(2)])
    seen = Repaints(model)
    model.put_many([a_view(1, "RUNNING", done=2, total=9, quiet=500, age=60 * SECOND)])
    assert set(seen.cells) == {
        (task_id(1), key) for key in ("progress", "rate", "updated", "average")
    }


def test_the_same_news_again_repaints_nothing(model: TaskModel) -> None:
    views = [a_view(1, "RUNNING", done=1, total=9, quiet=1000), a_view(2)]
    model.put_many(views)
    seen = Repaints(model)
    model.put_many(views)
    assert seen.cells == []


def test_rows_out_of_sight_are_not_repainted(model: TaskModel) -> None:
    model.put_many([a_view(n) for n in range(1, 30)])
    model.look_through(lambda: (5, 9))
    seen = Repaints(model)
    model.put_many([a_view(n, "FAILED") for n in range(1, 30)])
    assert {name for name, _ in seen.cells} == {task_id(n) for n in range(6, 11)}


def test_a_change_of_the_sort_value_moves_the_row_and_what_holds_it(model: TaskModel) -> None:
    model.set_sort([("status", False)])
    model.put_many([a_view(1, "RUNNING"), a_view(2, "COMPLETED"), a_view(3, "FAILED")])
    held = QPersistentModelIndex(model.index(model.row_of(task_id(1)), 2))
    model.put_many([a_view(1, "CANCELLED")])
    model.settle()
    assert ids(model) == [task_id(2), task_id(3), task_id(1)]
    assert (held.row(), held.column()) == (2, 2)


def test_no_row_jumps_while_a_button_is_held_down(model: TaskModel) -> None:
    model.set_sort([("status", False)])
    model.put_many([a_view(1, "RUNNING"), a_view(2, "COMPLETED")])
    model.hold(True)
    model.put_many([a_view(1, "FAILED")])
    model.settle()
    assert ids(model) == [task_id(1), task_id(2)]
    model.hold(False)
    model.settle()
    assert ids(model) == [task_id(2), task_id(1)]


def test_the_second_key_decides_where_the_first_is_equal(model: TaskModel) -> None:
    model.put_many(
        [a_view(n, "FAILED" if n % 2 else "COMPLETED", age=n * HOUR) for n in range(1, 7)]
    )
    model.set_sort([("status", False), ("age", True)])
    assert ids(model) == [task_id(n) for n in (6, 4, 2, 5, 3, 1)]


def test_what_has_no_value_is_last_in_both_directions(model: TaskModel) -> None:
    model.put_many(
        [
            a_view(1),
            a_view(2, "RUNNING", done=3, total=4, quiet=1),
            a_view(3, "RUNNING", done=1, total=4, quiet=1),
        ]
    )
    for descending, first in ((True, 2), (False, 3)):
        model.set_sort([("progress", descending)])
        assert ids(model)[0] == task_id(first)
        assert ids(model)[2] == task_id(1)


def test_the_filter_keeps_what_has_every_word_and_one_of_the_facets(model: TaskModel) -> None:
    model.put_many([a_view(n, "FAILED" if n < 4 else "COMPLETED") for n in range(1, 8)])
    model.set_filter(Filter.of("host (status:failed OR status:running)"))
    assert set(ids(model)) == {task_id(n) for n in (1, 2, 3)}
    model.set_filter(Filter.of("host2 crawl status:failed"))
    assert ids(model) == [task_id(2)]
    model.set_filter(Filter.of(""))
    assert len(ids(model)) == 7


def test_a_task_comes_and_goes_with_what_the_filter_asks(model: TaskModel) -> None:
    model.set_filter(Filter.of("status:running"))
    model.put_many([a_view(1, "RUNNING"), a_view(2, "PENDING")])
    assert ids(model) == [task_id(1)]
    model.put_many([a_view(2, "RUNNING"), a_view(1, "COMPLETED")])
    assert ids(model) == [task_id(2)]
    model.put_many([a_view(1, "RUNNING")])
    assert set(ids(model)) == {task_id(1), task_id(2)}
    assert model.total == 2


def test_one_batch_may_speak_twice_of_a_task(model: TaskModel) -> None:
    model.set_filter(Filter.of("status:running"))
    model.put_many(
        [a_view(1, "PENDING"), a_view(1, "RUNNING"), a_view(2, "RUNNING"), a_view(2, "FAILED")]
    )
    assert ids(model) == [task_id(1)]
    assert cell(model, 1, "status") == "Running"


def test_dropped_tasks_leave_the_list_and_the_counts(model: TaskModel) -> None:
    model.put_many([a_view(n) for n in range(1, 200)])
    model.drop_many([task_id(n) for n in range(1, 200, 2)])
    model.drop_many(["nobody"])
    assert len(ids(model)) == 99
    assert model.counts()["all"] == model.counts()["completed"] == 99
    assert model.view_of(task_id(1)) is None
    assert model.row_of(task_id(1)) == -1


def test_counts_are_told_once_for_a_batch_and_only_when_they_change(model: TaskModel) -> None:
    told: list[dict[str, int]] = []
    model.counts_changed.connect(told.append)
    model.put_many([a_view(1, "RUNNING", quiet=1), a_view(2, "FAILED", ended_at=NOW)])
    model.put_many([a_view(1, "RUNNING", quiet=0)])
    assert len(told) == 1
    assert {key: n for key, n in told[0].items() if n} == {
        "all": 2,
        "running": 1,
        "failed": 1,
        "attention": 1,
    }


def test_silence_becomes_a_stall_by_time_alone(model: TaskModel, clock: Clock) -> None:
    model.put_many([a_view(1, "RUNNING", done=3, total=9, quiet=1000, age=20 * SECOND)])
    assert model.counts()["attention"] == 0
    clock.now_ms += 10 * MINUTE
    model.tick()
    assert model.counts()["attention"] == 1
    assert cell(model, 1, "eta") == "–"
    assert cell(model, 1, "rate") == ""


def test_hidden_stalls_are_counted_and_matched(model: TaskModel, clock: Clock) -> None:
    model.put_many(
        [a_view(n, "RUNNING", done=3, total=9, quiet=1000, age=n * SECOND) for n in (1, 2, 3)]
    )
    model.look_through(lambda: (0, 0))
    model.set_filter(Filter.of("status:attention"))
    clock.now_ms += 10 * MINUTE
    model.tick()
    assert model.counts()["attention"] == 3
    assert len(ids(model)) == 3


def test_news_that_nobody_read_put_a_stall_off(model: TaskModel, clock: Clock) -> None:
    model.put_many([a_view(n, "RUNNING", done=3, total=9, quiet=0, age=n) for n in (1, 2)])
    model.look_through(lambda: (0, 0))
    model.put_many([a_view(2, "RUNNING", done=4, total=9, quiet=-20 * SECOND, age=2)])
    for passed, needy in ((29, 0), (11, 1), (90, 2)):
        clock.now_ms += passed * SECOND
        model.tick()
        assert model.counts()["attention"] == needy


def test_table_and_details_call_the_same_silence_a_stall(model: TaskModel, clock: Clock) -> None:
    for done, quiet in ((1, 120), (2, 60), (3, 0)):
        view = a_view(1, "RUNNING", done=done, total=9, quiet=quiet * SECOND, age=3 * MINUTE)
        model.put_many([view])
    for passed, stalled in ((60, False), (241, True)):
        clock.now_ms += passed * SECOND
        model.tick()
        sentence, _ = facts(view, clock.now_ms, model.stall_after_ms(task_id(1)))
        assert model.row_at(0).stalled is stalled
        assert sentence.startswith("No progress") is stalled


def test_attention_for_a_failure_expires(model: TaskModel, clock: Clock) -> None:
    model.put_many([a_view(1, "FAILED", age=HOUR)])
    assert model.counts()["attention"] == 1
    clock.now_ms += DAY
    model.tick()
    assert model.counts()["attention"] == 0


def test_a_clock_tick_repaints_changed_cells_only(model: TaskModel, clock: Clock) -> None:
    model.put_many([a_view(1, "RUNNING", quiet=0, age=HOUR), a_view(2, age=5 * SECOND)])
    model.tick()
    seen = Repaints(model)
    model.tick()
    assert seen.cells == []
    clock.now_ms += SECOND
    model.tick()
    assert set(seen.cells) == {
        (task_id(1), "updated"),
        (task_id(1), "took"),
        (task_id(2), "age"),
        (task_id(2), "updated"),
    }


def test_the_mark_of_another_process_goes_with_its_task(model: TaskModel) -> None:
    model.put_many([a_view(1, "RUNNING", done=3, total=9, quiet=0, foreign=True)])
    seen = Repaints(model)
    model.put_many([a_view(1, done=9, total=9)])
    assert (task_id(1), "task") in seen.cells


def test_a_running_task_never_shows_a_full_bar(model: TaskModel) -> None:
    model.put_many([a_view(1, "RUNNING", done=130, total=120, quiet=0), a_view(2, done=7, total=7)])
    assert model.row_at(model.row_of(task_id(1))).fraction == 0.99
    assert model.row_at(model.row_of(task_id(2))).fraction == 1.0
    assert cell(model, 1, "progress") == "130/120"


def test_markup_of_a_stranger_is_escaped_in_the_tooltip(model: TaskModel) -> None:
    model.put_many([a_view(1, args={"url": "https://evil.example/<img src='file:///etc/passwd'>"})])
    tip = cell(model, 1, "task", TOOL_TIP)
    assert "<img" not in tip
    assert "&lt;img" in tip


def test_every_cell_speaks(model: TaskModel) -> None:
    model.put_many([a_view(1, "RUNNING", done=41, total=120, quiet=0, foreign=True)])
    assert (
        cell(model, 1, "task", SPOKEN)
        == "Crawl host1.example, running, 41 of 120 pages, runs in another process"
    )
    assert cell(model, 1, "progress", SPOKEN) == "Progress: 41 of 120 pages, 34 %"
    assert all(cell(model, 1, column.key, SPOKEN) for column in COLUMNS)


def test_an_unreadable_folder_has_a_row_with_its_reason(model: TaskModel) -> None:
    model.put_many([TaskView(Unreadable(task_id(1), "line 3 is no JSON", "/x/meta.json", NOW))])
    assert cell(model, 1, "status") == "Unreadable"
    assert "line 3 is no JSON" in cell(model, 1, "task")
    assert model.counts()["unreadable"] == model.counts()["attention"] == 1


def test_a_row_carries_its_id(model: TaskModel) -> None:
    model.put_many([a_view(1)])
    assert model.data(model.index(0, 4), ID_ROLE) == task_id(1)


def test_a_resumed_crawl_has_the_speed_of_its_own_pages() -> None:
    order = TaskOrder()
    for done in (900, 901, 902):
        seen = a_view(1, "RUNNING", age=3001, quiet=(902 - done) * 1000)
        units = Units(done, 1000, None, 0, 900)
        _, row = order.take(msgspec.structs.replace(seen, units=units), NOW)
    assert words.rate(row.rate) == "0.7/s"  # two in the three seconds since its start


def test_an_orphan_lasted_until_its_last_sign_wherever_that_is_asked() -> None:
    seen = {"last_activity_at": NOW - MINUTE + 2001, "error": ("gone", "orphaned")}
    order = TaskOrder()
    _, row = order.take(a_view(1, "FAILED", ended_at=NOW, **seen), NOW)
    assert lasted([row]) == [2000]
    assert took_all([row], NOW) == [2000]
    for asked, found in (("took:>1.9s", [row]), ("took:>2.1s", [])):
        order.set_filter(Filter.of(asked))
        assert order.passing(NOW) == found
    assert words.why(row.view, NOW, with_error=False) == "Failed after 2.0 s."


@pytest.mark.parametrize(("kind", "shown"), [("crawl", True), ("recording", False)])
def test_what_a_person_leads_has_no_speed_of_its_own(kind: str, shown: bool) -> None:
    order = TaskOrder()
    for done in (1, 2, 3):
        seen = a_view(1, "RUNNING", kind=kind, done=done, quiet=10_000 - done * 1000)
        _, row = order.take(seen, NOW)
    assert bool(words.rate(row.rate)) is shown
