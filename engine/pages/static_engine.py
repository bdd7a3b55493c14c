"""Static engine: one HTTP client per crawl, no scripts, every hop checked by the policy.

Text and links of a page's frames are joined with the page, as the browser engine does.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import importlib
import os
import re
import time
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from engine.archive.exchange import Archive, Exchange, Truncated
from engine.egress.egress_policy import Policy, place_of, without_credentials
from engine.egress.own_headers import NO_HEADERS, OwnHeaders
from engine.egress.proxy import Proxy
from engine.model import addresses
from engine.model.addresses import Address, Credentials, address_of, in_charset, link_address
from engine.model.errors import AddressBlocked, EngineError, PageError, PageOutOfFiles
from engine.model.process_limits import is_shortage
from engine.pages import documents, meta_refresh, style_sheets
from engine.pages.asset_loading import ASSET_S, Script, ScriptLoader, SheetLoader, names_in
from engine.pages.extract import THREAD_FROM_CHARS, off_the_loop, parse_html, parse_static
from engine.pages.fetch import MAX_HTML_CHARS, Fetched, OnIdle, PageOptions, Redirect, bounded
from engine.pages.style_sheets import Rule, is_doubtful

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from selectolax.lexbor import LexborHTMLParser, LexborNode
    from yarl import URL as YarlURL

    from engine.egress.proxy_listener import ProxyListener
    from engine.profiles.sign_in import SignIn
    from engine.profiles.storage_state import State


MAX_FRAMES: Final = 100  # for each page, nested frames included; as in the browser engine
MAX_DEPTH: Final = 5

_FRAME: Final = re.compile(r"<i?frame\b", re.IGNORECASE)
_UNSEEN: Final = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE
)

_NO_ROOM: Final = frozenset({"0", "1", "0px", "1px"})
_NO_BORDER: Final = frozenset({"0", "no"})


class Frame(NamedTuple):
    """A frame's document: its markup, or its address."""

    html: str
    url: str


def has_frames(html: str) -> bool:
    return _FRAME.search(html) is not None


def frames_of(
    html: str, styles: Iterable[tuple[Rule, ...]], url: str, charset: str = ""
) -> list[Frame]:
    """Return the visible frames of the page's own origin, in order; the page is in `charset`."""
    return list(_frames(html, styles, url, charset))


def _frames(
    html: str, styles: Iterable[tuple[Rule, ...]], url: str, charset: str
) -> Iterator[Frame]:
    tree = parse_static(bounded(html))
    base = tree.css_first("base[href]")
    href = "" if base is None else base.attributes.get("href") or ""
    start = (link_address(url, href) if href else None) or address_of(url)
    own = address_of(url)
    style_sheets.apply(tree, html, styles)
    for node in tree.css("iframe, frame")[:MAX_FRAMES]:
        if start is None or own is None or not _is_seen(node) or _is_walled_off(node):
            continue
        markup = node.attributes.get("srcdoc")
        if markup is not None and node.tag == "iframe":
            yield Frame(markup, "")
            continue
        source = node.attributes.get("src")
        if not source:
            continue  # a blank document, not the page itself
        address = link_address(start.url, in_charset(source, charset))
        if address is not None and address.origin == own.origin:
            yield Frame("", address.asked)


def _is_seen(node: LexborNode) -> bool:
    if node.tag == "frame":
        return True
    given = node.attributes
    if (
        given.get("frameborder") in _NO_BORDER
        and {given.get("width"), given.get("height")} & _NO_ROOM
    ):
        return False
    around: LexborNode | None = node
    while around is not None and around.is_element_node:
        attributes = around.attributes
        if "hidden" in attributes or _UNSEEN.search(attributes.get("style") or ""):
            return False
        around = around.parent
    return True


def _is_walled_off(node: LexborNode) -> bool:
    """Return whether a sandbox gives the frame another origin."""
    if "sandbox" not in node.attributes:
        return False
    return "allow-same-origin" not in (node.attributes.get("sandbox") or "").lower().split()


