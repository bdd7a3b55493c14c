"""Links that only clicks reach: found, not followed on the spot, and nothing sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.browser.page import click_links, extraction_options
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.crawl.stored_pages import stored_page
from engine.kinds.host_delay import Pace
from engine.kinds.sitemap.sitemap_crawl import parse_sitemap
from engine.model.errors import InvalidArguments
from engine.model.tally import Tally
from engine.profiles.profile import names_sign_out
from engine.results.units import unit_of
from engine.sample.site import Answer, Request
from tests.support.engines import opened, until
from tests.support.far_limits import FAR_S
from tests.support.serving import served
from tests.work.test_page_facts import page_of

EVERYTHING = "a, button, [onclick], [data-to]"
# An application without a single link. Each route is behind another kind of click.
APP = """<!doctype html><html><head><title>App</title></head><body><nav></nav><main></main>
<form action=/posted method=post><button>Send</button><input type=submit value=Send></form>
<script>
const nav = document.querySelector('nav'), main = document.querySelector('main');
const add = (tag, text, act) => { const one = document.createElement(tag);
  one.textContent = text; one.onclick = act; nav.append(one); return one; };
const show = () => { main.textContent = `view of ${location.pathname}${location.hash}`; };
const go = (to) => { history.pushState({}, '', to); nav.textContent = ''; show(); };
addEventListener('hashchange', show); show();
if (location.pathname === '/' && !location.hash) {
  for (let n = 0; n < 8; n += 1) add('button', `pushed ${n}`, () => go(`/pushed/${n}`));
  for (let n = 0; n < 4; n += 1) {
    add('div', `left ${n}`, () => { location.href = `/left/${n}`; }).setAttribute('data-to', n);
    add('button', `hash ${n}`, () => { location.hash = `#/hash/${n}`; }); }
  add('button', 'replaced', () => { history.replaceState({}, '', '/replaced');
    nav.textContent = ''; });
  add('button', 'window', () => { window.open('/window/1'); });
  add('button', 'alone', () => { window.open('/window/2', '', 'noopener'); });
  add('button', 'blank', () => { const one = document.createElement('a'); one.target = '_blank';
    one.href = '/window/3'; one.click(); });
  const menu = add('button', 'Menu', () => { if (menu.nextSibling?.className === 'menu') return;
    const box = document.createElement('div'); box.className = 'menu'; menu.after(box);
    for (let n = 0; n < 3; n += 1) { const one = document.createElement('button');
      one.textContent = `entry ${n}`; one.onclick = () => go(`/entry/${n}`); box.append(one); }
    const deep = document.createElement('button'); deep.textContent = 'More'; box.append(deep);
    deep.onclick = () => { const one = document.createElement('button'); one.textContent = 'last';
      one.onclick = () => go('/entry/last'); box.append(one); }; });
  add('button', 'timer', () => setTimeout(() => { location.href = '/slow/1'; }, 400));
  add('button', 'request', async () => { await fetch('/data'); go('/slow/2'); });
  add('button', 'frame', () => requestAnimationFrame(() => location.assign('/slow/3')));
  add('button', 'alert', () => { alert('Hello'); location.href = '/alert'; });
  add('button', 'pressed').onpointerdown = () => go('/pressed');
  add('a', 'no address', () => go('/anchor')).href = '#';
  add('a', 'script', null).href = "javascript:void(location = '/script')";
  add('button', 'back', () => history.back()); add('button', 'again', () => location.reload());
  add('button', 'post', () => { fetch('/posted', { method: 'POST', body: 'x' }); });
  add('button', 'xhr', () => { const one = new XMLHttpRequest();
    one.open('DELETE', '/posted'); one.send(); });
  add('button', 'beacon', () => { navigator.sendBeacon('/posted', 'x'); });
  add('button', 'form', () => { document.querySelector('form').submit(); });
  add('button', 'Sign out', () => { fetch('/posted'); });
  add('button', 'bye', () => { fetch('/account/logout'); });
  add('button', 'off', () => { go('/never'); }).disabled = true;
  add('button', 'hidden', () => { go('/never'); }).hidden = true;
  add('button', 'remove', () => { document.documentElement.remove(); });
  add('button', 'nothing', () => {});
}
</script></body></html>"""
ROUTES = {
    *(f"/pushed/{n}" for n in range(8)),
    *(f"/left/{n}" for n in range(4)),
    *(f"/#/hash/{n}" for n in range(4)),
    *(f"/window/{n}" for n in (1, 2, 3)),
    *(f"/entry/{n}" for n in (0, 1, 2, "last")),
    *(f"/slow/{n}" for n in (1, 2, 3)),
    *("/replaced", "/alert", "/pressed", "/anchor", "/script"),
}


@pytest.fixture(autouse=True)
def patient_clicks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each click, and what it starts, the time that a crowded machine needs."""
    for limit in ("CLICK_S", "OPEN_S", "CLOSE_S"):
        monkeypatch.setattr(click_links, limit, FAR_S)


