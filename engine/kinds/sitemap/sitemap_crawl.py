"""The kind `crawl_sitemap`: the pages of a sitemap, loaded like the pages of a crawl."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from engine.kinds.arguments import (
    ADDRESS_HINT,
    Argument,
    FormField,
    Table,
    credential_problems,
    credentials_from,
    flag,
    missing,
    optional,
    proxy_from,
    proxy_problems,
    proxy_secrets,
    read_all,
    text,
    web_address,
)
from engine.kinds.consent_use import consent_rules_for
from engine.kinds.context import Context, reach, telling, written_places
from engine.kinds.crawl.browser_connection import (
    UsedConnection,
    expect_connection,
    expect_proxy_here,
)
from engine.kinds.crawl.crawl import Give, OpenFetcher, crawl_from
from engine.kinds.crawl.crawl_args import (
    ACCESS_ARGUMENTS,
    PAGE_ARGUMENTS,
    CrawlArgs,
    archive_problems,
    engine_with,
    loading_problems,
    route_problems,
)
from engine.kinds.crawl.crawl_cluster import check_cluster, crawling_cluster
from engine.kinds.crawl.crawl_kind import (
    PAGE_COLUMNS,
    expect_a_page,
    expect_hosts,
    fetchers,
    open_archive,
    with_archive,
    with_secrets,
)
from engine.kinds.crawl.frontier import SPARE, SeenKeys, Visit
from engine.kinds.host_delay import HostTurns, Pace
from engine.kinds.look_arguments import look_from, look_problems
from engine.kinds.profile_use import using_profile
from engine.kinds.sitemap.sitemap_file import MAX_BYTES, Listing, NotASitemap, read_sitemap
from engine.kinds.spec import Head, KindForm, KindSpec, Tools, defaults_of
from engine.kinds.traits import SITEMAP_TRAITS
from engine.model import redact
from engine.model.addresses import Address, address_of, glob_matcher, link_address, same_site
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, PageError, UnitTimeout
from engine.model.tally import CrawlOutcome, StoppedBy, Tally
from engine.pages.engine_choice import Loader
from engine.pages.fetch import Fetched, PageOptions, PageWorkers, patiently, reason_of
from engine.pages.robots import ROBOTS_S, Rules
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import of_address
from engine.text.words import size_words

MAX_PAGES = 50  # default

ARGUMENTS: Table = {
    "url": Argument(
        optional(web_address),
        FormField("Site", "first", hint=ADDRESS_HINT, shade="example.com/docs"),
    ),
    "sitemap_url": Argument(
        optional(web_address),
        FormField(
            "Sitemap",
            "first",
            editor="line",
            shade="found by itself: robots.txt, then /sitemap.xml",
        ),
        help="Address of the sitemap (default: from robots.txt, else /sitemap.xml).",
    ),
    "max_pages": PAGE_ARGUMENTS["max_pages"],
    "filter": Argument(
        optional(text),
        FormField("Include pattern", "limits", editor="line", shade="every address that it lists"),
        help="Include pattern: only matching addresses are taken.",
    ),
    **PAGE_ARGUMENTS,
    "other_origins": Argument(
        flag,
        FormField("Also addresses of other sites", "scope"),
        help="Also take pages of other sites.",
    ),
    **ACCESS_ARGUMENTS,
}


class SitemapArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a sitemap crawl.

    `pages` has the options of the pages; its `url` is the site, or the sitemap's own address if
    only that was given. `filter` is a glob like a crawl's patterns.
    """

    pages: CrawlArgs
    sitemap_url: str | None = None
    filter: str | None = None
    other_origins: bool = False

    @property
    def sitemap(self) -> Address | None:
        """The address of the given sitemap, if any."""
        return None if self.sitemap_url is None else address_of(self.sitemap_url)


