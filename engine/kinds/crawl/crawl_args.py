"""Arguments of a crawl: the table of options, and a parser that reports every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from engine.browser.chromium.browser_options import PLAIN, BrowserLook
from engine.kinds.arguments import (
    ADDRESS_HINT,
    COUNTED_KEYS_HINT,
    CREDENTIALS,
    PAGE_TIMEOUT,
    PROXY,
    WAIT_FOR,
    WAIT_FOR_FORM,
    Argument,
    FormField,
    OneOf,
    Table,
    WholeOr,
    credential_problems,
    credentials_from,
    flag,
    missing,
    one_of,
    optional,
    proxy_from,
    proxy_problems,
    proxy_secrets,
    read_all,
    redact_content,
    text,
    texts,
    web_address,
    web_addresses,
    whole,
)
from engine.kinds.cluster_use import CLUSTER
from engine.kinds.consent_use import DISMISS_CONSENT
from engine.kinds.crawl.concurrency import AUTO, Given
from engine.kinds.crawl.concurrency_rule import MOST, START
from engine.kinds.crawl.signed_out import PASSWORD_FIELD
from engine.kinds.look_arguments import LOOK, NEEDS_BROWSER, look_from, look_problems
from engine.kinds.profile_use import PROFILE
from engine.model.addresses import Address, Credentials, Fragments, address_of
from engine.model.errors import InvalidArguments, Problem
from engine.model.proxies import ProxyChoice
from engine.pages.custom_fields import FieldRule, field_rules, is_selector
from engine.pages.fetch import (
    MAX_ELEMENTS,
    MAX_TEXT_KB,
    CrawlEngine,
    OutputFormat,
    PageOptions,
    Screenshot,
)
from engine.secrets.given_secrets import Hidden, of_address

ArchiveFormat = Literal["none", "warc"]


Connection = Literal["auto", "direct", "playwright"]
CONNECTION: Final = Argument(
    one_of("auto", "direct", "playwright"),
    FormField(
        "Browser connection",
        "loading",
        options=(
            ("auto", "Automatic: direct where possible"),
            ("direct", "Direct (DevTools pipe)"),
            ("playwright", "Playwright"),
        ),
        hint="The direct connection needs less CPU time and does not serve every option.",
    ),
    help="Connection to the browser; direct does not serve every option.",
)


class CrawlArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a crawl. `url` is without credentials.

    `urls` are further start addresses, exempt from the scope and the patterns. `secrets` are the
    secrets in the typed addresses, which are masked in page content.
    """

    url: str
    credentials: Credentials | None = None
    urls: tuple[str, ...] = ()
    max_depth: int = 2
    max_pages: int = 20
    max_minutes: int | None = None
    max_bytes: int | None = None
    scope: str | None = None
    include_patterns: tuple[str, ...] = ()
    exclude_patterns: tuple[str, ...] = ()
    output_format: OutputFormat = "markdown"
    respect_robots: bool = True
    delay_ms: int = 1_000
    concurrency: Given = START
    engine: CrawlEngine = "browser"
    block_resources: bool = True
    screenshot: Screenshot = "none"
    settle_ms: int = 100
    wait_for: str | None = None
    timeout_ms: int = 30_000
    retries: int = 2
    host_pause: bool = True
    fail_on_page: int | None = None
    fragments: Fragments = "ignore"
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()
    keep_links: bool = True
    max_elements: int = MAX_ELEMENTS
    max_text_kb: int = MAX_TEXT_KB
    scroll: bool = False
    load_more: str | None = None
    max_loads: int = 50
    fields: tuple[FieldRule, ...] = ()
    click_links: str | None = None
    max_clicks: int = 50
    profile: str | None = None
    proxy: ProxyChoice | None = None
    archive: ArchiveFormat = "none"
    max_archive_mb: int = 10_000
    dismiss_consent: bool = False
    connection: Connection = "auto"
    cluster: str | None = None
    look: BrowserLook = PLAIN

    @property
    def address(self) -> Address:
        return self.starts[0]

    @property
    def most_at_once(self) -> int:
        """The largest number of pages that load at the same time."""
        return MOST if self.concurrency == AUTO else self.concurrency

    @property
    def starts(self) -> tuple[Address, ...]:
        """The start addresses without credentials; only the first one has any."""
        given = (address_of(url) for url in (self.url, *self.urls))
        found = [address for address in given if address is not None]  # validated by parse_crawl
        return tuple(one.own if self.fragments == "routes" else one for one in found)

    @property
    def page_options(self) -> PageOptions:
        """The options for each page of this crawl."""
        return PageOptions(
            timeout_ms=self.timeout_ms,
            settle_ms=self.settle_ms,
            wait_for=self.wait_for,
            block_resources=self.block_resources,
            screenshot=self.screenshot,
            max_elements=self.max_elements,
            max_text=self.max_text_kb * 1024,
            scroll=self.scroll,
            load_more=self.load_more,
            max_loads=self.max_loads,
            click_links=self.click_links,
            max_clicks=self.max_clicks,
            delay_ms=self.delay_ms,
            fields=(*self.fields, PASSWORD_FIELD) if self.profile else self.fields,
        )