@pytest.fixture
def refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the requests for ended that a click leaves without an end, on a page that hides it."""
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 3_000)


class Site:
    """A site that records its requests; `bodies` are pages by path, the application elsewhere."""

    def __init__(self, bodies: dict[str, str] | None = None) -> None:
        self.requests: list[tuple[str, str]] = []
        self._bodies = bodies or {}

    def answer(self, request: Request) -> Answer:
        self.requests.append((request.method, request.path))
        if request.path == "/data":
            return Answer(b"{}", content_type="application/json", delay_s=0.4)
        return Answer(self._bodies.get(request.path, APP).encode())

    @contextmanager
    def served(self) -> Iterator[str]:
        with served(self.answer) as url:
            yield url

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Requests that do more than read."""
        return [one for one in self.requests if one[0] not in ("GET", "HEAD")]

    def opened(self, path: str) -> int:
        return self.requests.count(("GET", path))


def by_click(page: dict[str, Any], url: str) -> dict[str, str]:
    """The links of a page that clicks found, with the names of their elements."""
    links = page.get("links", ())
    return {one["href"].removeprefix(url): one["text"] for one in links if one.get("by") == "click"}


async def clicked(home: Path, site: Site, path: str = "/", **args: Any) -> dict[str, Any]:
    with site.served() as url:
        given = {"click_links": EVERYTHING, "delay_ms": 0, **args}
        page = await page_of(home, url + path, "browser", **given)
    page["clicked"] = by_click(page, url)
    return page


async def test_every_route_behind_a_click_is_a_link_and_nothing_is_sent(home: Path) -> None:
    site = Site()
    page = await clicked(home, site)
    assert set(page["clicked"]) == ROUTES
    assert page["clicked"]["/entry/1"] == "entry 1"
    assert site.sent == []
    assert not [path for _, path in site.requests if path.startswith(("/window", "/left", "/slow"))]
    assert site.opened("/posted") == site.opened("/account/logout") == 0
    assert page["clicks_refused"] >= 4
    assert "clicks_cut" not in page
    assert page["links_found"] == len(page["links"]) == len(ROUTES) + 1  # and the page itself
    # The page itself stays what it was before the clicks.
    assert (page["final_url"].count("/"), page["title"]) == (3, "App")
    assert "view of /" in page["content"]
    assert "dialogs_dismissed" not in page
    assert page["facts"]["links_internal"] == 1


async def test_a_crawl_follows_what_clicks_found(home: Path) -> None:
    site = Site()
    with site.served() as url:
        given = {"url": url, "click_links": EVERYTHING, "fragments": "routes", "delay_ms": 0}
        given |= {"max_depth": 1, "max_pages": 50, "exclude_patterns": ["**/pushed/*"]}
        async with opened(home) as service:
            record = await service.requests.start("crawl", given)
            ended = await service.tasks.wait(record.task_id, 170_000)
        result = json.loads((home / "tasks" / record.task_id / "result.json").read_text())
    assert ended.status == "COMPLETED"
    found = {page["url"].removeprefix(url): page for page in result["pages"]}
    pushed = {route for route in ROUTES if route.startswith("/pushed")}
    assert found.keys() == (ROUTES - pushed) | {"/"}
    assert {page["depth"] for path, page in found.items() if path != "/"} == {1}
    assert "view of /left/0" in found["/left/0"]["content"]
    assert result["summary"]["links_outside"] == len(pushed)
    assert site.sent == []