def parse_sitemap(given: Mapping[str, Any]) -> SitemapArgs:
    """Parse the arguments of a sitemap crawl.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a sitemap crawl")
    if given.get("url") is None and given.get("sitemap_url") is None:
        problems.append(missing("url", "the address of the site, or sitemap_url"))
    problems.extend(route_problems(fields, ""))
    problems.extend([*loading_problems(fields), *look_problems(fields)])
    problems.extend(archive_problems(fields))
    typed = fields.get("url") or fields.get("sitemap_url")
    problems.extend(credential_problems(fields, typed))
    problems.extend(proxy_problems(fields))
    if problems:
        raise InvalidArguments(tuple(problems))
    url, sitemap_url = fields.pop("url", None), fields.pop("sitemap_url", None)
    own = {name: fields.pop(name) for name in ("filter", "other_origins") if name in fields}
    site = address_of(url or sitemap_url)
    assert site is not None
    fields.setdefault("max_pages", MAX_PAGES)
    credentials, secrets = credentials_from(fields, url or sitemap_url)
    proxy = proxy_from(fields)
    engine_with(fields)
    look, hidden = look_from(fields, filter(None, (url, sitemap_url)))
    pages = CrawlArgs(
        url=site.url,
        credentials=credentials,
        look=look,
        secrets=(
            *secrets,
            *hidden,
            *of_address(url),
            *of_address(sitemap_url),
            *proxy_secrets(proxy),
        ),
        proxy=proxy,
        max_depth=0,  # links of the pages are not followed: the sitemap is the list
        scope="**" if own.get("other_origins") else f"{site.origin}/**",
        **fields,
    )
    named = address_of(sitemap_url) if sitemap_url else None
    return SitemapArgs(expect_connection(pages), named.url if named else None, **own)


# Discovery of a site's sitemap, and selection of its pages.
#
# The order of discovery: the given sitemap, else the given address (unless it is the root of its
# site), else the sitemaps in robots.txt, else `/sitemap.xml`, else `/sitemap_index.xml`; the first
# one with any entry is the source.
#
# Decisions where the contract is silent. Of an index, files of other sites are read only if
# robots.txt names them or other sites were requested (the sitemap protocol's own rule); pages of
# other sites are counted and skipped unless requested. The same site may add or drop `www.` and
# may add https. The readable part of a damaged file counts.

FILE_S = 60.0  # time limit of one file
MAX_FILES = 1_000  # of one task, because an index can be endless
MAX_ALL_BYTES = 1_000_000_000  # of a task's sitemaps, as transferred
MAX_LISTED = 5_000_000  # addresses per task; each uses memory until its end
MAX_DEPTH = 4  # nested indexes; the protocol allows one
_USUAL = ("/sitemap.xml", "/sitemap_index.xml")
_ENDINGS = (".xml", ".gz", ".txt")  # of a given address that is expected to be a sitemap


class SitemapMissing(EngineError):
    """No sitemap was found or readable; the message lists the attempts."""

    code = "sitemap_missing"
    title = "No sitemap was found"
    sentence = "No sitemap was found for {site}. Tried: {tried}."
    advice_text = "Give the sitemap's own address as sitemap_url, or start a crawl instead."


class SitemapUnmatched(EngineError):
    """A sitemap was found, but no entry is allowed for this task."""

    code = "sitemap_unmatched"
    title = "The sitemap has no matching page"
    sentence = "The sitemap {source} was read, but none of its addresses can be taken: {reason}."
    advice_text = "Look at the filter, or allow pages of other sites with other_origins."


class Found(msgspec.Struct):
    """Result of the discovery; the numbers are those of the summary."""

    source: str = ""
    visits: list[Visit] = msgspec.field(default_factory=list)
    files: int = 0
    bytes: int = 0
    limit: str = ""
    damaged: int = 0
    listed: int = 0
    elsewhere: int = 0
    filtered: int = 0
    fragments: int = 0

    def summary(self) -> dict[str, object]:
        """Return the fields for the head of the result."""
        told: dict[str, object] = {
            "sitemap_source": self.source,
            "sitemap_files": self.files,
            "sitemap_files_damaged": self.damaged,
            "sitemap_bytes": self.bytes,
            "urls_listed": self.listed,
            "urls_elsewhere": self.elsewhere,
            "urls_filtered": self.filtered,
        }
        if self.limit:
            told["sitemap_limit"] = self.limit
        return {**told, "links_fragments": self.fragments} if self.fragments else told


class _File(NamedTuple):
    """A sitemap to read; `depth` counts the indexes above. A `guess` may be another file."""

    address: Address
    depth: int = 0
    guess: bool = False


async def _to_its_end(work: Callable[[], None]) -> None:
    """Run work on a thread; a cancellation awaits its end, because it changes the results."""
    doing = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await doing
        raise


class Search:
    """Reader of sitemaps until enough pages are known; `found` has the current result.

    Files and pages share the throttle `pace`.
    """

    def __init__(self, args: SitemapArgs, ctx: Context, loader: Loader, pace: Pace) -> None:
        self.found = Found()
        self._args, self._ctx, self._loader = args, ctx, loader
        self._site = args.pages.address
        self._matches = glob_matcher((args.filter,)) if args.filter else lambda _: True
        self._pace = pace
        self._give: Give
        self._given = 0
        self._seen_files: set[str] = set()
        self._seen = SeenKeys()
        self._routes = SeenKeys()  # skipped routes
        self._tried: list[str] = []
        self._problem = ""

    async def run(self, give: Give) -> bool:
        """Pass the pages to `give`, file by file; return whether all were passed.

        Raises:
            SitemapMissing, SitemapUnmatched.
            UnitStopped: a stop was requested.
        """
        self._give = give
        if not await self._find():
            tried = "; ".join(self._tried[:10])
            raise SitemapMissing(site=self._site.origin, tried=tried)
        if not self.found.visits:
            raise SitemapUnmatched(source=self.found.source, reason=self._why_none())
        return not (self.found.limit or self._is_enough())

    async def _find(self) -> bool:
        if self._args.sitemap is not None:
            return await self._read_from([_File(self._args.sitemap)])
        if await self._read_given() or await self._read_from(await self._named_by_robots()):
            return True
        for path in _USUAL:
            usual = address_of(self._site.origin + path)
            if usual is not None and await self._read_from([_File(usual)]):
                return True
        return False

    async def _read_given(self) -> bool:
        """Read the given address as a sitemap, whatever its name; return whether it is one."""
        asked = self._site.asked
        if asked == f"{self._site.origin}/":
            return False
        guess = not asked.partition("?")[0].lower().endswith(_ENDINGS)
        if guess and self._args.pages.respect_robots and not (await self._rules()).allows(asked):
            return False
        return await self._read_from([_File(self._site, guess=guess)])

    async def _rules(self) -> Rules:
        robots = await self._loader.robots()
        async with self._ctx.unit(f"{self._site.origin}/robots.txt", ROBOTS_S):
            return await robots.rules(self._site)

    async def _named_by_robots(self) -> list[_File]:
        place = f"{self._site.origin}/robots.txt"
        sitemaps = (await self._rules()).sitemaps[:MAX_FILES]
        named = [link_address(place, line) for line in sitemaps]
        if not named:
            self._tried.append("robots.txt names none")
        return [_File(address) for address in named if address is not None]

    async def _read_from(self, files: Iterable[_File]) -> bool:
        """Read sitemaps and their nested ones; return whether there was any."""
        waiting = deque(files)
        before = self.found.files
        while waiting and not self._is_enough():
            file = waiting.popleft()
            if file.address.key in self._seen_files:
                continue
            if self._is_at_limit():
                break
            self._seen_files.add(file.address.key)
            waiting.extend((await self._read(file))[: MAX_FILES - len(waiting)])
        return self.found.files > before

    def _is_at_limit(self) -> bool:
        """Return whether a limit is reached, and store its name in `found`."""
        reached = {
            "files": len(self._seen_files) >= MAX_FILES,
            "bytes": self.found.bytes >= MAX_ALL_BYTES,
            "addresses": self.found.listed >= MAX_LISTED,
        }
        self.found.limit = next((name for name, is_reached in reached.items() if is_reached), "")
        return bool(self.found.limit)

    def _is_enough(self) -> bool:
        # robots.txt may forbid some of them; the crawl itself counts those separately.
        return len(self.found.visits) >= self._args.pages.max_pages + SPARE

    async def _read(self, file: _File) -> list[_File]:
        """Read the entries of `file`; return its nested sitemaps."""
        try:
            fetched, listing = await self._fetch(file.address)
        except (PageError, UnitTimeout, NotASitemap) as failed:
            self.found.damaged += not file.guess
            reason = reason_of(failed)
            self._tried.append(f"{display(redact.url(file.address.url), 200)}: {reason}")
            await self._ctx.log("sitemap", f"{file.address.url}: {reason}")
            return []
        self.found.files += 1
        self.found.source = self.found.source or file.address.url
        problem = listing.problem or ("" if fetched.settled else "it was cut off")
        self.found.damaged += bool(problem)
        self._problem = self._problem or problem
        told = f"{len(listing.entries):,} entries" + (f"; {problem}" if problem else "")
        await self._ctx.log("sitemap", f"{file.address.url}: {told}")
        if listing.kind == "pages":
            await _to_its_end(partial(self._take, listing, fetched.final_url))  # 0.5 s for 50,000
            await self._hand_on()
            return []
        await self._tell()
        return self._further(listing, fetched.final_url, file)

    async def _hand_on(self) -> None:
        """Pass on the new pages, so that the crawl starts during the discovery."""
        new = self.found.visits[self._given :]
        self._given += len(new)
        await self._tell()
        if new:
            await self._give(new)

    async def _tell(self) -> None:
        files, listed = f"{self.found.files:,}", f"{self.found.listed:,}"
        size = size_words(self.found.bytes)
        await self._ctx.reached(f"Reading sitemaps (files: {files}, addresses: {listed}, {size})")

    async def _fetch(self, address: Address) -> tuple[Fetched, Listing]:
        fetcher = await self._loader.fetcher("static")
        await self._pace.turn(address.place)
        options = PageOptions(timeout_ms=round(FILE_S * 1_000), max_bytes=MAX_BYTES + 1, raw=True)
        tries = 1 + self._args.pages.retries
        async with self._ctx.unit(address.url, tries * (FILE_S + 10.0)):
            fetched = await patiently(
                lambda: fetcher.fetch(address.url, options), self._args.pages.retries
            )
            self.found.bytes += fetched.bytes
            if not 200 <= fetched.status < 300:
                raise PageError("status", f"HTTP {fetched.status}")
            return fetched, await asyncio.to_thread(read_sitemap, fetched.body)

    def _further(self, listing: Listing, base: str, file: _File) -> list[_File]:
        if file.depth >= MAX_DEPTH:
            return []
        found = []
        for entry in listing.entries[:MAX_FILES]:
            address = link_address(base, entry.loc)
            if address is None:
                continue
            if self._args.other_origins or same_site(file.address, address):
                found.append(_File(address, file.depth + 1))
            else:
                self.found.elsewhere += 1
        return found

    def _take(self, listing: Listing, base: str) -> None:
        for entry in listing.entries:
            given = link_address(base, entry.loc)
            if given is None or "\ufffd" in entry.loc:
                continue
            address = given.page(self._args.pages.fragments)
            self._count_route(given, address)
            if not self._seen.add(address.key):
                continue
            self.found.listed += 1
            if not self._args.other_origins and not same_site(self._site, address):
                self.found.elsewhere += 1
            elif not self._matches(address):
                self.found.filtered += 1
            elif not self._is_enough():
                self.found.visits.append(Visit(address, 0, lastmod=entry.lastmod))

    def _count_route(self, given: Address, taken: Address) -> None:
        """Count a page that is skipped only because of its fragment, as a crawl does."""
        if taken.url == given.url or not given.route:
            return
        here = self._args.other_origins or same_site(self._site, given)
        left = given.own.key != taken.key and self._routes.add(given.own.key)
        self.found.fragments += left and here and self._matches(given)

    def _why_none(self) -> str:
        found = self.found
        reasons = [
            f"{found.elsewhere:,} of another site" if found.elsewhere else "",
            f"{found.filtered:,} outside of the filter" if found.filtered else "",
        ]
        return ", ".join(filter(None, reasons)) or self._problem or "it lists no page"


async def crawl_sitemap(
    args: SitemapArgs,
    ctx: Context,
    open_fetcher: OpenFetcher,
    sign_in: SignIn | None = None,
    workers: PageWorkers | None = None,
    turns: HostTurns | None = None,
) -> tuple[CrawlOutcome, Found]:
    """Discover the sitemap, and crawl its pages meanwhile; a stop is not an error.

    Raises:
        SitemapMissing, SitemapUnmatched: there is no page to load.
        BrowserMissing, BrowserFailed, InjectedFault, SignedOut: as in `crawl`.
    """
    started = ctx.monotonic()
    async with Loader(
        args.pages, lambda engine: open_fetcher(engine, args.pages), sign_in, workers
    ) as loader:
        pace = Pace(ctx, args.pages.delay_ms / 1_000, turns)
        search = Search(args, ctx, loader, pace)
        outcome = await crawl_from(args.pages, ctx, loader, search=search.run, pace=pace)
    lasted_ms = round((ctx.monotonic() - started) * 1_000)
    return msgspec.structs.replace(outcome, duration_ms=lasted_ms), search.found


def head(outcome: CrawlOutcome, found: Found) -> dict[str, Any]:
    """Return the head of the result: a crawl's, and the source of the list.

    `sitemap_source` is also in the summary, because OpenChrome's readers expect it there.
    """
    return {
        "summary": {**outcome.summary(), **found.summary()},
        "sitemap_source": found.source,
    }


# The kind `crawl_sitemap` with the engine's own browser; the typed addresses define the allowed
# private addresses.


def _parse_here(given: Mapping[str, Any], tools: Tools) -> SitemapArgs:
    args = parse_sitemap(given)
    expect_proxy_here(args.pages, tools.settings)
    check_cluster(args.pages, tools.settings)
    return args


async def _crawl_sitemap(args: SitemapArgs, context: Context, tools: Tools) -> Head:
    consent = await consent_rules_for(dismiss=args.pages.dismiss_consent)
    named = written_places([] if args.sitemap_url is None else [args.sitemap_url])
    policy = reach(tools.settings, args.pages.url, *named, proxy=args.pages.proxy)
    profile = args.pages.profile
    async with telling(context, policy), using_profile(profile, context, tools) as sign_in:
        args = msgspec.structs.replace(args, pages=with_secrets(args.pages, sign_in, policy))
        archive = await open_archive(args.pages, context, sign_in)
        used = UsedConnection(context)
        open_fetcher = fetchers(
            policy, used, tools, sign_in=sign_in, archive=archive, consent=consent
        )
        async with crawling_cluster(args.pages, context, tools, policy, named) as workers:
            outcome, found = await crawl_sitemap(
                args, context, open_fetcher, sign_in, workers, tools.host_turns
            )
    told = used.add_to(with_archive(head(outcome, found), archive))
    expect_hosts(outcome, context, told)
    expect_a_page(outcome, context)
    return told


def _partial(
    args: SitemapArgs, pages: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, duration_ms: int
) -> Head:
    outcome = Tally(pages).outcome(args.pages.scope or "**", duration_ms, stopped_by)
    return head(outcome, Found(source=args.sitemap_url or ""))


CRAWL_SITEMAP = KindSpec(
    SITEMAP_TRAITS.name,
    parse_sitemap,
    _crawl_sitemap,
    _partial,
    parse_here=_parse_here,
    secrets=lambda args: args.pages.secrets,
    traits=SITEMAP_TRAITS,
    form=KindForm(
        "Crawl what a sitemap lists",
        summary="pages that a sitemap names",
        options_title="Crawl of a sitemap",
        listed="{0} addresses, sitemap of {1}",
    ),
    arguments=ARGUMENTS,
    defaults={**defaults_of(CrawlArgs), "max_pages": MAX_PAGES, "other_origins": False},
    columns=PAGE_COLUMNS,
)
