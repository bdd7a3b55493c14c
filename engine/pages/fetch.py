"""Interface between a crawl and its page engines: options and results."""

from __future__ import annotations

import builtins
from typing import Literal, Protocol

import msgspec

from engine.pages.html_limits import MAX_ELEMENTS, MAX_TEXT_KB
from engine.pages.script_edits import Edit
from engine.pages.style_sheets import Rule

OutputFormat = Literal["markdown", "text", "structured"]


CrawlEngine = Literal["browser", "static", "auto"]


Screenshot = Literal["none", "failed", "all"]
EngineName = Literal["browser", "static"]

MAX_PAGE_BYTES = 10 * 1024 * 1024  # for one document's body; longer ones are cut and marked
MAX_LINKS = 20_000  # for each page; further links are counted
MAX_LINK_CHARS = 4 * 1024 * 1024  # for all links of a page: as much as the limit of its markup


class PageOptions(msgspec.Struct, frozen=True):
    """Options of loading one page.

    A page is at rest when its load event has fired, neither DOM nor resources have changed for
    `settle_ms`, and no request of its own younger than 10 s is pending. A page written by scripts
    must also have been stable for 500 ms, and one that shows neither text nor image waits for its
    timers too. Loading also ends when the selector `wait_for` matches, or at `timeout_ms`.
    `settled` is false if the page was still waiting then. `raw` requests the body's bytes of any
    content type in `Fetched.body`, with the static engine only. `max_text` is in characters.
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


class Fetched(msgspec.Struct):
    """Result of loading a page, with any status. All texts are the page's: untrusted.

    `html` is empty for content other than HTML. The browser returns its *visible* part, without
    scripts, styles and hidden elements, with `text`, `title`, `description` and absolute `links`;
    the static engine returns the body unchanged and leaves those to `extract`. Text other than HTML
    (plain, JSON, XML) is in `text` alone.

    `response_ms` ends with the response's headers; `render_ms` is the time after that. `bytes`
    counts the document's body, decoded. `truncated` means that it was cut, `cut_off` that the
    connection broke within it. `link_texts` are the texts of `links`; `frames` counts the frames
    whose text is part of `text`. `retry_after_s` is the Retry-After header of a 429 or 503, in
    seconds from now. `empty` means that the page shows neither text nor link nor image.

    `links_skipped` counts links to no web page, `links_over` those beyond the limit for one page,
    `windows` those that the page tried to open, and `dialogs` its alerts and prompts: all of them
    were closed.

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
    styles: tuple[tuple[Rule, ...], ...] = ()
    inner: list[Fetched] = msgspec.field(default_factory=list)
    body: builtins.bytes = b""


class Fetcher(Protocol):
    """Loads pages for one crawl; used by several workers at once."""

    async def fetch(self, url: str, options: PageOptions) -> Fetched:
        """Load `url`, following redirects (10 at most).

        Raises:
            PageError: this page could not be loaded (also `AddressBlocked`); the crawl continues.
            BrowserGone: the browser died under the page; a new one is available for the next.
            BrowserMissing, BrowserFailed: no browser; the crawl ends.
        """
        ...

    async def close(self) -> None:
        """Release pages and connections; repeated calls do nothing."""
        ...
