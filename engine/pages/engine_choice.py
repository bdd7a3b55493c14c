"""Learn which engine loads a page, for `auto`: per site, by comparing both engines.

A page on which a script could run is loaded by both engines until the static result of such pages
equalled the browser's twice in a row. Afterwards only some pages are compared, with growing
intervals, and pages with a new name that their scripts use. Pages are alike if their host and
everything that could run on them (`Fetched.runs`) are equal. Changes that scripts make to all of
them alike are learned as edits, which the static engine applies from then on. After another
difference, the pages of that part of the site (the first segment of their paths), or those with the
same new names, are loaded by the browser alone, and compared again later, with back-off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, Self, TypeVar

import msgspec

from engine.model.addresses import address_of
from engine.model.errors import PageError
from engine.pages import script_edits, style_sheets
from engine.pages.custom_fields import FieldRule
from engine.pages.documents import is_html, is_text
from engine.pages.extract import clean, extract_now, off_the_loop, parse_html, parse_static
from engine.pages.fetch import (
    CrawlEngine,
    EngineName,
    Fetched,
    Fetcher,
    OnIdle,
    PageOptions,
    PageWorkers,
    bounded,
)
from engine.pages.robots import Robots
from engine.pages.script_edits import Edit, Unlike
from engine.profiles.sign_in import SignIn

_T = TypeVar("_T")
Plan = Literal["static", "browser", "both"]

ENOUGH: Final = 2  # equal pages in a row before similar pages are trusted
FIRST_PAUSE: Final = 10  # pages between two comparisons; doubled after each equal one
LONGEST_PAUSE: Final = 80
FIRST_RETURN: Final = 5  # pages for the browser alone after a difference; doubled in the same way
LESSONS: Final = 6  # in a row without an equal page
MOST: Final = 10_000  # kinds of pages, and parts of sites, that are stored for one crawl


class Comparison(NamedTuple):
    """Result of comparing two engines: equal, equal after `edits`, or different."""

    equal: bool
    edits: tuple[Edit, ...] | None = None


@dataclass(slots=True)
class _Part:
    """A part of a site; below 0 the browser loads its pages, `left` more without comparison."""

    score: int = 0
    pause: int = FIRST_RETURN
    left: int = FIRST_RETURN

    def plan(self) -> Plan:
        """Choose the engine of the next page, and count the page."""
        if self.score >= 0:
            return "static"
        if self.left > 0:
            self.left -= 1
            return "browser"
        return "both"

    def learn(self, *, equal: bool) -> None:
        if equal:
            self.score = min(self.score + 1, ENOUGH)
            self.left = 0  # the next page is compared as well, because two results are needed
            return
        if self.score < 0:
            self.pause = min(self.pause * 2, LONGEST_PAUSE)
        self.score = max(self.score - ENOUGH, -ENOUGH)
        self.left = self.pause


@dataclass(slots=True)
class _Kind:
    """Pages that are alike: equal ones in a row, and pages left until the next comparison.

    `names` occurred on equal pages; `suspects` are names of pages that differed.
    """

    equal: int = 0
    pause: int = FIRST_PAUSE
    left: int = FIRST_PAUSE
    lessons: int = 0
    edits: tuple[Edit, ...] = ()
    names: set[str] = field(default_factory=set)
    suspects: dict[frozenset[str], _Part] = field(default_factory=dict)

    def plan(self, names: frozenset[str]) -> Plan:
        if self.equal < ENOUGH:
            return "both"
        new = names - self.names
        if not new:
            self.left -= 1
            return "both" if self.left < 0 else "static"
        plans = {part.plan() for suspects, part in self.suspects.items() if suspects <= new}
        return "browser" if "browser" in plans else "both"

    def learn_equal(self, names: frozenset[str]) -> None:
        if self.equal >= ENOUGH and not names - self.names:
            self.pause = min(self.pause * 2, LONGEST_PAUSE)
        self.equal += 1
        self.lessons = 0
        self.names |= names
        self.left = self.pause
        for suspects in [each for each in self.suspects if each <= self.names]:
            del self.suspects[suspects]

    def learn_edits(self, names: frozenset[str], edits: tuple[Edit, ...]) -> bool:
        """Add edits; return whether the limit of lessons is exceeded."""
        try:
            merged = tuple(script_edits.merged(self.edits, edits))
        except Unlike:
            return True
        if merged == self.edits:
            return False  # learned from another page meanwhile
        self.edits = merged
        if names <= self.names:
            self.equal, self.pause = 0, FIRST_PAUSE
        self.lessons += 1
        return self.lessons > LESSONS

    def learn_different(self, names: frozenset[str]) -> bool:
        """Return whether the difference exceeds the page's new names."""
        new = names - self.names
        if self.equal >= ENOUGH and new:
            _remember(self.suspects, new, self.suspects.get(new) or _Part()).learn(equal=False)
            return False
        self.equal, self.pause, self.edits = 0, FIRST_PAUSE, ()
        return True