MAX_REDIRECTS = 10
MAX_CODINGS = 5
MAX_RUNS_CHARS = 2_000
REFRESH_CHARS = 64 * 1024  # characters of a page that are searched for a refresh
ENOUGH_TEXT_CHARS = 200  # below this, scripts are assumed to fill the page
_MOST_TEXT_CHARS = 4_096  # sufficient part of most pages
USER_AGENT = "Mozilla/5.0 (compatible; OpenChromeMonitor/0.1)"
# For both engines when a crawl may use both, because a page must not depend on the engine. It
# identifies the crawler and otherwise equals a browser's, because many sites depend on that.
SHARED_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; "
    "OpenChromeMonitor/0.1) Chrome/140.0.0.0 Safari/537.36"
)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ASCII = "".join(map(chr, range(128)))
_JSON_SCRIPT = re.compile(r"\s*application/(?:ld\+)?json\s*(?:;.*)?", re.IGNORECASE)
_REFRESH_ELEMENT = '<META HTTP-EQUIV="refresh" CONTENT="TO">'
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?\s*refresh", re.IGNORECASE)
_SCRIPT_NAMES = ("javascript", "x-javascript", "ecmascript")
_CSS = frozenset({"", "text/css"})
_SCRIPTS = frozenset(
    {"", *(f"{kind}/{name}" for kind in ("text", "application") for name in _SCRIPT_NAMES)}
)
_ON_ATTRIBUTE = re.compile(r"<[a-z][^>]*[\s\"'/]on[a-z]+\s*=", re.IGNORECASE)
_SCRIPT_LINK = re.compile(
    r"[\x00-\x20]*j[\t\n\r]*a[\t\n\r]*v[\t\n\r]*a[\t\n\r]*script[\t\n\r]*:", re.IGNORECASE
)


class Sender(NamedTuple):
    """What the static engine shows of itself; `language` is its Accept-Language, if any.

    It sends the cookies of `sign_in`, and renews them.
    """

    agent: str = USER_AGENT
    language: str | None = None
    headers: OwnHeaders = NO_HEADERS
    sign_in: SignIn | None = None


@asynccontextmanager
async def open_static(
    policy: Policy,
    credentials: Credentials | None = None,
    *,
    judge: bool = False,
    sender: Sender | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    archive: Archive | None = None,
) -> AsyncIterator[StaticFetcher]:
    """Open a static engine for one crawl; `judge` makes it decide whether a page needs a browser.

    `sender` is what it shows of itself. `monotonic` (seconds) is the clock for page durations.
    `archive` records what it receives.
    """
    # Takes 0.5 s, too long for the loop.
    await asyncio.to_thread(importlib.import_module, "aiohttp")
    async with AsyncExitStack() as stack:
        listener = None
        if policy.proxy is not None:  # the browser's way out is the only one that knows proxies
            proxy = Proxy()
            stack.push_async_callback(proxy.close)
            listener = await proxy.open_listener((policy.root,))
        fetcher = StaticFetcher(
            policy,
            credentials,
            judge=judge,
            sender=sender,
            monotonic=monotonic,
            listener=listener,
        )
        fetcher.archive = archive
        stack.push_async_callback(fetcher.close)
        yield fetcher


class Judged(NamedTuple):
    """Whether a browser could show more of a page, and its scripts.

    `runs` is empty if there is too little text. `names` and `scripts` are set if something runs.
    """

    needs_browser: bool
    runs: str = ""
    names: frozenset[str] = frozenset()
    scripts: tuple[Script, ...] = ()
    base: str = ""


def _srcdoc(html: str) -> Fetched:
    return Fetched("", "", 200, "text/html", html=html[:MAX_HTML_CHARS], engine="static")


def _size(page: Fetched) -> int:
    return len(page.html) + sum(len(inner.html) + len(inner.text) for inner in page.inner)


