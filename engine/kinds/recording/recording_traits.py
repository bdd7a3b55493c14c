"""The traits of a recording."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

RECORDING_TRAITS: Final = KindTraits(
    "recording",
    "actions",
    "actions",
    summary=False,
    own_id=("recording_id", "rec"),
    agent_driven=True,
    stoppable=True,
    in_browser=True,
    opens_window=True,
    # no watch_page: it has its own window, and typed text must not be repeated
    unit_screenshots=True,
    ended_message="ended.recording",
    cancelling_message="why.cancelling.recording",
)
