"""Workers of clusters in the window: the status bar, the list, the default and the overview."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.model.cluster_workers import WorkerState, WorkerView
from engine.model.config import Settings
from fixtures.site.site import Site
from gui.commands.cluster_workers_dialog import ClusterWorkersDialog
from gui.commands.help_actions import as_chosen
from gui.context.preferences import Preferences
from gui.startup.session import Session
from gui.style.record_list import Cell, CellModel, Head, ReadCell, SortableList
from gui.window.status_bar import StatusBar
from tests.cluster.dask_peers import cluster
from tests.gui.test_settings_dialog import editor, settings_of
from tests.gui.windows import appearing, dialog_by_act, opened, until
from tests.support.endless_site import endless

ROOT = Path(__file__).resolve().parents[2]
NO_CLUSTER = "No task uses a cluster. Choose one in the options of a task or in Settings."


def worker(name: str, **facts: object) -> WorkerView:
    usual: dict[str, object] = {"cluster": "tcp://a:1", "address": f"tcp://{name}:5", "name": name}
    return WorkerView(**{**usual, **facts})  # type: ignore[arg-type] # the facts of a test


async def list_of(session: Session) -> ClusterWorkersDialog:
    return await dialog_by_act(session.window, "cluster_workers", ClusterWorkersDialog)


def rows(found: SortableList) -> list[list[str]]:
    cells = found.cells
    columns = range(cells.columnCount())
    return [
        [str(cells.index(at, column).data()) for column in columns]
        for at in range(cells.rowCount())
    ]


def row(name: str, pages: int) -> ReadCell:
    return (Cell(name, name), Cell(f"{pages:,}", pages)).__getitem__


async def test_the_workers_of_a_crawl_are_shown_while_it_runs(tmp_path: Path) -> None:
    async with cluster() as workers, opened(tmp_path / "home") as session:
        await workers.add("one")
        bar, bridge = session.window.status, session.bridge
        assert bar.workers.isHidden()
        with Site() as site:
            args = {"url": endless(site), "engine": "static", "delay_ms": 200}
            args |= {"max_pages": 10_000, "max_depth": 100}
            with appearing(ClusterWorkersDialog) as opening:
                bridge.start("crawl", {**args, "cluster": workers.address})
                await until(lambda: bar.workers.text() == "1 worker", bridge.workers)
                assert not bar.workers.isHidden()
                bar.workers.click()
                dialog = await opening
            assert not dialog.isModal()

            def pages() -> int:
                return sum(int(one[7]) for one in rows(dialog.list))

            await until(lambda: pages() > 1, bridge.workers)
            (shown,) = rows(dialog.list)
            (address,) = workers.listed
            assert shown[:5] == ["one", address.partition("://")[2], workers.address, "Ready", "4"]
            assert dialog.summary.text().startswith("Workers ready: 1 of 1. ")
            bridge.cancel(bridge.own_tasks)
            await until(bar.workers.isHidden, bridge.workers)
            assert dialog.summary.text() == NO_CLUSTER
            assert dialog.list.isHidden()
            dialog.close()


async def test_the_list_without_a_cluster_tells_how_to_use_one(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = await list_of(session)
        assert dialog.summary.text() == NO_CLUSTER
        assert await list_of_again(session, dialog)
        dialog.close()


async def list_of_again(session: Session, dialog: ClusterWorkersDialog) -> bool:
    """Whether the open list is the one that comes to the front."""
    session.window.acts["cluster_workers"].trigger()
    return session.window.findChildren(ClusterWorkersDialog) == [dialog]


async def test_states_are_told_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = await list_of(session)
        dialog.show_workers(
            [
                worker("a", state="ready", memory_bytes=81_000_000, seen_s=3.9, pages_per_s=2.84),
                worker("b", state="lost", reason="connection refused", back_s=4.2),
                worker("c", state="lost", reason="the connection ended"),
                worker("d", state="no_browser", reason="none <b>is</b> installed", back_s=30.0),
                worker("e"),
                worker("f", state="left"),
                worker("g", state="unusable", reason="it sent no record", back_s=30.0),
            ]
        )
        found = rows(dialog.list)
        assert [row[3] for row in found] == [
            "Ready",
            "Lost: connection refused · tried again in 5 s",
            "Lost: the connection ended",
            "No browser: none <b>is</b> installed · tried again in 30 s",
            "Connecting…",
            "Left",
            "Cannot be used: it sent no record · tried again in 30 s",
        ]
        assert found[0][6:] == ["2.8", "0", "81 MB", "3 s ago"]
        assert found[1][8:] == ["", ""]
        dialog.close()


async def test_the_whole_reason_of_the_selected_worker_is_shown(tmp_path: Path) -> None:
    reason = "it is no worker of this program: start it with octask worker"
    async with opened(tmp_path / "home") as session:
        dialog = await list_of(session)
        lame = worker("b", state="unusable", reason=reason, back_s=29.2)
        dialog.show_workers([worker("a", state="ready"), lame])
        assert not dialog.why.isVisible()
        dialog.list.setCurrentIndex(dialog.list.cells.index(1, 0))
        assert dialog.why.text() == f"Cannot be used: {reason} · tried again in 30 s"
        assert dialog.why.isVisible()
        dialog.show_workers([worker("a", state="ready"), worker("b", state="ready")])
        assert not dialog.why.isVisible()
        dialog.show_workers(None)
        dialog.close()


async def test_a_scheduler_that_does_not_answer_is_told_beside_its_workers(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog, bar = await list_of(session), session.window.status
        known = [worker(name, state="ready", scheduler_away=True) for name in "ab"]
        other = worker("c", state="ready", cluster="tcp://z:1")
        for place in (dialog, bar):
            place.show_workers([*known, other])
        first, *others = dialog.summary.text().splitlines()
        assert first.startswith("Workers ready: 3 of 3.")
        assert [line.startswith("The scheduler tcp://a:1 does not answer.") for line in others] == [
            True
        ]
        assert bar.workers.text() == "3 workers · no scheduler"
        for place in (dialog, bar):
            place.show_workers([other])
        assert "answer" not in dialog.summary.text()
        assert bar.workers.text() == "1 worker"
        dialog.close()


def test_the_status_bar_counts_those_that_are_lost_or_not_usable(qapp: object) -> None:
    bar = StatusBar()
    bar.show_workers([worker("a", state="ready"), worker("b", state="ready")])
    assert bar.workers.text() == "2 workers"
    bar.show_workers([worker("a", state="ready"), worker("b", state="no_browser")])
    assert bar.workers.text() == bar.workers.accessibleName() == "1 worker · 1 not usable"
    states: list[WorkerState] = ["ready", "lost", "unusable", "no_browser"]
    bar.show_workers([worker(state, state=state) for state in states])
    assert bar.workers.text() == "1 worker · 1 lost · 2 not usable"
    bar.show_workers([worker("a", state="ready"), worker("b", state="left")])
    assert bar.workers.text() == "1 worker"
    bar.show_workers([])
    assert bar.workers.text() == "0 workers"
    assert not bar.workers.isHidden()
    bar.show_workers(None)
    assert bar.workers.isHidden()
    bar.deleteLater()


def chosen(found: SortableList) -> object:
    return found.currentIndex().siblingAtColumn(0).data()


def test_numbers_are_sorted_as_numbers_and_the_selection_stays(qapp: object) -> None:
    parent = QWidget()
    found = SortableList("Workers", (Head("Name"), Head("Pages", True)), parent)
    cells = {name: row(name, n) for name, n in (("b", 1_000), ("a", 90))}
    found.show_cells(cells)
    assert [row[0] for row in rows(found)] == ["a", "b"]
    assert chosen(found) == "a"
    found.setCurrentIndex(found.cells.index(1, 0))
    found.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert [row[0] for row in rows(found)] == ["b", "a"]
    found.show_cells({**cells, "c": row("c", 2_000)})
    assert [row[0] for row in rows(found)] == ["c", "b", "a"]
    assert chosen(found) == "b"
    found.show_cells({"a": cells["a"]})
    assert rows(found) == [["a", "90"]]
    assert chosen(found) == "a"
    parent.deleteLater()


def test_the_list_is_a_sound_model_while_workers_come_and_go(qapp: object) -> None:
    model = CellModel((Head("Name"), Head("Pages", True)))
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    for size in (3, 5, 0, 2, 2):
        model.show_cells({f"w{n}": row(f"w{n}", 1) for n in range(size)})
        model.sort(size % 2, Qt.SortOrder.DescendingOrder)
        assert model.rowCount() == size
    tester.deleteLater()
    model.deleteLater()


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("tcp://10.0.0.5:8786", "tcp://10.0.0.5:8786"),
        ("local:2", "local:2"),
        ("http://head", ""),
        ("local:0", ""),
        ("", ""),
    ],
)
async def test_the_default_cluster_is_checked_when_it_is_typed(
    tmp_path: Path, typed: str, kept: str
) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = settings_of(session)
        dialog.show_page("cluster.")
        line = editor(dialog, "Cluster")
        assert isinstance(line, QLineEdit)
        line.setText(typed)
        line.editingFinished.emit()
        assert session.window.preferences.get("cluster.address", str) == kept
        dialog.close()


def test_the_default_cluster_is_the_engines(tmp_path: Path) -> None:
    preferences = Preferences()
    assert as_chosen(Settings(home=tmp_path), preferences).cluster == ""
    preferences.set("cluster.address", "local:2")
    assert as_chosen(Settings(home=tmp_path), preferences).cluster == "local:2"


def test_a_window_without_a_cluster_imports_nothing_of_it() -> None:
    source = """
import sys
import gui.startup.session, gui.startup.window_builder
rooms = ("dask", "distributed", "tornado", "engine.cluster.worker", "engine.cluster.cluster_pages")
print([name for name in sys.modules if name.startswith(rooms)])
"""
    found = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, check=True, timeout=150
    )
    assert found.stdout.decode().strip() == "[]"
