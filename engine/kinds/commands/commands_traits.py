"""The traits of a command task."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

COMMANDS_TRAITS: Final = KindTraits(
    "commands", "commands", "commands", steps=True, summary=False, in_browser=True, watch_page=True
)
