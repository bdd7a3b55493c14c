"""Verbs: the operations that command line, MCP and HTTP offer, which only render them.

A verb's `call` gets an open engine and the values by name, and returns records; `accepts` requires
an engine that accepts tasks.
"""

from __future__ import annotations

from engine.verbs import envelopes, goals, recordings, results, runs, task_runs, tasks, tools
from engine.verbs.checking import checked
from engine.verbs.model import Param, Shape, Verb

ROOMS = (tasks, results, recordings, envelopes, runs, goals, task_runs)
VERBS: dict[str, Verb] = {
    **{verb.name: checked(verb) for room in ROOMS for verb in room.VERBS},
    **{verb.name: verb for verb in tools.VERBS},  # they return errors as a reply
}

__all__ = ["VERBS", "Param", "Shape", "Verb"]
