"""Verbs: the operations that command line, MCP and HTTP offer, which only render them.

A verb's `call` gets an open engine and the values by name, and returns records; `accepts` requires
an engine that accepts tasks.
"""

from __future__ import annotations

from engine.verbs import (
    contract_verbs,
    envelope_verbs,
    result_verbs,
    run_verbs,
    task_verbs,
    tool_verbs,
)
from engine.verbs.model import Param, Shape, Verb, checked

ROOMS = (task_verbs, result_verbs, envelope_verbs, run_verbs, contract_verbs)
VERBS: dict[str, Verb] = {
    **{verb.name: checked(verb) for room in ROOMS for verb in room.VERBS},
    **{verb.name: verb for verb in tool_verbs.VERBS},  # they return errors as a reply
}

__all__ = ["VERBS", "Param", "Shape", "Verb"]
