"""Interface between a crawl and its page engines: options, limits, results, and retries."""

from __future__ import annotations

import asyncio
import builtins
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

import msgspec

from engine.model.errors import BrowserGone, EngineError, PageError, UnitTimeout
from engine.pages.custom_fields import FieldRule
from engine.pages.page_facts import RawFacts
from engine.pages.script_edits import Edit
from engine.pages.style_sheets import Rule

SMALL_CHARS = 64 * 1024  # characters; too small for deep nesting or very many elements
MAX_HTML_CHARS = 5 * 1024 * 1024  # twice the kept part of a page; 8 MiB took more than 100 MB
MAX_ELEMENTS = 250_000  # for each page, unless a crawl sets another limit
MAX_TEXT_KB = 2_048  # likewise, for the kept content of one page
TAGS_OF_AN_ELEMENT = 2
MAX_DEPTH = 5_000
MAX_ATTRIBUTES = 500  # for each tag
_LONG_CHARS = 4_096  # a tag with so many attributes is at least this long

# Elements that may stay open without nesting do not count.
_LEAVES = r"(?:p|li|br|hr|img|input|meta|link|td|th|tr|dt|dd|option|wbr|source|area|col)\b"
_OPENS = re.compile(rf"<(?!{_LEAVES})[a-z]", re.IGNORECASE)
_ENDS = re.compile(rf"</(?!{_LEAVES})[a-z]", re.IGNORECASE)
_CLOSES = re.compile(rf"{_ENDS.pattern}|/>", re.IGNORECASE)

# One attribute as in the HTML standard; possessive, so that it never backtracks.
_SPACE = r"[\t\n\f\r ]*+"
_VALUE = r"""(?:"[^"]*+"?+|'[^']*+'?+|[^\t\n\f\r >"'][^\t\n\f\r >]*+)?+"""
_ATTRIBUTE = rf"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+(?:{_SPACE}={_SPACE}{_VALUE})?+"
_HIDDEN = r"<!--(?:.*?-->|.*)|<(?i:script|style)\b(?:.*?</(?i:script|style)|.*)"
_TAG = rf"</?[a-zA-Z][^\t\n\f\r />]*+(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+"
_TOKEN = re.compile(
    rf"{_HIDDEN}|{_TAG}((?:{_ATTRIBUTE})++[^>]*+>?+)?+",
    re.DOTALL,
)
# A much faster match than a search of each tag: a page in which no tag has too many.
_NO_CROWD = re.compile(
    rf"(?:[^<]++|{_HIDDEN}|{_TAG}(?!{_ATTRIBUTE})|<(?!/?[a-zA-Z]))*+",
    re.DOTALL,
)


def bounded(html: str, max_elements: int = MAX_ELEMENTS) -> str:
    """Return `html`, shortened if necessary; a changed length shows that."""
    if len(html) < SMALL_CHARS:
        return _without_crowds(html) if _has_a_long_tag(html) else html
    html = html[:MAX_HTML_CHARS]
    max_tags = max_elements * TAGS_OF_AN_ELEMENT
    if html.count("<") > max_tags:
        html = html[: _place_of(html, max_tags)]
    if _most_depth(html) >= MAX_DEPTH:
        depth = sum(1 for _ in _OPENS.finditer(html)) - sum(1 for _ in _CLOSES.finditer(html))
        if depth >= MAX_DEPTH:
            html = html[:SMALL_CHARS]
    return _without_crowds(html)


def _most_depth(html: str) -> int:
    """Return an upper bound of the depth, which is faster to compute."""
    opened = html.count("<") - html.count("</")
    return opened if opened < MAX_DEPTH else opened - sum(1 for _ in _ENDS.finditer(html))


def _has_a_long_tag(html: str) -> bool:
    return len(html) > _LONG_CHARS and max(map(len, html.split(">"))) > _LONG_CHARS


def _place_of(html: str, number: int) -> int:
    """Return the position of the `number`th tag."""
    for count, found in enumerate(re.finditer("<", html), 1):
        if count == number:
            return found.start()
    return len(html)


def _without_crowds(html: str) -> str:
    """Remove tags with too many attributes."""
    if _NO_CROWD.fullmatch(html):
        return html
    return _TOKEN.sub(lambda found: "" if found[1] else found[0], html)


OutputFormat = Literal["markdown", "text", "structured"]


