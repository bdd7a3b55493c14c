"""One number for one thing: at the side of the list, by a query, of a selection, in a question."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from engine.model.ledger_ids import qualified
from engine.model.records import EngineFields, TaskRecord, TaskView, Unreadable
from engine.model.status import Facet, Standing
from engine.query import Filter, subject
from engine.service.rerun import repeats
from engine.service.router.ledger_paths import Beside
from fixtures.site.site import Site
from gui.commands.rerunning import RerunDialog
from gui.context.scope import Scope
from gui.details.panel import Several
from gui.tasks.row import asked
from gui.tasks.task_model import TaskModel
from tests.gui.side_ledgers import all_read
from tests.gui.task_views import HOUR, MINUTE, NOW, a_view, task_id
from tests.gui.test_rerunning import ended_here, offspring
from tests.gui.test_result_tabs import settled
from tests.gui.windows import dialog_by_act, opened, patient, press, until

REAPED = ("orphaned: process 7 is gone", "orphaned")
STATES = ["PENDING", "RUNNING", "FAILED", "COMPLETED", "CANCELLED", "ODD", "NEEDS_HELP"]


def placed(view: TaskView, ledger: str, fields: EngineFields | None) -> TaskView:
    """The same task in the ledger called so; with no `fields` another program made it."""
    entry = view.entry
    here = qualified(entry.task_id, ledger)
    if isinstance(entry, Unreadable):
        return TaskView(replace(entry, task_id=here), ledger=ledger)
    return replace(view, entry=replace(entry, task_id=here, engine=fields), ledger=ledger)


VIEWS = st.builds(
    placed,
    st.builds(
        a_view,
        st.integers(1, 6),
        st.sampled_from(STATES),
        age=st.sampled_from([MINUTE, 30 * HOUR]),
        kind=st.sampled_from(["crawl", "browser_task", "task_run", "telepathy"]),
        error=st.sampled_from([None, ("page timeout", "timeout"), REAPED]),
        cancel_requested_at=st.sampled_from([None, NOW - MINUTE]),
        orphaned=st.booleans(),
        foreign=st.booleans(),
    )
    | st.builds(Unreadable, st.just(task_id(3)), st.just("torn"), st.just("meta.json")).map(
        TaskView
    ),
    st.sampled_from(["", "nas", "ci"]),
    st.sampled_from([None, EngineFields(host="here"), EngineFields(host="here", withheld=True)]),
)
TASKS = st.lists(VIEWS, max_size=16, unique_by=lambda view: view.task_id)


@pytest.mark.usefixtures("qapp")
@settings(max_examples=60)
@given(TASKS)
def test_a_state_has_one_number_wherever_it_is_counted(views: list[TaskView]) -> None:
    model = TaskModel(now_ms=lambda: NOW)
    model.put_many(views)
    scope = Scope(model)
    scope.choose_matching()
    rows = list(model.all_rows())
    for facet in Facet:
        wanted = Filter.of(f"status:{facet.value}")
        number = model.counts()[facet.value]
        assert len(wanted.keep(rows, NOW, asked)) == number, facet
        assert sum(wanted.passes(subject(view), NOW) for view in views) == number, facet
        if facet not in (Facet.ALL, Facet.ATTENTION):
            assert scope.counts.states.get(Standing(facet.value), 0) == number, facet
    lines = sum(scope.counts.states.values())
    assert lines - scope.counts.twice == scope.counts.total == len(views)


@pytest.mark.usefixtures("qapp")
@settings(max_examples=60)
@given(TASKS, st.sets(st.integers(1, 6).map(task_id)))
def test_rerunnable_matches_the_dry_run(views: list[TaskView], remembered: set[str]) -> None:
    model = TaskModel(now_ms=lambda: NOW)
    model.facets.ledgers = ("nas", "ci")
    model.put_many(views)
    scope = Scope(model)
    scope.ask_memory(remembered.__contains__)
    scope.choose_matching()
    found = repeats(views, remembered.__contains__)
    assert scope.counts.repeatable == len(found.ids)
    starting = {one.partition("@")[0] for one in found.with_copies}
    assert len(starting) == len(found.ids) == len({one.partition("@")[0] for one in found.ids})
    own = {one for one in found.with_copies if "@" not in one}
    assert own <= set(found.ids)  # of two the own one, which may be known with its secrets
    assert sum(map(len, found.chances.values())) == len(views)


@pytest.mark.usefixtures("qapp")
def test_what_was_asked_to_stop_is_not_found_as_running_but_by_its_word_on_disk() -> None:
    views = [a_view(1, "RUNNING"), a_view(2, "RUNNING", cancel_requested_at=NOW)]
    found = {
        query: [one.task_id for one in views if Filter.of(query).shows(one, NOW)]
        for query in ("status:running", 'status:"running"', "status:live", "status:cancelling")
    }
    both = [task_id(1), task_id(2)]
    assert list(found.values()) == [both[:1], both, both, both[1:]]


async def test_runs_that_need_help_have_a_line_of_their_own(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        helped = [a_view(number, "NEEDS_HELP", kind="task_run") for number in (1, 2)]
        window.model.put_many([*helped, a_view(3, "DREAMING"), a_view(4, "COMPLETED")])
        window.table.selectAll()
        page: Any = window.findChild(Several)
        lines = {
            line._word.text(): line._number.text()
            for line in page._lines.values()
            if line._word.isVisible()
        }
        assert lines == {"Completed": "1", "In another state": "1", "Needs help": "2"}
        page._lines["needs_help"].only.click()
        assert set(window.table.selected_ids()) == {task_id(1), task_id(2)}
        window.table.selectAll()
        page._lines["unknown"].only.click()
        assert window.table.selected_ids() == [task_id(3)]


async def test_the_details_of_a_selection_say_what_stands_in_two_lines(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "FAILED", error=REAPED), a_view(2, "COMPLETED")])
        window.table.selectAll()
        page: Any = window.findChild(Several)
        said = " ".join(label.text() for label in page.findChildren(QLabel))
        assert "1 is counted twice: it was orphaned, and has ended since." in said
        page._lines[Standing.ORPHANED].only.click()
        assert window.table.selected_ids() == [task_id(1)]
        assert window.model.counts()["orphaned"] == 1


def words_of(dialog: RerunDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel)]


def buttons_of(dialog: RerunDialog) -> list[str]:
    return [button.text() for button in dialog.findChildren(QPushButton)]


def test_a_copy_in_another_ledger_starts_once(qapp: QApplication) -> None:
    here = placed(a_view(1), "", EngineFields(host="here"))
    alone = placed(a_view(2), "nas", EngineFields(host="here"))
    copy = placed(a_view(1), "nas", EngineFields(host="here"))
    dialog = RerunDialog(repeats([copy, here, alone]))
    assert "Re-run 2 tasks?" in words_of(dialog)
    assert "The same tasks again, in another ledger: 1" in words_of(dialog)
    assert set(dialog.ids) == {here.task_id, alone.task_id}
    dialog.once.click()
    assert "Re-run 3 tasks" in buttons_of(dialog)
    assert set(dialog.ids) == {here.task_id, alone.task_id, copy.task_id}
    assert RerunDialog(repeats([here, alone])).once.isHidden()


async def test_a_copy_of_the_own_ledger_starts_nothing_twice(tmp_path: Path, site: Site) -> None:
    urls = [f"{site.url}/static/?{number}" for number in range(2)]
    old = await asyncio.to_thread(ended_here, tmp_path / "own", urls)
    copy = tmp_path / "backup" / "tasks"
    await asyncio.to_thread(
        shutil.copytree, tmp_path / "own" / "tasks", copy, ignore=shutil.ignore_patterns(".runners")
    )
    async with opened(tmp_path / "own") as session:
        window = session.window
        window.beside.add(Beside(copy, "backup"))
        patient(session)
        await all_read(session)
        dialog = await dialog_by_act(window, "rerun_many", RerunDialog)
        assert dialog.list.topLevelItemCount() == 4
        press(dialog, "Re-run 2 tasks")
        await until(lambda: len(offspring(session)) >= 2, session.bridge.batch)
        assert offspring(session) == sorted(old)
        await settled(lambda: window.reports.bar.title == "2 tasks were re-run.")
        assert window.beside.own_tasks == 4


async def test_bulk_starts_are_not_selected_or_repeated(home: Path, site: Site) -> None:
    urls = [f"{site.url}/static/?{number}" for number in range(3)]
    old = await asyncio.to_thread(ended_here, home, urls)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("kind:crawl")
        window.table.selectAll()
        assert window.scope.matching
        dialog = await dialog_by_act(window, "rerun", RerunDialog)
        press(dialog, "Re-run 3 tasks")
        await until(lambda: offspring(session) == sorted(old), session.bridge.batch)
        assert window.model.rowCount() == 6
        assert sorted(window.table.selected_ids()) == sorted(old)
        assert window.scope.describes() == "3 selected tasks"
        entries = [view.entry for view in window.selected]
        assert all(isinstance(one, TaskRecord) and one.is_terminal for one in entries)
