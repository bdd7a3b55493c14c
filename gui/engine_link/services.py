"""Services shared by all parts of one window: engine, saved state and preferences."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from gui.engine_link.bridge import Bridge
from gui.state.preferences import Preferences
from gui.state.time_range import TimeRange
from gui.state.window_state import Memory

# Signals between parts of a window that do not depend on each other.


class Wishes(QObject):
    """Requests between parts of the window.

    `result` opens the result viewer of a task at a unit (or None), `retry` starts a task for its
    failed units, `export` saves its results as a file, `task` selects a task. `pop_up` shows a
    desktop notification, `unread` is the number of unread notices. `undo` (what, words, act)
    offers an undo until it comes without words. `dropped` (mime, otherwise) handles a dropped
    folder of tasks, and calls `otherwise` for anything else.
    """

    result = Signal(str, object)
    retry = Signal(str)
    export = Signal(str)
    task = Signal(str)
    pop_up = Signal(object)
    unread = Signal(int)
    undo = Signal(str, str, object)
    dropped = Signal(object, object)


@dataclass(frozen=True, slots=True)
class Desk:
    """Services of one window.

    `memory` keeps the window state, `preferences` the settings. `span` is the time range of the
    selected task shown in the details; `wishes` carries requests between parts.
    """

    bridge: Bridge
    memory: Memory
    preferences: Preferences = field(default_factory=Preferences)
    span: TimeRange = field(default_factory=TimeRange)
    wishes: Wishes = field(default_factory=Wishes)