CrawlEngine = Literal["browser", "static", "auto"]


Screenshot = Literal["none", "failed", "all"]
EngineName = Literal["browser", "static"]

MAX_PAGE_BYTES = 10 * 1024 * 1024  # for one document's body; longer ones are cut and marked
MAX_LINKS = 20_000  # for each page; further links are counted
MAX_LINK_CHARS = 4 * 1024 * 1024  # for all links of a page: as much as the limit of its markup
MAX_CLICKED = 10_000  # links of a page that clicks found


class PageOptions(msgspec.Struct, frozen=True):
    """Options of loading one page.

    A page is at rest when its load event has fired, neither DOM nor resources have changed for
    `settle_ms`, and no request of its own younger than 10 s is pending. A page written by scripts
    must also have been stable for 500 ms, and one that shows neither text nor image waits for its
    timers too. While its scripts compute, it is not at rest, for 5 s at the most. Loading
    also ends when the selector `wait_for` matches, or at `timeout_ms`. `settled` is false if the
    page was still waiting then. `raw` requests the body's bytes of any content type in
    `Fetched.body`, with the static engine only. `max_text` is in characters.

    A page at rest then loads more, in the browser only: it is scrolled to its end with `scroll`,
    and the element of the selector `load_more` is clicked, until neither brings anything new, but
    `max_loads` times at the most. `fields` are the custom fields to read.

    After that, elements of the selector `click_links` that are no links are clicked, `max_clicks`
    at the most and within another `timeout_ms`; the addresses they lead to are links of the page,
    and so are the links that appear after a click.
    Between two loads of the page lie `delay_ms`, which are not part of that limit.
    """

    timeout_ms: int = 30_000
    settle_ms: int = 100
    wait_for: str | None = None
    block_resources: bool = True
    screenshot: Screenshot = "none"
    max_bytes: int = MAX_PAGE_BYTES
    max_links: int = MAX_LINKS
    raw: bool = False
    max_elements: int = MAX_ELEMENTS
    max_text: int = MAX_TEXT_KB * 1024
    fresh: bool = False  # in a context without earlier pages
    scroll: bool = False
    load_more: str | None = None
    max_loads: int = 50
    fields: tuple[FieldRule, ...] = ()
    click_links: str | None = None
    max_clicks: int = 50
    delay_ms: int = 0

    @property
    def clicks_ms(self) -> int:
        """The further time limit of the clicks, with the most delays; 0 without."""
        return self.timeout_ms + self.max_clicks * self.delay_ms if self.click_links else 0


class Redirect(NamedTuple):
    """An address that led on to another one, and its HTTP status.

    `by_page`: the document itself did so, by a script or a refresh.
    """

    url: str
    status: int
    by_page: bool = False


class ClickedLink(NamedTuple):
    """An address to which a click leads, and the name of the clicked element.

    Or a link that appears after a click, and its own name.
    """

    url: str
    text: str


