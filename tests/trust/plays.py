"""`python -m tests.trust.plays HOME SITE [--long]`: every kind, with secrets wherever one fits.

It prints what each call answered, errors with all their fields: that is a sink like others.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from engine.contracts.completing import force_of
from engine.export.exporter import FORMATS, Order
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.proxies import DefaultProxy
from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileStore
from engine.sample.site import Answer
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.verbs.json_answers import described
from tests.commands.conftest import do, task
from tests.support.upstream_proxy import RecordingProxy, upstream
from tests.trust.planted import BARE, PLANTED, PUBLISHED

P: Final = PLANTED
STATIC: Final = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 4}
WORDS: Final = f"see it: password={P['words of a task']}"
BARE_TEXT: Final = " and ".join(P[name] for name in BARE if name != "private key")
KEY_BLOCK: Final = (
    f"-----BEGIN RSA PRIVATE KEY-----\n{P['private key']}\n-----END RSA PRIVATE KEY-----"
)
VARIABLE: Final = "TRUST_RIG_SECRET"
FIELD: Final = P["field of a page"]
# A page that says again what it was given, as pages do.
GIVEN: Final = P["password of the address"]
BASIC: Final = b64encode(f"ann:{GIVEN}".encode()).decode()
TOKENS: Final = f"{P['token of the address']} {P['token of the fragment']}"
ECHO: Final = f"""<p title="{escape(GIVEN)}">Hello ann, {escape(GIVEN)}, Basic {BASIC}: {TOKENS}</p>
<a href="/static/2?q={quote(GIVEN)}&amp;r={P["token of the address"]}">{quote(GIVEN)}</a>
<script>const me = {json.dumps({"pass": GIVEN}).replace("<", chr(92) + "u003c")};
console.log("for " + me.pass, "{TOKENS}")</script>"""
SAID: Final = "".join(f"<p>{text}</p>" for text in PUBLISHED.values())
PAGE: Final = f"""<!doctype html><title>{PUBLISHED["title"]}, {P["token of the address"]}</title>
<h1>Notes</h1>{SAID}{ECHO}
<p>Found here: {BARE_TEXT}</p><pre>{KEY_BLOCK}</pre>
<form><input type=password name=pin value="{FIELD}"><input type=text name=who></form>
<a href="/static/1?X-Amz-Signature={P["signature of a link"]}">one</a> <a href="/moved">two</a>
<a href="/broken">three</a>
<script>console.log("{PUBLISHED["console"]}")</script>"""
FORM: Final = """<!doctype html><title>Form</title><input id=f><input id=p type=password>
<p id=echo>-</p><script>
for (const one of [f, p]) one.oninput = () => { echo.textContent = one.value;
  document.title = one.value; console.log("now " + one.value) }</script>"""
# Variables of the environment, by the secret that each holds.
VARIABLES: Final = {
    "secret of the environment": VARIABLE,
    "password of the upstream proxy": "TRUST_RIG_PROXY",
    "password of the default proxy": "TRUST_RIG_DEFAULT",
    "header by reference": "TRUST_RIG_HEADER",
}
# What a task with a profile, a proxy and a header is given; commands have no headers.
SIGNED: Final = ("cookie of a profile", "stored token of a profile", "cookie set by a page")
_PROXY: Final = "password of the upstream proxy"
_FRESH: Final = ("Set-Cookie", f"fresh={P['cookie set by a page']}; Path=/")
_BY_PROXY: Final = b64encode(f"ann:{P[_PROXY]}".encode()).decode()
_OWN: Final = f"""<p>{P["cookie set by a script"]}</p>
<script>document.cookie = "own={P["cookie set by a script"]}; path=/"</script>"""


def _echo(names: Iterable[str], more: str = "") -> bytes:
    """A page that says these secrets in its text, its title, links and the console."""
    said = " ".join(P[name] for name in names)
    links = "".join(f'<a href="/static/1?of={P[name]}">{P[name]}</a>' for name in names)
    script = f"console.log({json.dumps(said)})"
    head = f"<!doctype html><title>Hello {said}</title><h1>Hello ann</h1>"
    return f"{head}<p>{said}</p>{links}{more}<script>{script}</script>".encode()


_COOKIE: Final = ("Set-Cookie", f"sid={P['cookie of the server']}; Path=/; HttpOnly")
ANSWERS: Final = {
    "/notes": Answer(PAGE.encode(), headers=(_COOKIE,)),
    "/form": Answer(FORM.encode(), headers=(_COOKIE,)),
    "/moved": Answer(
        status=302, headers=(("Location", f"/static/2?access_token={P['token of a redirect']}"),)
    ),
    "/broken": Answer(PUBLISHED["error text"].encode(), 500),
    "/signed": Answer(_echo((*SIGNED, _PROXY), _BY_PROXY), headers=(_FRESH,)),
    "/signed/header": Answer(_echo((*SIGNED, _PROXY, "header by reference")), headers=(_FRESH,)),
    "/signed/script": Answer(_echo(SIGNED, _OWN), headers=(_FRESH,)),
    "/default": Answer(_echo(["password of the default proxy"])),
}


def address(site: str, path: str = "/notes") -> str:
    """The start address with all that one can hold."""
    front = site.replace("http://", f"http://ann:{quote(GIVEN, safe='')}@")
    query = f"token={P['token of the address']}&x=1"
    return f"{front}{path}?{query}#access_token={P['token of the fragment']}"


class Play:
    """One engine, and everything that it was asked and answered."""

    def __init__(self, engine: Engine, site: str) -> None:
        self.engine, self.site = engine, site
        self.answers: list[object] = []

    async def ask(self, call: Any) -> Any:
        """Keep the answer, or the refusal."""
        try:
            answer = await call if hasattr(call, "__await__") else call()
        except EngineError as error:
            answer = {**described(error), **error.fields}
        self.answers.append(answer)
        return answer

    async def run(self, kind: str, args: Mapping[str, Any], **more: Any) -> Any:
        """Start and wait; what became of it is told as well."""
        started = await self.ask(self.engine.requests.start(kind, args, **more))
        task_id = getattr(started, "task_id", None)
        if task_id is None:
            return None
        await self.engine.tasks.join(task_id)
        await self.ask(self.engine.tasks.get(task_id))
        return task_id

    async def without_browser(self) -> None:
        engine, site = self.engine, self.site
        contract = {"expected_total": 9, "stop_condition": WORDS}
        terms = Terms(objective=WORDS, contract=contract, policy={"maxToolCalls": 2})
        await self.run("crawl", {"url": address(site), **STATIC}, name=WORDS, terms=terms)
        await self.run("crawl", {"url": address(site), **STATIC, "output_format": "text"})
        await self.run("crawl", {"url": address(site), **STATIC, "output_format": "structured"})
        await self.run("crawl", {"url": address(site, "/broken"), **STATIC})
        await self.run("crawl", {"url": address(site, "/moved"), **STATIC, "failOnPage": 2})
        held = await engine.requests.start("crawl", {"url": address(site, "/hang"), **STATIC})
        await self.ask(engine.commands.cancel(held.task_id, WORDS))
        await engine.tasks.join(held.task_id)
        await self.run("crawl_sitemap", {"url": address(site, "/"), "delay_ms": 0, **STATIC})
        for wrong in ({"url": f"ftp://ann:{P['password of the address']}@x.test/"}, {WORDS: 1}):
            await self.ask(engine.requests.start("crawl", wrong))
        await self._envelope()
        self._goals()

    async def whole(self, kind: str, args: Mapping[str, Any]) -> None:
        """Run a task that has to succeed: without its pages nothing would be searched."""
        task_id = await self.run(kind, args)
        view = await self.engine.tasks.get(task_id)
        assert getattr(view.entry, "status", "") == "COMPLETED", view

    async def signed_in(self, proxy: RecordingProxy, *, long: bool) -> None:
        """Every kind with a profile, an upstream proxy and a header, on pages that say them."""
        keep_profile(self.engine.settings.home, self.site)
        given = {
            "profile": "rig",
            "proxy": proxy.url,
            "proxy_username": "ann",
            "proxy_password": {"secret": f"env:{VARIABLES[_PROXY]}"},
        }
        sent = [f"X-Rig: env:{VARIABLES['header by reference']}"]
        asked = {"url": f"{self.site}/signed/header", **given, "headers": sent}
        crawl = {**asked, "delay_ms": 0, "respect_robots": False, "max_pages": 1}
        crawl |= {"archive": "warc", "screenshot": "all"}
        parts = ["dom", "screenshot", "network", "console", "phash"]
        await self.whole("crawl", {**crawl, "url": f"{self.site}/signed/script"})
        await self.whole("crawl", {**crawl, "engine": "static", "screenshot": "none"})
        await self.whole("oc_evidence_bundle", {**asked, "include": parts, "label": WORDS})
        if not long:
            return
        await self.whole("crawl", {**crawl, "output_format": "structured"})
        await self.whole("crawl_sitemap", {**crawl, "engine": "auto", "screenshot": "none"})
        tabs = {"tabs": [f"{self.site}/signed"], "visit": True}
        await self.whole("oc_session_snapshot", {"objective": WORDS, **tabs, **given})
        await self.whole("recording", {**asked, "headless": True, "duration_ms": 1_500})
        reading = (do("get_text", selector="body"), do("get_html"), do("screenshot"))
        shown = do("evaluate", script="return [document.cookie, {...localStorage}]")
        failing = do("click", selector="#no", timeout=300)
        steps = (do("goto", url=f"{self.site}/signed"), *reading, shown, failing)
        await self.run("commands", {**task(*steps), **given})

    async def by_default(self, *, long: bool) -> None:
        """The proxy of the settings, for tasks that name none."""
        asked = {"url": f"{self.site}/default"}
        crawl = {**asked, "delay_ms": 0, "respect_robots": False, "max_pages": 1}
        await self.whole("crawl", {**crawl, "engine": "static", "archive": "warc"})
        await self.whole("crawl", {**crawl, "archive": "warc", "screenshot": "all"})
        if long:
            steps = (do("goto", **asked), do("get_text", selector="body"), do("get_html"))
            await self.whole("commands", task(*steps))
            await self.whole("oc_evidence_bundle", {**asked, "include": ["dom"]})
            for tool, args in (("navigate", asked), ("read_page", {})):
                await self.ask(self.engine.agents.call(tool, args, agent_id="bob"))

    async def _envelope(self) -> None:
        engine = self.engine
        started = await engine.requests.start("browser_task", {}, terms=Terms(objective=WORDS))
        await self.ask(engine.contracts.update(started.task_id, phase="act", note=WORDS))
        await self.ask(engine.contracts.finish(started.task_id, "failed", note=WORDS))

    def _goals(self) -> None:
        goals = self.engine.goals
        why = f"it is late, token={P['reason of a force']}"
        run = goals.runs.start({"goal": WORDS}, {"items": [WORDS, "b", BARE_TEXT]})
        failed = [{"item": WORDS, "reason": WORDS}]
        steps: list[Callable[[], object]] = [
            lambda: goals.runs.update(run.run_id, {"completed_items": [WORDS], "cursor": WORDS}),
            lambda: goals.runs.update(run.run_id, {"failed_items": failed}),
            lambda: goals.runs.checkpoint(run.run_id, {"summary": BARE_TEXT}),
            lambda: goals.runs.needs_help(run.run_id, {"reason": WORDS, "resume_hint": WORDS}),
            lambda: goals.completing.run(run.run_id, {"status": "COMPLETED"}),
            lambda: goals.completing.run(run.run_id, {"status": "COMPLETED"}, force_of(why, "ann")),
            lambda: goals.runs.get(run.run_id, include_items=True, events=True),
        ]
        for step in steps:
            try:
                self.answers.append(step())
            except EngineError as error:
                self.answers.append({**described(error), **error.fields})

    async def with_browser(self) -> None:
        """What needs pages that live: typing, and everything that looks at a page."""
        await self.run("commands", self._typing())
        page = {"url": address(self.site), "network_window_ms": 500}
        parts = ["dom", "screenshot", "network", "console", "phash"]
        await self.run("oc_evidence_bundle", {**page, "include": parts, "label": WORDS})

    async def with_more_browsers(self) -> None:
        """The rest of what browsers do."""
        reading = (do("get_text", selector="body"), do("get_html"), do("get_viewport_dom"))
        script = do("evaluate", script="document.body.innerText")
        seen = task(do("goto", url=address(self.site)), *reading, script)
        await self.run("commands", seen)
        failing = task(do("goto", url=address(self.site)), do("click", selector="#no", timeout=300))
        await self.run("commands", failing)
        notes = {"objective": WORDS, "notes": BARE_TEXT, "next_actions": [WORDS]}
        tabs = {"tabs": [address(self.site)], "visit": True}
        await self.run("oc_session_snapshot", {**notes, **tabs})
        await self.run(
            "crawl", {"url": address(self.site), **STATIC, "engine": "browser", "max_pages": 2}
        )
        await self._agent()

    def _typing(self) -> dict[str, Any]:
        return task(
            do("goto", url=f"{self.site}/form"),
            do("type", selector="#f", text=P["typed text"]),
            do("type", selector="#p", text=P["typed password"]),
            do("get_text", selector="#echo"),
            do("type", selector="#p", text={"secret": f"env:{VARIABLE}"}),
            do("type", selector="#p", text="{{pin}}"),
            do("get_html", selector="body"),
            do("evaluate", script="return [document.title, f.value, p.value]"),
            do("screenshot"),
            do("evaluate", script="throw new Error('no: ' + p.value + f.value)"),
            variables={"pin": P["variable of a run"]},
        )

    async def _agent(self) -> None:
        agents = self.engine.agents
        envelope = await self.engine.requests.start(
            "browser_task", {}, terms=Terms(objective=WORDS)
        )
        code = (
            f"fetch('/x', {{headers: {{Authorization: 'Bearer {P['Authorization of a text']}'}}}})"
        )
        for tool, args in (
            ("navigate", {"url": f"{self.site}/form"}),
            ("act", {"instruction": f"type '{P['typed password']}' into #p"}),
            ("javascript_tool", {"code": code}),
            ("navigate", {"url": address(self.site, "/broken")}),
            ("navigate", {"url": address(self.site)}),
            ("read_page", {}),
            ("find", {"query": "Hello ann"}),
            ("javascript_tool", {"code": "document.body.innerText"}),
        ):
            given = {**args, "taskId": envelope.task_id}
            await self.ask(agents.call(tool, given, agent_id="ada"))

    async def tell(self, out: Path) -> None:
        """Every list, file and export there is."""
        engine = self.engine
        out.mkdir(exist_ok=True)
        for view in await engine.tasks.list(limit=None):
            task_id = view.task_id
            self.answers += [
                view,
                await engine.tasks.meta(task_id),
                await engine.tasks.events(task_id),
            ]
            await self.ask(engine.requests.asked(task_id))
            for form in FORMATS:
                target = out / f"{task_id}.{form}"
                await self.ask(engine.exports.to_file(Order(task_id, form), target))
        self.answers += [engine.health(), engine.runs.list_runs(), *engine.goals.contracts.list()]
        await self.ask(engine.tasks.list(query=f'"{WORDS}" stat:x'))


def keep_profile(home: Path, site: str) -> None:
    """Store a sign-in, as a person's own browser leaves it."""
    cookie: dict[str, Any] = {
        "name": "rig",
        "value": P["cookie of a profile"],
        "domain": "127.0.0.1",
    }
    cookie |= {"path": "/", "expires": -1, "httpOnly": True, "secure": False, "sameSite": "Lax"}
    stored = [{"name": "token", "value": P["stored token of a profile"]}]
    made = Profile(name="rig", url=site, sites=("127.0.0.1",), created_at=1, signed_in_at=1)
    state = {"cookies": [cookie], "origins": [{"origin": site, "localStorage": stored}]}
    ProfileStore(home).save(made, state)


