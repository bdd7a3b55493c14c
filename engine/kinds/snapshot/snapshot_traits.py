"""The traits of a session snapshot."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

SNAPSHOT_TRAITS: Final = KindTraits(
    "oc_session_snapshot",
    "tabs",
    "tabs",
    summary=False,
    own_id=("snapshot_id", "snap"),
    in_browser=True,
    watch_page=True,
)
