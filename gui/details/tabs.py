"""Which tabs the details have behind Overview and Events, in their order from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from engine.model.records import ENVELOPE, TaskRecord, TaskView
from gui.details.details_tab import DetailTab, TabKind
from gui.details.page_action import has_page

if TYPE_CHECKING:
    from gui.engine_link.services import Desk


def _page(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.page_tab import PageTab

    return PageTab(desk, parent)


def _items(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.items import Items

    return Items(desk, parent)


def _commands(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.commands_tab import Commands

    return Commands(desk, parent)


def _result(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.result import Result

    return Result(desk, parent)


def _screenshots(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.screenshots import Screenshots

    return Screenshots(desk, parent)


def _raw(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.raw import Raw

    return Raw(desk, parent)


def is_task(view: TaskView) -> bool:
    """Is it a task that can be read? Runs have no folder among the tasks."""
    return isinstance(view.entry, TaskRecord) and has_folder(view)


def has_folder(view: TaskView) -> bool:
    return getattr(view.entry, "kind", "") != "task_run"


def _is_list(view: TaskView) -> bool:
    """Is it a list of equal units? Steps have a tab of their own, calls of tools are events."""
    return is_task(view) and getattr(view.entry, "kind", "") not in ("commands", ENVELOPE)


def _has_steps(view: TaskView) -> bool:
    return is_task(view) and getattr(view.entry, "kind", "") == "commands"


TABS: tuple[TabKind, ...] = (
    TabKind("items", _items, _is_list),
    TabKind("commands", _commands, _has_steps),
    TabKind("result", _result, is_task),
    TabKind("screenshots", _screenshots, is_task),
    TabKind("page", _page, has_page),
    TabKind("raw", _raw, has_folder),
)