def engine_with(fields: dict[str, Any]) -> None:
    """Choose the browser engine for `auto` with what needs it on every page.

    Two engines would renew the session of a profile against each other, and only a browser takes
    screenshots and waits for elements.
    """
    if fields.get("engine") != "auto":
        return
    if fields.get("profile") or fields.get("wait_for") or fields.get("screenshot") == "all":
        fields["engine"] = "browser"


def selector(given: object) -> str:
    """Read a CSS selector."""
    found = text(given)
    if not is_selector(found):
        raise ValueError(f"{found} is not a CSS selector")
    return found


def custom_fields(given: object) -> tuple[FieldRule, ...]:
    """Read a list of rules of custom fields."""
    return field_rules(texts(given))


# `cdp` is the name of the browser engine in other tools.
_engine = OneOf(("browser", "static", "auto"), {"cdp": "browser"})
_PAGES = whole(1, 1_000_000)
_DEPTH = whole(0, 100)
WAIT_FOR_HINT = "A page is read as soon as it matches. Needs a browser; the static engine has none."
# The options of each page, shared by all kinds that load pages.
PAGE_ARGUMENTS: Table = {
    "max_pages": Argument(
        _PAGES, FormField("Maximum pages", "limits"), help="Stop after this number of pages."
    ),
    "maxPages": Argument(_PAGES, field="max_pages"),
    "max_minutes": Argument(
        optional(whole(1, 100_000)),
        FormField("Maximum duration (min)", "loading", none="no limit"),
        help="Start no page after this number of minutes.",
    ),
    "max_bytes": Argument(
        optional(whole(1, 2**50)),
        FormField(
            "Maximum data (bytes)",
            "loading",
            none="no limit",
            hint="Of documents, as they were sent.",
        ),
        help="Start no page after this number of bytes of documents.",
    ),
    "engine": Argument(
        _engine,
        FormField(
            "Engine",
            "limits",
            options=(
                ("browser", "Browser (Chromium)"),
                ("auto", "Automatic: browser where needed"),
                ("static", "Static: no scripts, fastest"),
            ),
        ),
        help="Engine that loads the pages.",
    ),
    "output_format": Argument(
        one_of("markdown", "text", "structured"),
        FormField(
            "Output format",
            "limits",
            options=(
                ("markdown", "Markdown"),
                ("text", "Plain text"),
                ("structured", "Structured (JSON)"),
            ),
        ),
        help="Format of page content.",
    ),
    "delay_ms": Argument(
        whole(0, 3_600_000),
        FormField("Delay per host (ms)", "loading"),
        help="Delay between two pages of one host in ms.",
    ),
    "concurrency": Argument(
        WholeOr(1, MOST, AUTO),
        FormField(
            "Concurrency",
            "loading",
            none="automatic",
            hint="Below 1: automatic, more while machine and site keep up, fewer at once if not.",
        ),
        help="Pages that load at the same time.",
    ),
    "timeout_ms": PAGE_TIMEOUT,
    "settle_ms": Argument(
        whole(0, 60_000),
        FormField(
            "Settle time (ms)", "loading", hint="At least 500 ms on a page that scripts wrote."
        ),
        help="Settle time in ms without a change (at least 500 if scripts wrote the page).",
    ),
    "retries": Argument(
        whole(0, 10),
        FormField("Retries", "loading", hint="After a network error, a timeout or a busy server."),
        help="Retries of a page after a temporary failure.",
    ),
    "host_pause": Argument(
        flag,
        FormField(
            "Pause a failing host",
            "loading",
            hint="No page of a host starts for a while after 8 of its pages failed in a row; after"
            " some pauses it is given up.",
        ),
        help="Pause a host that fails page after page, and give it up after some pauses.",
    ),
    "screenshot": Argument(
        one_of("none", "failed", "all"),
        FormField(
            "Screenshots",
            "content",
            hint="Needs a browser; the static engine has none.",
            options=(("none", "None"), ("failed", "Of failed pages"), ("all", "Of every page")),
        ),
        help="Pages to take screenshots of.",
    ),
    "fragments": Argument(
        one_of("ignore", "routes"),
        FormField(
            "Addresses with #/ or #!",
            "scope",
            hint="Applications that keep their pages behind # have one address otherwise.",
            options=(("ignore", "The same page"), ("routes", "Pages of their own")),
        ),
        help="routes: addresses with #/ or #! are pages of their own.",
    ),
    "max_elements": Argument(
        whole(1_000, 1_000_000),
        FormField("Maximum elements per page", "content"),
        help="Maximum elements that are read of a page.",
    ),
    "max_text_kb": Argument(
        whole(16, 4_096),
        FormField("Maximum content per page (KiB)", "content"),
        help="Maximum content that is kept of a page in KiB.",
    ),
    "keep_links": Argument(
        flag,
        FormField("Keep each page's links", "content"),
        help="Keep a list of each page's links.",
    ),
    "wait_for": WAIT_FOR._replace(form=WAIT_FOR_FORM._replace(hint=WAIT_FOR_HINT)),
    "scroll": Argument(
        flag,
        FormField(
            "Scroll to the end", "loading", hint="While the page grows. Needs the browser engine."
        ),
        help="Scroll each page to its end while it grows.",
    ),
    "load_more": Argument(
        optional(selector),
        FormField(
            "Click to load more",
            "loading",
            editor="line",
            shade="button.load-more",
            hint="A selector; it is clicked while the page grows. Needs the browser engine.",
        ),
        help="Click the element of this CSS selector while the page grows.",
    ),
    "max_loads": Argument(
        whole(1, 1_000),
        FormField("Maximum loads per page", "loading"),
        help="Maximum number of scrolls or clicks by which a page loads more.",
    ),
    "click_links": Argument(
        optional(selector),
        FormField(
            "Click to find links",
            "scope",
            editor="line",
            shade="[onclick], [role=menuitem]",
            hint="A selector of elements that are no links. Their addresses are links of the page;"
            " forms are not sent. Needs the browser engine.",
        ),
        help="Click elements of this CSS selector to find the addresses they lead to.",
    ),
    "max_clicks": Argument(
        whole(1, 1_000),
        FormField("Maximum clicks per page", "scope"),
        help="Maximum number of elements that are clicked on a page.",
    ),
    "fields": Argument(
        custom_fields,
        FormField(
            "Custom fields",
            "content",
            editor="lines",
            shade="price = .price",
            hint="One per line: name = selector. Columns of the result. name[] = selector has"
            " every match; @src behind it takes an attribute.",
        ),
        help="A custom field of each page: NAME = SELECTOR @ATTRIBUTE; NAME[] for every match.",
        option="repeated",
    ),
    "archive": Argument(
        one_of("none", "warc"),
        FormField(
            "Web archive",
            "content",
            hint="Records what the pages receive, for a replay; images are loaded, too.",
            options=(("none", "None"), ("warc", "WARC")),
            sets=(("warc", "block_resources", False), ("none", "block_resources", True)),
        ),
        help="Keep a web archive of what the pages receive.",
    ),
    "max_archive_mb": Argument(
        whole(1, 1_000_000),
        FormField("Maximum archive size (MB)", "content"),
        help="Add nothing to the web archive above this size in MB.",
    ),
    "dismiss_consent": DISMISS_CONSENT,
    "connection": CONNECTION,
    "cluster": CLUSTER,
    "respect_robots": Argument(
        flag, FormField("Obey robots.txt", "scope"), help="Obey robots.txt."
    ),
    "block_resources": Argument(
        flag,
        FormField("Block images, fonts and media", "loading"),
        help="Block images, fonts and media (false with --archive).",
    ),
    "redact_content": redact_content(COUNTED_KEYS_HINT),
    "failOnPage": Argument(optional(whole(1, 1_000_000)), field="fail_on_page"),
}
# How the site is asked, also shared by these kinds.
ACCESS_ARGUMENTS: Table = {"profile": PROFILE, **CREDENTIALS, **LOOK, **PROXY}
ARGUMENTS: Table = {
    "url": Argument(
        web_address, FormField("Address", "first", hint=ADDRESS_HINT, shade="example.com/docs")
    ),
    "max_pages": PAGE_ARGUMENTS["max_pages"],
    "max_depth": Argument(
        _DEPTH,
        FormField("Maximum depth", "limits"),
        help="Maximum depth of links that are followed.",
    ),
    "maxDepth": Argument(_DEPTH, field="max_depth"),
    **PAGE_ARGUMENTS,
    "urls": Argument(
        web_addresses,
        FormField(
            "Further addresses",
            "scope",
            editor="lines",
            hint="One per line; the crawl begins at each of them.",
        ),
        help="A further start address.",
        option="repeated",
    ),
    "include_patterns": Argument(
        texts,
        FormField(
            "Include patterns",
            "scope",
            editor="lines",
            hint="One pattern per line. ** stands for anything, * for anything but a slash.",
        ),
        help="Include pattern: only matching addresses are followed.",
        option="repeated",
    ),
    "exclude_patterns": Argument(
        texts,
        FormField("Exclude patterns", "scope", editor="lines"),
        help="Exclude pattern: no matching address is followed.",
        option="repeated",
    ),
    "scope": Argument(
        optional(text),
        FormField("Scope", "scope", editor="line", shade="the address’s own site"),
        help="Scope: a pattern that every address must match (default: the origin of URL).",
    ),
    "sameOrigin": Argument(flag, field="same_origin"),
    **ACCESS_ARGUMENTS,
}


