"""The least arguments that start a task of each kind, made of the registry."""

from __future__ import annotations

from typing import Any, Final

from engine.kinds.registry import KINDS
from engine.model.errors import InvalidArguments
from engine.service.forms import COMMANDS, Input, inputs

ADDRESS: Final = "https://example.com/"
FLAT: Final = tuple(kind for kind in KINDS if kind != COMMANDS)  # without lists of commands


def least(kind: str, address: str = ADDRESS) -> dict[str, Any]:
    """Return a value for each argument without which `kind` refuses a request."""
    found = inputs(kind)
    try:
        KINDS[kind].parse({})
    except InvalidArguments as refused:
        needed = [problem.path for problem in refused.problems if problem.path in found]
        return {name: _value(found[name], address) for name in needed}
    return {}


def _value(argument: Input, address: str) -> Any:
    if argument.choices:
        return argument.choices[0]
    return address if argument.low is None else argument.low  # an address is a text as well