class _Body(NamedTuple):
    data: bytearray
    truncated: bool
    complete: bool
    cut_off: bool = False


class StaticFetcher:
    """See `fetch.Fetcher`. The client starts with the first page.

    With an upstream proxy all connections go through `listener`.
    """

    def __init__(
        self,
        policy: Policy,
        credentials: Credentials | None,
        *,
        judge: bool,
        sender: Sender | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        listener: ProxyListener | None = None,
    ) -> None:
        self._policy = policy
        self._sender = sender or Sender()
        self._began: State = {}  # of the sign-in, when the session was opened
        self._listener = listener
        self._credentials = credentials
        self._judge = judge
        self._monotonic = monotonic
        # Numeric hosts never change, and names are checked again at each connection (resolver).
        self._judged: set[str] = set()
        self.archive: Archive | None = None  # records what is received
        self._session: ClientSession | None = None
        self._sheets = SheetLoader(functools.partial(self._asset, _CSS))
        self._scripts = ScriptLoader(functools.partial(self._asset, _SCRIPTS))

    async def fetch(self, url: str, options: PageOptions, on_idle: OnIdle | None = None) -> Fetched:
        started = self._monotonic()
        deadline = asyncio.get_running_loop().time() + options.timeout_ms / 1_000
        asked = url
        hops: list[Redirect] = []
        for _ in range(MAX_REDIRECTS + 1):
            try:
                async with asyncio.timeout_at(deadline):
                    response, final = await self._follow(asked, hops)
            except TimeoutError as late:
                raise PageError(
                    "timeout", f"no answer within {options.timeout_ms / 1_000:g} s"
                ) from late
            answered = self._monotonic()
            async with response:
                fetched, judged = await self._read(response, options, deadline)
            to = refresh_of(fetched.html) if 200 <= fetched.status < 300 else ""
            to = in_charset(to, fetched.charset)
            onward = link_address(final.asked, to) if to else None
            if onward is None or onward.asked == final.asked:
                break
            hops.append(Redirect(final.url, fetched.status, by_page=True))
            asked = onward.url
        else:
            raise PageError("redirects", "too many redirects")
        if fetched.html and 200 <= fetched.status < 300:
            fetched.styles = await self._sheets.of_page(
                fetched.html, final.asked, deadline, fetched.charset
            )
            if self._judge and is_doubtful(fetched.html, fetched.styles):
                _add_style(fetched)
            if not options.raw:
                await self._add_frames(fetched, fetched, (final,), options, deadline)
        if judged is not None and judged.runs:
            base = link_address(final.asked, judged.base) if judged.base else None
            place = final.asked if base is None else base.url
            fetched.script_names = await self._scripts.named(
                judged.names, judged.scripts, place, deadline, fetched.charset
            )
        if self._session is not None:
            self._renew_sign_in(self._session, final.url)
        fetched.url, fetched.final_url, fetched.redirects = url, final.url, hops
        fetched.response_ms = _ms(answered - started)
        fetched.render_ms = _ms(self._monotonic() - answered)
        return fetched

    async def _add_frames(
        self,
        page: Fetched,
        owner: Fetched,
        around: tuple[Address, ...],
        options: PageOptions,
        deadline: float,
    ) -> None:
        """Add to `page` the documents in the frames of `owner`; failures are left out.

        `around` are the addresses of the documents that contain `owner`, and last its own.
        """
        if not has_frames(owner.html):
            return
        size, at = len(owner.html), around[-1]
        given = (owner.html, owner.styles, at.asked, owner.charset)
        for frame in await off_the_loop(size, frames_of, *given):
            if len(page.inner) >= MAX_FRAMES or _size(page) > MAX_HTML_CHARS:
                return
            if [each.asked for each in around].count(frame.url) > 1:
                continue  # as in browsers, which allow one frame with its own page
            inner, place = _srcdoc(frame.html), at
            if frame.url:
                try:
                    async with asyncio.timeout_at(deadline):
                        response, place = await self._follow(frame.url)
                        async with response:
                            inner, _ = await self._read(response, options, deadline)
                except (EngineError, TimeoutError):
                    continue
            if place.origin != at.origin or not 200 <= inner.status < 300:
                continue
            inner.final_url = place.url
            if inner.html:
                inner.styles = await self._sheets.of_page(
                    inner.html, place.asked, deadline, inner.charset
                )
            page.inner.append(inner)
            if inner.html and len(around) < MAX_DEPTH:
                await self._add_frames(page, inner, (*around, place), options, deadline)

    def _learn_cookies(self, response: ClientResponse, address: Address) -> None:
        """Mask the cookies that an answer sets, before anything of it is kept."""
        sign_in = self._sender.sign_in
        if sign_in is not None:
            sign_in.hear(response.headers.getall("Set-Cookie", ()), address.url, address.url)

    def _renew_sign_in(self, session: ClientSession, url: str = "") -> None:
        """Take the cookies that the site replaced, for the profile."""
        sign_in = self._sender.sign_in
        if sign_in is not None:
            from engine.egress.http_session import session_cookies

            cookies = session_cookies(session)
            sign_in.renew(cookies, self._began, url)
            self._began = {"cookies": cookies}

    async def close(self) -> None:
        await self._sheets.close()
        await self._scripts.close()
        session, self._session = self._session, None
        if session is not None:
            self._renew_sign_in(session)
            await session.close()

    async def _follow(
        self, url: str, hops: list[Redirect] | None = None
    ) -> tuple[ClientResponse, Address]:
        """Return the first response that is no redirect; each hop is checked before its connection.

        A fragment is kept across redirects, as in a browser. `hops` receives the redirects.
        """
        fragment = url.partition("#")[2]
        for _ in range(MAX_REDIRECTS + 1):
            address = address_of(url)
            if address is None:
                raise AddressBlocked(
                    without_credentials(url), "only http and https addresses can be opened"
                )
            if address.origin not in self._judged:
                await self._policy.check(address.url)
                self._judged.add(address.origin)
            response = await self._get(address)
            self._learn_cookies(response, address)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return response, address
            response.release()
            await self._record(response)
            if hops is not None:
                hops.append(Redirect(address.url, response.status))
            url = _redirect_target(address.asked, location)
            url += f"#{fragment}" if fragment and "#" not in location else ""
        raise PageError("redirects", "too many redirects")

    async def _get(self, address: Address) -> ClientResponse:
        import aiohttp

        session = self._session or self._open()
        try:
            return await session.get(
                _target(address),
                allow_redirects=False,
                headers=self._headers_for(address),
                proxy=None if self._listener is None else self._listener.server,
            )
        except (aiohttp.ClientError, ValueError, OSError) as failed:
            raise self._failure(address) or _page_error(failed) from failed

    def _failure(self, address: Address) -> PageError | None:
        """Return why the listener made no connection, if there is one."""
        if self._listener is None:
            return None
        return self._listener.last_failure(place_of(address.url))

    def _headers_for(self, address: Address) -> dict[str, str]:
        """Return what this address gets beside the session's headers; each hop asks anew."""
        found = dict(self._sender.headers.for_origin(address.origin))
        given = self._credentials
        if given is None or given.origin != address.origin:
            return found
        pair = f"{given.username}:{given.password}".encode()
        return found | {"Authorization": "Basic " + b64encode(pair).decode("ascii")}

    def _open(self) -> ClientSession:
        from engine.egress.http_session import open_session

        sender, sign_in = self._sender, self._sender.sign_in
        self._began = sign_in.state if sign_in is not None else {}
        cookies = sign_in.cookies if sign_in is not None else None
        self._session = open_session(self._policy, sender.agent, sender.language, cookies)
        return self._session

    async def _asset(self, kinds: frozenset[str], url: str, limit: int) -> bytes:
        """Return the bytes of a style sheet or script; empty if there is none."""
        response, _ = await self._follow(url)
        async with response:
            kind = documents.media_type(response.headers.get("Content-Type", ""))
            if not 200 <= response.status < 300 or kind not in kinds:
                response.close()
                return b""
            deadline = asyncio.get_running_loop().time() + ASSET_S
            body = await _body(response, limit, deadline)
            await self._record(response, body)
            return bytes(body.data)

    async def _record(self, response: ClientResponse, body: _Body | None = None) -> None:
        """Store an answer in the archive, if there is one. Raises EngineError."""
        if self.archive is not None:
            await self.archive.record(_exchange(response, body))

    async def _read(
        self, response: ClientResponse, options: PageOptions, deadline: float
    ) -> tuple[Fetched, Judged | None]:
        headers = response.headers
        if _is_download(headers.get("Content-Disposition", "")) and not options.raw:
            raise PageError("download", "download skipped")
        fetched = Fetched(
            url="",
            final_url="",
            status=response.status,
            content_type=headers.get("Content-Type", ""),
            engine="static",
            retry_after_s=retry_after(headers.get("Retry-After", "")),
            robots_header=headers.get("X-Robots-Tag", ""),
        )
        kind = fetched.content_type
        if not (options.raw or documents.is_text(kind) or documents.is_html(kind)):
            response.close()  # unread, so the connection cannot be reused
            if self.archive is not None:
                self.archive.leave_out("unread")
            return fetched, None
        body = await _body(response, options.max_bytes, deadline)
        body = await _decompressed(response, body, options.max_bytes)
        await self._record(response, body)
        fetched.bytes, fetched.truncated = len(body.data), body.truncated
        # An answer without a body (204, 304) has no count.
        if body.data and body.complete and not body.truncated:
            fetched.transferred_bytes = response.content.total_raw_bytes
        fetched.settled, fetched.cut_off = body.complete, body.cut_off
        if options.raw:
            fetched.body = bytes(body.data)
            return fetched, None
        judged = await self._fill_off_the_loop(fetched, body.data)
        if fetched.html and (refresh := headers.get("Refresh", "")).isprintable():
            fetched.html = _as_element(refresh) + fetched.html
        return fetched, judged

    async def _fill_off_the_loop(self, fetched: Fetched, body: bytearray) -> Judged | None:
        if len(body) <= THREAD_FROM_CHARS:
            return self._fill(fetched, body)
        judged = await off_the_loop(len(body), self._fill, fetched, body)
        body.clear()  # the waiting caller still holds it
        return judged

    def _fill(self, fetched: Fetched, body: bytearray) -> Judged | None:
        text, charset = documents.decoded(body, fetched.content_type, cut=fetched.truncated)
        fetched.charset = charset
        if documents.is_html(fetched.content_type, body):
            # The limit of parsing; the rest would only occupy memory while it waits.
            fetched.html = text[:MAX_HTML_CHARS]
        else:
            fetched.text = text[:MAX_HTML_CHARS]
        fetched.truncated |= len(text) > MAX_HTML_CHARS
        if not self._judge or (fetched.text and not fetched.html):
            return None
        found = judge(fetched.html)
        fetched.needs_browser, fetched.runs = found.needs_browser, found.runs
        return found


