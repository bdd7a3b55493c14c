"""A page with too much memory loses its process, and no other page does."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.browser_options import MIB, FetcherOptions, InstanceOptions, Limits
from engine.browser.chromium.browser_session import Instances
from engine.browser.chromium.driver import Family
from engine.browser.chromium.launch import Load
from engine.browser.interact.command_errors import CommandFailed
from engine.browser.interact.command_target import Stage
from engine.browser.interact.command_tools import run_command
from engine.egress.egress_policy import Policy
from engine.kinds.commands.command_check import Step
from engine.model.errors import PageError
from engine.model.process_memory import bytes_together, own_bytes, resident_bytes
from engine.pages.fetch import PageOptions
from tests.supervision.conftest import Place, Running, crawled, renderers, until

SMALL = Limits(renderer_bytes=300 * MIB, look_s=0.1)
# Takes twice of what is allowed, however late somebody looks, and then waits for its end.
HOARD = "const kept = []; for (;;) if (kept.length < 75) kept.push(new Uint8Array(8 << 20).fill(1))"
pytestmark = pytest.mark.usefixtures("patience")


@pytest.mark.case("R75")
async def test_a_large_page_ends_alone(home: Path, place: Place, browser: Running) -> None:
    place.pages["/"] = place.links("/heavy", "/one", "/two")
    place.pages["/heavy"] = f"<script>setTimeout(() => {{ {HOARD} }}, 0)</script>"
    place.pages["/one"] = place.pages["/two"] = "fine"
    async with browser(SMALL) as session:
        kept = await crawled(session, home, place.url, concurrency=2, timeout_ms=100_000)
        assert session.starts == 1
    assert {path: page.get("error") for path, page in kept.items()} == {
        "/": None,
        "/heavy": "page used too much memory",
        "/one": None,
        "/two": None,
    }
    assert place.hits["/heavy"] == 2, "alone, it is proved that it was the page itself"


@pytest.mark.case("R75")
async def test_a_large_instance_page_ends_alone(place: Place, browser: Running) -> None:
    place.pages["/"] = "fine"
    async with browser(SMALL) as session:
        policy = Policy.for_start(place.url)
        instances = Instances(session)
        instance = await instances.launch(InstanceOptions(policy=policy))
        other = await session.open_instance(InstanceOptions(policy=policy))
        page = await other.page()

        async def artifact(name: str, data: bytes) -> str:
            return name

        stage = Stage(instances, policy, artifact, instance)
        with pytest.raises(CommandFailed, match="page used too much memory"):
            await run_command(command("browser_execute", "evaluate", script=HOARD), stage, 0)
        went = await run_command(command("browser_navigate", "goto", url=place.url), stage, 1)
        assert went["status"] == 200
        assert await page.evaluate("1 + 1") == 2
        await other.close()
        await instances.aclose()


def command(tool: str, action: str, **args: Any) -> Step:
    return Step(
        tool=tool, action=action, intention="to try", args=args, stored={}, timeout_ms=100_000
    )


async def test_leftovers_of_a_page_do_not_fail_the_next(place: Place, browser: Running) -> None:
    place.pages["/large"] = (
        "<script>window.kept = new Uint8Array(200 << 20).fill(1)</script><p>large</p>"
    )
    place.pages["/next"] = "<p>next</p>"
    async with browser(SMALL) as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            fetched = await fetcher.fetch(f"{place.url}/large", PageOptions())
            assert fetched.text == "large"
            before = {process.pid for process in renderers()}
            async with asyncio.timeout(60):
                while not any(one.load.heavy for one in session._running.values()):
                    await asyncio.sleep(0.02)
            assert (await fetcher.fetch(f"{place.url}/next", PageOptions())).text == "next"
            # a process that ends tells nobody: it is looked for until it is gone
            ended = lambda: not before & {process.pid for process in renderers()}  # noqa: E731
            assert await asyncio.to_thread(until, ended)


async def test_a_crashed_idle_tab_is_not_reused(place: Place, browser: Running) -> None:
    place.pages["/"] = "<p>fine</p>"
    async with browser() as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions())
            # Reads private state.
            (tab,) = fetcher._crawl_context.free  # type: ignore[attr-defined]
            for process in renderers():
                process.kill()
            async with asyncio.timeout(60):
                while tab.spoiled is None:
                    await asyncio.sleep(0.02)
            assert (await fetcher.fetch(place.url, PageOptions())).text == "fine"


def test_what_holds_less_than_it_may_is_left_alone() -> None:
    family, load = Family(psutil.Process()), Load()
    load.weigh(family, Limits(renderer_bytes=1))  # this is no renderer
    assert psutil.Process().is_running()
    assert load.total_bytes > MIB
    assert not load.took_too_much()
    assert not load.heavy


# Elsewhere the files count for each process, as `bytes_together` says.
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the files in a process")
async def test_files_that_the_processes_of_a_browser_share_count_once(
    place: Place, browser: Running
) -> None:
    place.pages["/"] = "fine"
    async with browser() as session:
        policy = Policy.for_start(place.url)
        async with session.fetcher(FetcherOptions(policy=policy, pages=1)) as fetcher:
            await fetcher.fetch(place.url, PageOptions())
            (running,) = session._running.values()
            assert running.family is not None
            held = {one: resident_bytes(one) for one in running.family.members()}
            assert len(held) > 3
            counted = bytes_together(held)
            assert sum(own_bytes(one) for one in held) <= counted < sum(held.values()) * 0.6
    alone = dict([next(iter(held.items()))])
    assert bytes_together(alone) == sum(alone.values())


def test_a_process_that_is_gone_has_no_memory() -> None:
    gone = psutil.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert resident_bytes(gone) == own_bytes(gone) == 0
    assert bytes_together({gone: 0}) == bytes_together({}) == 0


def test_a_number_that_belongs_to_nobody_has_no_family() -> None:
    assert Family.of(0) is None
    assert Family.of(2**30) is None
    known = Family.of(os.getpid())
    assert known is not None
    assert known.members()


def test_a_page_that_was_too_heavy_is_a_failed_page_with_a_code_of_its_own() -> None:
    from engine.browser.page.failures import PageTooHeavy

    error = PageTooHeavy()
    assert isinstance(error, PageError)
    assert (error.code, error.kind, str(error)) == (
        "page_memory",
        "memory",
        "page used too much memory",
    )