async def test_without_the_option_nothing_is_clicked(home: Path) -> None:
    site = Site()
    with site.served() as url:
        page = await page_of(home, url, "browser")
    assert by_click(page, url) == {}
    assert not page.keys() & {"clicks", "clicks_cut", "clicks_refused"}
    assert site.opened("/data") == 0


ENDLESS = """<p>here</p><script>let n = 0;
const more = () => { n += 1; const one = document.createElement('button');
  one.textContent = `button ${n}`; one.onclick = more; document.body.append(one); }; more();
</script>"""


async def test_clicks_end_at_their_limit_and_say_so(home: Path) -> None:
    page = await clicked(home, Site({"/": ENDLESS}), max_clicks=7)
    assert (page["clicks"], page["clicks_cut"]) == (7, True)
    assert unit_of(page, 0).remark_words == "may have more than was loaded"
    assert Tally([page]).outcome("", 0, "frontier").summary()["unloaded_pages"] == 1


MANY = "<p>here</p>" + "<button>Log out</button>" * 1_000 + "<button>last</button>"
GONE = """<p>here</p><button onclick="history.pushState(0, '', '/a')">a</button><script>
if (!sessionStorage.been) document.body.insertAdjacentHTML('beforeend', '<button>b</button>');
sessionStorage.been = 1;</script>"""


@pytest.mark.parametrize("html", [MANY, GONE])
async def test_elements_that_were_never_clicked_are_told(home: Path, html: str) -> None:
    page = await clicked(home, Site({"/": html}))
    assert page["clicks_cut"] is True


CHANGING = """<p>here</p><button onclick="history.pushState(0, '', '/a')">a</button><script>
document.body.insertAdjacentHTML('beforeend',
  `<button id=x${Math.random()} onclick="history.pushState(0, '', '/b')">b</button>`);
</script>"""


async def test_an_element_with_another_id_at_each_load_is_known_by_its_name(home: Path) -> None:
    page = await clicked(home, Site({"/": CHANGING}))
    assert (set(page["clicked"]), page["clicks"]) == ({"/a", "/b"}, 2)
    assert "clicks_cut" not in page


CARDS = """<p>here</p><button data-id=1 onclick="b2.hidden = true">Go</button>
<button id=b2 onclick="history.pushState(0, '', '/2')">Go</button>
<button data-id=3 onclick="history.pushState(0, '', '/3')">Go</button>"""


async def test_an_element_that_is_hidden_meanwhile_is_not_taken_for_another(home: Path) -> None:
    page = await clicked(home, Site({"/": CARDS}))
    assert (set(page["clicked"]), page["clicks"]) == ({"/2", "/3"}, 3)
    assert "clicks_cut" not in page


DEEP = """<p>here</p><script>history.replaceState(0, '', '/app/home')</script>""" + "".join(
    f"<button onclick='history.pushState(0, `/{n}`, `/{n}`)'>{n}</button>" for n in range(3)
)


async def test_a_page_that_names_an_address_without_a_document_is_opened_again(home: Path) -> None:
    page = await clicked(home, Site({"/": DEEP}))
    assert (set(page["clicked"]), page["clicks"]) == ({"/0", "/1", "/2"}, 3)
    assert "clicks_cut" not in page


ROUTER = "<p>here</p>" + "".join(
    f"<button onclick='history.pushState(0, `/${n}`, `/${n}`)'>{n}</button>" for n in range(4)
)