def _exchange(response: ClientResponse, body: _Body | None) -> Exchange:
    truncated: Truncated = ""
    if body is not None and body.truncated:
        truncated = "disconnect" if body.cut_off else "length" if body.complete else "time"
    asked = response.request_info
    return Exchange(
        url=str(response.url),
        method=asked.method,
        request_headers=list(asked.headers.items()),
        status=response.status,
        headers=[
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in response.raw_headers
        ],
        at_ms=round(time.time() * 1000),
        body=bytes(body.data) if body is not None else b"",
        reason=response.reason or "",
        truncated=truncated,
    )


async def _body(response: ClientResponse, limit: int, deadline: float) -> _Body:
    """Read at most `limit` bytes, or those received until the deadline."""
    import aiohttp

    parts = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for part in response.content.iter_any():
                parts += part
                if len(parts) >= limit:
                    response.close()
                    del parts[limit:]
                    return _Body(parts, True, True)
    except TimeoutError as late:
        response.close()
        if not parts:
            raise PageError("timeout", "the page's body did not come in time") from late
        return _Body(parts, True, False)
    except (aiohttp.ClientError, OSError, ValueError) as failed:
        if not parts:
            raise _page_error(failed) from failed
        return _Body(parts, True, False, cut_off=True)
    return _Body(parts, False, True)


