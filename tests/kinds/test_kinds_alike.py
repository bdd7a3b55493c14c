"""Every kind, called directly and run as a task, leaves the same bytes with the same clock."""

import json

import msgspec
import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import Units
from engine.service.engine import Engine
from engine.text import words
from tests.support.memory_context import MemoryContext, direct_result
from tests.support.ticking import ticking


def wanted(kind, site):
    quick = {"engine": "static", "delay_ms": 0, "concurrency": 1}
    return {
        "crawl_sitemap": {"url": site.url, **quick, "max_pages": 5, "filter": "/page/*"},
        "oc_evidence_bundle": {"url": f"{site.url}/static/1", "include": "dom,screenshot,phash"},
        "oc_session_snapshot": {
            "objective": "x",
            "notes": "token=abcdef",
            "tabs": [f"{site.url}/static/1?token=abcdef", f"{site.url}/static/2"],
            "visit": True,
        },
    }[kind]


@pytest.mark.thorough("oc_evidence_bundle")
@pytest.mark.parametrize("name", ["crawl_sitemap", "oc_evidence_bundle", "oc_session_snapshot"])
async def test_a_direct_call_and_a_task_give_the_same_bytes(home, site, name):
    args, kind = wanted(name, site), KINDS[name]
    settings = Settings(home=home, root=home / "tasks")
    engine = Engine(settings, accepts=True, clock=ticking())
    await engine.open()
    try:
        record = await engine.tasks.wait((await engine.requests.start(name, args)).task_id, 150_000)
        await engine.tasks.join(record.task_id)
    finally:
        await engine.close()
    clock, browser = ticking(), BrowserSession()
    context = MemoryContext(task_id=record.task_id, now_ms=clock.now_ms, monotonic=clock.monotonic)
    try:
        head = await kind.body(kind.parse(args), context, Tools(settings, browser))
    finally:
        await browser.aclose()
    direct = direct_result(kind, head, map(msgspec.json.encode, context.pages))
    folder = home / "tasks" / record.task_id
    assert (folder / "result.json").read_bytes() == direct
    for file, data in context.artifacts.items():
        assert (folder / "artifacts" / file).read_bytes() == data
    assert json.loads(direct)[kind.units_key]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("crawl_sitemap", "1 of 4 pages"),
        ("oc_evidence_bundle", "1 of 4 parts"),
        ("oc_session_snapshot", "1 of 4 tabs"),
        ("recording", "1 of 4 actions"),
        ("commands", "1 of 4 commands"),
        ("somebody_elses", "1 of 4 steps"),
    ],
)
def test_progress_is_told_in_the_kinds_own_units(kind, said):
    assert words.progress_spoken(kind, Units(done=1, total=4)) == said
