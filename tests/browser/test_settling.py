"""When a page is at rest: small applications of the kinds that are met, in real Chromium."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from engine.browser.page import extraction_options
from engine.browser.page.request_queue import RequestQueue
from engine.pages.fetch import IdleState, PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import TABS, Making, Pages
from tests.support.connections import BOTH_CONNECTIONS

PATIENT = PageOptions(timeout_ms=100_000)
PROSE = "<p>" + "All of this text came with the markup of the page. " * 8 + "</p>"
# An application as bundlers make them: its frame first, its content when the answer is there.
SHOP = """
const root = document.getElementById('root');
const go = path => { history.pushState({}, '', path); show() };
const show = async () => {
  root.innerHTML = '<nav><b>Shop</b></nav><div aria-busy=true>Loading…</div>';
  const answer = await fetch('/api' + location.pathname);
  const item = await answer.json();
  setTimeout(() => { root.querySelector('div').outerHTML =
    `<h1>${item.name}</h1>` + item.links.map(n => `<a href=${n}>${n}</a>`).join(' ') }, 150);
};
if (location.pathname === '/') go('/items'); else show();
"""


@pytest.fixture(autouse=True)
def no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every page as it is: on a busy machine a later one may seem to wait for earlier ones."""
    monkeypatch.setattr("engine.browser.chromium.tab_pool.STALL_S", 1_000.0)


def data(delay_s: float = 0.0, **told: object) -> Answer:
    return Answer(json.dumps(told).encode(), 200, "application/json", delay_s=delay_s)


def late(script: str) -> str:
    return f"<div id=root></div><script>{script}</script>"


async def test_settling_waits_for_requests_of_frames(browsing: Making, pages: Pages) -> None:
    pages["/slow"] = Answer(b"answer", 200, "text/plain", delay_s=0.9)
    asks = "fetch('/slow').then(a => a.text()).then(t => document.body.append(t))"
    pages["/inner"] = f"<p>inner</p><script>{asks}</script>"
    pages["/between"] = "<iframe src=/inner></iframe>"
    pages["/"] = "<p>page</p><iframe src=/between></iframe>"
    async with browsing(pages.url) as made:
        found = await made.fetcher.fetch(pages.url, PATIENT)
    assert (found.text.split(), found.settled) == (["page", "inner", "answer"], True)


async def test_settling_waits_for_a_slow_api(browsing: Making, pages: Pages) -> None:
    pages["/"] = pages["/items"] = pages["/b"] = late(SHOP)
    pages["/api/items"] = data(1.3, name="All items", links=["/b", "/c"])
    pages["/api/b"] = data(0.02, name="Item b", links=["/items"])
    async with browsing(pages.url) as made:
        first = await made.fetcher.fetch(pages.url, PATIENT)
        assert ("All items" in first.text, first.settled, first.empty) == (True, True, False)
        assert (first.final_url, len(first.links)) == (f"{pages.url}/items", 2)
        other = await made.fetcher.fetch(f"{pages.url}/b", PATIENT)
        assert ("Item b" in other.text, other.settled) == (True, True)


WRITING = [
    # the head of the answer is there long before its body
    "fetch('/slow').then(a => a.text()).then(t => root.append(t))",
    "const x = new XMLHttpRequest(); x.open('GET', '/slow');"
    "x.onload = () => root.append(x.responseText); x.send()",
    # one step after the other, each on a timer: 1.2 s until something shows
    "let n = 0; const step = () => ++n < 4 ? setTimeout(step, 300) : root.append('words');step()",
    # it says something at once, and the rest some steps later
    "let n = 0; const step = () => ++n < 5 ? setTimeout(step, 250) : root.append('words');"
    "onload = () => { root.append('first '); step() }",
    # a timer that is overdue, because another one keeps the page's thread busy
    "onload = () => { root.append('first '); setTimeout(() => { const end = performance.now()"
    " + 600; while (performance.now() < end); }, 350);"
    " setTimeout(() => root.append('words'), 640) }",
    # a script that a script asks for, after the load event
    "onload = () => { window.shown = t => root.append(t); const s ="
    " document.createElement('script'); s.src = '/part.js'; document.head.append(s) }",
    # where no observer of the document looks
    "const s = document.body.appendChild(document.createElement('div'))"
    ".attachShadow({mode: 'open'});"
    "setTimeout(() => s.append('in the shadow'), 700);"
    "setTimeout(() => root.append('words'), 1100)",
]


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_that_is_still_being_written_is_not_at_rest(
    browsing: Making, pages: Pages, subtests: pytest.Subtests
) -> None:
    pages["/slow"] = Answer(b"words" * 20, 200, "text/plain", spread_s=1.2)
    pages["/part.js"] = Answer(b"shown('words')", 200, "text/javascript", delay_s=0.9)
    root = "const root = document.getElementById('root');"
    cases = {script: late(f"{root} {script}") for script in WRITING}
    async with browsing(pages.url, pages=TABS) as made:
        taken = await made.taken(cases, pages, PATIENT)
    for script, case in taken.items():
        with subtests.test(script=script):
            page = case.result()
            assert ("words" in page.text, page.settled, page.empty) == (True, True, False)


# Alone: the frames of other tabs may leave no idle moment for many seconds.
async def test_a_page_that_is_written_in_an_idle_moment_is_not_at_rest(
    browsing: Making, pages: Pages
) -> None:
    writes = "setTimeout(() => requestIdleCallback(() => root.append('words')), 700)"
    pages["/"] = late(f"const root = document.getElementById('root'); {writes}")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, page.settled, page.empty) == ("words", True, False)