# What aiohttp decodes, if it is the only one in its header; the others it leaves as they are.
_DECODED: Final = frozenset({"gzip", "deflate", "br", "zstd"})
_ZIPPED: Final = frozenset({"gzip", "x-gzip", "deflate"})


def _codings_left(response: ClientResponse) -> int:
    """Return how often the body is still compressed; 0 with an unknown coding, as in Chromium."""
    given = response.headers.getall("Content-Encoding", [])
    codings = [one.strip().lower() for one in ",".join(given).split(",") if one.strip()]
    if not set(codings) <= _DECODED | _ZIPPED:
        return 0
    return len(codings) - any(one.lower() in _DECODED for one in given[:1])


async def _decompressed(response: ClientResponse, body: _Body, limit: int) -> _Body:
    """Decompress what the HTTP client did not: `x-gzip`, and what was compressed twice."""
    times = _codings_left(response) if body.data else 0
    if times > MAX_CODINGS:
        raise PageError("network", "the page's body is damaged")
    for _ in range(times):
        body = await off_the_loop(len(body.data), _unzipped, body, limit)
    return body


def _unzipped(body: _Body, limit: int) -> _Body:
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # of gzip or zlib, by its head
    try:
        data = bytearray(unzip.decompress(bytes(body.data), limit))
    except zlib.error as damaged:
        raise PageError("network", "the page's body is damaged") from damaged
    is_cut = len(data) >= limit or not unzip.eof
    return body._replace(data=data, truncated=body.truncated or is_cut)


