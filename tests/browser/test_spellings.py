"""Whatever Chromium makes of a value that was given as a secret is known as that value."""

from __future__ import annotations

import os
import random
import time
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.async_api import Page

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from engine.model.addresses import Credentials
from engine.sample.site import HTML, Answer, Request, Server
from engine.secrets.given_secrets import Scrub, of_credentials
from tests.support.kept_browser import KeptSession

pytestmark = pytest.mark.usefixtures("kept_browser")

MARK = "[redacted]"
SIGNS = (
    "".join(map(chr, range(33, 127))) * 3
    + "!*'()~\"\\%&<>+;=/?#@ " * 4
    + "  éßüÿ€ñ¿я日本語한\u00a0\u2028😀"
)
SEED = int(os.environ.get("SPELLINGS_SEED", "19"))
ENCODINGS = ("utf-8", "windows-1252", "windows-1251", "shift_jis", "gb18030", "big5", "euc-kr")
# Each line is one way in which a page comes to write a value down.
MAKE = """values => values.map(value => {
  const made = [value, JSON.stringify(value), JSON.stringify(JSON.stringify(value))];
  const encoders = [encodeURI, encodeURIComponent,
    text => new URLSearchParams([['', text]]).toString().slice(1),
    text => { const place = document.createElement('p'); place.textContent = text;
      return place.innerHTML; },
    text => { const place = document.createElement('p'); place.title = text;
      return place.outerHTML.slice('<p title="'.length, -'"></p>'.length); },
    text => new XMLSerializer().serializeToString(document.createTextNode(text)),
    text => JSON.stringify(text).slice(1, -1),
    text => JSON.stringify(text).slice(1, -1).replace(/[<>&'\\u007f-\\uffff]/g,
      sign => '\\\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0')),
    text => text.replace(/[^A-Za-z0-9]/g, sign => sign.charCodeAt(0) < 256
      ? '\\\\x' + sign.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()
      : '\\\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase())];
  const once = encoders.map(encode => encode(value));
  made.push(...once, ...once.flatMap(text => encoders.map(encode => encode(text))));
  made.push(...once.slice(0, 3).map(text => text.replace(
    /%[0-9A-F]{2}/g, code => code.toLowerCase())));
  const link = document.createElement('a');
  link.href = '/x?q=' + value.replaceAll('#', '%23'); made.push(link.search.slice('?q='.length));
  link.href = '/x'; link.search = '-' + value; made.push(link.search.slice('?-'.length));
  link.hash = '-' + value; made.push(link.hash.slice('#-'.length));
  link.pathname = '/-' + value; made.push(link.pathname.slice('/-'.length));
  const from = new URL('http://host.test/'); from.password = value; made.push(from.password);
  document.title = value; made.push(document.title);
  const field = document.createElement('textarea'); field.defaultValue = value;
  made.push(field.outerHTML.slice('<textarea>'.length, -'</textarea>'.length));
  return made;
})"""


def passwords(count: int, seed: int = SEED) -> list[str]:
    """Random passwords of 6 to 40 characters, of which a third are ordinary ones."""
    draw = random.Random(seed)
    return [
        "".join(draw.choice(SIGNS) for _ in range(draw.randint(6, 40))).strip().ljust(6, "x")
        for _ in range(count)
    ]


class Echo:
    """A server of empty pages in any encoding, which keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.server = Server(self._answer, "127.0.0.1", 0)

    def _answer(self, request: Request) -> Answer:
        self.asked.append(request)
        if request.path == "/private" and "authorization" not in request.headers:
            return Answer(b"", 401, headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        kind = f"text/html; charset={request.path[1:]}" if request.path[1:] in ENCODINGS else HTML
        return Answer(b"<!doctype html><title>t</title>", content_type=kind)


def kept(value: str, spelling: str) -> str:
    return Scrub([(value, MARK)], key_shapes=False).hide(spelling)


@pytest.mark.thorough
async def test_no_spelling_that_chromium_makes_of_a_password_is_kept() -> None:
    echo = Echo()
    echo.server.start()
    session = KeptSession(os.environ.get("OC_BROWSER"))
    front = f"http://127.0.0.1:{echo.server.port}"
    values = passwords(300)
    left: list[tuple[str, str, str]] = []
    try:
        async with session.instance(InstanceOptions(Policy.for_start(front, ()))) as instance:
            page: Page = await instance.new_page()
            for encoding in ENCODINGS:
                await page.goto(f"{front}/{encoding}")
                made: list[list[str]] = await page.evaluate(MAKE, values)
                for value, spellings in zip(values, made, strict=True):
                    left += _left(value, spellings)
                left += await _submitted(page, echo, values)
    finally:
        await session.aclose()
        echo.server.stop()
    assert left[:5] == []


def _left(value: str, spellings: list[str]) -> list[tuple[str, str, str]]:
    found = [(value, one, kept(value, f"<{one}>")) for one in dict.fromkeys(spellings)]
    return [one for one in found if one[2].strip('<"\\ >') != MARK]


async def _submitted(page: Page, echo: Echo, values: list[str]) -> list[tuple[str, str, str]]:
    """A form with all the values, as it reaches the server."""
    await page.evaluate(
        """values => { const form = document.createElement('form'); form.action = '/form';
        for (const value of values) { const field = document.createElement('input');
          field.name = 'f'; field.value = value; form.append(field); }
        document.body.append(form); form.submit(); }""",
        values,
    )
    await page.wait_for_url("**/form?**")
    (asked,) = [one for one in echo.asked if one.path == "/form"]
    echo.asked.clear()
    sent = asked.target.partition("?")[2].split("&")
    found = []
    for value, spelling in zip(values, sent, strict=True):
        found += _left(value, [spelling.removeprefix("f=")])
    return found


@pytest.mark.parametrize("password", passwords(4, SEED + 1))
async def test_no_header_that_chromium_sends_for_a_password_is_kept(password: str) -> None:
    echo = Echo()
    echo.server.start()
    session = KeptSession(os.environ.get("OC_BROWSER"))
    front = f"http://127.0.0.1:{echo.server.port}"
    given_ones = Credentials(front, "ann", password)
    options = InstanceOptions(Policy.for_start(front, ()), credentials=given_ones)
    try:
        async with session.instance(options) as instance:
            page = await instance.new_page()
            await page.goto(f"{front}/private")
    finally:
        await session.aclose()
        echo.server.stop()
    sent = echo.asked[-1].headers["authorization"]
    assert sent == f"Basic {b64encode(f'ann:{password}'.encode()).decode()}"
    assert Scrub(of_credentials(given_ones)).hide(f"<{sent}>") == f"<Basic {MARK}>"


@given(st.text(min_size=4, max_size=40).filter(lambda text: len(text.strip()) > 3), st.text())
def test_a_value_is_found_raw_wherever_it_stands(value: str, around: str) -> None:
    clean = kept(value, f"{around} {value} {around}")
    assert MARK in clean
    assert value.strip() not in clean.replace(MARK, " ") or value.strip() in around + MARK


@pytest.mark.parametrize("part", ["\\", "\\!", "!", "% ", "&<", "%25", "+ ", "\\/", "'\\"])
def test_a_value_and_a_page_made_to_be_slow_are_not(part: str) -> None:
    value, began = part * 20 + "x", time.process_time()
    for text in (part, part * 2, part[:1], "%255C", "&amp;amp;", "\\\\\\", "\\\\\\x21", "%26lt%3B"):
        kept(value, text * 500 + " x")
    assert time.process_time() - began < 20
