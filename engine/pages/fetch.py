"""The seam between a crawl and whatever loads a page: what is asked for, and what comes back."""

from __future__ import annotations

import builtins
from typing import Literal, Protocol

import msgspec

from engine.pages.html_limits import MAX_ELEMENTS, MAX_TEXT_KB
from engine.pages.script_edits import Edit
from engine.pages.style_sheets import Rule

Screenshot = Literal["none", "failed", "all"]
EngineName = Literal["browser", "static"]

MAX_PAGE_BYTES = 10 * 1024 * 1024  # of one document's body; the rest is cut off and said
MAX_LINKS = 20_000  # of one page; what is beyond is counted
MAX_LINK_CHARS = 4 * 1024 * 1024  # of all its links: as much as is parsed of a page's markup


class PageOptions(msgspec.Struct, frozen=True):
    """How one page is to be taken.

    A page is taken when its load event has fired, neither DOM nor resources have changed for
    `settle_ms`, and no request of its own waits for an answer that is younger than 10 s. One
    that scripts wrote must have stayed as it is for 500 ms besides, and one that shows neither
    text nor picture waits for its timers too. Or it is taken when the selector `wait_for` is
    there, or at `timeout_ms`. `settled` is false when it was taken while it still waited for
    something. `raw` asks for the body's bytes in
    `Fetched.body`, whatever they are; only the static engine can. `max_text` is in characters.
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
    fresh: bool = False  # in a context that no other page was in


class Fetched(msgspec.Struct):
    """One answer, whatever its status. All texts are the page's: untrusted.

    `html` is empty for what is not HTML. The browser hands in its *visible* part, pruned
    of scripts, styles and hidden elements, with `text`, `title`, `description` and absolute
    `links`; the static engine hands in the body as it came and leaves those to `extract`.
    What is text but not HTML (plain, JSON, XML) stands in `text` alone.
    `response_ms` ends with the response's headers, `render_ms` is what came after.
    `bytes` counts the document's body, decoded. `truncated` says that it was cut, `cut_off`
    that the connection broke in the middle of it.
    `link_texts` are the words of `links`; `frames` counts those whose text stands in `text`.
    `retry_after_s` is the Retry-After header of a 429 or 503, in seconds from now.
    `empty` says that a reader of it sees neither text nor link nor picture.
    `links_skipped` counts links that lead to no web page, and `links_over` those beyond what is
    kept of one page; `windows` those that the page wanted
    to open, and `dialogs` its alerts and questions: none of them was let stand.
    `needs_browser` is the static engine's word: a script could run, or too little text; `runs`
    names what could, and is empty where there is too little text; `script_names` are the parts
    of the page that these scripts name. `edits` are what scripts were seen to do to pages like
    this. `compared` says that both engines took the page. `styles` are the rules of its style
    sheets, `inner` the documents of its frames, and `charset` what it is written in, for the static
    engine.
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
    cookie_chars: int = 0  # of the cookies that scripts of the page could read
    part_refused: bool = False  # by its own host, maybe for cookies
    storage_full: bool = False  # it came to a storage that was nearly full
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
            PageError: this page could not be taken (also `AddressBlocked`); the crawl goes on.
            BrowserGone: the browser died under the page; a new one stands ready for the next.
            BrowserMissing, BrowserFailed: no browser; the crawl ends.
        """
        ...

    async def close(self) -> None:
        """Let go of pages and connections; harmless when called twice."""
        ...
