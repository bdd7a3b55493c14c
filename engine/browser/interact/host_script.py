"""Run a host's script in the page: an expression, or a body with `return`; JSON result.

The script runs in the page's own world, so that it shares the page's variables. Its result is
untrusted data like everything else from a page.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.async_api import Error

from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.command_errors import ScriptFailed

MOST_ECHO = 256 * 1024
SLACK_S = 0.5  # the browser ends a script at the limit itself; only a promise takes longer
# DevTools' text for an error before the first line ran; a later one says "in promise".
_NOT_BEGUN = "Uncaught"
_ENDED = "Internal error"  # its message about a script ended at the limit


async def evaluate(tab: AgentTab, code: str, limit_ms: int) -> Any:
    """Run `code` and return its value as JSON; elements, cycles and functions become texts.

    Raises:
        ScriptFailed: the script threw, is not JavaScript, or took longer than `limit_ms`.
    """
    await tab.world.ask("page")  # registers the secrets before the script can remove them
    expression = code.rstrip().rstrip(";")
    answer = await _run(tab, f"({expression}\n)", limit_ms)
    if _is_no_expression(answer):
        answer = await _run(tab, f"{{{code}\n}}", limit_ms)
    await tab.settle(min(limit_ms, 1_000))
    await tab.world.ask("page")
    if "exceptionDetails" in answer:
        raise ScriptFailed(reason=tab.mask.text(_error_text(answer["exceptionDetails"]), 1_000))
    tab.check_refused()
    given = json.loads(answer["result"].get("value") or "null")
    return tab.mask.value(given)


async def _run(tab: AgentTab, body: str, limit_ms: int) -> dict[str, Any]:
    wire = tab.instance.wire(tab.page)
    expression = f"(async () => {body})().then({_plainly()})"
    request = {
        "expression": expression,
        "awaitPromise": True,
        "returnByValue": True,
        "userGesture": True,
        "timeout": limit_ms,
    }
    try:
        async with asyncio.timeout(limit_ms / 1000 + SLACK_S):
            answer: dict[str, Any] = await wire.send("Runtime.evaluate", request)
    except (TimeoutError, Error) as failed:
        if isinstance(failed, Error) and _ENDED not in failed.message:
            raise
        limit_s = f"{limit_ms / 1000:g}"
        raise ScriptFailed(reason=f"The script did not end within {limit_s} s.") from failed
    return answer


@cache
def _plainly() -> str:
    script = files("engine.browser").joinpath("plainly.js").read_text("utf-8").strip()
    return f"{script.removesuffix(';')}({MOST_ECHO})"


def _is_no_expression(answer: dict[str, Any]) -> bool:
    details = answer.get("exceptionDetails", {})
    kind = details.get("exception", {}).get("className")
    return (details.get("text"), kind) == (_NOT_BEGUN, "SyntaxError")


def _error_text(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    text = str(thrown.get("description") or thrown.get("value") or details.get("text", ""))
    return text.partition("\n    at ")[0] or "The script failed."