class Fetched(msgspec.Struct):
    """Result of loading a page, with any status. All texts are the page's: untrusted.

    `html` is empty for content other than HTML. The browser returns its *visible* part, without
    scripts, styles and hidden elements, with `text`, `title`, `description` and absolute `links`;
    the static engine returns the body unchanged and leaves those to `extract`. Text other than HTML
    (plain, JSON, XML) is in `text` alone.

    `response_ms` ends with the response's headers; `render_ms` is the time after that. `bytes`
    counts the document's body, decoded. `truncated` means that it was cut, `cut_off` that the
    connection broke within it. `link_texts` are the texts of `links`, and `link_rels` has the bits
    of `page_facts.RELS` of each as a digit; `frames` counts the frames whose text is part of
    `text`. `retry_after_s` is the Retry-After header of a 429 or 503, in seconds from now. `empty`
    means that the page shows neither text nor link nor image.

    `links_skipped` counts links to no web page, `links_over` those beyond the limit for one page,
    `windows` those that the page tried to open, and `dialogs` its alerts and prompts: all of them
    were closed.

    `redirects` are the addresses that led to `final_url`, and `transferred_bytes` is the size of
    the body as it was sent, maybe compressed; 0 if unknown.

    `facts` and `values` (of custom fields) are those of the browser engine; the static engine
    leaves them to `extract`. `loads` counts how often the page loaded more, and `loads_cut` tells
    that it may have more than it was asked for.
    `robots_header` is the X-Robots-Tag header. `clicked` are the links that only clicks reach, of
    which `clicks` were made; `clicks_cut` tells that elements were left, and `clicks_refused`
    counts the requests that would have done more than read.
    `consent` is the consent banner of the page, and the result of its dismissal.

    `needs_browser` is set by the static engine: a script could run, or there is too little text;
    `runs` names the scripts, and is empty with too little text; `script_names` are the page's names
    that these scripts use. `edits` are changes that scripts made to pages like this. `compared`
    means that both engines loaded the page. For the static engine, `styles` are the rules of its
    style sheets, `inner` the documents of its frames, and `charset` its character set.
    """

    url: str
    final_url: str
    status: int
    content_type: str = ""
    title: str = ""
    description: str = ""
    html: str = ""
    text: str = ""
    links: list[str] = msgspec.field(default_factory=list)
    link_texts: list[str] = msgspec.field(default_factory=list)
    link_rels: str = ""
    links_skipped: int = 0
    links_over: int = 0
    frames: int = 0
    windows: int = 0
    dialogs: int = 0
    cookie_chars: int = 0  # of the cookies that the page's scripts can read
    part_refused: bool = False  # by its own host, possibly because of cookies
    storage_full: bool = False  # the storage was nearly full before the page
    response_ms: float = 0.0
    render_ms: float = 0.0
    bytes: int = 0
    transferred_bytes: int = 0
    redirects: list[Redirect] = msgspec.field(default_factory=list)
    settled: bool = True
    empty: bool = False
    engine: EngineName = "browser"
    truncated: bool = False
    charset: str = ""
    cut_off: bool = False
    screenshot: builtins.bytes | None = None
    needs_browser: bool = False
    runs: str = ""
    script_names: frozenset[str] = frozenset()
    edits: tuple[Edit, ...] = ()
    compared: bool = False
    retry_after_s: float | None = None
    facts: RawFacts | None = None
    values: dict[str, Any] = msgspec.field(default_factory=dict)
    loads: int = 0
    loads_cut: bool = False
    clicked: list[ClickedLink] = msgspec.field(default_factory=list)
    clicks: int = 0
    clicks_cut: bool = False
    clicks_refused: int = 0
    robots_header: str = ""
    consent: dict[str, str] = msgspec.field(default_factory=dict)
    styles: tuple[tuple[Rule, ...], ...] = ()
    inner: list[Fetched] = msgspec.field(default_factory=list)
    body: builtins.bytes = b""
    worker: str = ""  # the worker of a cluster that loaded the page


IdleState = Literal["idle", "again", "over"]
IDLE_STATES: Final[tuple[IdleState, ...]] = get_args(IdleState)
OnIdle = Callable[[IdleState], None]


class Fetcher(Protocol):
    """Loads pages for one crawl; used by several workers at once."""

    async def fetch(self, url: str, options: PageOptions, on_idle: OnIdle | None = None) -> Fetched:
        """Load `url`, following redirects (10 at most).

        `on_idle` is called with `idle` when nothing happens in the page any more, so that it must
        only stay so for a while; then with `over` when it does not matter any more, or with
        `again` if the page goes on. Not every fetcher calls it.

        Raises:
            PageError: this page could not be loaded (also `AddressBlocked`); the crawl continues.
            BrowserGone: the browser died under the page; a new one is available for the next.
            BrowserMissing, BrowserFailed: no browser; the crawl ends.
        """
        ...

    async def close(self) -> None:
        """Release pages and connections; repeated calls do nothing."""
        ...


class PageWorkers(Protocol):
    """Workers elsewhere that load the pages of one crawl."""

    @property
    def at_once(self) -> int:
        """The number of pages that they load at the same time now; at least one."""
        ...

    @property
    def most_open(self) -> int:
        """The number of pages that they may have open now, with those that are idle."""
        ...

    def room(self) -> AbstractAsyncContextManager[None]:
        """Wait until one of them has room for a page, and keep it during the block.

        Raises:
            BrowserMissing, BrowserFailed: none of them has a browser; the crawl ends.
        """
        ...

    async def fetch(
        self, engine: EngineName, url: str, options: PageOptions, on_idle: OnIdle | None = None
    ) -> Fetched:
        """Load `url` as `Fetcher.fetch` does; to be called in a block of `room`.

        Raises:
            WorkerLost: the worker was lost; another one may load the page.
            PageError, BrowserGone, BrowserMissing, BrowserFailed: see `Fetcher`.
        """
        ...