@pytest.mark.parametrize(
    "second", [Answer(ROUTER.encode(), 429), Answer(b"", 302, headers=(("Location", "/login"),))]
)
async def test_clicks_end_when_the_page_does_not_open_again(home: Path, second: Answer) -> None:
    site = Site({"/": ROUTER, "/login": ROUTER})

    def answer(request: Request) -> Answer:
        first = site.answer(request)
        return second if request.path == "/" and site.opened("/") > 1 else first

    with served(answer) as url:
        page = await page_of(home, url, "browser", click_links="button", delay_ms=0)
    assert (page["clicks"], page["clicks_cut"]) == (1, True)


@pytest.mark.thorough
async def test_the_delay_lies_between_two_loads_of_a_clicked_page(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, times, begun = Site({"/": ROUTER}), list[float](), list[float]()
    turn = Pace.turn

    async def noted(pace: Pace, host: str, asked_s: float = 0.0) -> None:
        await turn(pace, host, asked_s)
        begun.append(time.monotonic())

    monkeypatch.setattr(Pace, "turn", noted)

    def answer(request: Request) -> Answer:
        if request.path == "/":
            times.append(time.monotonic())
        return site.answer(request)

    with served(answer) as url:
        given = {"click_links": "button", "delay_ms": 6_000, "timeout_ms": 16_000}
        page = await page_of(home, url, "browser", **given)
    assert page["clicks"] == 4  # the delays are no part of the time limit
    assert len(times) == 4
    # Since the first load began: its request may be long on its way.
    assert times[-1] - begun[0] >= 3 * 6.0 - 0.05


BUSY = """<button onclick="for (;;);">busy</button><button>next</button><p>here</p>"""


@pytest.mark.thorough
async def test_a_page_that_a_click_hangs_is_kept(home: Path) -> None:
    page = await clicked(home, Site({"/": BUSY}), timeout_ms=10_000)
    assert page["clicks_cut"] is True
    assert "error" not in page
    assert "here" in page["content"]


SLOW = "<p>here</p>" + "".join(
    f"<button onclick='fetch(`/data?{n}`)'>{n}</button>" for n in range(300)
)


@pytest.mark.thorough
async def test_clicks_end_at_the_time_limit_and_say_so(home: Path) -> None:
    page = await clicked(home, Site({"/": SLOW}), timeout_ms=10_000)
    assert page["clicks_cut"] is True
    assert 0 < page["clicks"] <= 25  # of 0.4 s at least


async def test_a_click_that_still_loads_at_its_limit_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click_links, "CLICK_S", 0.3)
    html = """<button onclick="fetch('/data').then(() => { d.innerHTML = '<a href=/late>late' })">
    more</button><div id=d></div>"""
    page = await clicked(home, Site({"/": html}))
    assert (page["clicked"], page["clicks_cut"]) == ({}, True)


async def test_a_cancelled_crawl_stops_clicking_at_once(home: Path) -> None:
    site = Site({"/": SLOW})
    with site.served() as url:
        given = {"url": url, "click_links": "button", "respect_robots": False}
        async with opened(home) as service:
            record = await service.requests.start("crawl", given)
            await until(lambda: site.opened("/data") > 1)
            await service.commands.cancel(record.task_id)
            ended = await service.tasks.wait(record.task_id, 60_000)
    assert ended.status == "CANCELLED"
    assert site.opened("/data") < 25, "it went on clicking"


STATEFUL = """<p id=state></p><button id=a>a</button><script>
document.querySelector('#state').textContent = sessionStorage.getItem('was') || 'fresh';
document.querySelector('#a').onclick = () => { sessionStorage.setItem('was', 'clicked');
  window.name = 'clicked'; };
if (window.name) document.querySelector('#state').textContent += window.name;
</script>"""