class EngineChoice:
    """The engine choices that one crawl has learned. It loads no pages itself."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._parts: dict[tuple[str, str], _Part] = {}
        self._gates: dict[tuple[str, str], asyncio.Lock] = {}

    def plan(self, url: str) -> Plan:
        """Choose the engine of a page by its address, and count the page."""
        host, part = _place(url)
        known = self._parts.get((host, part))
        if known is None:
            known = _Part()
            whole = self._parts.get((host, ""))
            if whole is not None and whole.score < 0:  # as for the whole host
                known.score, known.left = -1, 0
            _remember(self._parts, (host, part), known)
        return known.plan()

    def plan_fetched(self, fetched: Fetched) -> Plan:
        """Choose the engine after the static result, count the page, and set its edits."""
        if not fetched.needs_browser:
            return "static"
        if not fetched.runs:
            return "both"  # a page without text, filled by scripts
        kind = self._kinds.get((_place(fetched.url)[0], fetched.runs))
        if kind is None:
            return "both"
        fetched.edits = kind.edits
        return kind.plan(fetched.script_names)

    def gate(self, fetched: Fetched) -> asyncio.Lock:
        """Return the lock held during a comparison that may spare similar pages theirs."""
        key = _place(fetched.url)[0], fetched.runs
        return _remember(self._gates, key, self._gates.get(key) or asyncio.Lock())

    def learn(self, static: Fetched, found: Comparison) -> None:
        """Store the comparison of a page; `static` is the result without scripts."""
        failed = self._learn_kind(static, found) if static.runs else not found.equal
        if not found.equal and not failed:
            return
        host, part = _place(static.url)
        for name in dict.fromkeys((part, "")):  # "" is the whole host
            known = self._parts.get((host, name)) or _Part()
            _remember(self._parts, (host, name), known).learn(equal=found.equal)

    def _learn_kind(self, static: Fetched, found: Comparison) -> bool:
        """Update the page's kind; return whether the difference exceeds its new names."""
        key = (_place(static.url)[0], static.runs)
        kind = _remember(self._kinds, key, self._kinds.get(key) or _Kind())
        if found.equal:
            if static.edits == kind.edits:  # earlier edits say nothing about the current ones
                kind.learn_equal(static.script_names)
            return False
        if found.edits is not None and not kind.learn_edits(static.script_names, found.edits):
            return False
        return kind.learn_different(static.script_names)


def compared(static: Fetched, rendered: Fetched) -> Comparison:
    """Compare words and links of both results, also after edits learned from this page."""
    if is_same(static, rendered):
        return Comparison(True)
    html = bounded(clean(static.html))
    tree = parse_static(html)
    style_sheets.apply(tree, html, static.styles)
    try:
        edits = tuple(script_edits.learned(tree, parse_html(rendered.html)))
        whole = tuple(script_edits.merged(static.edits, edits))
    except Unlike:
        return Comparison(False)
    if not edits or not is_same(msgspec.structs.replace(static, edits=whole), rendered):
        return Comparison(False)
    return Comparison(False, edits)


def is_same(static: Fetched, rendered: Fetched) -> bool:
    """Return whether both have the same words, and links to the same pages."""
    if static.status != rendered.status or static.truncated or rendered.truncated:
        return False
    one, other = extract_now(static, "text"), extract_now(rendered, "text")
    if {link.key for link in one.links} != {link.key for link in other.links}:
        return False
    return _words(one.content) == _words(other.content)


def _words(content: object) -> list[str]:
    return content.split() if isinstance(content, str) else []


def _place(url: str) -> tuple[str, str]:
    """Return the host, and the first segment of the path."""
    address = address_of(url)
    if address is None:
        return "", "/"
    steps = address.path.split("/")[1:-1]
    return address.origin, next(iter(steps), "/")


_K = TypeVar("_K")


def _remember(known: dict[_K, _T], key: _K, value: _T) -> _T:
    if key not in known and len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value
    return value


# Page loader of a crawl: the requested engine, or with `auto` the learned one.

OpenFetcher = Callable[[EngineName], AbstractAsyncContextManager[Fetcher]]

GATE_S = 3.0  # limit of a page's wait for another comparison
# Errors that a browser would meet as well, so that a second load only costs time; and the loss of a
# worker, which says nothing about the page.
_FINAL = frozenset({"blocked", "dns", "redirects", "download", "worker"})


class LoaderOptions(Protocol):
    """What a loader needs of a crawl's arguments."""

    @property
    def engine(self) -> CrawlEngine: ...

    @property
    def page_options(self) -> PageOptions: ...

    @property
    def retries(self) -> int: ...


