"""The verbs that every face offers: name, what it asks for, and the call. Faces only render.

A verb's `call` gets an open engine and the request's values by name, and returns records;
`accepts` says whether the engine has to be one that takes tasks.
"""

from __future__ import annotations

from engine.verbs import envelopes, goals, recordings, results, runs, task_runs, tasks, tools
from engine.verbs.checking import checked
from engine.verbs.model import Param, Shape, Verb

ROOMS = (tasks, results, recordings, envelopes, runs, goals, task_runs)
VERBS: dict[str, Verb] = {
    **{verb.name: checked(verb) for room in ROOMS for verb in room.VERBS},
    **{verb.name: verb for verb in tools.VERBS},  # a refused call is an answer of theirs
}

__all__ = ["VERBS", "Param", "Shape", "Verb"]