ROBOTS: Final = "robots.txt"  # label of a unit that waits for robots.txt instead of the page

# Network failures that may not recur on the next attempt; a sleep of the machine causes the same
# failures.
PASSING: Final = frozenset(
    {"timeout", "connection", "network", "dns", "protocol", "open_files", "proxy"}
)
_ASKS_FOR_LATER: Final = frozenset({408, 429})  # in addition to every 5xx
_SEEN_TO_DO_IT: Final = frozenset({"flood", "memory"})
_PAUSE_S: Final = 0.25  # before the first retry, doubled for each later one
_LONGEST_PAUSE_S: Final = 5.0


class Failure(NamedTuple):
    """Failure of a page: the message, its `error_code`, and the status if any."""

    error: str
    code: str
    status: int = 0


def is_passing(failed: EngineError) -> bool:
    """Return whether a retry may succeed, as after a reset, a timeout or a sleep."""
    if isinstance(failed, PageError):
        if failed.proved:
            return False
        return failed.kind in PASSING or is_passing_status(failed.status)
    return not isinstance(failed, BrowserGone)


def is_passing_status(status: int) -> bool:
    """Return whether this HTTP status is temporary."""
    return status >= 500 or status in _ASKS_FOR_LATER


def passing_failure(fetched: Fetched) -> Failure | None:
    """Return the temporary failure of an answer; None for any other answer."""
    if is_passing_status(fetched.status):
        return Failure(f"HTTP {fetched.status}", "http", fetched.status)
    if fetched.cut_off:
        return Failure("the page ended too early", "protocol", fetched.status)
    return None


def pause_s(tries: int) -> float:
    """Return the delay before the retry after `tries` failures, without the host's throttle."""
    return min(_PAUSE_S * 2.0 ** (tries - 1), _LONGEST_PAUSE_S)


async def patiently(fetch: Callable[[], Awaitable[Fetched]], retries: int) -> Fetched:
    """Fetch a file that the whole crawl needs, with pauses between the attempts.

    Raises:
        PageError: the error of the last attempt.
    """
    for tries in range(1, retries + 1):
        try:
            fetched = await fetch()
            if not (is_passing_status(fetched.status) or fetched.cut_off):
                return fetched
        except PageError as failed:
            if not is_passing(failed):
                raise
        await asyncio.sleep(pause_s(tries))
    return await fetch()


def is_of_a_sleep(failed: EngineError) -> bool:
    """Return whether a sleep of the machine explains the failure."""
    return not isinstance(failed, PageError) or failed.kind in PASSING


def is_unproved(failed: EngineError) -> bool:
    """Return whether another page may be the cause: browser, renderer, cookie jar or proxy."""
    if isinstance(failed, PageError) and failed.unproved:
        return True
    return isinstance(failed, BrowserGone) or _has_crashed(failed)


def rank(failed: EngineError) -> int:
    """Return the priority of an isolated page: 0 before 1.

    A page that was observed to be busy or heavy may use all of its time again.
    """
    return int(isinstance(failed, PageError) and failed.kind in _SEEN_TO_DO_IT)


def first_error(failed: EngineError) -> str:
    """Return the error of the first attempt, for the page's record."""
    return "the browser stopped" if isinstance(failed, BrowserGone) else reason_of(failed)


def reason_of(failed: Exception) -> str:
    """Return the message of a failure without the page's address, which the record already has."""
    if not isinstance(failed, UnitTimeout):
        return str(failed)
    if failed.label == ROBOTS:
        return f"robots.txt did not answer within {failed.limit_s:g} s"
    return f"the page did not answer within {failed.limit_s:g} s"


def failure_of(failed: EngineError) -> Failure:
    """Return the final failure of a page; a crash is reported as the second."""
    if isinstance(failed, BrowserGone):
        return Failure("crashed the browser twice", "crash")
    if not isinstance(failed, PageError):
        return Failure(reason_of(failed), "timeout")
    return Failure(
        f"{failed} twice" if _has_crashed(failed) else str(failed), failed.kind, failed.status
    )


def _has_crashed(failed: EngineError) -> bool:
    return isinstance(failed, PageError) and failed.kind == "crash"