FRAMED = """<p></p><script>
let root = document.querySelector("p");
const makes = (src, given = {}) => {
  const frame = Object.assign(document.createElement("iframe"), given);
  if (src) frame.src = src;
  return frame;
};
addEventListener("message", ({ data }) => root.append(data));
onload = () => { root.textContent = "An application. ".repeat(30); ADDS };
</script>"""
SENDS = "<script>top.postMessage('words', '*')</script>"
LATER_FRAMES = [
    "root.append(makes('/slow', { hidden: true }))",
    "root.append(makes('/slow', { hidden: true, sandbox: 'allow-scripts' }))",
    "root.append(makes('/slow', { loading: 'lazy' }))",
    "root.append(makes('/led', { hidden: true }))",
    "root.insertAdjacentHTML('beforeend', '<iframe hidden src=/slow></iframe>')",
    "const one = makes('', { hidden: true }); root.append(one); one.setAttribute('src', '/slow')",
    "const frame = makes('/quick', { hidden: true }); frame.onload = () => {"
    " frame.onload = null; frame.src = '/slow' }; root.append(frame)",
    "root.attachShadow({ mode: 'open' }).append('text', makes('/slow', { hidden: true }));"
    "root = document.body.appendChild(document.createElement('p'))",
    # led on in another way
    "const one = makes('/quick', { hidden: true }); one.onload = () => { one.onload = null;"
    " one.contentWindow.location = '/slow' }; root.append(one)",
    "root.append(makes('', { name: 'inner', hidden: true })); const form = Object.assign("
    "document.createElement('form'), { action: '/slow', target: 'inner' });"
    "root.append(form); form.submit()",
    # one that is removed, and made again
    "const one = makes('/slow', { hidden: true }); root.append(one); setTimeout(() => {"
    " one.remove(); root.append(makes('/slow', { hidden: true })) }, 100)",
    # in a frame, by its markup and by its script
    "root.append(makes('/around', { hidden: true }))",
    "root.append(makes('/adding', { hidden: true }))",
    # one whose text is part of the page's
    "root.append(makes('/text'))",
]


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_the_document_of_a_frame_that_a_script_adds_is_waited_for(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests of pages beside others are reported later, and still before an answer comes.
    monkeypatch.setattr(extraction_options, "FRAME_MS", 1_000)
    pages["/slow"] = Answer(SENDS.encode(), delay_s=1.5)
    pages["/led"] = Answer(b"", 302, headers=(("Location", "/slow"),))
    pages["/text"] = Answer(b"words", delay_s=1.5)
    pages["/quick"] = "quick"
    pages["/around"] = "<iframe src=/slow></iframe>"
    pages["/adding"] = """<script>onload = () => { const one = document.createElement("iframe");
    one.src = "/slow"; document.body.append(one) }</script>"""
    cases = {adds: FRAMED.replace("ADDS", adds) for adds in LATER_FRAMES}
    async with browsing(pages.url, pages=TABS) as made:
        taken = await made.taken(cases, pages, PATIENT)
    for adds, case in taken.items():
        with subtests.test(adds=adds):
            page = case.result()
            assert ("words" in page.text, page.settled) == (True, True)


# Frames that bring a page nothing. OTHER is another site, and nothing under /never is answered.
IDLE_FRAMES = [
    "root.append(makes('/none', { hidden: true }))",
    "root.append(makes('/file', { hidden: true }))",
    "root.append(makes('/none')); root.append(makes('/none'))",
    "root.append(makes('OTHER/never'))",
    "root.append(makes('/never', { loading: 'lazy', style: 'margin-top: 20000px' }))",
    "root.append(makes('/never', { loading: 'lazy', hidden: true }))",
    "const one = makes('/never'); root.append(one); setTimeout(() => one.remove(), 300)",
    # which Chromium refuses to load into itself, and which refuses by itself
    "root.append(makes(location.pathname))",
    "root.append(makes('/refused', { hidden: true }))",
    # of whose document the browser reports no end
    "root.append(makes('/film'))",
    # whose document is there, and its parts are not
    "root.append(makes('/picture'))",
    "root.append(makes('/around'))",
    "root.append(makes('/around', { hidden: true }))",
]


NEW_FRAME = "<script>onload = () => document.body.insertAdjacentHTML('beforeend', '%s')</script>"
ADDS_SLOW = "<iframe hidden src=/slow></iframe>"


@pytest.fixture
def reported_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell pages of the requests of their frames only after a second, as on a busy machine."""
    inform = RequestQueue._inform

    def late(queue: RequestQueue, request: Any) -> None:
        asyncio.get_running_loop().call_later(1.0, inform, queue, request)

    monkeypatch.setattr(RequestQueue, "_inform", late)


@pytest.mark.thorough("/around*")
@BOTH_CONNECTIONS
@pytest.mark.parametrize("place", ["/", "/around"])
async def test_a_new_frame_whose_request_is_reported_late_is_waited_for(
    browsing: Making,
    pages: Pages,
    reported_late: None,
    monkeypatch: pytest.MonkeyPatch,
    direct: bool,
    place: str,
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", 60_000)
    pages["/slow"] = Answer(SENDS.encode(), delay_s=3.0)
    hears = "<script>addEventListener('message', e => document.body.append(e.data))</script>"
    pages["/"] = f"{PROSE}{hears}{NEW_FRAME % ADDS_SLOW}"
    # in a frame whose text is part of the page's
    adds = f"document.body.insertAdjacentHTML('beforeend', '{ADDS_SLOW}')"
    pages["/inner"] = f"inner<script>parent.addEventListener('load', () => {adds})</script>"
    pages["/around"] = f"{PROSE}{hears}<iframe src=/inner></iframe>"
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url + place, PATIENT)
    assert ("words" in page.text, page.settled) == (True, True)


@pytest.mark.thorough
async def test_a_page_with_a_new_frame_is_not_idle(
    browsing: Making, pages: Pages, reported_late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", 60_000)
    pages["/slow"] = Answer(b"inner", delay_s=3.0)
    pages["/"] = f"{PROSE}{NEW_FRAME % ADDS_SLOW}"
    reported: list[IdleState] = []
    async with browsing(pages.url) as made:
        await made.fetcher.fetch(pages.url, PATIENT, reported.append)
    assert reported in ([], ["idle", "over"])  # once the frame is there


# New frames for which a page does not wait: no request of theirs will be reported.
UNAWAITED = [
    "root.append(makes('OTHER/never'))",
    "root.append(makes('/never', { loading: 'lazy', hidden: true }))",
    "root.append(makes('about:blank'))",
    "root.append(makes('javascript:0'))",
    "root.append(makes('http://[')); root.append(makes('data:text/html,x'))",
    "root.append(makes(''))",
    "const one = makes(''); one.setAttribute('src', ''); root.append(one)",
    # its own document
    "root.append(makes(location.pathname)); root.append(makes('#part'))",
    # once it has a document, whatever comes after that
    "const one = makes('/quick'); root.append(one); one.onload = () => { one.onload = null;"
    " one.src = '/none' }",
    "root.append(makes('/never', { srcdoc: 'here' }))",
]


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_does_not_wait_for_the_report_of_frames_without_a_request_of_its_site(
    browsing: Making,
    pages: Pages,
    canary: Pages,
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", PATIENT.timeout_ms)
    monkeypatch.setattr(extraction_options, "REQUEST_MS", PATIENT.timeout_ms)
    other = f"http://localhost:{canary.server.port}"
    for one in (pages, canary):
        one["/never"] = Answer(stops="before")
    pages["/none"], pages["/quick"] = Answer(b"", 204), "quick"
    place = f"localhost:{canary.server.port}"
    cases = {adds: FRAMED.replace("ADDS", adds.replace("OTHER", other)) for adds in UNAWAITED}
    async with browsing(pages.url, pages=TABS, allow_private=[place]) as made:
        taken = await made.taken(cases, pages, PATIENT)
    for adds, case in taken.items():
        with subtests.test(adds=adds):
            page = case.result()
            assert ("application" in page.text, page.settled) == (True, True)


async def test_new_frames_without_end_hold_up_a_page_no_longer_than_one(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", PATIENT.timeout_ms)
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 1_000)
    pages["/none"] = Answer(b"", 204)
    pages["/"] = FRAMED.replace("ADDS", "root.append(makes('/none', { hidden: true }))")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.settled
    assert page.render_ms < PATIENT.timeout_ms / 2


async def test_many_new_frames_hold_up_a_page_no_longer_than_one_of_them(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", 2_000)
    monkeypatch.setattr(extraction_options, "REQUEST_MS", PATIENT.timeout_ms)
    pages["/none"] = Answer(b"", 204)
    adds = "for (let n = 0; n < 20; n += 1) root.append(makes('/none', { hidden: true }))"
    pages["/"] = FRAMED.replace("ADDS", adds)
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.settled
    assert page.render_ms < 20_000


@pytest.mark.thorough
async def test_a_new_frame_holds_up_a_page_that_loads_more_only_once(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "FRAME_MS", 3_000)
    monkeypatch.setattr(extraction_options, "REQUEST_MS", PATIENT.timeout_ms)
    pages["/none"] = Answer(b"", 204)
    grows = "onclick=\"this.before('more '); if (++shown > 4) this.remove()\""
    page = FRAMED.replace("ADDS", "root.append(makes('/none', { hidden: true }))")
    pages["/"] = f"<button {grows}>more</button><script>let shown = 0</script>{page}"
    options = PageOptions(timeout_ms=12_000, load_more="button")
    async with browsing(pages.url) as made:
        found = await made.fetcher.fetch(pages.url, options)
    assert (found.loads, found.loads_cut, found.settled) == (5, False, True)


@pytest.mark.thorough("True")
@pytest.mark.timeout(900)  # many cases in one browser
@pytest.mark.parametrize("direct", [True, False])
async def test_a_frame_that_brings_nothing_holds_up_its_page_for_a_while_at_most(
    browsing: Making,
    pages: Pages,
    canary: Pages,
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
    direct: bool,
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", PATIENT.timeout_ms)
    other = f"http://localhost:{canary.server.port}"
    pages["/none"], pages["/file"] = Answer(b"", 204), Answer(b"x", 200, "application/x-any")
    for one in (pages, canary):
        one["/never"] = Answer(stops="before")
    pages["/film"] = Answer(b"a film", 200, "video/mp4")
    pages["/refused"] = Answer(b"inner", headers=(("X-Frame-Options", "DENY"),))
    pages["/picture"] = "<p>inner</p><script async src=/never></script>"
    pages["/around"] = f"<p>inner</p><iframe src={other}/never></iframe>"
    place = f"localhost:{canary.server.port}"
    cases = {adds: FRAMED.replace("ADDS", adds.replace("OTHER", other)) for adds in IDLE_FRAMES}
    async with browsing(pages.url, pages=TABS, direct=direct, allow_private=[place]) as made:
        taken = await made.taken(cases, pages, PATIENT)
    for adds, case in taken.items():
        with subtests.test(adds=adds):
            page = case.result()
            assert ("application" in page.text, page.settled) == (True, True)
    assert canary.hits["/never"], "it was no refused address that was not waited for"


async def test_a_frame_of_another_site_holds_up_no_page_with_its_text_in_the_markup(
    browsing: Making, pages: Pages, canary: Pages
) -> None:
    place = f"localhost:{canary.server.port}"
    canary["/never"] = Answer(stops="before")
    adds = f"const one = document.createElement('iframe'); one.src = 'http://{place}/never'"
    late = "setTimeout(() => document.body.append('late'), 900)"  # the limit of others is 1 s
    script = f"<script>onload = () => {{ {adds}; document.body.append(one); {late} }}</script>"
    pages["/"] = f"{PROSE}{script}"
    async with browsing(pages.url, allow_private=[place]) as made:
        texts = [(await made.fetcher.fetch(pages.url, PATIENT)).text for _ in range(5)]
    assert canary.hits["/never"]
    assert not all("late" in text for text in texts), "a busy machine may delay some of them"


async def test_frames_that_are_replaced_for_ever_hold_up_a_page_no_longer_than_one(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 1_000)
    pages["/slow"] = Answer(b"inner", delay_s=0.3)
    replaces = "const go = () => { document.querySelector('iframe')?.remove();"
    adds = "root.append(makes('/slow', { hidden: true })); setTimeout(go, 350) }; go()"
    pages["/"] = FRAMED.replace("ADDS", f"{replaces} {adds}")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.settled
    assert page.render_ms < PATIENT.timeout_ms / 2


async def test_a_frame_that_is_not_answered_within_the_limit_leaves_its_page_unsettled(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 1_000)
    pages["/never"] = Answer(stops="before")
    pages["/"] = FRAMED.replace("ADDS", "root.append(makes('/never'))")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert not page.settled
    assert page.render_ms < PATIENT.timeout_ms / 2


@pytest.mark.parametrize(
    "script",
    [
        "w.postMessage('/slow'); w.onmessage = e => root.textContent = e.data",
        # one that tells by itself, and then asks for more
        "w.onmessage = e => e.data === 'ready' ? w.postMessage('/slow') :"
        " root.textContent = e.data",
    ],
)
async def test_what_a_worker_asks_for_its_page_is_waited_for(
    browsing: Making, pages: Pages, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        extraction_options, "REQUEST_MS", 60_000
    )  # a busy machine starts workers slowly
    pages["/slow"] = Answer(b"words", 200, "text/plain", delay_s=1.6)
    answers = "onmessage = async e => postMessage(await (await fetch(e.data)).text());"
    tells = "" if script.startswith("w.post") else "setTimeout(() => postMessage('ready'), 900)"
    pages["/worker.js"] = Answer(f"{answers}{tells}".encode(), 200, "text/javascript")
    pages["/"] = (
        f"<p id=root>Loading</p><script>const w = new Worker('/worker.js'); {script}</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.strip(), page.settled) == ("words", True)


async def test_a_worker_that_says_nothing_holds_up_no_page_that_is_whole(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 60_000)
    pages["/worker.js"] = Answer(b"onmessage = () => 0", 200, "text/javascript")
    silent = "<script>const w = new Worker('/worker.js'); w.postMessage(1)</script>"
    pages["/"] = f"{PROSE}{silent}"
    # one that was asked nothing, on a page that scripts wrote; and one that was ended
    idle = "new Worker('/worker.js')"
    pages["/idle"] = late(f"root.innerHTML = `{PROSE}`; {idle}")
    ended = "const w = new Worker('/worker.js'); w.postMessage(1); w.terminate()"
    pages["/ended"] = late(f"root.innerHTML = 'short'; {ended}")
    async with browsing(pages.url) as made:
        for path in ("/", "/idle", "/ended"):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert page.settled, path
            assert page.render_ms < 50_000, path


READS_ON = """const opening = indexedDB.open('data');
opening.onupgradeneeded = () => opening.result.createObjectStore('rows');
opening.onsuccess = () => {
  const rows = opening.result.transaction('rows').objectStore('rows'), from = performance.now();
  const read = () => { rows.get(1).onsuccess = () => performance.now() - from < %d ? read()
    : root.textContent = 'words'; };
  read(); };
addEventListener('load', () => { root.textContent ||= 'Loading'; });"""


@BOTH_CONNECTIONS
async def test_a_page_that_reads_its_data_from_its_database_is_waited_for(
    browsing: Making, pages: Pages, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "READ_MS", 60_000)
    pages["/"] = f"<p id=root></p><script>{READS_ON % 1_500}</script>"
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.strip(), page.settled) == ("words", True)


async def test_a_page_that_scripts_wrote_must_be_stable_after_it_read_its_database(
    browsing: Making, pages: Pages
) -> None:
    reads = (READS_ON % 1_200).replace("root.textContent = 'words'", "0")
    pages["/"] = f"<p id=root></p><script>{reads}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.strip(), page.settled) == ("Loading", True)
    assert page.render_ms >= 1_600


@pytest.mark.thorough
async def test_a_database_that_is_used_without_end_holds_up_its_page_for_a_while(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 60_000)
    steps = (READS_ON % 0).replace("read(); };", "setInterval(read, 90); };")
    pages["/data"] = Answer(b"its data", 200, "text/plain", delay_s=2.0)
    many = "for (let at = 0; at < 1_500; at += 1) opening.result.transaction('rows');"
    asks = "fetch('/data').then(a => a.text()).then(t => root.append(t))"
    burst = (READS_ON % 0).replace("read(); };", f"{many} {asks}; }};")
    endless = READS_ON % 10**9
    async with browsing(pages.url) as made:
        for script, text in ((endless, ""), (steps, ""), (burst, "its data")):
            pages["/"] = f"<p id=root></p><script>{script}</script>"
            page = await made.fetcher.fetch(pages.url, PATIENT)
            assert page.settled
            assert text in page.text
            assert page.render_ms < 50_000
        monkeypatch.setattr(extraction_options, "READ_MS", 60_000)
        for script in (endless, steps):
            pages["/"] = f"{PROSE}<i id=root></i><script>{script}</script>"
            page = await made.fetcher.fetch(pages.url, PATIENT)
            assert page.settled
            assert page.render_ms < 50_000, "its text came with its markup"


async def test_a_module_that_a_page_imports_is_waited_for(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<p id=root>Loading…</p><script type=module>import('/app.js')</script>"
    pages["/app.js"] = Answer(
        b"document.getElementById('root').textContent = 'words'", 200, "text/javascript", delay_s=1
    )
    # of a script that is no module itself, and of one that first asks a moment after it came
    pages["/route"] = late("import('/route.js')")
    pages["/route.js"] = Answer(
        b"setTimeout(() => fetch('/words').then(a => a.text()).then(t => root.append(t)), 120)",
        200,
        "text/javascript",
        delay_s=1,
    )
    pages["/words"] = Answer(b"words", 200, "text/plain", delay_s=0.3)
    pages["/gone"] = "<p>here</p><script type=module>import('/gone.js')</script>"
    # with the text of the page in its markup
    pages["/island"] = f"{PROSE}<script>import('/part.js')</script>"
    pages["/islands"] = f"{PROSE}<script src=/islands.js></script>"
    pages["/islands.js"] = Answer(b"import('/part.js')", 200, "text/javascript")
    pages["/part.js"] = Answer(b"document.body.append('words')", 200, "text/javascript", delay_s=1)
    async with browsing(pages.url) as made:
        for path in ("/", "/route", "/island", "/islands"):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert (page.text.split()[-1], page.settled) == ("words", True)
        page = await made.fetcher.fetch(f"{pages.url}/gone", PATIENT)
        assert (page.text.strip(), page.settled) == ("here", True)


# A loader of bundles, as of Vite: its part of the page comes when its style sheet is there.
STYLED = (
    "const sheet = Object.assign(document.createElement('link'), { rel: 'stylesheet', href:"
    " '/part.css' }); sheet.onload = sheet.onerror = () => { ENDS };"
    " onload = () => document.head.append(sheet)"
)


@pytest.mark.parametrize("markup", ["<p>Loading</p>", PROSE], ids=["thin", "whole"])
@pytest.mark.parametrize(
    ("status", "ends", "more"),
    [
        (200, "document.body.append('words')", ""),
        (404, "document.body.append('words')", ""),
        (200, "", "<i class=part style='display: none'>words</i>"),
    ],
    ids=["loaded", "missing", "shows"],
)
async def test_a_style_sheet_that_a_script_adds_is_waited_for(
    browsing: Making, pages: Pages, markup: str, status: int, ends: str, more: str
) -> None:
    shows = b".part { display: block !important }"
    pages["/part.css"] = Answer(shows, status, "text/css", delay_s=1.2)
    pages["/"] = f"{markup}{more}<script>{STYLED.replace('ENDS', ends)}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.split()[-1], page.settled) == ("words", True)


async def test_style_sheets_without_an_end_of_their_own_hold_up_no_page(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 90_000)
    pages["/gone.css"] = Answer(b"", 404)
    sheets = (
        "<link rel=stylesheet href=/gone.css>",
        "<link rel=stylesheet href=/never.css type=text/less>",
        "<link rel='alternate stylesheet' title=b href=/never.css>",
        "<meta http-equiv=content-security-policy content=\"style-src 'none'\">"
        "<link rel=stylesheet href=/never.css>",
        "<link rel=stylesheet href='https://['>",
    )
    pages["/never.css"] = Answer(b"", 404)
    pages["/slow.js"] = Answer(b"1", 200, "text/javascript", delay_s=0.7)
    async with browsing(pages.url) as made:
        for sheet in sheets:
            # its error comes long before the load event
            pages["/"] = f"{sheet}<p>short</p><script defer src=/slow.js></script>"
            page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
            assert (page.text, page.settled) == ("short", True), sheet


async def test_a_module_that_a_frame_imports_is_waited_for(browsing: Making, pages: Pages) -> None:
    pages["/part.js"] = Answer(b"document.body.append(' words')", 200, "text/javascript", delay_s=1)
    pages["/inner"] = "<p>inner</p><script>import('/part.js')</script>"
    pages["/"] = f"{PROSE}<iframe src=/inner></iframe>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.split()[-1], page.settled) == ("words", True)


async def test_a_frame_that_is_the_page_is_waited_for_while_it_changes(
    browsing: Making, pages: Pages
) -> None:
    steps = (
        "let n = 0; const step = () => ++n < 6 ? setTimeout(step, 250, root.append(n))"
        " : root.append(' words'); onload = step"
    )
    pages["/inner"] = late(f"const root = document.getElementById('root'); {steps}")
    pages["/"] = "<iframe src=/inner></iframe>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.split()[-1], page.settled) == ("words", True)


@pytest.mark.parametrize(
    "change",
    ["root.style.left = `${performance.now()}px`", "root.textContent = Date.now()"],
    ids=["style", "clock"],
)
async def test_a_frame_that_changes_without_more_text_holds_up_no_page(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 90_000)
    pages["/inner"] = f"<p id=root>0</p><script>setInterval(() => {{ {change} }}, 40)</script>"
    pages["/"] = "<iframe src=/inner></iframe>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=60_000))
    assert page.settled is True


async def test_the_first_message_of_a_shared_worker_is_waited_for(
    browsing: Making, pages: Pages
) -> None:
    asks = (
        b"onconnect = async ({ ports: [port] }) =>"
        b" port.postMessage(await (await fetch('/slow')).text())"
    )
    pages["/worker.js"] = Answer(asks, 200, "text/javascript")
    pages["/slow"] = Answer(b"words", 200, "text/plain", delay_s=1.2)
    shows = "new SharedWorker('/worker.js').port.onmessage = ({ data }) => { root.append(data) }"
    pages["/"] = late(f"const root = document.getElementById('root'); {shows}")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, page.settled) == ("words", True)


OPENS = "new WebSocket(location.href.replace('http', 'ws') + 'socket')"
STREAMS = "const stream = new EventSource('/stream'); stream.onmessage ="
SHOWS = "({ data }) => { root.textContent = data ?? 'words' }"


async def test_the_first_message_of_a_socket_or_a_stream_is_waited_for(
    browsing: Making, pages: Pages
) -> None:
    pages["/stream"] = Answer(b"data: words\n\n", 200, "text/event-stream", delay_s=0.9)
    pages["/socket"] = Answer(b"no socket", 400, delay_s=0.9)  # which the page is told as well
    async with browsing(pages.url) as made:
        for script in (f"{STREAMS} {SHOWS}", f"{OPENS}.onclose = {SHOWS}"):
            pages["/"] = late(f"root.append('Connecting…'); {script}")
            page = await made.fetcher.fetch(f"{pages.url}/", PATIENT)
            assert (page.text, page.settled) == ("words", True)


async def test_what_a_page_asks_for_by_a_socket_is_waited_for(
    browsing: Making, pages: Pages
) -> None:
    async def greet(socket: ServerConnection) -> None:
        await socket.send("hello")
        for answer in ("connected", "words"):
            await socket.recv()
            await asyncio.sleep(0.9)
            await socket.send(answer)
        await socket.wait_closed()

    async with serve(greet, "127.0.0.1", 0) as sockets:
        place = f"127.0.0.1:{sockets.sockets[0].getsockname()[1]}"
        asks = "({ data }) => { root.append(` ${data}`); socket.send('more') }"
        socket = f"const socket = new WebSocket('ws://{place}'); socket.onmessage = {asks}"
        pages["/"] = late(f"const root = document.getElementById('root'); {socket}")
        async with browsing(pages.url, allow_private=[place]) as made:
            page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, page.settled) == ("hello connected words", True)


async def test_a_socket_that_does_not_answer_holds_up_no_page_with_text(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 90_000)

    async def greet(socket: ServerConnection) -> None:
        await socket.send("hello")
        await socket.wait_closed()

    async with serve(greet, "127.0.0.1", 0) as sockets:
        place = f"127.0.0.1:{sockets.sockets[0].getsockname()[1]}"
        other = place.replace("127.0.0.1", "localhost")
        written = "root.append('These words came from a script. '.repeat(20))"
        async with browsing(pages.url, allow_private=[place, other]) as made:
            for host, more in ((place, written), (other, "root.append('short')")):
                reports = (
                    f"const one = new WebSocket('ws://{host}'); one.onmessage = () => one.send(1)"
                )
                pages["/"] = late(
                    f"const root = document.getElementById('root'); {more}; {reports}"
                )
                page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
                assert page.settled is True


async def test_a_socket_that_is_used_without_end_or_closed_holds_up_no_page(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 90_000)

    async def echo(socket: ServerConnection) -> None:
        await socket.send("hello")
        async for message in socket:
            await asyncio.sleep(0.02)
            await socket.send(message)

    async with serve(echo, "127.0.0.1", 0) as sockets:
        own = f"127.0.0.1:{sockets.sockets[0].getsockname()[1]}"
        other = own.replace("127.0.0.1", "localhost")
        async with browsing(pages.url, allow_private=[own, other]) as made:
            for host, uses in (
                (other, "one.onmessage = () => one.send(1)"),  # confirms each message
                (own, "one.onmessage = () => one.close(); one.onclose = () => one.send(1)"),
            ):
                starts = f"const one = new WebSocket('ws://{host}'); {uses}"
                pages["/"] = f"<p>short</p><script>{starts}</script>"
                page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
                assert page.settled is True


async def test_a_stream_that_its_page_closes_or_uses_by_name_is_not_waited_for(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", 90_000)
    named = b"event: up\ndata: words\n\n" * 9
    pages["/stream"] = Answer(named, 200, "text/event-stream", stops="midway")
    async with browsing(pages.url) as made:
        for script in (
            "root.append('words'); new EventSource('/stream').close()",
            f"new EventSource('/stream').addEventListener('up', {SHOWS})",
        ):
            pages["/"] = late(script)
            page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
            assert (page.text, page.settled) == ("words", True)


async def test_a_page_that_wraps_its_listeners_opens_sockets(
    browsing: Making, pages: Pages
) -> None:
    wraps = (
        "const own = EventTarget.prototype.addEventListener; EventTarget.prototype"
        ".addEventListener = function (name, then, options) { if (options?.once) throw Error(name);"
        " return own.call(this, name, then) };"
    )
    pages["/socket"] = Answer(b"no socket", 400, delay_s=0.9)
    pages["/"] = late(f"{wraps} const one = {OPENS}; one.onclose = {SHOWS}")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(f"{pages.url}/", PATIENT)
    assert (page.text, page.settled) == ("words", True)


async def test_a_late_script_of_another_site_holds_up_no_page_with_its_text_in_the_markup(
    browsing: Making, pages: Pages, canary: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 90_000)
    canary["/never.js"] = Answer(stops="before")
    other = f"localhost:{canary.server.port}"
    adds = f"document.createElement('script'), {{ src: 'http://{other}/never.js', async: true }}"
    loads = f"onload = () => document.head.append(Object.assign({adds}))"
    pages["/"] = f"{PROSE}<script>{loads}</script><script src=/own.js></script>"
    pages["/own.js"] = Answer(b"1", 200, "text/javascript")
    async with browsing(pages.url, allow_private=[other]) as made:
        page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
    assert page.settled is True
    assert canary.hits["/never.js"]


@pytest.mark.parametrize(
    ("markup", "limit_ms"),
    [
        (PROSE, 90_000),
        (late("root.append('These words came from a script. '.repeat(20))"), 90_000),
        ("<p>Connecting…</p>", 1_200),
    ],
)
async def test_a_socket_that_sends_nothing_leaves_its_page_settled(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, markup: str, limit_ms: int
) -> None:
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", limit_ms)
    pages["/socket"] = pages["/stream"] = Answer(b"", stops="before")
    pages["/"] = f"{markup}<script>{OPENS}; new EventSource('/stream')</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(f"{pages.url}/", PageOptions(timeout_ms=60_000))
    assert page.settled is True


async def test_what_has_nothing_to_show_says_so(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<div style='display: none'>hidden</div><svg width=0 height=0></svg>"
    pages["/script"] = late("1 + 1")
    pages["/picture"] = "<img src=/a.png>"
    pages["/canvas"] = "<canvas width=50 height=50></canvas>"
    pages["/link"] = "<a href=/></a>"
    pages["/drawn"] = "<style>div { background: url(/a.png); height: 90px }</style><div></div>"
    async with browsing(pages.url) as made:
        for path, empty in (
            ("/", True),
            ("/script", True),
            ("/picture", False),
            ("/canvas", False),
            ("/link", False),
            ("/drawn", False),
        ):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert (page.empty, page.settled) == (empty, True), path


async def test_a_page_that_stays_empty_while_something_may_come_is_not_settled(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", 1_200)
    pages["/"] = late("setInterval(() => window.data, 100)")
    pages["/waits"] = late("fetch('/never')")
    pages["/never"] = Answer(b"", stops="before")
    async with browsing(pages.url) as made:
        for path in ("/", "/waits"):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert (page.empty, page.settled) == (True, False), path


@pytest.mark.thorough
async def test_an_answer_that_is_held_open_costs_the_first_pages_only(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.page.extraction_options.REQUEST_MS", 2_500)
    for number in range(3):
        pages[f"/{number}"] = (
            f"{PROSE}<script>fetch('/poll/{number}?since={number}'); fetch('/stream');"
            "new EventSource('/events')</script>"
        )
        pages[f"/poll/{number}"] = Answer(b"", stops="before")
    pages["/stream"] = Answer(b"row\n" * 99, stops="midway")
    pages["/events"] = Answer(b": still there\n\n" * 9, 200, "text/event-stream", stops="midway")
    async with browsing(pages.url) as made:
        taken = [await made.fetcher.fetch(f"{pages.url}/{n}", PATIENT) for n in range(3)]
        assert [page.settled for page in taken] == [False, False, True]
        assert taken[0].render_ms > 2_000  # one that is settled waits for none of these answers
        assert len({page.text for page in taken}) == 1


async def test_a_static_page_settles_without_delay(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages that scripts wrote are delayed so long here that no slow page seems to be delayed.
    usual = extraction_options.taking_script()
    delayed = usual.replace("RENDERED_MS = 500;", "RENDERED_MS = 50_000;")
    assert delayed != usual
    monkeypatch.setattr(extraction_options, "taking_script", lambda: delayed)
    # What it counts elsewhere, and what it sends for its own sake, is not waited for.
    pages["/"] = (
        f"{PROSE}<script>fetch('/count', {{method: 'POST', keepalive: true}});"
        "document.body.className = 'ready';"
        "onload = () => setTimeout(() => document.body.append('late'), 40_000)</script>"
    )
    pages["/count"] = Answer(b"", stops="before")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(settle_ms=0, timeout_ms=100_000))
        assert ("late" in page.text, page.settled) == (False, True)


@pytest.mark.parametrize("when_ms", [0, 200])
async def test_a_page_that_clears_all_timers_comes_to_rest(
    browsing: Making, pages: Pages, when_ms: int
) -> None:
    clears = "for (let at = 0; at < 9_999; at += 1) clearTimeout(at);"
    pages["/"] = late(
        f"onload = () => {{ root.append('words'); setTimeout(() => {{ {clears} }}, {when_ms}) }}"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=30_000, fresh=True))
    assert (page.text, page.settled) == ("words", True)


async def test_a_request_of_a_page_that_clears_all_timers_ends(
    browsing: Making, pages: Pages
) -> None:
    clears = "for (let at = 0; at < 9_999; at += 1) clearTimeout(at); requestAnimationFrame(clear)"
    asks = "fetch('/data').then((answer) => answer.text()).then((text) => root.append(text))"
    pages["/data"] = Answer(b"words", 200, "text/plain", delay_s=0.4)
    pages["/"] = late(f"const clear = () => {{ {clears} }}; clear(); onload = () => {{ {asks} }}")
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, page.settled) == ("words", True)


# Markup with content that is shown later, as where a server streams its parts (React 19.2).
HIDDEN = "<section hidden>The words of a part. " + "It is in the markup, too. " * 4 + "</section>"
SHOW = "document.querySelector('[hidden]').hidden = false"
LOADING = f"<p id=loading>Loading…</p><main style='visibility: hidden'><p>words</p>{PROSE}</main>"
SHOW_ALL = "loading.remove(); document.querySelector('main').style.visibility = ''"
REVEALED = {
    "by a timer": f"{PROSE}{HIDDEN}<script>onload = () =>"
    f" setTimeout(() => {{ {SHOW} }}, 300)</script>",
    "one after another": f"{PROSE}{HIDDEN * 4}<script>const show = () => {{ {SHOW};"
    " if (document.querySelector('[hidden]')) setTimeout(show, 300) };"
    " onload = () => setTimeout(show, 300)</script>",
    "after a preloader": f"{LOADING}<script>onload = () =>"
    f" setTimeout(() => {{ {SHOW_ALL} }}, 1_200)</script>",
    "after a fading preloader": f"{LOADING}<style>#loading {{ transition: opacity .8s }}</style>"
    f"<script>onload = () => {{ loading.ontransitionend = () => {{ {SHOW_ALL} }};"
    " loading.style.opacity = 0 }</script>",
}
REVEALED["beside a long animation"] = REVEALED["after a fading preloader"] + (
    "<style>@keyframes k { to { left: 9px } } #long { position: relative; animation: k 30s }"
    "</style><i id=long></i>"
)


@BOTH_CONNECTIONS
async def test_text_that_the_markup_hides_until_a_timer_is_due_is_waited_for(
    browsing: Making,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
    direct: bool,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setattr(extraction_options, "REVEAL_MS", 20_000)  # less than the long animation
    async with browsing(pages.url, direct=direct, pages=TABS) as made:
        for name, one in (await made.taken(REVEALED, pages, PATIENT)).items():
            with subtests.test(name=name):
                page = one.result()
                wanted = REVEALED[name].count("words")
                assert (page.text.count("words"), page.settled) == (wanted, True)
                assert "Loading" not in page.text


@BOTH_CONNECTIONS
async def test_text_that_is_shown_in_the_frame_after_a_timer_is_waited_for(
    browsing: Making, pages: Pages, direct: bool
) -> None:
    pages["/"] = (  # alone: a busy machine draws the frames of several tabs late
        f"{PROSE}{HIDDEN}<script>onload = () => setTimeout(() =>"
        f" requestAnimationFrame(() => {{ {SHOW} }}), 300)</script>"
    )
    async with browsing(pages.url, direct=direct) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert ("words" in page.text, page.settled) == (True, True)


SHADOW_TEXT = (
    "<x-a></x-a><script>document.querySelector('x-a').attachShadow({ mode: 'open' })"
    ".innerHTML = '<p>Text in a shadow root.</p>'.repeat(99)</script>"
)


@pytest.mark.parametrize(
    ("script", "hidden"),
    [
        ("setTimeout(() => document.body.append('late'), 40_000)", HIDDEN),  # such as a menu
        ("setTimeout(() => document.body.append('late'), 10_000)", ""),
        ("setInterval(() => 0, 10)", HIDDEN * 9),
        ("const again = () => setTimeout(again, 10); again()", SHADOW_TEXT),
        ("const again = () => setTimeout(again, 10); again()", HIDDEN * 9),
    ],
)
async def test_other_timers_hold_up_no_page_with_hidden_text(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, script: str, hidden: str
) -> None:
    monkeypatch.setattr(extraction_options, "REVEAL_MS", 150_000)
    text = "" if hidden == SHADOW_TEXT else PROSE  # which alone is no text of the document
    pages["/"] = f"{text}{hidden}<script>onload = () => {{ {script} }}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=100_000))
    assert ("late" in page.text, page.settled) == (False, True)


# Scripts that compute in short steps, as frameworks do, before they show or ask for anything.
STEPS = """
const busy = ms => { for (const from = performance.now(); performance.now() - from < ms;); };
const inSteps = (number, then) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { busy(5); if (--number) port2.postMessage(0); else then() };
  port2.postMessage(0);
};
const ask = () => fetch('/data').then(a => a.text()).then(t => root.append(t));
const show = () => root.append('words');
"""
COMPUTING = {
    "shows": late(f"{STEPS} root.append('head '); onload = () => inSteps(180, show)"),
    "asks": f"{PROSE}{late('')}<script>{STEPS} onload = () => inSteps(80, ask)</script>",
    "asks at last": f"{PROSE}{late('')}<script>{STEPS} onload = () => inSteps(180, ask)</script>",
    "in one step": f"{PROSE}{late('')}<script>{STEPS} onload = () => setTimeout(() => {{ busy(400);"
    " inSteps(10, ask) })</script>",
    "in a frame": f"{PROSE}<iframe src=/inner></iframe>",
}


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_a_page_whose_scripts_compute_is_not_at_rest(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/data"] = Answer(b"words", 200, "text/plain", delay_s=0.3)
    pages["/inner"] = COMPUTING["asks"]
    async with browsing(pages.url, direct=direct) as made:
        for name, page in COMPUTING.items():
            pages[f"/{name.replace(' ', '-')}"] = page
            with subtests.test(name):
                found = await made.fetcher.fetch(f"{pages.url}/{name.replace(' ', '-')}", PATIENT)
                assert ("words" in found.text, found.settled) == (True, True)


@pytest.mark.thorough
async def test_scripts_that_compute_for_ever_hold_up_their_page_for_a_while(
    browsing: Making, pages: Pages
) -> None:
    for_ever = "const on = () => { root.append(' more'); inSteps(180, on) }; onload = on"
    pages["/written"] = late(f"{STEPS} show(); {for_ever}")
    pages["/marked-up"] = f"{PROSE}{late('')}<script>{STEPS} {for_ever}</script>"
    async with browsing(pages.url) as made:
        for path in ("/written", "/marked-up"):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert page.settled
            assert 5_000 <= page.render_ms < 60_000


@BOTH_CONNECTIONS
async def test_scripts_at_rest_hold_up_no_page(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    monkeypatch.setattr(extraction_options, "COMPUTES_MS", 90_000)
    moves = "<style>@keyframes k { to { margin-left: 9px } } p { animation: k 1s infinite }</style>"
    pages["/words"] = late("root.append('words')")
    pages["/moves"] = f"{moves}{PROSE}{late('')}"
    pages["/paints"] = late(f"{STEPS} show(); const on = () => requestAnimationFrame(on); on()")
    pages["/numb"] = Answer(
        f"<!doctype html>{PROSE}{late('')}".encode(),
        headers=(("Content-Security-Policy", "sandbox"),),
    )
    async with browsing(pages.url, direct=direct) as made:
        for path in ("/words", "/moves", "/paints", "/numb"):
            page = await made.fetcher.fetch(pages.url + path, PATIENT)
            assert page.settled
            assert page.render_ms < 60_000
