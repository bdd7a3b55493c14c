"""What of an ended task is left to try again: its failed pages or commands, as new requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engine.again import Asked
from engine.units import Unit, UnitState

MOST: Final = 100  # new tasks that one retry may become
CRAWLS: Final = frozenset({"crawl", "crawl_sitemap"})
# How a page is taken; what a crawl follows and leaves out means nothing for a single page.
_PAGE_OPTIONS: Final = frozenset(
    {"output_format", "respect_robots", "delay_ms", "engine", "block_resources", "screenshot"}
    | {"settle_ms", "wait_for", "timeout_ms", "retries"}
)


def failed_urls(units: Iterable[Unit]) -> list[str]:
    """The addresses of the pages that failed, each once, in their order. What robots.txt keeps
    us from is not among them: it would be refused again.
    """
    found = (unit.name for unit in units if unit.state == UnitState.FAILED)
    return list(dict.fromkeys(name for name in found if name.startswith(("http://", "https://"))))


def single_pages(asked: Asked, urls: Sequence[str]) -> list[Asked]:
    """A crawl of one page for each of `urls`, taken as the first one was."""
    options = {name: value for name, value in asked.args.items() if name in _PAGE_OPTIONS}
    return [
        Asked("crawl", {**options, "url": url, "max_depth": 0, "max_pages": 1}, asked.name)
        for url in urls
    ]


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