class Loader:
    """The fetchers of one crawl, each opened on first use."""

    def __init__(
        self,
        args: LoaderOptions,
        open_fetcher: OpenFetcher,
        sign_in: SignIn | None = None,
        workers: PageWorkers | None = None,
    ) -> None:
        """Create a loader; `workers` load the pages, but no robots.txt and no sitemaps."""
        self._args = args
        self.workers = workers
        self.sign_in = sign_in  # what its fetchers were opened with
        self._open = open_fetcher
        self._stack = AsyncExitStack()
        self._fetchers: dict[EngineName, Fetcher] = {}
        self._opening = asyncio.Lock()
        self._options = args.page_options
        self._robots: Robots | None = None
        self._choice = EngineChoice()
        self._on_idle: OnIdle | None = None

    def report_idle(self, on_idle: OnIdle) -> None:
        """Report by `on_idle` when a page is idle; see `Fetcher.fetch`."""
        self._on_idle = on_idle

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def fetcher(self, engine: EngineName) -> Fetcher:
        async with self._opening:
            if engine not in self._fetchers:
                opened = await self._stack.enter_async_context(self._open(engine))
                self._fetchers[engine] = opened
            return self._fetchers[engine]

    async def robots(self) -> Robots:
        """Return the robots.txt cache, shared by all users of this loader."""
        if self._robots is None:
            fetcher = await self.fetcher("static")
            self._robots = self._robots or Robots(fetcher, self._args.retries)
        return self._robots

    async def load(self, url: str, *, fresh: bool = False) -> Fetched:
        """Load `url`; raises as `Fetcher.fetch` does.

        `fresh` is for the browser: the page gets a context without earlier pages.
        With `auto` the result may be preliminary: see `comparing`.
        """
        engine = self._args.engine
        if engine != "auto" or fresh:  # only the browser can isolate the page
            return await self._by("static" if engine == "static" else "browser", url, fresh=fresh)
        if (address := address_of(url)) is not None and address.route:
            return await self._by("browser", url)  # only a script can interpret the route
        plan = self._choice.plan(url)
        if plan == "browser":
            return await self._by("browser", url)
        try:
            fetched = await self._by("static", url)
        except PageError as failed:
            if failed.kind in _FINAL:
                raise
            return _unknown(url)
        if _is_failed(fetched) and self._options.screenshot == "failed":
            return _unknown(url)  # only a browser can show what it looks like
        if _is_final(fetched):
            fetched.needs_browser = False
        elif not fetched.needs_browser:
            if plan == "both":
                self._choice.learn(fetched, Comparison(True))
        else:
            return self._planned(fetched, plan)
        return fetched

    def _planned(self, fetched: Fetched, plan: Plan) -> Fetched:
        """Apply `plan` of the page's part of the site, or the plan of a trusted kind of page."""
        kind = self._choice.plan_fetched(fetched)
        if plan == "both":
            return fetched
        fetched.needs_browser = plan == "browser" or kind != "static"
        return _unknown(fetched.url) if "browser" in {plan, kind} else fetched

    @asynccontextmanager
    async def comparing(self, fetched: Fetched) -> AsyncIterator[Fetched]:
        """Yield the result of `load`, with `needs_browser` if `second` must load it as well.

        Wait while a similar page is compared, because its result may spare this comparison.
        """
        if self._args.engine != "auto":
            fetched.needs_browser = False
        if not (fetched.needs_browser and fetched.status and fetched.runs):
            yield fetched
            return
        gate = self._choice.gate(fetched)
        try:
            async with asyncio.timeout(GATE_S):
                await gate.acquire()
        except TimeoutError:
            yield fetched
            return
        try:
            yield self._planned(fetched, self._choice.plan(fetched.url))
        finally:
            gate.release()

    async def second(self, static: Fetched) -> Fetched:
        """Load the page with the browser and learn from the comparison; raises as `load`."""
        rendered = await self._by("browser", static.url)
        if static.status == 0:
            return rendered
        size = len(static.html) + len(rendered.html)
        comparison = Comparison(False)
        if static.runs:
            comparison = await off_the_loop(size, compared, static, rendered)
        self._choice.learn(static, comparison)
        # An equal page is reported like all the pages that rely on this comparison.
        found = static if comparison.equal and rendered.screenshot is None else rendered
        found.compared = True
        return found

    async def load_beside(self, url: str, fields: tuple[FieldRule, ...]) -> Fetched:
        """Load a page that is not one of the crawl, with these custom fields; raises as `load`."""
        fetcher = await self.fetcher("static" if self._args.engine == "static" else "browser")
        options = msgspec.structs.replace(
            self._options,
            fields=fields,
            screenshot="none",
            scroll=False,
            load_more=None,
            click_links=None,
        )
        return await fetcher.fetch(url, options)

    async def _by(self, engine: EngineName, url: str, *, fresh: bool = False) -> Fetched:
        options = msgspec.structs.replace(self._options, fresh=True) if fresh else self._options
        if self.workers is not None:
            return await self.workers.fetch(engine, url, options, self._on_idle)
        fetcher = self._fetchers.get(engine) or await self.fetcher(engine)
        return await fetcher.fetch(url, options, self._on_idle)


def _unknown(url: str) -> Fetched:
    """Return the empty static result of a page that only the browser can load."""
    return Fetched(url, url, 0, engine="static", needs_browser=True)


def _is_failed(fetched: Fetched) -> bool:
    """Return whether the site answered with an error and a page that tells of it."""
    page = is_html(fetched.content_type) or is_text(fetched.content_type)
    return page and fetched.status >= 400


def _is_final(fetched: Fetched) -> bool:
    """Return whether a browser could not improve the result: an error, a PDF or an image."""
    page = is_html(fetched.content_type) or is_text(fetched.content_type)
    return not page or not 200 <= fetched.status < 300
