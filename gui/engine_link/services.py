"""What every part of one window may use: its engine, its memory and its preferences."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from gui.engine_link.bridge import Bridge
from gui.state.preferences import Preferences
from gui.state.time_range import TimeRange
from gui.state.window_state import Memory

# What one part of a window asks of another that it does not know, and that may not be there.


class Wishes(QObject):
    """`result` asks for the result viewer of a task, at that unit (or None); `retry` for a new
    task of what failed in one; `export` for the results of one as a file; `task` to select one.
    """

    result = Signal(str, object)
    retry = Signal(str)
    export = Signal(str)
    task = Signal(str)


@dataclass(frozen=True, slots=True)
class Desk:
    """`memory` keeps how the window was left, `preferences` what a person chose; `span` is the
    part of the selected task's time that its details show; by `wishes` one part asks another."""

    bridge: Bridge
    memory: Memory
    preferences: Preferences = field(default_factory=Preferences)
    span: TimeRange = field(default_factory=TimeRange)
    wishes: Wishes = field(default_factory=Wishes)