async def test_the_state_of_a_clicked_page_is_not_in_the_next_one(home: Path) -> None:
    pages = {f"/{n}": STATEFUL for n in range(4)}
    with Site(pages).served() as url:
        given = {"url": f"{url}/0", "urls": [f"{url}/{n}" for n in (1, 2, 3)], "concurrency": 1}
        given |= {"click_links": "button", "delay_ms": 0, "max_depth": 0}
        async with opened(home) as service:
            record = await service.requests.start("crawl", given)
            await service.tasks.wait(record.task_id, 60_000)
        result = json.loads((home / "tasks" / record.task_id / "result.json").read_text())
    assert [page["clicks"] for page in result["pages"]] == [1, 1, 1, 1]
    assert all("clicked" not in page["content"] for page in result["pages"])


async def test_links_are_not_clicked_and_a_known_address_is_listed_once(home: Path) -> None:
    html = """<a class=c href=/a>a</a><button class=c onclick="location='/a'">again</button>
    <button class=c onclick="location='/b#top'">b</button>
    <a class=c href=/c onclick="fetch('/posted')">c</a>
    <button class=c onclick="location='#x'">here</button>
    <button class=c onclick="location='/'">me</button>"""
    site = Site({"/": html})
    with site.served() as url:
        page = await page_of(home, url, "browser", click_links=".c")
    found = {one["href"].removeprefix(url): one.get("by") for one in page["links"]}
    assert found == {"/a": None, "/c": None, "/b": "click"}
    assert site.opened("/posted") == 0


@pytest.mark.thorough
async def test_a_page_that_hides_its_navigations_is_not_left_either(
    home: Path, refused_soon: None
) -> None:
    html = """<button onclick="location='/next'">next</button><button>after</button><script>
    navigation.addEventListener('navigate', (event) => event.stopImmediatePropagation());
    document.querySelectorAll('button')[1].onclick = () => { location = '/after'; };</script>"""
    site = Site({"/": html})
    assert (await clicked(home, site))["clicked"] == {"/next": "next", "/after": "after"}
    assert site.requests == [("GET", "/")]  # not even a second load of the page


async def test_a_page_that_clears_all_timers_is_clicked_to_its_end(home: Path) -> None:
    html = """<button onclick="fetch('/data').then(() => { location = '/next' })">next</button>
    <button onclick="setTimeout(() => { location = '/never' }, 400)">after</button><script>
    const clear = () => {
      for (let at = 0; at < 9_999; at += 1) clearTimeout(at);
      requestAnimationFrame(clear);
    };
    clear();</script>"""
    page = await clicked(home, Site({"/": html}))
    assert page["clicked"] == {"/next": "next"}
    assert page["clicks"] == 2
    assert "clicks_cut" not in page


async def test_elements_in_a_shadow_root_are_clicked(home: Path) -> None:
    html = """<div id=host></div><script>
    const root = document.querySelector('#host').attachShadow({ mode: 'open' });
    root.innerHTML = '<button>in</button>';
    root.firstChild.onclick = () => { location = '/within'; };</script>"""
    assert (await clicked(home, Site({"/": html})))["clicked"] == {"/within": "in"}


async def test_a_secret_in_an_address_that_a_click_found_is_redacted(home: Path) -> None:
    html = """<button onclick="location='/x?access_token=Zq81kkTTw92hx7Lm'">go</button>"""
    page = await clicked(home, Site({"/": html}))
    assert "Zq81" not in json.dumps(page)
    assert page["clicked"]


def test_a_resumed_crawl_follows_what_clicks_found() -> None:
    link = {"href": "http://site.test/a", "text": "a", "by": "click"}
    page = {"url": "http://site.test/", "depth": 0, "links_found": 1, "links": [link]}
    found = stored_page(json.dumps(page).encode(), "routes")
    assert found is not None
    assert (found.links, found.links_missing) == (("http://site.test/a",), False)


