"""`act`: one step in words, done. The grammar is in `grammar`, the search in `searching`."""

from __future__ import annotations

from engine.agents.errors import InstructionRefused
from engine.agents.grammar import Step, parse
from engine.agents.searching import meant
from engine.browser.interact import element_actions
from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.element_actions import Deed
from engine.kinds.arguments import web_address


async def act(tab: AgentTab, instruction: str, limit_ms: int) -> Deed:
    """Do what `instruction` says.

    Raises:
        InstructionRefused: it is not in the grammar. TargetUnclear: which element is open.
        ElementNotReady, WrongElement, NoSuchOption, PageError: see `interact`.
    """
    step = parse(instruction)
    if step.goal is None:
        return Deed(await _on_page(tab, step, limit_ms), None)
    ref = await meant(tab, step.goal, step.action)
    return await element_actions.interact(tab, ref, step.action, step.value, limit_ms)


async def _on_page(tab: AgentTab, step: Step, limit_ms: int) -> str:
    if step.action == "press":
        return await element_actions.press(tab, step.value, limit_ms)
    if step.action == "scroll":
        return await element_actions.scroll(tab, step.value, step.pixels, limit_ms)
    if step.action == "goto":
        await tab.go(_address(step.value), limit_ms)
        return "Opened the address."
    if step.action == "reload":
        await tab.travel("reload", limit_ms)
        return "Loaded the page again."
    await tab.travel("back" if step.action == "back" else "forward", limit_ms)
    return f"Went {step.action}."


def _address(said: str) -> str:
    try:
        return web_address(said)
    except ValueError as wrong:
        raise InstructionRefused(reason=f"The address {wrong}.") from wrong
