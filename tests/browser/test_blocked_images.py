"""Pages that wait for an image, in a browser that loads none."""

from __future__ import annotations

import pytest

from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import TABS, Making, Pages
from tests.support.connections import BOTH_CONNECTIONS

PATIENT = PageOptions(timeout_ms=100_000)
GO = "() => root.append('words')"
DATA = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
# What a page does to wait for an image.
WAITS = {
    "onload": f"const one = new Image(); one.onload = {GO}; one.src = '/one.svg'",
    "a listener": "const one = document.createElement('img');"
    f" one.addEventListener('load', {GO}); one.src = '/one.svg'",
    "srcset": f"const one = new Image(); one.onload = {GO}; one.srcset = '/one.svg 2x'",
    "data": f"const one = new Image(); one.onload = {GO}; one.src = '{DATA}'",
    "an attribute": f"const one = new Image(); one.onload = {GO};"
    " one.setAttribute('SRC', '/one.svg')",
    "a replaced setAttribute": "const own = HTMLImageElement.prototype.setAttribute;"
    " Element.prototype.setAttribute = function (...given) { own.apply(this, given) };"
    f" const one = new Image(); one.onload = {GO}; one.setAttribute('src', '/one.svg')",
    "markup of a script": f"window.go = {GO};"
    " root.insertAdjacentHTML('beforeend', '<p><img src=/one.svg onload=go()></p>')",
    "another address": f"window.go = {GO}; root.insertAdjacentHTML('beforeend', '<img id=late>');"
    " late.onload = go; setTimeout(() => late.setAttribute('src', '/one.svg'), 50)",
    "decode": f"const one = new Image(); one.src = '/one.svg'; one.decode().then({GO})",
    "complete": "const one = new Image(); one.src = '/one.svg'; const timer = setInterval(() => {"
    f" if (one.complete && one.naturalWidth) {{ clearInterval(timer); ({GO})() }} }}, 20)",
    "one after another": "let left = 30; const next = () => { const one = new Image();"
    f" one.onload = () => (--left ? next() : ({GO})()); one.src = `/${{left}}.svg` }}; next()",
    "very many": "const all = Array.from({ length: 1_200 }, () => new Image());"
    " let count = 0; for (const one of all) { one.onload = () => ++count; one.src = '/one.svg' }"
    " const timer = setInterval(() => { if (!all.every((one) => one.complete)) return;"
    f" clearInterval(timer); if (count === 1_000) ({GO})() }}, 20)",
    "no document": "const one = document.createElement('div');"
    " one.innerHTML = '<img src=/one.svg>';"
    f" one.firstChild.addEventListener('load', {GO})",
    "a copy": "const one = new Image(); one.src = '/one.svg'; const copy = one.cloneNode();"
    f" copy.onload = {GO}",
    "a shadow root": "const one = root.attachShadow({ mode: 'open' });"
    " one.innerHTML = '<slot></slot><img src=/one.svg>';"
    f" one.lastChild.onload = {GO}",
    "a source": "root.insertAdjacentHTML('beforeend',"
    " '<picture><source srcset=/one.svg><img></picture>');"
    f" root.querySelector('img').onload = {GO}",
    "a picture of some size": f"window.go = {GO}; root.insertAdjacentHTML('beforeend',"
    " '<img src=/one.svg"
    ' onload="if (this.naturalWidth > 200 && this.naturalHeight > 200) go()">\')',
    "a canvas": "const one = new Image(); const canvas = document.createElement('canvas');"
    " one.onload = () => { canvas.width = one.width; canvas.height = one.height;"
    " const drawing = canvas.getContext('2d'); drawing.drawImage(one, 0, 0);"
    f" drawing.getImageData(0, 0, one.width, one.height); ({GO})() }}; one.src = '/one.svg'",
    "cleared timers": "for (let at = 0; at < 9_999; at += 1) clearTimeout(at);"
    f" const one = new Image(); one.onload = {GO}; one.src = '/one.svg';"
    " for (let at = 0; at < 9_999; at += 1) clearTimeout(at);",
    "a result of a pattern": "/(one)/.exec('one'); const one = new Image(); one.onload = () =>"
    f" RegExp.$1 === 'one' && ({GO})(); one.setAttribute('src', '/one.svg')",
    "decoded one after another": "(async () => { const one = new Image();"
    " for (let at = 0; at < 3; at += 1) { one.src = `/${at}.svg`; await one.decode();"
    " if (!one.complete) return; }"
    f" ({GO})() }})()",
    "a class of that name": f"const one = new Image(); one.onload = {GO}; one.src = '/one.svg'",
}
CLASSES = "class Event {} class Element {} class Promise {} class Set {}"


