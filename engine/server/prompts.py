"""Prompts of MCP: three ways of working that hosts show to their users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types
from mcp import MCPError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `text` has a place `{name}` for each of `arguments` (name -> help)."""

    title: str
    description: str
    arguments: Mapping[str, str]
    text: str
    forms: Mapping[str, str] = field(default_factory=dict)  # pattern of an argument


PROMPTS: Final[Mapping[str, Prompt]] = {
    "crawl_with_contract": Prompt(
        "Crawl with a contract",
        "Crawl a list of pages so that none is forgotten.",
        {"urls": "the addresses, separated by spaces"},
        "Crawl these pages and tell me the title of each: {urls}\n"
        "1. Call oc_task_start with kind crawl, args {{url: the first one, urls: the others, "
        "max_depth: 0}} and contract {{items: all of the addresses}}.\n"
        "2. Call oc_task_wait with its task_id; on ETIMEDOUT, wait again.\n"
        "3. If it FAILED with bulk_incomplete, call oc_task_get, look which pages failed, and call "
        "oc_task_retry once.\n"
        "4. Read the pages with oc_task_get and include_result; follow next_cursor to the end.\n"
        "Name every page that could not be read, with the reason.",
    ),
    "scripted_login": Prompt(
        "Scripted login",
        "Log in with a command task, without the password ever being in the conversation.",
        {"url": "the login page", "secret": "the environment variable with the password"},
        "Log in at {url}.\n"
        "1. Call navigate, then javascript_tool to list the CSS selectors of the form's inputs and "
        "its button (by id, name or type). References of read_page are no selectors.\n"
        "2. Call task_submit with commands: browser_navigate goto, browser_interact type for the "
        'user, browser_interact type for the password with text {{"secret": "env:{secret}"}}, '
        "browser_interact click, and browser_navigate wait_for on something that only a logged-in "
        "page has.\n"
        "3. Follow it with oc_task_wait, then task_status. If a command failed, tell me which one "
        "and why; do not guess passwords.",
        {"secret": r"[A-Za-z_][A-Za-z0-9_]*"},
    ),
    "watch_a_budget": Prompt(
        "Work within a budget",
        "Do a browser task with a limit on calls, so that it does not wander.",
        {"objective": "what is to be reached", "calls": "the most calls of browser tools"},
        "Reach this with the browser tools: {objective}\n"
        "1. Call oc_task_start with that objective and policy {{maxToolCalls: {calls}, "
        "maxFailureStreak: 3}}; it opens a browser_task.\n"
        "2. Pass its task_id as taskId to every call of a browser tool, and read the line about "
        "the task in the answers: at budget warning do what it says next; at exceeded stop.\n"
        "3. Say your phase with oc_task_update (explore, act, verify).\n"
        "4. End with oc_task_finish: completed only if you verified it.",
        {"calls": r"[1-9][0-9]{0,5}"},
    ),
}


async def list_prompts(
    ctx: Any, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    """Answer `prompts/list`."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=prompt.title,
                description=prompt.description,
                arguments=[
                    types.PromptArgument(name=each, description=said, required=True)
                    for each, said in prompt.arguments.items()
                ],
            )
            for name, prompt in PROMPTS.items()
        ]
    )


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Answer `prompts/get`.

    Raises:
        MCPError: no prompt has this name, or an argument is missing.
    """
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        known = ", ".join(PROMPTS)
        raise MCPError(types.INVALID_PARAMS, f"There is no such prompt; there are: {known}.")
    given = params.arguments or {}
    missing = [name for name in prompt.arguments if not given.get(name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"The prompt needs: {', '.join(missing)}.")
    wrong = [
        name for name, form in prompt.forms.items() if not re.fullmatch(form, given[name], re.ASCII)
    ]
    if wrong:
        said = ", ".join(f"{name} ({prompt.arguments[name]})" for name in wrong)
        raise MCPError(types.INVALID_PARAMS, f"These arguments have no valid value: {said}.")
    text = prompt.text.format_map({name: given[name] for name in prompt.arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])
