"""Requests for the failed pages or commands of an ended task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower
from engine.results.units import Unit, UnitState
from engine.service.rerun import Asked, CannotRepeat

MOST: Final = 5_000  # maximum pages of one retry
_MOST_CHARS: Final = 512 * 1024  # maximum size of their addresses
# Options of loading a page; options of following links do not apply to a list of pages.
_PAGE_OPTIONS: Final = frozenset(
    {"output_format", "respect_robots", "delay_ms", "concurrency", "engine", "block_resources"}
    | {"screenshot", "settle_ms", "wait_for", "timeout_ms", "retries", "fragments", "keep_links"}
    | {"redact_content", "max_elements", "max_text_kb"}
)


class NothingToRetry(EngineError):
    """Nothing of a task failed, or its parts cannot be retried separately."""

    code = "nothing_to_retry"
    title = "There is nothing to retry"
    sentence = "Nothing of task {task_id} failed that could be tried again on its own."
    advice_text = "`octask rerun {task_id}` starts the whole task once more."


class NotEnded(EngineError):
    """A retry of a running task, which may still visit these pages."""

    code = "not_ended"
    title = "The task has not ended"
    sentence = "Task {task_id} has not ended."
    advice_text = "Wait for its end, or cancel it first."


@dataclass(frozen=True, slots=True)
class Remainder:
    """The failed parts of a task as a request, if there are any.

    `request` holds the first `taken` of `failed` parts. With a `refusal` the request lacks
    values that are not stored, and the user completes it.
    """

    task_id: str
    kind: str
    request: Asked | None = None
    failed: int = 0
    taken: int = 0
    refusal: CannotRepeat | None = None

    @property
    def whole(self) -> Asked:
        """The request that can be started. Raises CannotRepeat or NothingToRetry."""
        if self.refusal is not None:
            raise self.refusal
        if self.request is None:
            raise NothingToRetry(task_id=self.task_id)
        return self.request


def failed_urls(units: Iterable[Unit]) -> list[str]:
    """Return the addresses of failed pages, in order and without duplicates.

    Pages that robots.txt forbids are not included: a retry would be refused again.
    """
    return web_pages(unit.name for unit in units if unit.state == UnitState.FAILED)


def web_pages(names: Iterable[str]) -> list[str]:
    """Return the page addresses among these names, in order and without duplicates."""
    return list(dict.fromkeys(name for name in names if name.startswith(("http://", "https://"))))


def remaining_pages(task_id: str, asked: Asked, urls: Sequence[str]) -> Remainder:
    """Build a crawl of these pages only, with the original options, up to the size limits."""
    taken: list[str] = []
    chars = 0
    for url in urls[:MOST]:
        chars += len(url)
        if chars > _MOST_CHARS:
            break
        taken.append(url)
    if not taken:
        return Remainder(task_id, asked.kind)
    options = {name: value for name, value in asked.args.items() if name in _PAGE_OPTIONS}
    pages = {"url": taken[0], "max_depth": 0, "max_pages": len(taken)}
    further = {"urls": taken[1:]} if taken[1:] else {}
    request = Asked(link_follower(), {**options, **pages, **further}, asked.name)
    return Remainder(task_id, asked.kind, request, len(urls), len(taken))


def remaining_commands(asked: Asked, states: Sequence[object]) -> Asked | None:
    """Return the commands from the failed one on; None if no command failed.

    They begin at the last `goto` before it, because a fresh browser shows no page.
    """
    commands = asked.args.get("commands")
    if not isinstance(commands, list) or "error" not in states:
        return None
    failed = min(states.index("error"), len(commands) - 1)
    start = next((at for at in range(failed, -1, -1) if _goes_to_a_page(commands[at])), 0)
    return Asked(asked.kind, {**asked.args, "commands": commands[start:]}, asked.name, asked.terms)


def _goes_to_a_page(command: object) -> bool:
    if not isinstance(command, Mapping) or command.get("tool_name") != "browser_navigate":
        return False
    args: Any = command.get("args")
    return isinstance(args, Mapping) and isinstance(args.get("url"), str)