@pytest.mark.timeout(300)  # many cases in one browser
@BOTH_CONNECTIONS
async def test_a_page_shows_what_it_shows_after_an_image(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    cases = {}
    for name, waits in WAITS.items():
        classes = CLASSES if name == "a class of that name" else ""
        cases[name] = f"<div id=root></div><script>{classes} onload = () => {{ {waits} }}</script>"
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        taken = await made.taken(cases, pages, PATIENT)
    for name, case in taken.items():
        with subtests.test(name=name):
            page = case.result()
            assert (page.text, page.settled) == ("words", True)
    assert not [path for path in pages.hits if path.endswith(".svg")]


async def test_images_of_the_markup_load_after_its_scripts(browsing: Making, pages: Pages) -> None:
    pages["/slow.js"] = Answer(b"0", 200, "text/javascript", delay_s=0.3)
    pages["/"] = (
        "<div id=root></div><img id=one src=/one.svg width=30 height=20>"
        "<script>const sizes = () => `${one.complete} ${one.naturalWidth} ${one.naturalHeight}`;"
        " root.append(sizes())</script><script src=/slow.js></script>"
        "<script>one.onload = () => root.append(`, ${sizes()}`)</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.text == "false 0 0, true 30 20"


async def test_images_load_beside_a_frame_that_never_comes(browsing: Making, pages: Pages) -> None:
    pages["/never"] = Answer(b"", 200, "text/html", delay_s=60.0)
    pages["/"] = (
        "<div id=root></div><iframe src=/never></iframe>"
        f"<script>const one = new Image(); one.onload = {GO}; one.src = '/one.svg'</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.at_its_limit(pages.url, holds="words", fresh=True)
    assert page.text == "words"


IMAGE = f"<div id=root></div><img id=one src=/one.svg><script>one.onload = {GO}<\\/script>"
DOCUMENTS = {
    "deferred script": "<div id=root></div><img id=one src=/one.svg>"
    "<script defer src=/late.js></script>",
    "written before it is parsed": "<script>setTimeout(() => { document.open();"
    f" document.write(`{IMAGE}<iframe src=/slow></iframe>`); document.close() }})</script>"
    "<script src=/late.js></script>",
    "never closed": "<script>onload = () => { document.open();"
    " document.write('<div id=root></div><img id=one src=/one.svg>');"
    f" one.onload = {GO} }}</script>",
    "frame": "<iframe src=/in></iframe>",
    "frame that its page writes": "<iframe id=frame></iframe><script>"
    f"const inner = frame.contentDocument; inner.open(); inner.write(`{IMAGE}`); inner.close()"
    "</script>",
}


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_images_load_in_each_kind_of_document(
    browsing: Making, pages: Pages, kind: str
) -> None:
    handler = f"window.one && (one.onload = {GO})".encode()
    pages["/late.js"] = Answer(handler, 200, "text/javascript", delay_s=0.3)
    pages["/slow"] = Answer(b"", 200, "text/html", delay_s=0.5)
    pages["/in"] = f"<div id=root></div><script>onload = () => {{ {WAITS['onload']} }}</script>"
    pages["/"] = DOCUMENTS[kind]
    async with browsing(pages.url, direct=True) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=30_000, fresh=True))
    assert (page.text, page.settled) == ("words", True)


async def test_an_image_loads_once_for_each_address(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<div id=root></div><script>const one = new Image(); let count = 0;"
        "one.onload = () => { root.textContent = `${++count}` };"
        "one.src = '/1.svg'; one.src = '/2.svg'; one.setAttribute('src', '/3.svg');"
        "setTimeout(() => root.append(one), 50); setTimeout(() => { one.src = '/4.svg' }, 100);"
        "const none = new Image(); none.onload = () => document.body.append('none');"
        "none.src = '/5.svg'; none.removeAttribute('src')</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.text == "2"


RENEWED = {
    "one image": "<img id=camera src=/0.svg><script>let count = 0; camera.onload = () => {"
    " root.append('x'); camera.src = `/${++count}.svg` };</script>",
    "many images": "<script>let count = 0; const next = () => { const one = new Image();"
    " one.onload = next; root.append('x'); one.src = `/${++count}.svg` }; next()</script>",
}


@pytest.mark.parametrize("how", RENEWED)
async def test_images_that_are_renewed_without_end_let_their_page_rest(
    browsing: Making, pages: Pages, how: str
) -> None:
    pages["/"] = f"<p id=root></p>{RENEWED[how]}"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=30_000, fresh=True))
    assert page.settled
    assert 1 <= page.text.count("x") <= 130


async def test_images_that_load_are_left_alone(browsing: Making, pages: Pages) -> None:
    pages["/one.svg"] = Answer(
        b'<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>', 200, "image/svg+xml"
    )
    pages["/"] = (
        "<div id=root></div><script>const one = new Image();"
        "one.onload = (event) => root.append(`${event.isTrusted} ${one.naturalWidth}`);"
        "one.src = '/one.svg'</script>"
    )
    async with browsing(pages.url, block_resources=False) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, pages.hits["/one.svg"]) == ("true 7", 1)
