"""The script that a recorded document runs in a world of its own, put together."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files


@cache
def _source(name: str) -> str:
    return files("engine.browser").joinpath(name).read_text("utf-8").strip()


def script(binding: str, max_text: int) -> str:
    """What to run before the page's own scripts; it tells through the function `binding`."""
    return "\n".join(
        (
            "(() => {",
            _source("describe.js"),
            _source("hovering.js"),
            _source("record.js"),
            f"const send = globalThis[{json.dumps(binding)}];",
            f"record((told) => send(JSON.stringify(told)), describer(), hoverer(), {max_text});",
            "})();",
        )
    )


def naming_script(element: str) -> str:
    """An expression whose value is how the recorder would name `element` (an expression)."""
    return f"(() => {{ {_source('describe.js')} return describer().describe({element}); }})()"