def _is_download(disposition: str) -> bool:
    return disposition.lstrip().lower().startswith("attachment")


def judge(html: str) -> Judged:
    """Judge by a page's markup whether it needs a browser."""
    if not html:
        return Judged(True)
    tree = parse_html(bounded(html))
    scripts = tuple(_scripts(tree))
    runs = {_name_of(script) for script in scripts}
    if _ON_ATTRIBUTE.search(html):
        runs.add("on-")
    if tree.css_first("iframe[src], iframe[srcdoc], frame[src], object[data], embed[src]"):
        runs.add("frame")
    if tree.css_first("template[shadowrootmode]"):
        runs.add("shadow")
    for node in tree.css('[href*=":"], [action*=":"], [formaction*=":"]'):
        given = node.attributes
        values = (given.get(name) or "" for name in ("href", "action", "formaction"))
        if any(_SCRIPT_LINK.match(value) for value in values):
            runs.add("javascript:")
            break
    base = tree.css_first("base[href]")
    for node in tree.css("style, template, noscript, script, [hidden]"):
        node.decompose()
    body = tree.body
    text = "" if body is None else body.text(deep=True, separator=" ")
    if not (_is_enough(text[:_MOST_TEXT_CHARS]) or _is_enough(text)):
        return Judged(True)
    if not runs:
        return Judged(False)
    href = "" if base is None else base.attributes.get("href") or ""
    names = " ".join(sorted(runs))[:MAX_RUNS_CHARS]
    return Judged(True, names, names_in(html), scripts, href)


def _add_style(fetched: Fetched) -> None:
    """Mark that only a browser can apply the page's style sheets, unless it has no text at all."""
    if fetched.runs or not fetched.needs_browser:
        fetched.needs_browser = True
        fetched.runs = " ".join(sorted({*fetched.runs.split(), "style"}))[:MAX_RUNS_CHARS]


