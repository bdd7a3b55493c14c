"""Which tabs the details have behind Overview and Events, in their order from left to right."""

from __future__ import annotations

from gui.details.tab import TabKind

TABS: tuple[TabKind, ...] = ()
