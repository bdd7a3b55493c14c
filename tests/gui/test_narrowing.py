"""Filtering: changes by time, counting in slices, saved views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPersistentModelIndex
from pytestqt.qtbot import QtBot

from engine.model.records import Units
from engine.query import Filter
from gui.context.preferences import Preferences
from gui.filters.active_filter import ActiveFilter, Counting
from gui.filters.filter_bar import FilterBar
from gui.filters.sidebar import Sidebar
from gui.filters.views_menu import SavedView, SavedViews, own_key, system_views, view_query
from gui.tasks.row import only_progressed
from gui.tasks.task_model import TaskModel
from tests.gui.task_views import HOUR, MINUTE, a_view, task_id
from tests.gui.watched_lists import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def model(qapp: object, clock: Clock) -> TaskModel:
    return TaskModel(now_ms=clock)


def shown(model: TaskModel) -> list[str]:
    return [model.id_at(row) for row in range(model.rowCount())]


def test_time_lets_tasks_in_and_takes_them_out_again(model: TaskModel, clock: Clock) -> None:
    model.put_many([a_view(1, age=59 * MINUTE), a_view(2, age=5 * MINUTE)])
    model.set_filter(Filter.of("age:>1h"))
    assert shown(model) == []
    clock.now_ms += 2 * MINUTE
    model.filter_again()
    assert shown(model) == [task_id(1)]
    model.set_filter(Filter.of("age:<1h"))
    assert shown(model) == [task_id(2)]
    clock.now_ms += HOUR
    model.filter_again()
    assert shown(model) == []


def test_progress_that_nobody_has_read_counts_for_the_filter(model: TaskModel) -> None:
    model.look_through(lambda: (0, -1))  # out of sight
    model.put_many([a_view(1, "RUNNING", done=1, total=9, quiet=0)])
    model.set_filter(Filter.of("done:>3"))
    assert shown(model) == []
    model.put_many([a_view(1, "RUNNING", done=5, total=9, quiet=0)])
    model.filter_again()
    assert shown(model) == [task_id(1)]


@pytest.mark.parametrize("in_sight", [True, False])
def test_a_task_whose_owner_is_now_this_program_is_filtered_again(
    model: TaskModel, in_sight: bool
) -> None:
    view = a_view(1, "RUNNING", done=1, total=9, quiet=0)
    model.put_many([replace(view, ours=False)])
    model.set_filter(Filter.of("-owner:ours"))
    model.look_through(lambda: (0, 0 if in_sight else -1))
    assert shown(model) == [task_id(1)]
    model.put_many([replace(view, ours=True)])
    assert shown(model) == []


def test_progress_and_another_owner_are_not_taken_for_progress() -> None:
    view = a_view(1, "RUNNING", done=1, total=9, quiet=0)
    assert only_progressed(view, replace(view, units=Units(2, 9)))
    assert not only_progressed(replace(view, ours=False), replace(view, ours=True))


def test_incremental_filtering_equals_a_fresh_filter(model: TaskModel) -> None:
    model.put_many([a_view(number, ("FAILED", "COMPLETED")[number % 2]) for number in range(1, 30)])
    typed = ["h", "host1", "host1 status:failed", "host1", "host12", "", "host2 OR host3", "host2"]
    for text in typed:
        model.set_filter(Filter.of(text))
        narrowed = shown(model)
        fresh = TaskModel(now_ms=model.now_ms)
        fresh.put_many(row.view for row in model.all_rows())
        fresh.set_filter(Filter.of(text))
        assert narrowed == shown(fresh), text


def test_a_filter_of_ages_is_asked_again_by_itself(
    qtbot: QtBot, model: TaskModel, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.filters.active_filter.AGAIN_MS", 5)
    sidebar, bar = Sidebar(), FilterBar()
    qtbot.addWidget(sidebar)
    qtbot.addWidget(bar)
    narrowing = ActiveFilter(model, sidebar, bar)
    model.put_many([a_view(1, age=59 * MINUTE)])
    bar.set_text("age:>1h")
    assert (narrowing.text, model.rowCount()) == ("age:>1h", 0)
    clock.now_ms += 2 * MINUTE
    qtbot.waitUntil(lambda: model.rowCount() == 1, timeout=60_000)


def test_a_view_applies_facets_and_text_at_once(qtbot: QtBot, model: TaskModel) -> None:
    sidebar, bar = Sidebar(), FilterBar()
    qtbot.addWidget(sidebar)
    qtbot.addWidget(bar)
    narrowing = ActiveFilter(model, sidebar, bar)
    told: list[str] = []
    narrowing.changed.connect(lambda: told.append(narrowing.text))
    narrowing.show("shop OR docs", ("failed", "orphaned", "kind:crawl"))
    assert told == ["(status:failed OR status:orphaned) kind:crawl (shop OR docs)"]
    narrowing.add("host:x")
    assert bar.text == "(shop OR docs) host:x"
    narrowing.add("host:x")
    assert bar.text == "(shop OR docs) host:x"
    narrowing.clear()
    assert told[-1] == ""


def test_all_means_the_whole_list_and_other_facets_keep_what_was_typed(
    qtbot: QtBot, model: TaskModel
) -> None:
    sidebar, bar = Sidebar(), FilterBar()
    qtbot.addWidget(sidebar)
    qtbot.addWidget(bar)
    narrowing = ActiveFilter(model, sidebar, bar)
    bar.set_text("kind:crawl")
    for facet, text in (("failed", "(status:failed) (kind:crawl)"), ("all", "")):
        item = sidebar._items.by_key[facet]
        sidebar._tree.setCurrentItem(item)
        sidebar._tree.itemClicked.emit(item, 0)
        assert narrowing.text == Filter.of(text).text


def test_what_filters_would_show_is_counted_in_slices(qtbot: QtBot, model: TaskModel) -> None:
    model.put_many([a_view(number, ("FAILED", "COMPLETED")[number % 2]) for number in range(900)])
    counting, found = Counting(model), dict[str, int]()
    counting.counted.connect(found.__setitem__)
    wanted = {"failed": "status:failed", "all": "", "one": f"id:{task_id(7)}", "none": "zzz"}
    with qtbot.waitSignal(counting.done, timeout=60_000):
        counting.count({name: Filter.of(query) for name, query in wanted.items()})
        assert not found  # nothing is counted in the turn that asks
    assert found == {"failed": 450, "all": 900, "one": 1, "none": 0}
    assert not counting.is_busy


NAMES = st.text(min_size=1, max_size=70).filter(lambda text: bool(text.split()))
VIEWS = st.builds(
    lambda name, query, facets, sort: SavedView(own_key(name), name, query, facets, sort),
    NAMES,
    st.sampled_from(["", "shop", "status:failed OR age:<1h"]),
    st.lists(st.sampled_from(["failed", "kind:crawl", "host:x"]), max_size=3).map(tuple),
    st.lists(st.tuples(st.sampled_from(["age", "task"]), st.booleans()), max_size=2).map(tuple),
)


@given(st.lists(VIEWS, max_size=6))
def test_views_are_kept_as_they_were_saved_the_last_of_one_name(views: list[SavedView]) -> None:
    saved = SavedViews(Preferences())
    for view in views:
        saved.save(view)
    last = {view.key: view for view in views}
    assert {view.key: (view.query, view.facets, view.sort) for view in saved.own} == {
        key: (view.query, view.facets, view.sort) for key, view in last.items()
    }
    assert [view.key for view in saved.own] == list(dict.fromkeys(view.key for view in views))


@pytest.mark.parametrize(
    "kept", [None, 7, "text", {}, {"name": 3}, {"name": "  "}, {"name": "a", "query": 5}, [], ["x"]]
)
def test_what_is_no_view_is_left_out(kept: Any) -> None:
    preferences = Preferences()
    preferences.set("views.saved", [kept, {"name": "good", "sort": [["age", True], 3, ["x"]]}])
    (good,) = SavedViews(preferences).own
    assert (good.name, good.sort, good.facets) == ("good", (("age", True),), ())


def test_a_view_is_renamed_in_its_place_and_replaces_one_of_that_name(tmp_path: Path) -> None:
    preferences = Preferences(tmp_path / "preferences.json")
    saved = SavedViews(preferences)
    for name in ("one", "two", "three"):
        saved.save(SavedView(own_key(name), name, name))
    saved.rename(own_key("one"), "Three")
    assert [(view.name, view.query) for view in saved.own] == [("Three", "one"), ("two", "two")]
    saved.use(saved.own[1])
    again = SavedViews(Preferences(tmp_path / "preferences.json"))
    assert [view.name for view in again.own] == ["Three", "two"]
    assert again.last is not None
    assert again.last.name == "two"


def test_every_view_of_ours_is_a_filter_of_its_own() -> None:
    queries = [Filter.of(view_query(view)).text for view in system_views()]
    assert len(set(queries)) == len(queries)
    assert all(queries)


def filtering(qtbot: QtBot, model: TaskModel) -> tuple[ActiveFilter, FilterBar]:
    sidebar, bar = Sidebar(), FilterBar()
    qtbot.addWidget(sidebar)
    qtbot.addWidget(bar)
    return ActiveFilter(model, sidebar, bar), bar


def test_the_first_search_of_a_long_list_makes_the_texts_in_slices(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2_000)
    model.put_many([a_view(number) for number in range(1, 2_001)])
    narrowing, bar = filtering(qtbot, model)
    slices: list[int] = []
    narrowing._preparing._budget_s = 0.0  # each step is a slice
    narrowing._preparing.paused.connect(lambda: slices.append(model.rowCount()))
    bar.set_text("host77.example")
    assert model.rowCount() == 2_000  # none of them was searched in this turn
    with qtbot.waitSignal(narrowing.changed, timeout=60_000):
        pass
    assert shown(model) == [task_id(77)]
    assert len(slices) > 2
    assert set(slices) == {2_000}
    bar.set_text("host78.example")
    assert shown(model) == [task_id(78)]  # at once from now on
    bar.set_text("")
    model.put_many([a_view(number) for number in range(2_001, 3_001)])
    bar.set_text("host2999.example")
    assert shown(model) == [task_id(2_999)]  # a few new texts do not delay it either
    assert not narrowing._preparing.is_active


def test_chips_and_numbers_are_grey_while_the_list_shows_the_previous_filter(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 1)
    model.put_many([a_view(1, "FAILED"), a_view(2), a_view(3)])
    narrowing, bar = filtering(qtbot, model)

    def enabled() -> set[bool]:
        (chip, *_) = bar.chips._chips
        return {chip.isEnabled(), bar._numbers.isEnabled()}

    bar.set_text("host1 status:failed")
    assert enabled() == {False}
    bar.set_text("status:failed")  # needs no texts
    assert enabled() == {True}
    bar.set_text("host1 status:failed")
    assert enabled() == {False}
    with qtbot.waitSignal(narrowing.changed, timeout=60_000):
        pass
    assert enabled() == {True}


def test_the_latest_filter_wins_over_one_whose_texts_are_being_made(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 1)
    model.put_many([a_view(1, "FAILED"), a_view(2), a_view(3)])
    narrowing, bar = filtering(qtbot, model)
    bar.set_text("host2")
    bar.set_text("status:failed")
    assert shown(model) == [task_id(1)]
    bar.set_text("host3")
    bar.set_text("status:failed")  # as it is
    assert not narrowing._preparing.is_active
    assert shown(model) == [task_id(1)]


def test_the_first_sort_of_a_long_list_by_name_makes_the_names_in_slices(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2_000)
    model.put_many([a_view(number) for number in range(1, 2_001)])
    newest = shown(model)
    slices: list[list[str]] = []
    model._reading._budget_s = 0.0  # each step is a slice

    def pause() -> None:
        slices.append(shown(model))
        if len(slices) == 1:
            model.drop_many([task_id(1_000)])
            model.put_many([a_view(3_000)])

    model._reading.paused.connect(pause)
    model.set_sort([("task", True)])
    assert model.sort_keys == (("task", True),)
    assert shown(model) == newest
    with qtbot.waitSignal(model.order_changed, timeout=60_000):
        pass
    assert len(slices) > 2
    names = [model.row_at(row).folded_name for row in range(model.rowCount())]
    assert names == sorted(names, reverse=True)
    assert len(names) == 2_000
    model.set_sort([("task", False)])
    assert model.row_at(0).folded_name == min(names)  # at once


def test_another_order_wins_over_one_whose_names_are_being_made(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    model.put_many([a_view(number) for number in (2, 1, 3)])
    model.set_sort([("no such column", True), ("task", True)])  # of a view of another version
    assert model.sort_keys == (("task", True),)
    model.set_sort([("age", True)])
    assert model.sort_keys == (("age", True),)
    assert shown(model) == [task_id(3), task_id(2), task_id(1)]
    qtbot.wait(1)
    assert model.sort_keys == (("age", True),)


def test_a_filter_that_was_prepared_waits_for_a_pressed_mouse_button(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    monkeypatch.setattr("gui.tasks.task_order.FEW_TEXTS", 1)
    model.put_many([a_view(number) for number in (1, 2, 3)])
    narrowing, bar = filtering(qtbot, model)
    all_of_them = shown(model)
    bar.set_text("host2")
    model.hold(True)
    with qtbot.waitSignal(narrowing.changed, timeout=60_000):
        pass
    model.filter_again()
    assert shown(model) == all_of_them
    assert narrowing.text == "host2"
    model.put_many([a_view(22), a_view(4)])
    model.hold(False)
    qtbot.waitUntil(lambda: shown(model) == [task_id(2), task_id(22)], timeout=60_000)


def test_an_order_that_was_prepared_waits_for_a_pressed_mouse_button(
    qtbot: QtBot, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.tasks.task_model.MANY_ROWS", 2)
    model.put_many([a_view(number) for number in (1, 2, 3)])
    newest = shown(model)
    model.set_sort([("task", True)])
    model.hold(True)
    with qtbot.waitSignal(model.order_changed, timeout=60_000):
        pass
    assert model.sort_keys == (("task", True),)
    assert shown(model) == newest
    model.hold(False)
    qtbot.waitUntil(lambda: shown(model) == newest[::-1], timeout=60_000)


def test_a_new_order_applies_the_filter_that_waited_for_the_mouse_button(model: TaskModel) -> None:
    model.put_many([a_view(number) for number in (1, 2, 3)])
    hidden = QPersistentModelIndex(model.index(model.row_of(task_id(2)), 0))
    model.hold(True)
    model.set_filter(Filter.of("-host2"))
    assert model.rowCount() == 3
    model.hold(False)
    model.set_sort([("age", True)])
    assert shown(model) == [task_id(3), task_id(1)]
    assert model.row_of(task_id(2)) == -1
    assert not hidden.isValid()
