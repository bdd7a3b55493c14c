"""What hangs on the window beside its list: each part adds its actions and connects itself.

A part is a module with `attach(window)`. It is called once, when the window has its list,
sidebar, details and bars, and before menus and toolbar are filled; it imports its dialogs
only when they are asked for, because the first paint waits for every import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gui import (
    appearance,
    attending,
    backstage,
    beforehand,
    bulk_bar,
    carrying,
    cell_filter,
    contract_counts,
    deleting,
    early_keys,
    exporting,
    filter_help,
    focus_ring,
    forcing,
    kinship,
    ledger_actions,
    ledger_trouble,
    nearest,
    page_watching,
    palette,
    rerunning,
    retrying,
    run_rows,
    shortcuts,
    sort_menu,
    speaking,
    start_actions,
    stopping,
    task_links,
    undoing,
    viewing,
    views,
    watch_only,
)
from gui.desktop import contrast, news
from gui.details import several, tab_keys

if TYPE_CHECKING:
    from gui.main_window import MainWindow

FEATURES: tuple[Callable[[MainWindow], object], ...] = (
    start_actions.attach,
    sort_menu.attach,
    beforehand.attach,
    attending.attach,
    bulk_bar.attach,
    several.attach,
    views.attach,
    cell_filter.attach,
    nearest.attach,
    filter_help.attach,
    focus_ring.attach,
    rerunning.attach,
    retrying.attach,
    exporting.attach,
    viewing.attach,
    forcing.attach,
    stopping.attach,
    deleting.attach,
    undoing.attach,
    task_links.attach,
    carrying.attach,
    run_rows.attach,
    contract_counts.attach,
    watch_only.attach,
    page_watching.attach,
    kinship.attach,
    ledger_actions.attach,
    ledger_trouble.attach,
    tab_keys.attach,
    palette.attach,
    appearance.attach,
    backstage.attach,
    news.attach,
    contrast.attach,
    speaking.attach,
    shortcuts.attach,
    early_keys.attach,
)