@pytest.mark.parametrize("engine", ["static", "auto"])
@pytest.mark.parametrize("parse", [parse_crawl, parse_sitemap])
def test_clicking_needs_the_browser(engine: str, parse: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse({"url": "http://site.test/", "engine": engine, "click_links": "button"})
    assert [one.path for one in refused.value.problems] == ["click_links"]


async def test_a_selector_that_a_browser_refuses_is_named(home: Path) -> None:
    with Site().served() as url:
        page = await page_of(home, url, "browser", click_links='p:lexbor-contains("x")')
    assert "click_links is not a selector" in page["error"]


@pytest.mark.parametrize(
    ("name", "signs_out"),
    [
        *(("Sign out", True), ("Log-out", True), ("Logout", True), ("Jetzt abmelden", True)),
        *(("Sign in", False), ("Catalogue", False), ("x" * 80 + " log out", False), ("", False)),
    ],
)
def test_the_name_of_an_element_tells_whether_it_signs_out(name: str, signs_out: bool) -> None:
    assert names_sign_out(name) is signs_out


POSTS = """<button onclick="setInterval(() => fetch('/posted', { method: 'POST' }), 5);
  addEventListener('pagehide', () => navigator.sendBeacon('/posted', 'x'));
  history.pushState(0, '', '/a')">a</button>
<button onclick="history.pushState(0, '', '/b')">b</button>
<button onclick="setInterval(() => fetch('/posted', { method: 'POST' }), 5)">c</button>"""


@pytest.mark.thorough
async def test_nothing_is_sent_while_a_clicked_page_is_left(home: Path) -> None:
    site = Site({"/": POSTS})
    page = await clicked(home, site, timeout_ms=10_000)  # the last click takes what is left
    assert set(page["clicked"]) == {"/a", "/b"}
    assert site.sent == []


LIST = """<p>here</p><ul></ul><script>const list = document.querySelector('ul');
for (let n = 0; n < 4; n += 1) {{
  list.insertAdjacentHTML('beforeend', '<li><button>Details</button>');
  const button = list.lastChild.firstChild;
  button.onclick = () => {{ {change}; location.href = `/${{n}}`; }};
}}</script>"""


@pytest.mark.parametrize(
    "change",
    [
        "button.disabled = true",
        "button.textContent = 'Loading…'",
        "button.dataset.busy = n",
        "button.innerHTML = '<i></i>'",
        "button.remove()",
    ],
)
async def test_a_click_that_changes_its_element_leaves_no_equal_one_out(
    home: Path, change: str
) -> None:
    page = await clicked(home, Site({"/": LIST.format(change=change)}))
    assert (set(page["clicked"]), page["clicks"]) == ({"/0", "/1", "/2", "/3"}, 4)
    assert "clicks_cut" not in page


WRITTEN_ANEW = """<p>here</p><ul></ul><script>const list = document.querySelector('ul');
const write = () => { list.innerHTML = '<li><button>Go</button>'.repeat(3);
  list.querySelectorAll('button').forEach((one, n) => {
    one.onclick = () => { write(); location.href = `/${n}`; }; }); };
write();</script>"""


async def test_each_of_equal_elements_is_clicked_once_if_each_click_writes_them_anew(
    home: Path,
) -> None:
    page = await clicked(home, Site({"/": WRITTEN_ANEW}))
    assert (set(page["clicked"]), page["clicks"]) == ({"/0", "/1", "/2"}, 3)
    assert "clicks_cut" not in page


USED_AGAIN = """<p>here</p><button>tab</button><button>one</button><button>two</button><script>
const [tab, ...entries] = document.querySelectorAll('button');
const name = (names) => entries.forEach((one, n) => { one.textContent = names[n];
  one.onclick = () => { location.href = `/${names[n]}`; }; });
name(['one', 'two']);
tab.onclick = () => name(['three', 'four']);</script>"""


async def test_an_element_that_is_used_for_another_entry_is_clicked_for_both(home: Path) -> None:
    page = await clicked(home, Site({"/": USED_AGAIN}))
    assert {"/three", "/four"} <= set(page["clicked"])


MENU = """<p>here</p><a href=/one>one</a><button>Menu</button><nav></nav><script>
const [menu, nav] = document.querySelectorAll('button, nav');
menu.onclick = () => { nav.innerHTML = nav.innerHTML ? '' :
  '<a href=/one>one</a> <a href=/two></a> <a href=/two> the  second </a>' +
  '<a href=/two#top>top</a> <a href="mailto:x@y">m</a>' +
  '<a href="/#/route">route</a> <svg><a href=/drawn><text>drawn</text></a></svg>'; };</script>"""
TABS = """<p>here</p><button>1</button><button>2</button><button>3</button><ul></ul><script>
document.querySelectorAll('button').forEach((one, n) => { one.onclick = () => {
  document.querySelector('ul').innerHTML = `<li><a href=/part/${n}>part ${n}</a></li>`; }; });
document.querySelector('button').click();</script>"""
SHADOW_MENU = """<p>here</p><button>Menu</button><div></div><script>
const root = document.querySelector('div').attachShadow({ mode: 'open' });
document.querySelector('button').onclick = () => {
  root.innerHTML = '<form><input name=href><a href=/within>in</a></form>'; };</script>"""


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (MENU, {"/two": "the second", "/#/route": "route", "/drawn": "drawn"}),
        (TABS, {"/part/1": "part 1", "/part/2": "part 2"}),
        (SHADOW_MENU, {"/within": "in"}),
    ],
    ids=["menu", "tabs", "shadow root"],
)
async def test_links_that_appear_after_a_click_are_links_of_the_page(
    home: Path, html: str, found: dict[str, str]
) -> None:
    site = Site({"/": html})
    page = await clicked(home, site)
    assert page["clicked"] == found
    assert len({one["href"] for one in page["links"]}) == len(page["links"])
    assert "clicks_cut" not in page
    assert site.requests == [("GET", "/")]


