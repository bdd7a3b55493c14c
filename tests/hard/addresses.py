"""Every address is read and requested as Chromium does it.

Random texts, made of what the URL standard's own tests are made of, are resolved by Chromium's
`URL` and by ours: what is opened, and which host and port are judged. Then one page's links, of
every sign in path, query and fragment, are asked for by Chromium and by the static engine, and
the server compares the request lines; so does it for what pages in other character sets ask for
by themselves: frames, style sheets, where they send their reader.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import Any

from playwright.async_api import Page, async_playwright

from engine.browser.chromium.locate import locate
from engine.egress.egress_policy import Policy, place_of
from engine.model.addresses import address_of, link_address
from engine.model.errors import AddressBlocked, EngineError
from engine.pages.fetch import PageOptions
from engine.pages.static_engine import open_static
from engine.sample.site import Answer, Request, Server
from tests.hard.figures import Figures
from tests.support.serving import served

TEXTS, SHORT_TEXTS = 20_000, 1_500
SEED = 19
AT_ONCE = 2_000  # texts handed to the browser in one call
MOST_TOLD = 10
BASES = (
    "http://base.example/a/b/c.html?q=1",
    "https://base.example:8443/x/",
    "http://base.example/",
    "https://base.example/a%5Eb%7Cc/d'e/",
    "http://base.example/a//b/c/?x/y",
)
SCHEMES = ("http:", "https:", "HTTP:", "ht\ttp:", "Https:", "", "", "", "", "ftp:", "javascript:")
SLASHES = ("//", "//", "//", "/", "", "\\\\", "/\\", "///", "//\t", "\n//")
USERS = ("", "", "", "u@", "u:p@", "u:p:q@", "a b:c'd@", "@", ":@", "u%40:p@x@", "ü:ß@")
HOSTS = (
    *("example.com", "EXAMPLE.com", "straße.example", "bücher.example", "xn--strae-oqa.example"),
    *("xn--a.example", "xn--", "xn--zzzz", "faß.de", "xn--nxasmm1c", "xn--nxasmq6b", "☃.net"),
    *("127.1", "0x7f.1", "2130706433", "017700000001", "256.1", "1.2.3.4.5", "09.1", "1.1.1.1."),
    *("1.2.3.0x", "a.0x1", "a.1", "0xg", "9a", "%31%32", "１２７。１", "٣.com", "a\u3002b"),
    *("[::1]", "[::ffff:1.2.3.4]", "[1::2::3]", "[::1", "[0:0::00ab]", "[::1%25eth0]"),
    *("a b", "a%20b", "a%41", "a_b", "a-.b", "-a", "a..b", ".a", "a.", "a..", "a<b", "a|b", "a^b"),
    *("a!b", "a~b", "a'b", 'a"b', "a`b", "a{b", "a$b", "a(b)", "a+b", "a,b", "a;b", "a=b", "a%00b"),
    *("a\u00adb", "a\u200db", "日本.jp", "مثال.com", "aא.com", "ＧＯ.com", "㍐.com", "\u0130.com"),
    *("\ud800", "a\U0001f600b", "ab\u0300", "a\x7fb", "", "localhost", f"{'a' * 64}.com"),
)
PORTS = ("", "", "", "", ":", ":80", ":443", ":0", ":00080", ":8080", ":65535", ":65536", ":a",
         ":-1", ": 80", ":8\t0")  # fmt: skip
SIGNS = (
    *("a", "b", "..", ".", "%2e", "%2E%2e", ".%2e", "/", "/", "\\", "^", "|", "'", '"', "<", ">"),
    *("`", "{", "}", "[", "]", "%", "%zz", "%41", "%7c", " ", "\t", "\n", "\r", "\x00", "\x01"),
    *("\x7f", "\x80", "é", "日", "\ud800", "\U0001f600", "~", "!", "$", "&", "(", ")", "*", "+"),
    *(",", ";", "=", ":", "@", "_", "-", "\u2028", "\ufeff", "\ufffe", "\ufdd0"),
)
SIGNS_BEHIND = (*SIGNS, "?", "#", "?", "x=1", "&")
SHAPES = (
    *("/odd/a{}b", "/odd/{}", "odd/x?q={}", "odd/x?{}", "/odd/{}/b?y", "/odd/y#{}"),
    *("odd/{0}?{0}", "//{{host}}/odd/{}", "/odd/é{}?é{}"),
)
PLAIN_LINKS = (
    *("/odd/x?", "?", "", "/odd/x?#", "#", "\\odd\\x", "/odd/x?a?", "/odd//x?", "./odd/../x?"),
    *("/odd/x?a'b", "http:odd/x?", " /odd/x? "),
)
_READ = """texts => JSON.parse(texts).map(([text, base]) => {
  try { const read = new URL(text, base); return [read.href, read.host]; } catch { return null; }
})"""
_RESOLVED = """links => JSON.parse(links).map(link => {
  const anchor = document.createElement("a"); anchor.setAttribute("href", link); return anchor.href;
})"""
_ASK = """async links => {
  for (const link of JSON.parse(links)) await fetch(link, { cache: "no-store" });
}"""
# Of pages that are not in UTF-8: a query is sent in the page's own character set, a base is not.
CHARSETS = ("windows-1252", "shift_jis", "utf-8")
WORDS = "?q=ïƒΩ&z=日本#é"
PARTS = (
    '<iframe src="/o/frame{}"></iframe>',
    '<frameset><frame src="/o/frame{}"></frameset>',
    '<meta http-equiv=refresh content="0;url=/o/onward{}">',
    '<link rel=stylesheet href="/o/sheet.css{}"><p>x',
    '<base href="/o/base{}"><iframe src=""></iframe>',
    '<base href="/o/base{}"><iframe src="#x"></iframe>',
)
_HREF = re.compile(r"(https?://)(?:[^/@]*@)?([^/]*)(.*)", re.DOTALL)
_NAMED = re.compile(r"[a-z0-9._:\[\]-]+")  # a host that somebody can have


def made(chance: random.Random) -> str:
    """One text that may be an address, or a link, or neither."""

    def some(signs: tuple[str, ...], most: int) -> str:
        return "".join(chance.choice(signs) for _ in range(chance.randint(0, most)))

    parts = [chance.choice(("", "", "", " ", "\t", "\x01"))]
    if chance.random() < 0.55:
        parts += (chance.choice(each) for each in (SCHEMES, SLASHES, USERS, HOSTS, PORTS))
    if chance.random() < 0.85:
        parts += (chance.choice(("/", "/", "", "\\")), some(SIGNS, 6))
    if chance.random() < 0.5:
        parts += ("?", some(SIGNS_BEHIND, 5))
    if chance.random() < 0.4:
        parts += ("#", some(SIGNS_BEHIND, 5))
    return "".join((*parts, chance.choice(("", "", " ", "\n"))))


def opened(href: str | None) -> str | None:
    """What is opened: nothing for a host that no name server can know, and no password."""
    found = _HREF.fullmatch(href or "")
    if found is None or not _NAMED.fullmatch(found[2]):
        return None
    return found[1] + found[2] + _whole(found[3])


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _difference(text: str, base: str, theirs: list[str] | None) -> str:
    """What of `text` is read otherwise; empty for most."""
    address = link_address(base, text)
    mine = opened(None if address is None else address.url)
    expected = opened(theirs[0] if theirs else None)
    if mine != expected:
        return f"{text!r} on {base}: {mine}, in Chromium {expected}"
    if expected is None or address is None or theirs is None:
        return ""
    return _judged(expected, theirs[1]) if address_of(expected) == address else f"{text!r}: twice"


def _judged(url: str, place: str) -> str:
    host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
    host = host.removesuffix(".")
    try:
        judged = str(place_of(url))
    except AddressBlocked:
        return "" if port == "0" or not host else f"{url}: refused"
    expected = f"{host}:{port or (443 if url.startswith('https') else 80)}"
    return "" if judged == expected else f"{url}: {judged} is judged, not {expected}"


async def _read(page: Page, texts: int) -> list[str]:
    chance = random.Random(SEED)
    cases = [(made(chance), chance.choice(BASES)) for _ in range(texts)]
    theirs: list[Any] = []
    for start in range(0, texts, AT_ONCE):
        theirs += await page.evaluate(_READ, json.dumps(cases[start : start + AT_ONCE]))
    found = (_difference(*case, read) for case, read in zip(cases, theirs, strict=True))
    return [each for each in found if each]


def links(host: str, *, short: bool) -> list[str]:
    """Odd links, each of which leads to a page of this site."""
    signs = [sign for sign in SIGNS_BEHIND if sign not in {"/", "\\"}]
    shapes = SHAPES[:6] if short else SHAPES
    odd = [shape.format(sign, sign).replace("{host}", host) for shape in shapes for sign in signs]
    return [*PLAIN_LINKS, *odd]


async def _asked(page: Page, *, short: bool) -> tuple[int, list[str]]:
    """How many links were asked for, and those of which the server heard another spelling."""
    heard: list[str] = []

    def answer(request: Request) -> Answer:
        heard.append(request.target)
        return Answer(b"<!doctype html><title>t</title>")

    server = Server(answer, "127.0.0.1", 0)
    server.start()
    try:
        base = f"http://127.0.0.1:{server.port}/odd/start.html"
        await page.goto(base)
        odd = links(f"127.0.0.1:{server.port}", short=short)
        heard.clear()
        resolved = await page.evaluate(_RESOLVED, json.dumps(odd))
        await page.evaluate(_ASK, json.dumps(resolved))
        theirs = [*heard]
        heard.clear()
        async with open_static(Policy.for_start(base)) as fetcher:
            for link in odd:
                address = link_address(base, link)
                if address is None:
                    heard.append("not an address")
                    continue
                try:
                    await fetcher.fetch(address.url, PageOptions(timeout_ms=15_000))
                except EngineError as failed:
                    heard.append(str(failed))
    finally:
        server.stop()
    pairs = zip(odd, theirs, heard, strict=True)
    return len(odd), [
        f"{link!r}: asked for {mine}, Chromium for {their}"
        for link, their, mine in pairs
        if mine != their
    ]


async def _asked_by_pages(page: Page) -> tuple[int, list[str]]:
    """The same of what pages in other character sets ask for by themselves."""
    heard: list[str] = []
    cases = [(charset, part.format(WORDS)) for charset in CHARSETS for part in PARTS]

    def answer(request: Request) -> Answer:
        if not request.target.startswith("/p/"):
            heard.append(request.target)
            kind = "text/css" if ".css" in request.target else "text/html"
            return Answer(b"", content_type=kind)
        charset, markup = cases[int(request.target[3:])]
        body = f"<!doctype html><title>t</title>{markup}".encode(charset, "xmlcharrefreplace")
        return Answer(body, content_type=f"text/html; charset={charset}")

    differing: list[str] = []
    with served(answer) as url:
        start = url
        async with open_static(Policy.for_start(start)) as fetcher:
            for number, (charset, markup) in enumerate(cases):
                heard.clear()
                await page.goto(f"{start}/p/{number}")
                await page.wait_for_load_state("networkidle")
                theirs = {*heard} - {"/favicon.ico"}
                heard.clear()
                await fetcher.fetch(f"{start}/p/{number}", PageOptions(timeout_ms=15_000))
                if {*heard} != theirs:
                    differing.append(f"{charset} {markup}: {heard}, Chromium for {sorted(theirs)}")
    return len(cases), differing


async def _measure(*, short: bool) -> Figures:
    texts = SHORT_TEXTS if short else TEXTS
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=locate().path, chromium_sandbox=False
        )
        page = await browser.new_page()
        try:
            otherwise = await _read(page, texts)
            asked, elsewhere = await _asked(page, short=short)
            pages, in_charset = await _asked_by_pages(page)
        finally:
            await browser.close()
    facts = {
        "texts": texts,
        "read otherwise": len(otherwise),
        "links asked for": asked,
        "asked for otherwise": len(elsewhere),
        "pages in other character sets": pages,
        "of these otherwise": len(in_charset),
    }
    told = (otherwise, elsewhere, in_charset)
    return Figures("URL", facts, [one for each in told for one in each[:MOST_TOLD]])


def measure(*, short: bool) -> Figures:
    """Run the rig."""
    return asyncio.run(_measure(short=short))
