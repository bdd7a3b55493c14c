"""A task with a profile sees what its user sees, keeps its secrets, and tells a sign-out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from engine.kinds.snapshot_kind import parse_snapshot
from engine.ledger.reader import LedgerReader
from engine.model.errors import InvalidArguments
from engine.model.records import Status, TaskRecord
from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileStore
from engine.service.admission import Terms
from engine.service.engine import Engine
from tests.support.engines import opened
from tests.support.linked_site import LinkedSite, random_links
from tests.support.login_site import PASSWORD, USER, LoginSite
from tests.support.written_files import contents

ARGS: dict[str, Any] = {"delay_ms": 0, "max_depth": 50, "max_pages": 200, "profile": "shop"}


def sign_in_commands(site: LoginSite) -> dict[str, Any]:
    """A command task that signs in and keeps the sign-in, as a recording exports it."""
    steps = [
        ("browser_navigate", {"action": "goto", "url": f"{site.url}/home"}),
        ("browser_interact", {"action": "type", "selector": "#user", "text": "{{user}}"}),
        ("browser_interact", {"action": "type", "selector": "#password", "text": "{{password}}"}),
        ("browser_interact", {"action": "click", "selector": "#go"}),
        ("browser_navigate", {"action": "wait_for", "selector": "#who"}),
    ]
    return {
        "task_name": "Sign in",
        "task_intention": "keep the sign-in",
        "variables": {"user": USER, "password": PASSWORD},
        "save_profile": "shop",
        "commands": [
            {"tool_name": tool, "intention": args["action"], "args": args} for tool, args in steps
        ],
    }


async def ended(engine: Engine, record: TaskRecord) -> TaskRecord:
    return await engine.tasks.wait(record.task_id, 150_000)


async def signed_in(engine: Engine, site: LoginSite) -> None:
    record = await engine.requests.start("commands", sign_in_commands(site))
    done = await ended(engine, record)
    assert done.status == Status.COMPLETED, done.error


async def run(program: Engine, kind: str, **args: Any) -> TaskRecord:
    return await ended(program, await program.requests.start(kind, args))


def pages_of(engine: Engine, record: TaskRecord) -> list[dict[str, Any]]:
    return list(LedgerReader(engine.settings.root).read_pages(record.task_id))


def held(folder: Path) -> bytes:
    """Everything that a home holds, but for the states of its profiles."""
    found = contents(folder).items()
    return b"\n".join(data for place, data in found if "states" not in place.parts)


async def test_a_crawl_sees_the_pages_behind_the_login_and_none_of_its_secrets_are_kept(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        found = ProfileStore(home).read("shop")
        assert found.sites == ("127.0.0.1",)
        assert found.login_pages == (f"{login_site.url}/login",)
        assert found.check_url == f"{login_site.url}/home"
        login_site.links_session = True
        record = await run(engine, "crawl", url=f"{login_site.url}/page/0", **ARGS)
        assert record.status == Status.COMPLETED
        pages = pages_of(engine, record)
        assert len(pages) == login_site.pages + 1
        assert all(f"Hello {USER}" in page["content"] for page in pages)
        assert all(page["redacted"] for page in pages)
        assert all("fields" not in page for page in pages)
        assert login_site.requests["/logout"] == 0
        result = json.loads((home / "tasks" / record.task_id / "result.json").read_text("utf-8"))
        assert result["summary"]["links_sign_out"] == 1
        everything = held(home)
        for secret in login_site.secrets:
            assert secret.encode() not in everything


@pytest.mark.thorough("auto")
@pytest.mark.parametrize("engine_name", ["static", "auto"])
async def test_other_engines_are_signed_in_too(
    home: Path, login_site: LoginSite, kept_browser: Any, engine_name: str
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        url = f"{login_site.url}/page/0"
        record = await run(engine, "crawl", url=url, engine=engine_name, **ARGS)
        assert record.status == Status.COMPLETED
        pages = pages_of(engine, record)
        assert len(pages) == login_site.pages
        assert all(f"Hello {USER}" in page["content"] for page in pages)
        for secret in login_site.secrets:
            assert secret.encode() not in held(home)


@pytest.mark.parametrize(("engine_name", "inline"), [("browser", False), ("static", True)])
async def test_a_crawl_that_is_signed_out_keeps_its_pages_and_goes_on_after_a_new_sign_in(
    home: Path, login_site: LoginSite, kept_browser: Any, engine_name: str, inline: bool
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        login_site.expires_after, login_site.inline = 20, inline
        url = f"{login_site.url}/page/0"
        first = await run(engine, "crawl", url=url, engine=engine_name, **ARGS)
        assert first.status == Status.FAILED
        assert first.error is not None
        assert first.error.code == "signed_out"
        assert "octask profile renew shop" in first.error.message
        before = pages_of(engine, first)
        assert 0 < len(before) <= 20
        assert all(f"Hello {USER}" in page["content"] for page in before)
        assert ProfileStore(home).read("shop").signed_in is False
        login_site.inline = False
        await signed_in(engine, login_site)
        assert ProfileStore(home).read("shop").signed_in is None
        login_site.requests.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert second.status == Status.COMPLETED
        after = pages_of(engine, second)
        urls = {page["url"] for page in after}
        assert len(urls) == len(after)
        assert urls >= {f"{login_site.url}/page/{number}" for number in range(login_site.pages)}
        assert all(f"Hello {USER}" in page["content"] for page in after)
        loaded = {path for path in login_site.requests if path.startswith("/page/")}
        assert not loaded & {page["url"].removeprefix(login_site.url) for page in before}


@pytest.mark.thorough("browser")
@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_a_session_whose_cookie_changes_stays_signed_in_and_so_does_its_profile(
    home: Path,
    login_site: LoginSite,
    kept_browser: Any,
    engine_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.browser.chromium.tab_pool.PAGES_PER_CONTEXT", 10)
    login_site.pages = 30
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        login_site.rotates = 7
        for _ in range(2):
            url = f"{login_site.url}/page/0"
            asked = {**ARGS, "concurrency": 1, "engine": engine_name}
            record = await run(engine, "crawl", url=url, **asked)
            assert record.status == Status.COMPLETED, record.error
            assert len(pages_of(engine, record)) == 30
        assert (await engine.profiles.check("shop")).signed_in is True


async def test_every_kind_begins_signed_in(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        url = f"{login_site.url}/page/3"
        bundle = await run(engine, "oc_evidence_bundle", url=url, profile="shop", include=["dom"])
        assert bundle.status == Status.COMPLETED
        kept = home / "tasks" / bundle.task_id / "artifacts" / "dom.html"
        assert f"Hello {USER}" in kept.read_text("utf-8")
        snapshot = await run(
            engine, "oc_session_snapshot", objective="x", tabs=[url], visit=True, profile="shop"
        )
        assert snapshot.status == Status.COMPLETED
        assert pages_of(engine, snapshot)[0]["title"] == "Page 3"
        document = sign_in_commands(login_site)
        del document["save_profile"], document["variables"]
        goto = {"action": "goto", "url": url}
        wait = {"action": "wait_for", "selector": "#who"}
        document["commands"] = [
            {"tool_name": "browser_navigate", "intention": "go", "args": goto},
            {"tool_name": "browser_navigate", "intention": "wait", "args": wait},
        ]
        commands = await run(engine, "commands", **document, profile="shop")
        assert commands.status == Status.COMPLETED, commands.error
        recording = await run(
            engine, "recording", url=url, headless=True, duration_ms=500, profile="shop"
        )
        assert recording.status == Status.COMPLETED
        assert login_site.requests["/login"] == 1  # of the sign-in itself
        for secret in login_site.secrets:
            assert secret.encode() not in held(home)


async def test_a_session_that_an_evidence_bundle_renews_is_kept(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        login_site.rotates = 1
        for number in range(3):
            url = f"{login_site.url}/page/{number}"
            bundle = await run(
                engine, "oc_evidence_bundle", url=url, profile="shop", include=["dom"]
            )
            assert bundle.status == Status.COMPLETED
            kept = home / "tasks" / bundle.task_id / "artifacts" / "dom.html"
            assert f"Hello {USER}" in kept.read_text("utf-8")
        for secret in login_site.secrets:
            assert secret.encode() not in held(home)


async def test_a_sitemap_that_names_the_sign_out_does_not_end_the_session(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    pages = "".join(
        f"<url><loc>{login_site.url}{path}</loc></url>" for path in ("/logout", "/page/3")
    )
    login_site.sitemap = (
        f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{pages}</urlset>"
    )
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        args = {"url": login_site.url, "profile": "shop", "delay_ms": 0}
        record = await run(engine, "crawl_sitemap", **args)
        assert record.status == Status.COMPLETED, record.error
        assert [page["title"] for page in pages_of(engine, record)] == ["Page 3"]
        assert login_site.requests["/logout"] == 0


async def test_a_profile_that_cannot_be_saved_fails_its_task_with_the_reason(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        document = sign_in_commands(login_site)
        document["commands"] = document["commands"][:1]
        del document["variables"]
        record = await run(engine, "commands", **document)
        assert record.status == Status.FAILED
        assert record.error is not None
        assert record.error.code == "profile_empty"
        kept = json.loads((home / "tasks" / record.task_id / "commands.json").read_text("utf-8"))
        assert kept["status"] == "failed"


async def test_a_page_for_others_stops_no_crawl(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    """A visitor who is signed in may still be led to the login page by a single page."""
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        args = {**ARGS, "urls": [f"{login_site.url}/login"], "max_depth": 0}
        record = await run(engine, "crawl", url=f"{login_site.url}/page/0", **args)
        assert record.status == Status.COMPLETED
        assert len(pages_of(engine, record)) == 2


async def test_a_profile_that_is_missing_or_for_another_site_is_refused(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as missing:
            await engine.requests.start("crawl", {"url": login_site.url, "profile": "shop"})
        assert [one.code for one in missing.value.problems] == ["unknown_profile"]
        await signed_in(engine, login_site)
        with pytest.raises(InvalidArguments) as other:
            await engine.requests.start("crawl", {"url": "https://example.com", "profile": "shop"})
        assert [one.code for one in other.value.problems] == ["other_site"]


@pytest.mark.parametrize("name", ["include_cookies", "include_storage"])
def test_a_snapshot_takes_no_cookies_out_of_a_profile(name: str) -> None:
    args = {"objective": "x", "tabs": ["https://shop.example"], "visit": True, "profile": "shop"}
    with pytest.raises(InvalidArguments) as refused:
        parse_snapshot({**args, name: True})
    assert [one.path for one in refused.value.problems] == [name]


async def test_programs_may_use_a_profile_only_if_the_operator_allows_it(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        place = login_site.url.removeprefix("http://")
        asked = {"url": f"{login_site.url}/page/40", **ARGS}
        await engine.allow([place], [])
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("crawl", asked, terms=Terms(route="mcp"))
        assert [one.code for one in refused.value.problems] == ["not_allowed"]
        document = sign_in_commands(login_site)
        with pytest.raises(InvalidArguments) as replaced:
            await engine.requests.start("commands", document, terms=Terms(route="http"))
        assert [one.path for one in replaced.value.problems] == ["save_profile"]
        await engine.allow([place], ["profile:shop"])
        record = await engine.requests.start("crawl", asked, terms=Terms(route="mcp"))
        assert (await ended(engine, record)).status == Status.COMPLETED


async def test_a_rerun_and_a_retry_use_the_same_profile(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        record = await run(engine, "crawl", url=f"{login_site.url}/page/40", **ARGS)
        again = await ended(engine, await engine.requests.rerun(record.task_id))
        assert again.status == Status.COMPLETED
        assert pages_of(engine, again)[0]["title"] == "Page 40"
        args = {**ARGS, "urls": [f"{login_site.url}/page/99"]}
        record = await run(engine, "crawl", url=f"{login_site.url}/page/40", **args)
        login_site.pages = 100
        retried = await ended(engine, await engine.requests.retry(record.task_id))
        assert [page["title"] for page in pages_of(engine, retried)] == ["Page 99"]


STORED = """<title>App</title><p id=who>nobody</p><script>
indexedDB.open("app", 1).onsuccess = ({target: {result: db}}) => {
  const names = [...db.objectStoreNames];
  who.textContent = `${localStorage.name}, ${names}, token ${localStorage.token}`;
};
</script>"""


@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_a_new_session_that_the_same_page_shows_is_masked_in_it(
    home: Path, login_site: LoginSite, kept_browser: Any, engine_name: str
) -> None:
    login_site.pages = 4
    login_site.shows_new = True
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        login_site.rotates = 1
        args = {**ARGS, "concurrency": 1, "engine": engine_name, "archive": "warc"}
        record = await run(engine, "crawl", url=f"{login_site.url}/page/0", **args)
        assert record.status == Status.COMPLETED, record.error
        pages = [one for one in pages_of(engine, record) if "/page/" in one["url"]]
        assert len(pages) == 4
        assert all("Now [redacted]" in page["content"] for page in pages)
        archive = home / "tasks" / record.task_id / "artifacts" / "archive.warc.gz"
        everything = held(home) + gzip.decompress(archive.read_bytes())
        assert b"Now [redacted]" in everything
        for secret in login_site.secrets:
            assert secret.encode() not in everything


async def test_a_new_session_is_masked_in_the_picture_of_its_page(
    home: Path, login_site: LoginSite, kept_browser: Any
) -> None:
    login_site.shows_new = True
    args = {**ARGS, "max_pages": 1, "max_depth": 0, "screenshot": "all"}
    pictures = []
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        login_site.rotates = 1
        for _ in range(2):
            record = await run(engine, "crawl", url=f"{login_site.url}/page/0", **args)
            assert record.status == Status.COMPLETED, record.error
            folder = home / "tasks" / record.task_id / "artifacts"
            pictures.append((folder / "page-000001.png").read_bytes())
    assert len(login_site.cookies) == 3
    assert pictures[0] == pictures[1]


OWN: Final = "scr1pt-0123456789-token"


async def test_a_token_that_a_script_sets_is_masked_in_its_own_page(
    home: Path, kept_browser: Any
) -> None:
    site = LinkedSite(random_links(3, seed=1))
    script = f"<p>It is {OWN}.</p><script>document.cookie = 'own={OWN}'</script>"
    site.extra = dict.fromkeys(range(3), script)
    with site.running():
        state = {"cookies": [], "origins": [{"origin": site.url, "localStorage": []}]}
        made = Profile(name="app", url=site.url, sites=("127.0.0.1",), created_at=1, signed_in_at=1)
        ProfileStore(home).save(made, state)
        async with opened(home) as engine:
            args = {**ARGS, "profile": "app", "archive": "warc", "concurrency": 1}
            record = await run(engine, "crawl", url=f"{site.url}/0", **args)
            assert record.status == Status.COMPLETED
            assert all("It is [redacted]." in one["content"] for one in pages_of(engine, record))
            archive = home / "tasks" / record.task_id / "artifacts" / "archive.warc.gz"
            content = gzip.decompress(archive.read_bytes())
            assert b"It is [redacted]." in content
            assert OWN.encode() not in held(home) + content


async def test_data_that_a_site_has_stored_is_there_in_every_page_and_its_tokens_are_masked(
    home: Path, kept_browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.chromium.tab_pool.PAGES_PER_CONTEXT", 2)
    token = "t0k3n-0123456789-abcdef"
    site = LinkedSite(random_links(5, seed=1))
    site.extra = dict.fromkeys(range(5), STORED)
    with site.running():
        stored = [{"name": "name", "value": "Ann"}, {"name": "token", "value": token}]
        store = {"name": "users", "autoIncrement": True, "keyPath": "k", "indexes": []}
        database = {"name": "app", "version": 1, "stores": [{**store, "records": []}]}
        origin = {"origin": site.url, "localStorage": stored, "indexedDB": [database]}
        made = Profile(name="app", url=site.url, sites=("127.0.0.1",), created_at=1, signed_in_at=1)
        ProfileStore(home).save(made, {"cookies": [], "origins": [origin]})
        async with opened(home) as engine:
            args = {**ARGS, "profile": "app", "screenshot": "all"}
            record = await run(engine, "crawl", url=f"{site.url}/0", **args)
            assert record.status == Status.COMPLETED
            pages = pages_of(engine, record)
            assert len(pages) == 5
            assert all("Ann, users, token [redacted]" in page["content"] for page in pages)
            assert token.encode() not in held(home)


@pytest.mark.parametrize("engine_name", ["browser", "static"])
async def test_a_web_archive_of_signed_in_pages_holds_none_of_the_secrets(
    home: Path, login_site: LoginSite, kept_browser: Any, engine_name: str
) -> None:
    login_site.pages = 5
    login_site.links_session = True
    async with opened(home) as engine:
        await signed_in(engine, login_site)
        args = {**ARGS, "archive": "warc", "engine": engine_name}
        record = await run(engine, "crawl", url=f"{login_site.url}/page/0", **args)
        assert record.status == Status.COMPLETED
        packed = home / "tasks" / record.task_id / "artifacts" / "archive.warc.gz"
        content = gzip.decompress(packed.read_bytes())
        assert f"Hello {USER}".encode() in content
        for secret in login_site.secrets:
            assert secret.encode() not in content