async def test_links_of_the_page_to_which_a_click_leads_are_not_those_of_its_own(
    home: Path,
) -> None:
    html = """<p>here</p><button onclick="history.pushState(0, '', '/a');
    document.body.innerHTML = '<a href=/of-a>of a</a>'">a</button><button onclick="
    document.body.insertAdjacentHTML('beforeend', '<a href=/b>b</a>')">b</button>"""
    page = await clicked(home, Site({"/": html}))
    assert set(page["clicked"]) == {"/a", "/b"}


async def test_a_secret_in_a_link_that_appears_after_a_click_is_redacted(home: Path) -> None:
    html = """<p>here</p><button onclick="this.insertAdjacentHTML('afterend', '<a '
      + 'href=//user:Zq81kkTTw92hx7Ln@' + location.host + '/x?access_token=Zq81kkTTw92hx7Lm>x')">
    more</button>"""
    page = await clicked(home, Site({"/": html}))
    assert "Zq81" not in json.dumps(page)
    assert page["clicked"]


async def test_links_without_end_that_appear_after_a_click_are_cut_and_told(home: Path) -> None:
    html = """<p>here</p><button onclick="for (let n = 0; n < 3_000; n += 1)
      document.body.insertAdjacentHTML('beforeend', `<a href=/${n}>${n}</a>`)">all</button>"""
    page = await clicked(home, Site({"/": html}))
    assert len(page["clicked"]) == 1_000
    assert page["clicks_cut"] is True


async def test_the_links_that_all_clicks_found_are_bounded_and_this_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click_links, "MAX_CLICKED", 3)
    page = await clicked(home, Site({"/": LIST.format(change="button.disabled = true")}))
    assert set(page["clicked"]) == {"/0", "/1", "/2"}
    assert page["clicks_cut"] is True


PAGED = """<p>here</p><div></div><script>let part = 0;
const box = document.querySelector('div');
const show = () => { const list = box.querySelector('ul');
  list.innerHTML = [2 * part, 2 * part + 1].map((n) => `<a href=/${n}>${n}</a>`).join(''); };
const make = () => { box.innerHTML = '<ul></ul><button>Next</button>';
  const next = box.querySelector('button'); show();
  next.onclick = () => { part += 1; CHANGE; if (part === 7) END; }; };
make();</script>"""


