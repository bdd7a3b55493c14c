"""What of an ended task is left to try again: its failed pages or commands, as a new request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower
from engine.results.units import Unit, UnitState
from engine.service.rerun import Asked, CannotRepeat

MOST: Final = 5_000  # pages that one retry may take
_MOST_CHARS: Final = 512 * 1024  # of their addresses, beside the rest of a request
# How a page is taken; what a crawl follows and leaves out means nothing for a list of pages.
_PAGE_OPTIONS: Final = frozenset(
    {"output_format", "respect_robots", "delay_ms", "concurrency", "engine", "block_resources"}
    | {"screenshot", "settle_ms", "wait_for", "timeout_ms", "retries", "fragments", "keep_links"}
    | {"redact_content", "max_elements", "max_text_kb"}
)


class NothingToRetry(EngineError):
    """Nothing of a task failed, or it is of a kind whose parts cannot be tried on their own."""

    code = "nothing_to_retry"
    title = "There is nothing to retry"
    sentence = "Nothing of task {task_id} failed that could be tried again on its own."
    advice_text = "`octask rerun {task_id}` starts the whole task once more."


class NotEnded(EngineError):
    """A task that still runs was to be retried: it may come to these pages by itself."""

    code = "not_ended"
    title = "The task has not ended"
    sentence = "Task {task_id} has not ended."
    advice_text = "Wait for its end, or cancel it first."


@dataclass(frozen=True, slots=True)
class Remainder:
    """What a retry of a task would start, if anything.

    `failed` parts there are, of which `request` takes the first `taken`. With a `refusal` the
    request lacks what is kept nowhere: a person completes it.
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
    """The addresses of the pages that failed, each once, in their order. What robots.txt keeps
    us from is not among them: it would be refused again.
    """
    return web_pages(unit.name for unit in units if unit.state == UnitState.FAILED)


def web_pages(names: Iterable[str]) -> list[str]:
    """Those that are addresses of pages, each once, in their order."""
    return list(dict.fromkeys(name for name in names if name.startswith(("http://", "https://"))))


def remaining_pages(task_id: str, asked: Asked, urls: Sequence[str]) -> Remainder:
    """A crawl of these pages alone, taken as the first one was; of too many the first ones."""
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
    """The commands from the failed one on. They begin at the last `goto` before it, because a
    fresh browser stands on no page; None where nothing failed.
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
