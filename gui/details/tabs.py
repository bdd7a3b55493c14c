"""Which tabs the details have behind Overview and Events, in their order from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from gui.details.tab import DetailTab, TabKind
from gui.page_watching import has_page

if TYPE_CHECKING:
    from gui.desk import Desk


def _page(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.page_tab import PageTab

    return PageTab(desk, parent)


TABS: tuple[TabKind, ...] = (TabKind("page", _page, has_page),)
