"""Errors of agents' tool calls: missing tabs, limits, unclear instructions."""

from __future__ import annotations

from engine.model.errors import EngineError


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
