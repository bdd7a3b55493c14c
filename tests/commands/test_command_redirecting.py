"""A page that keeps redirecting itself does not keep the next address from being opened."""

from __future__ import annotations

from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Opening, do, failure, results
from tests.commands.test_command_journeys import page

RESTLESS = "<h1>old</h1><script>setTimeout(() => { location = '/restless?' + Math.random() }, %s)"
PLAIN = "<h1>new</h1><p id=script></p><script>document.querySelector('#script').append('runs')"


def leaving(site: Site, delay_ms: int) -> tuple[dict[str, Any], dict[str, Any]]:
    site.answers["/restless"] = page(RESTLESS % delay_ms + "</script>")
    site.answers["/plain"] = Answer((PLAIN + "</script>").encode(), delay_s=0.3)
    return do("goto", url=f"{site.url}/restless"), do("goto", url=f"{site.url}/plain")


async def test_goto_works_from_a_page_that_redirects(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        for delay_ms in (30, 5, 120):
            restless, plain = leaving(site, delay_ms)
            *_, at, text = await results(booth, restless, plain, do("get_text", selector="#script"))
            assert (at["url"], at["status"], text["text"]) == (plain["args"]["url"], 200, "runs")


@pytest.mark.thorough
async def test_the_next_task_of_the_instance_opens_its_address(opened: Opening, site: Site) -> None:
    restless, plain = leaving(site, 30)
    async with opened() as booth:
        options = InstanceOptions(policy=Policy.for_start(site.url))
        there = {"instanceId": (await booth.engine.instances.launch(options)).id}
        for _ in range(5):  # most of them failed before
            await results(booth, restless, **there)
            at, text = await results(booth, plain, do("get_text", selector="h1"), **there)
            assert (at["status"], text["text"]) == (200, "new")


async def test_a_download_answer_keeps_the_old_page(opened: Opening, site: Site) -> None:
    site.answers["/plain"] = page("<h1>old</h1>")
    site.answers["/empty"] = Answer(b"", status=204)
    site.answers["/file"] = Answer(
        b"x", content_type="application/zip", headers=(("Content-Disposition", "attachment"),)
    )
    goto = do("goto", url=f"{site.url}/plain")
    async with opened() as booth:
        options = InstanceOptions(policy=Policy.for_start(site.url))
        there = {"instanceId": (await booth.engine.instances.launch(options)).id}
        empty = await failure(booth, goto, do("goto", url=f"{site.url}/empty"), **there)
        assert empty == ("EXECUTION_ERROR", "the server answered without a page")
        (text,) = await results(booth, do("get_text", selector="h1"), **there)
        file = await failure(booth, goto, do("goto", url=f"{site.url}/file"), **there)
    assert text["text"] == "old"
    assert "download" in file[1]