async def play_default(home: Path, site: str, *, long: bool) -> list[object]:
    """What an engine with a proxy in its settings answers."""
    with upstream(user=("ann", P["password of the default proxy"])) as proxy:
        variable = VARIABLES["password of the default proxy"]
        chosen = DefaultProxy(proxy.url, "ann", f"env:{variable}", environ=os.environ)
        settings = Settings.at(home=home)
        engine = Engine(replace(settings, environ=os.environ, proxy=chosen), accepts=True)
        await engine.open()
        acted = Play(engine, site)
        try:
            await acted.by_default(long=long)
        finally:
            await engine.close()
    return acted.answers


async def play(home: Path, site: str, *, long: bool) -> None:
    settings = replace(Settings.at(home=home), environ=os.environ, allow_private=(site[7:],))
    engine = Engine(settings, accepts=True)
    await engine.open()
    acted = Play(engine, site)
    try:
        await acted.without_browser()
        await acted.with_browser()
        if long:
            await acted.with_more_browsers()
        with upstream(user=("ann", P[_PROXY])) as proxy:
            await acted.signed_in(proxy, long=long)
        acted.answers += await play_default(home, site, long=long)
        await acted.tell(home.parent / "exports")
    finally:
        await engine.close()
    sys.stdout.buffer.write(msgspec.json.encode(acted.answers, enc_hook=str))


if __name__ == "__main__":
    log_to_file()
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2], long="--long" in sys.argv))
