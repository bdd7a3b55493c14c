"""What every part of one window may use: its engine, its memory and its preferences."""

from __future__ import annotations

from dataclasses import dataclass, field

from gui.engine_link.bridge import Bridge
from gui.engine_link.signals import Wishes
from gui.state.preferences import Preferences
from gui.state.time_range import TimeRange
from gui.state.window_state import Memory


@dataclass(frozen=True, slots=True)
class Desk:
    """`memory` keeps how the window was left, `preferences` what a person chose; `span` is the
    part of the selected task's time that its details show; by `wishes` one part asks another."""

    bridge: Bridge
    memory: Memory
    preferences: Preferences = field(default_factory=Preferences)
    span: TimeRange = field(default_factory=TimeRange)
    wishes: Wishes = field(default_factory=Wishes)
