"""Reply of a browser tool (text, the same as data, an optional image), and its errors."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.model.errors import AddressBlocked, EngineError, InvalidArguments, PageError


class UnknownTool(EngineError):
    """No browser tool has this name."""

    code = "unknown_tool"
    title = "There is no such tool"
    sentence = "'{tool}' is not a browser tool; there are: {known}"


class TabNotFound(EngineError):
    """The tab is closed, or never existed."""

    code = "tab_not_found"
    title = "There is no such tab"
    sentence = "There is no tab {tab_id}."
    advice_text = "tabs_context lists the tabs that are open."


class NoTabOpen(EngineError):
    """The agent has no open tab."""

    code = "no_tab_open"
    title = "No tab is open"
    sentence = "This agent has no tab open yet."
    advice_text = "Open an address first, with navigate."


class TooManyTabs(EngineError):
    """The agent has the maximum number of tabs."""

    code = "too_many_tabs"
    title = "Too many tabs"
    sentence = "This agent has {most} tabs open; more are not allowed."
    advice_text = "Close one with navigate's action close, or use one again."


class TooManyAgents(EngineError):
    """The maximum number of agents have an open browser."""

    code = "too_many_agents"
    title = "Too many agents"
    sentence = "{most} agents have a browser open; more are not allowed."
    advice_text = "An agent that does nothing for {idle_min:g} minutes gives its browser back."


class InstructionRefused(EngineError):
    """The instruction is not in the grammar of `act`; nothing was done."""

    code = "instruction_refused"
    title = "The instruction is not understood"
    sentence = "{reason}"
    advice_text = (
        "Say one step, such as: click Save; type 'hello' into Name; select Blue in Colour; "
        "check I agree; press Enter; scroll down; go back."
    )


class TargetUnclear(EngineError):
    """The target matches several elements, or none; nothing was done."""

    code = "target_unclear"
    title = "It is not clear which element is meant"
    sentence = "{reason}{candidates}"
    advice_text = "Name the element by its reference, such as: click {example}."


class WindowTooShort(EngineError):
    """A call waited for its tab's lock until its timeout."""

    code = "tab_busy"
    title = "The tab is busy"
    sentence = "{tab_id} was busy with another call for {limit_s:g} s."
    advice_text = "Wait for the other call, or use another tab."


MOST_TEXT_BYTES = 256 * 1024
CUT = "\n… cut: the reply was longer than 256 KiB"


class Image(msgspec.Struct, frozen=True):
    """An image with its media type."""

    data: bytes
    mime_type: str = "image/png"


class ToolReply(msgspec.Struct, frozen=True):
    """One reply of a tool.

    With a task id, `task` is the envelope's state, and `warning` the reason why the call was not
    counted.
    """

    text: str
    data: dict[str, Any] = {}
    image: Image | None = None
    ok: bool = True
    task: dict[str, Any] | None = None
    warning: str | None = None


def reply(text: str, data: dict[str, Any], image: Image | None = None) -> ToolReply:
    """Build a reply whose text is at most 256 KiB."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > MOST_TEXT_BYTES:
        kept = encoded[: MOST_TEXT_BYTES - len(CUT.encode())]
        text = kept.decode("utf-8", "ignore") + CUT
    # Encode and decode, so that every caller gets plain JSON types.
    return ToolReply(text, msgspec.json.decode(msgspec.json.encode(data)), image)


def refusal(error: EngineError) -> ToolReply:
    """Convert an error to a reply, for hosts without exceptions."""
    advice = error.advice
    told: dict[str, Any] = {"code": error.code, "title": error.title, "message": str(error)}
    if error.advice:
        told["advice"] = error.advice
    if isinstance(error, PageError):
        told["kind"] = error.kind
    if error.code == AddressBlocked.code:
        told["advice"] = advice = _BLOCKED
    if isinstance(error, InvalidArguments):
        told["problems"] = [
            {"path": each.path, "code": each.code, "message": each.message}
            for each in error.problems
        ]
    fields = {name: value for name, value in error.fields.items() if name not in _OWN}
    if fields:
        told["fields"] = fields
    return ToolReply(
        f"{error.title}: {error} {advice}".strip(),
        {"error": told},
        ok=False,
        task=_object(error.fields.get("task")),
        warning=_text(error.fields.get("warning")),
    )


_BLOCKED = (
    "A private address must be allowed by the operator, with --allow-private HOST:PORT or in the "
    "settings of the window."
)
_OWN = frozenset({"task", "warning", "message"})


def _object(given: object) -> dict[str, Any] | None:
    return given if isinstance(given, dict) else None


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None
