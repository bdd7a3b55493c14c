"""Table of the eight browser tools with their arguments; verbs are generated from it.

Source: seed 004 (the tools that record to an envelope).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from engine.browser.interact.command_keys import read_key
from engine.kinds.arguments import (
    Argument,
    Table,
    flag,
    long_text,
    missing,
    one_of,
    read_all,
    web_address,
    whole,
)
from engine.model.errors import InvalidArguments, Problem

TIMEOUT_MS: Final = 30_000
MOST_MS: Final = 120_000
MOST_READ: Final = 256 * 1024  # characters of page text in one reply
READ_CHARS: Final = 50_000
MOST_FOUND: Final = 50
MOST_CHARS: Final = 100_000  # typed in one call
MOST_CODE: Final = 100_000  # characters of one script
ACTIONS: Final = (
    *("click", "double_click", "right_click", "hover", "focus", "scroll_into_view"),
    *("type", "append", "clear", "press", "select", "check", "uncheck"),
)

Shape = Literal["text", "number", "flag"]
Reading = Callable[[object], Any]
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of a tool; `default` is its value if it is omitted."""

    name: str
    help: str
    read: Reading
    shape: Shape = "text"
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tool:
    """One browser tool. `check` validates arguments against each other."""

    name: str
    help: str
    args: tuple[Arg, ...]
    check: Callable[[Given], list[Problem]] = lambda given: []

    @cached_property
    def table(self) -> Table:
        """The arguments by name, also by the names that MCP hosts use (tabId)."""
        rows = {arg.name: Argument(arg.name, arg.read) for arg in self.args}
        return {**rows, **{camel(name): row for name, row in rows.items()}}

    def read(self, given: object) -> dict[str, Any]:
        """Validate the arguments and fill in defaults.

        Raises:
            InvalidArguments: with every mistake; nothing was done.
        """
        if not isinstance(given, Mapping):
            raise InvalidArguments((Problem("", "wrong_type", "the arguments must be an object"),))
        named = {name: value for name, value in given.items() if value is not None}
        fields, problems = read_all(named, self.table, self.name)
        wrong = {problem.path for problem in problems}
        for arg in self.args:
            if arg.required and arg.name not in fields and not wrong & {arg.name, camel(arg.name)}:
                problems.append(missing(arg.name, arg.help))
        if not problems:
            fields = {**{arg.name: arg.default for arg in self.args}, **fields}
            problems = self.check(fields)
        if problems:
            raise InvalidArguments(tuple(problems))
        return fields


def camel(name: str) -> str:
    """Convert `tab_id` to the form of MCP hosts: `tabId`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _typed(given: object) -> str:
    """Read a text to type; leading and trailing spaces are kept."""
    if not isinstance(given, str):
        raise ValueError("must be a text")
    if len(given) > MOST_CHARS:
        raise ValueError(f"must not be longer than {MOST_CHARS:,} characters")
    return given


def _navigation(given: Given) -> list[Problem]:
    action, url = given["action"], given["url"]
    if action == "goto" and url is None:
        return [missing("url", "the address to open")]
    if action != "goto" and (url is not None or given["new_tab"]):
        name = "url" if url is not None else "new_tab"
        return [Problem(name, "not_together", f"does not go with {action}")]
    return []


_NEEDS = {"type": "the text", "append": "the text", "select": "the option", "press": "the key"}


def _interaction(given: Given) -> list[Problem]:
    action, value = given["action"], given["value"]
    if action in _NEEDS and value is None:
        return [missing("value", f"{_NEEDS[action]} to {action}")]
    if action not in _NEEDS and value is not None:
        return [Problem("value", "not_together", f"does not go with {action}")]
    if action == "press":
        try:
            read_key(value)
        except ValueError as wrong:
            return [Problem("value", "invalid_value", str(wrong))]
    return []


def _picture(given: Given) -> list[Problem]:
    if given["ref"] is not None and given["full_page"]:
        return [Problem("full_page", "not_together", "does not go with ref")]
    return []


_WAYS = ("goto", "back", "forward", "reload", "close")
_TAB = Arg("tab_id", "the tab, as tabs_context names it; the newest used one if left out", _typed)
_TIMEOUT = Arg(
    "timeout_ms", "give up after so many ms", whole(100, MOST_MS), "number", False, TIMEOUT_MS
)
_REF = "an element, as read_page and find name it (ref_1_7)"

_ALL = (
    Tool(
        "navigate",
        "Open an address and wait until the page is ready; or go back, forward, reload, close.",
        (
            Arg("url", "the address to open", web_address),
            Arg("action", "what to do", one_of(*_WAYS), default="goto", choices=_WAYS),
            Arg("new_tab", "open it in a tab of its own", flag, "flag", default=False),
            Arg("wait_for", "ready when this CSS selector is there", long_text(500)),
            _TAB,
            _TIMEOUT,
        ),
        _navigation,
    ),
    Tool(
        "read_page",
        "The page's text in reading order, with a reference for each element that can be used.",
        (
            Arg(
                "filter",
                "all, or interactive: only elements that can be used",
                one_of("all", "interactive"),
                default="all",
                choices=("all", "interactive"),
            ),
            Arg("ref", f"read only inside {_REF}", long_text(40)),
            Arg(
                "offset",
                "go on where the reply before was cut",
                whole(0, 2**31),
                "number",
                False,
                0,
            ),
            Arg(
                "max_chars",
                "at most so many characters",
                whole(100, MOST_READ),
                "number",
                False,
                READ_CHARS,
            ),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "find",
        "Elements whose role, name or text hold these words, the best first.",
        (
            Arg("query", "words to look for", long_text(500), required=True),
            Arg("limit", "at most so many", whole(1, MOST_FOUND), "number", False, 10),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "interact",
        "Click, type, select, … on one element. `type` replaces what is there, `append` adds.",
        (
            Arg("ref", _REF, long_text(40), required=True),
            Arg(
                "action",
                "what to do with it",
                one_of(*ACTIONS),
                required=True,
                choices=ACTIONS,
            ),
            Arg("value", "the text to type, the option to select, or the key to press", _typed),
            _TAB,
            _TIMEOUT,
        ),
        _interaction,
    ),
    Tool(
        "act",
        "One step in words, such as: click Save; type 'hello' into Name; select Blue in Colour.",
        (
            Arg("instruction", "the step", long_text(2_000), required=True),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "javascript_tool",
        "Run JavaScript in the page: an expression, or a body with return.",
        (
            Arg("code", "the script", long_text(MOST_CODE), required=True),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "page_screenshot",
        "A picture (PNG) of the visible part, the whole page, or one element.",
        (
            Arg("ref", f"only {_REF}", long_text(40)),
            Arg("full_page", "the whole page", flag, "flag", default=False),
            _TAB,
            _TIMEOUT,
        ),
        _picture,
    ),
    Tool("tabs_context", "This agent's open tabs: id, address, title.", ()),
)
TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
