"""Scenes of the screenshots (`--shot`) by name, and the steps that set them up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.model.kind_traits import traits_of
from engine.model.status import Standing, standing

if TYPE_CHECKING:
    from engine.model.records import TaskView
    from gui.window.main_window import MainWindow

Play = Callable[["MainWindow"], object]
NARROW, WIDE = (900, 560), (1440, 900)


def play(window: MainWindow, scene: str) -> None:
    """Bring the window into the state of `scene`."""
    STAGES[scene](window)


def _tasks(window: MainWindow) -> Iterable[TaskView]:
    ids = (window.model.id_at(row) for row in range(window.model.rowCount()))
    views = (window.model.view_of(task_id) for task_id in ids)
    return (view for view in views if view is not None)


def _choose(window: MainWindow, *wanted: Callable[[TaskView], bool]) -> None:
    """Select the first task that matches one of `wanted`, in their order."""
    views = list(_tasks(window))
    found = next((view for one in wanted for view in views if one(view)), None)
    ids = [found.task_id] if found is not None else [view.task_id for view in views[:1]]
    window.table.select_ids(ids)


def _units(noun: str) -> Callable[[TaskView], bool]:
    return lambda view: traits_of(getattr(view.entry, "kind", "")).unit_noun == noun


def _is(state: Standing) -> Callable[[TaskView], bool]:
    return lambda view: standing(view) is state


def _has_contract(view: TaskView) -> bool:
    engine = getattr(view.entry, "engine", None)
    return _is(Standing.RUNNING)(view) and getattr(engine, "contract_id", None) is not None


def _main(window: MainWindow) -> None:
    _choose(window, _is(Standing.RUNNING))


def _tab(key: str, *wanted: Callable[[TaskView], bool]) -> Play:
    def show(window: MainWindow) -> None:
        _choose(window, *wanted)
        window.details.restore_state(key)

    return show


def _act(key: str, *wanted: Callable[[TaskView], bool]) -> Play:
    def show(window: MainWindow) -> None:
        _choose(window, *wanted)
        window.acts[key].trigger()

    return show


def _ledgers(window: MainWindow) -> None:
    _choose(window, lambda view: bool(view.ledger))


def _filter(window: MainWindow) -> None:
    window.filter_bar.set_text("(status:completed OR status:failed) kind:crawl took:<1m")
    _choose(window)


def _many(window: MainWindow) -> None:
    window.table.select_ids([view.task_id for view in list(_tasks(window))[:5]])


def _cancel(window: MainWindow) -> None:
    window.acts["all"].trigger()
    window.acts["cancel"].trigger()


def _narrow(window: MainWindow) -> None:
    window.resize(*NARROW)
    _main(window)


def _start(window: MainWindow) -> None:
    window.requests.new_task({"url": "https://example.com/docs"})


_ENDED = (_is(Standing.COMPLETED), _is(Standing.FAILED))
STAGES: dict[str, Play] = {
    "main": _main,
    "dark": _main,
    "narrow": _narrow,
    "empty": lambda _: None,
    "details": _tab("overview", _has_contract, _units("calls")),
    "events": _tab("events", *_ENDED),
    "timeline": _tab("timeline", *_ENDED),
    "items": _tab("items", _is(Standing.FAILED)),
    "commands": _tab("commands", _units("commands")),
    "result": _tab("result", *_ENDED),
    "screenshots": _tab("screenshots", _units("parts"), _units("commands")),
    "raw": _tab("raw", *_ENDED),
    "filter": _filter,
    "several": _many,
    "ledgers": _ledgers,
    "start": _start,
    "cancel": _cancel,
    "force": _act("force", _has_contract),
    "rerun": _act("rerun_many"),
    "viewer": _act("open_result", *_ENDED),
    "palette": _act("palette"),
    "settings": _act("settings"),
    "shortcuts": _act("shortcuts"),
    "doctor": _act("doctor"),
    "statistics": _act("statistics"),
    "help": _act("help"),
}
