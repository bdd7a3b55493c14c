"""The terms of a start as options: budgets, a contract, and whom it belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from engine.cli.examples import json_example
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import InvalidArguments, Problem
from engine.service.admission import Terms

Command = Callable[..., None]
TERMS = (
    *("objective", "phase", "policy", "enforce", "contract", "metadata"),
    *("task_run_id", "agent_id", "task_thread_id", "workflow_id"),
)
JSON_OPTIONS = ("policy", "contract", "metadata")


def terms_options(command: Command) -> Command:
    """What a task is started under, beside its arguments."""
    for option in (
        click.option("--workflow-id", help="The workflow it belongs to, kept in its run."),
        click.option("--thread-id", "task_thread_id", help="The task thread it belongs to."),
        click.option("--agent-id", help="The agent it runs for (COMET_AGENT_ID)."),
        click.option("--task-run-id", help="The task run it works for."),
        click.option("--metadata", metavar="JSON", help="Any JSON; it comes back untouched."),
        click.option(
            "--contract", metavar="JSON", help="Bulk contract: what has to be done to be complete."
        ),
        click.option("--enforce", is_flag=True, help="End the task when it exceeds a budget."),
        click.option("--policy", metavar="JSON", help="Budgets, such as '{\"maxToolCalls\": 50}'."),
        click.option("--phase", help="explore, act, verify or recover (for browser_task)."),
        click.option("--objective", help="What the task is for."),
    ):
        command = option(command)
    return command


def gather_terms(given: dict[str, Any]) -> Terms:
    """Take the options of `terms_options` out of `given`.

    Raises:
        InvalidArguments: an option that has to be JSON is not.
    """
    found: dict[str, Any] = {
        name: given.pop(name)
        for name in ("objective", "phase", "enforce", "task_run_id", "task_thread_id")
    }
    found["workflow_id"], found["agent_id"] = given.pop("workflow_id"), given.pop("agent_id")
    problems: list[Problem] = []
    for name in JSON_OPTIONS:
        text = given.pop(name)
        if text is not None:
            found[name] = from_json(f"--{name}", text, problems)
            if name != "metadata" and not isinstance(found[name], dict) and not problems:
                problems.append(no_object(f"--{name}", text))
    if problems:
        raise InvalidArguments(tuple(problems))
    return Terms(**found)


def from_json(option: str, text: str, problems: list[Problem]) -> Any:
    """The JSON that was typed for an option; a mistake is added to `problems`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        wrong = display(str(error), 200)
        reason = f"is not valid JSON ({wrong}). For example: {json_example(option, text)}"
        problems.append(Problem(option, "not_json", reason))
        return None


def no_object(option: str, text: str) -> Problem:
    """It is JSON, but not what this option takes."""
    reason = f"must be a JSON object. For example: {json_example(option, text)}"
    return Problem(option, "wrong_type", reason)


def for_agent(settings: Settings, terms: Terms) -> Settings:
    """`--agent-id` wins over COMET_AGENT_ID."""
    return replace(settings, agent_id=terms.agent_id) if terms.agent_id else settings
