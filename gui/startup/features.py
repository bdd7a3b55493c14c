"""Features of the window, each of which adds its actions and connects itself.

A feature is a module with `attach(window)`. It is called once, after list, sidebar, details and
bars exist and before menus and toolbar are filled. Dialogs are imported on use, because the first
paint waits for every import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gui.commands import (
    attention,
    bulk_bar,
    cancel_listed,
    deleting,
    drag_out,
    exporting,
    force_complete,
    help_actions,
    open_result,
    palette,
    rerunning,
    retrying,
    task_links,
    task_run_rows,
    undo,
)
from gui.desktop import contrast, notifications
from gui.details import page_action, several, tab_keys
from gui.filters import cell_filter, empty_result_hints, filter_help, views_menu
from gui.ledgers import ledger_actions, ledger_trouble, watch_only
from gui.settings import appearance, language_menu, shortcuts
from gui.start import start_actions
from gui.startup import early_keys
from gui.tasks import contract_counts, order_prefetch, rerun_links, sort_menu
from gui.window import focus_ring

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

FEATURES: tuple[Callable[[MainWindow], object], ...] = (
    start_actions.attach,
    sort_menu.attach,
    order_prefetch.attach,
    attention.attach,
    bulk_bar.attach,
    several.attach,
    views_menu.attach,
    cell_filter.attach,
    empty_result_hints.attach,
    filter_help.attach,
    focus_ring.attach,
    rerunning.attach,
    retrying.attach,
    exporting.attach,
    open_result.attach,
    force_complete.attach,
    cancel_listed.attach,
    deleting.attach,
    undo.attach,
    task_links.attach,
    drag_out.attach,
    task_run_rows.attach,
    contract_counts.attach,
    watch_only.attach,
    page_action.attach,
    rerun_links.attach,
    ledger_actions.attach,
    ledger_trouble.attach,
    tab_keys.attach,
    palette.attach,
    appearance.attach,
    help_actions.attach,
    notifications.attach,
    contrast.attach,
    language_menu.attach,
    shortcuts.attach,
    early_keys.attach,
)
