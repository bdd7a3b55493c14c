"""The verbs that every face offers: name, what it asks for, and the call. Faces only render.

A verb's `call` gets an open engine and the request's values by name, and returns records;
`accepts` says whether the engine has to be one that takes tasks.
"""

from __future__ import annotations

from engine.verbs import recordings, results, tasks, tools
from engine.verbs.model import Param, Shape, Verb

VERBS: dict[str, Verb] = {
    verb.name: verb for verb in (*tasks.VERBS, *results.VERBS, *recordings.VERBS, *tools.VERBS)
}

__all__ = ["VERBS", "Param", "Shape", "Verb"]
