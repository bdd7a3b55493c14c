"""What a host agent can ask wrongly: tabs that are not there, too many of them, unclear words."""

from __future__ import annotations

from engine.model.errors import EngineError


class UnknownTool(EngineError):
    """There is no browser tool of this name."""

    code = "unknown_tool"
    title = "There is no such tool"
    sentence = "'{tool}' is not a browser tool; there are: {known}"


class TabNotFound(EngineError):
    """The tab was closed, or never was."""

    code = "tab_not_found"
    title = "There is no such tab"
    sentence = "There is no tab {tab_id}."
    advice_text = "tabs_context lists the tabs that are open."


class NoTabOpen(EngineError):
    """The agent has opened nothing yet."""

    code = "no_tab_open"
    title = "No tab is open"
    sentence = "This agent has no tab open yet."
    advice_text = "Open an address first, with navigate."


class TooManyTabs(EngineError):
    """An agent may not have more tabs."""

    code = "too_many_tabs"
    title = "Too many tabs"
    sentence = "This agent has {most} tabs open; more are not allowed."
    advice_text = "Close one with navigate's action close, or use one again."


class TooManyAgents(EngineError):
    """More agents have a browser open than may."""

    code = "too_many_agents"
    title = "Too many agents"
    sentence = "{most} agents have a browser open; more are not allowed."
    advice_text = "An agent that does nothing for {idle_min:g} minutes gives its browser back."


class InstructionRefused(EngineError):
    """Words that are not in the grammar of `act`; nothing was done."""

    code = "instruction_refused"
    title = "The instruction is not understood"
    sentence = "{reason}"
    advice_text = (
        "Say one step, such as: click Save; type 'hello' into Name; select Blue in Colour; "
        "check I agree; press Enter; scroll down; go back."
    )


class TargetUnclear(EngineError):
    """More than one element is meant, or none; nothing was done."""

    code = "target_unclear"
    title = "It is not clear which element is meant"
    sentence = "{reason}{candidates}"
    advice_text = "Name the element by its reference, such as: click {example}."


class WindowTooShort(EngineError):
    """A call waited for its turn on a tab longer than it may last."""

    code = "tab_busy"
    title = "The tab is busy"
    sentence = "{tab_id} was busy with another call for {limit_s:g} s."
    advice_text = "Wait for the other call, or use another tab."
