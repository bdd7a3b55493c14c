"""The arguments of a crawl: a table of what is allowed, and a reading that finds every mistake."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from engine.errors import InvalidArguments, Problem
from engine.work.addresses import Address, address_of, credentials_of, is_blank_in_front
from engine.work.fetch import Credentials, PageOptions, Screenshot

OutputFormat = Literal["markdown", "text", "structured"]
CrawlEngine = Literal["browser", "static", "auto"]

MAX_PATTERNS = 200
MAX_TEXT_CHARS = 2_048
BLANK_IN_FRONT = "must not have a space or a line break in its user, password or host"
ONLY_WEB = "only http and https addresses can be opened"


class CrawlArgs(msgspec.Struct, frozen=True):
    """What a crawl was asked for, checked. `url` is without credentials."""

    url: str
    credentials: Credentials | None = None
    max_depth: int = 2
    max_pages: int = 20
    scope: str | None = None
    include_patterns: tuple[str, ...] = ()
    exclude_patterns: tuple[str, ...] = ()
    output_format: OutputFormat = "markdown"
    respect_robots: bool = True
    delay_ms: int = 1_000
    concurrency: int = 3
    engine: CrawlEngine = "browser"
    block_resources: bool = True
    screenshot: Screenshot = "none"
    settle_ms: int = 100
    wait_for: str | None = None
    timeout_ms: int = 30_000
    fail_on_page: int | None = None
    enforce: bool = False

    @property
    def address(self) -> Address:
        found = address_of(self.url)
        assert found is not None  # parse_crawl saw to it
        return found

    @property
    def page_options(self) -> PageOptions:
        """How each page of this crawl is to be taken."""
        return PageOptions(
            timeout_ms=self.timeout_ms,
            settle_ms=self.settle_ms,
            wait_for=self.wait_for,
            block_resources=self.block_resources,
            screenshot=self.screenshot,
        )


Reading = Callable[[object], Any]  # the value, or ValueError with what is wrong


class Argument(NamedTuple):
    """One row of the table: the field it fills, and how its value is read."""

    field: str
    read: Reading


def _whole(low: int, high: int) -> Reading:
    def read(given: object) -> int:
        if isinstance(given, bool) or not isinstance(given, int):
            raise ValueError("must be a whole number")
        if not low <= given <= high:
            raise ValueError(f"must be between {low:,} and {high:,}")
        return given

    return read


def _flag(given: object) -> bool:
    if not isinstance(given, bool):
        raise ValueError("must be true or false")
    return given


def _one_of(*choices: str) -> Reading:
    def read(given: object) -> str:
        if given not in choices or not isinstance(given, str):
            raise ValueError(f"must be one of {', '.join(choices)}")
        return given

    return read


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a text that is not empty")
    if len(given) > MAX_TEXT_CHARS:
        raise ValueError(f"must not be longer than {MAX_TEXT_CHARS:,} characters")
    return given.strip()


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)):
        raise ValueError("must be a list of texts")
    if len(given) > MAX_PATTERNS:
        raise ValueError(f"must not have more than {MAX_PATTERNS} entries")
    return tuple(map(_text, given))


def _optional(read: Reading) -> Reading:
    return lambda given: None if given is None else read(given)


def _engine(given: object) -> str:
    """`cdp` is what others call the browser."""
    return cast(str, _one_of("browser", "static", "auto")("browser" if given == "cdp" else given))


def _url(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a web address")
    if address_of(given) is not None:
        if is_blank_in_front(given):
            raise ValueError(BLANK_IN_FRONT)
        return given
    try:
        scheme = urlsplit(given.strip()).scheme
    except ValueError:
        scheme = "http"
    if scheme not in {"", "http", "https"}:
        raise ValueError(ONLY_WEB)
    raise ValueError("is not a web address; it must look like https://example.com/")


_PAGES = _whole(1, 1_000_000)
_DEPTH = _whole(0, 100)
ARGUMENTS: Mapping[str, Argument] = {
    "url": Argument("url", _url),
    "max_depth": Argument("max_depth", _DEPTH),
    "maxDepth": Argument("max_depth", _DEPTH),
    "max_pages": Argument("max_pages", _PAGES),
    "maxPages": Argument("max_pages", _PAGES),
    "scope": Argument("scope", _optional(_text)),
    "sameOrigin": Argument("same_origin", _flag),
    "include_patterns": Argument("include_patterns", _texts),
    "exclude_patterns": Argument("exclude_patterns", _texts),
    "output_format": Argument("output_format", _one_of("markdown", "text", "structured")),
    "respect_robots": Argument("respect_robots", _flag),
    "delay_ms": Argument("delay_ms", _whole(0, 3_600_000)),
    "concurrency": Argument("concurrency", _whole(1, 16)),
    "engine": Argument("engine", _engine),
    "block_resources": Argument("block_resources", _flag),
    "screenshot": Argument("screenshot", _one_of("none", "failed", "all")),
    "settle_ms": Argument("settle_ms", _whole(0, 60_000)),
    "wait_for": Argument("wait_for", _optional(_text)),
    "timeout_ms": Argument("timeout_ms", _whole(100, 600_000)),
    "failOnPage": Argument("fail_on_page", _optional(_whole(1, 1_000_000))),
    "enforce": Argument("enforce", _flag),
}


def parse_crawl(given: Mapping[str, Any]) -> CrawlArgs:
    """Read the arguments of a crawl.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    problems: list[Problem] = []
    fields: dict[str, Any] = {}
    if not isinstance(given, Mapping):
        raise InvalidArguments((Problem("", "wrong_type", "the arguments must be an object"),))
    for name, value in given.items():
        _read(str(name), value, fields, problems)
    if "url" not in given:
        problems.append(Problem("url", "missing", "is needed: the address to start at"))
    if problems:
        raise InvalidArguments(tuple(problems))
    if not fields.pop("same_origin", True) and not fields.get("scope"):
        fields["scope"] = "**"
    typed = fields.pop("url")
    address = address_of(typed)
    assert address is not None
    return CrawlArgs(url=address.url, credentials=credentials_of(typed), **fields)


def _read(name: str, value: object, fields: dict[str, Any], problems: list[Problem]) -> None:
    row = ARGUMENTS.get(name)
    if row is None:
        problems.append(Problem(_short(name), "unknown_argument", _did_you_mean(name)))
        return
    try:
        read = row.read(value)
    except ValueError as wrong:
        problems.append(Problem(name, "invalid_value", str(wrong)))
        return
    if fields.setdefault(row.field, read) != read:
        problems.append(Problem(name, "given_twice", f"contradicts {row.field}"))


def _did_you_mean(name: str) -> str:
    near = difflib.get_close_matches(name[:64], ARGUMENTS, n=1)
    return (
        f"is not an argument of a crawl; did you mean {near[0]}?"
        if near
        else ("is not an argument of a crawl")
    )


def _short(name: str) -> str:
    """A name from outside, fit to stand in a message."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:64])
    return shown + "…" * (len(name) > 64)