@pytest.mark.thorough("re*")
@pytest.mark.parametrize(
    ("change", "end"),
    [
        ("show()", "next.disabled = true"),
        ("show(); next.textContent = `Next (${part})`", "next.remove()"),
        ("make()", "box.querySelector('button').hidden = true"),
        ("show()", "{ part = -1; show(); }"),  # the list starts again
    ],
    ids=["as it was", "renamed", "written anew", "round"],
)
async def test_an_element_is_clicked_again_while_it_brings_new_links(
    home: Path, change: str, end: str
) -> None:
    page = await clicked(home, Site({"/": PAGED.replace("CHANGE", change).replace("END", end)}))
    assert {f"/{n}" for n in range(2, 14)} <= set(page["clicked"])
    assert page["clicks"] <= 9
    assert "clicks_cut" not in page


CALENDAR = """<p>here</p><button>Next month</button><ul></ul><button>other</button><script>
const [next, other] = document.querySelectorAll('button');
let month = 0;
next.onclick = () => { month += 1;
  document.querySelector('ul').innerHTML = `<a href=/month/${month}>month</a>`; };
other.onclick = () => { location.href = '/other'; };</script>"""


async def test_an_element_that_brings_new_links_without_end_is_cut_and_keeps_no_other_waiting(
    home: Path,
) -> None:
    page = await clicked(home, Site({"/": CALENDAR}), max_clicks=5)
    assert set(page["clicked"]) == {"/other", *(f"/month/{n}" for n in (1, 2, 3, 4))}
    assert (page["clicks"], page["clicks_cut"]) == (5, True)


async def test_an_element_that_is_clicked_again_after_a_route_is_where_it_was(home: Path) -> None:
    html = PAGED.replace("CHANGE", "show()").replace("END", "next.disabled = true")
    html += "<button onclick=\"history.pushState(0, '', '/away'); box.remove()\">away</button>"
    page = await clicked(home, Site({"/": html}))
    assert set(page["clicked"]) == {"/away", *(f"/{n}" for n in range(2, 16))}
    assert "clicks_cut" not in page


async def test_an_element_that_says_that_it_opens_a_menu_is_clicked_once(home: Path) -> None:
    html = MENU.replace("<button>", "<button aria-expanded=false>")
    page = await clicked(home, Site({"/": html}))
    assert ("/two" in page["clicked"], page["clicks"]) == (True, 1)


TICKING = """<p>here</p><p id=left></p><button>go</button><script>
let seconds = 100;
const tick = () => { left.textContent = seconds--; setTimeout(tick, 900); };
tick();
document.querySelector('button').onclick = ACT;</script>"""


@pytest.mark.parametrize(
    "act",
    [
        "() => { setTimeout(() => {}, 1); setTimeout(() => { location.href = '/late'; }, 600); }",
        "async () => { await null; setTimeout(() => { location.href = '/late'; }, 600); }",
        "() => { setTimeout(`location.href = '/late'`, 600); }",
    ],
    ids=["two timers", "after a promise", "a text"],
)
async def test_a_timer_of_a_click_is_waited_for_beside_those_of_the_page(
    home: Path, act: str
) -> None:
    page = await clicked(home, Site({"/": TICKING.replace("ACT", act)}))
    assert page["clicked"] == {"/late": "go"}


@pytest.mark.parametrize("of", ["transition", "animation"])
async def test_what_opens_when_the_animation_of_a_click_ends_is_found(home: Path, of: str) -> None:
    html = f"""<style>body {{ transition: opacity .7s }} @keyframes fade {{ to {{ opacity: 0 }} }}
    .transition {{ opacity: 0 }} .animation {{ animation: fade .7s }}
    p {{ animation: fade 1s infinite }}</style>
    <p>here</p><button onclick="document.body.className = '{of}'">go</button><script>
    document.body.on{of}end = () => {{ location.href = '/faded'; }};</script>"""
    page = await clicked(home, Site({"/": html}))
    assert page["clicked"] == {"/faded": "go"}