def parse_crawl(given: Mapping[str, Any]) -> CrawlArgs:
    """Parse the arguments of a crawl.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a crawl")
    if "url" not in given:
        problems.append(missing("url", "the address to start at"))
    problems.extend(route_problems(fields, fields.get("url", "")))
    problems.extend([*loading_problems(fields), *look_problems(fields)])
    problems.extend(archive_problems(fields))
    problems.extend(credential_problems(fields, fields.get("url")))
    problems.extend(proxy_problems(fields))
    if problems:
        raise InvalidArguments(tuple(problems))
    if not fields.pop("same_origin", True) and not fields.get("scope"):
        fields["scope"] = "**"
    typed, urls = fields.pop("url"), fields.get("urls") or ()
    address = address_of(typed)
    assert address is not None
    credentials, secrets = credentials_from(fields, typed)
    proxy = proxy_from(fields)
    engine_with(fields)
    look, hidden = look_from(fields, (address.url, *urls))
    return CrawlArgs(
        url=address.url,
        credentials=credentials,
        look=look,
        secrets=(
            *secrets,
            *hidden,
            *(secret for one in urls for secret in of_address(one)),
            *proxy_secrets(proxy),
        ),
        proxy=proxy,
        **fields,
    )


_ONLY_BROWSER: Final = ("scroll", "load_more", "click_links", "dismiss_consent")
_NOT_STATIC: Final = ("wait_for", "screenshot")  # `auto` uses the browser for them


def loading_problems(fields: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of arguments that only a browser serves, without the browser engine.

    `auto` takes its screenshots with the browser, and uses it alone with `wait_for`.
    """
    engine = fields.get("engine", "browser")
    if engine == "browser":
        return []
    wanted = _ONLY_BROWSER if engine == "auto" else (*_ONLY_BROWSER, *_NOT_STATIC)
    names = [name for name in wanted if fields.get(name, "none") not in (False, None, "", "none")]
    return [Problem(name, "not_together", NEEDS_BROWSER) for name in names]


def still_served(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored arguments without those that the static engine ignored when they were stored.

    A schedule and a re-run go on as before; only a new request with them is refused.
    """
    ignored = _NOT_STATIC if args.get("engine") == "static" else ()
    return {name: given for name, given in args.items() if name not in ignored}


def archive_problems(fields: dict[str, Any]) -> list[Problem]:
    """Return the problem of an archive without images, fonts and media; load them by default."""
    if fields.get("archive", "none") == "none":
        return []
    if fields.setdefault("block_resources", False):
        why = "does not go with archive, which keeps images, fonts and media as well"
        return [Problem("block_resources", "not_together", why)]
    return []


def route_problems(fields: Mapping[str, Any], url: str) -> list[Problem]:
    """Return the problems of routes with an engine without scripts: each would load one page."""
    if fields.get("engine") != "static":
        return []
    needs = "needs a browser: the static engine takes the same page for every fragment"
    address = address_of(url)
    asked = {
        "url": address is not None and address.route,
        "fragments": fields.get("fragments") == "routes",
    }
    return [Problem(name, "not_together", needs) for name, yes in asked.items() if yes]