def _is_enough(text: str) -> bool:
    return len(" ".join(text.split())) >= ENOUGH_TEXT_CHARS


def _scripts(tree: LexborHTMLParser) -> Iterator[Script]:
    for node in tree.css("script"):
        kind = node.attributes.get("type") or ""
        if not _JSON_SCRIPT.fullmatch(kind):
            src = node.attributes.get("src") or ""
            is_module = kind.strip().lower() == "module"
            yield Script("" if src else node.text() or "", src, is_module)


def _name_of(script: Script) -> str:
    """Return a script's file name: folder and version make no other kind of page."""
    source = script.src.partition("?")[0]
    return source.rstrip("/").rpartition("/")[2][:100] or "inline"


def _as_element(refresh: str) -> str:
    """Write a header `Refresh` as the element with the same effect; empty without one."""
    return _REFRESH_ELEMENT.replace("TO", escape(refresh)) if refresh else ""


def refresh_of(html: str) -> str:
    """Return the target of `<meta http-equiv=refresh>` without delay; empty for most pages."""
    # A case-insensitive search takes ten times as long.
    if "http-equiv" not in html[:REFRESH_CHARS].lower():
        return ""
    if not _REFRESH.search(html, 0, REFRESH_CHARS):
        return ""
    for meta in parse_static(html[:REFRESH_CHARS]).css(meta_refresh.SELECTOR):
        refresh = meta_refresh.refresh_to(meta)
        if refresh is not None and not refresh.seconds:
            return refresh.to
    return ""


def retry_after(header: str) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds from now."""
    header = header.strip()
    if not header:
        return None
    if header.isascii() and header.isdigit():
        return float(header[:10])
    from email.utils import parsedate_to_datetime  # rare, and 25 ms of every start

    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())


def _redirect_target(base: str, location: str) -> str:
    """Resolve a `Location` header; bytes outside ASCII are percent-encoded."""
    if not location.isascii():
        location = quote(location.encode("utf-8", "surrogateescape"), safe=_ASCII)
    to = addresses.href_of(location, base)
    if to is None:
        raise PageError("redirects", "a redirect to what is no address")
    return to


def _target(address: Address) -> YarlURL:
    """Convert the address for aiohttp, which sends it unchanged."""
    from yarl import URL

    asked = address.asked
    if asked.find("?") != len(asked) - 1:
        return URL(asked, encoded=True)
    # aiohttp would drop an empty query, unless it is passed as the end of the path.
    scheme, _, place = address.origin.partition("://")
    path = asked[len(address.origin) :]
    return URL.build(scheme=scheme, authority=place, path=path, encoded=True)


def _page_error(failed: Exception) -> EngineError:
    """Map a library error to a page error in one sentence, without internal details."""
    import aiohttp

    if is_shortage(failed):
        return PageOutOfFiles()
    if isinstance(failed, aiohttp.ClientConnectorCertificateError):
        return PageError("tls", "the site's certificate is not valid")
    if isinstance(failed, aiohttp.ClientSSLError):
        return PageError("tls", "no secure connection could be made")
    if isinstance(failed, aiohttp.ClientConnectorError):
        # asyncio's own text names the address once more: "Connect call failed ('10.0.0.1', 80)".
        number = failed.os_error.errno or 0
        named = os.strerror(number) if number in errno.errorcode else failed.os_error.strerror
        reason = named or "no connection"
        return PageError("network", f"could not connect: {reason}")
    if isinstance(failed, aiohttp.ClientPayloadError):
        return PageError("network", "the page's body is damaged")
    if isinstance(failed, (aiohttp.ServerDisconnectedError, ConnectionError)):
        return PageError("network", "the server closed the connection without an answer")
    return PageError("network", "the server's answer cannot be read")


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 1)
