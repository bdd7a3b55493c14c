"""Typed secrets are in no screenshot, and in no later task of the same instance."""

from __future__ import annotations

from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Booth, Opening, do

ECHO = Answer(
    b"<style>*{font:16px monospace}</style><input id=f><p id=echo>-</p><script>"
    b"f.oninput = () => { echo.textContent = f.value }</script>"
)


async def pictures(booth: Booth, site: Site, text: str, **args: Any) -> list[bytes]:
    """The page and its echo after `text` was typed into it."""
    record = await booth.start(
        do("goto", url=f"{site.url}/echo"),
        do("type", selector="#f", text=text, **args),
        do("screenshot"),
        do("screenshot", selector="#echo"),
    )
    await booth.engine.tasks.wait(record.task_id)
    done = await booth.look(record.task_id)
    paths = [command["result"]["path"] for command in done["commands"][2:]]
    return [(booth.folder(record.task_id) / path).read_bytes() for path in paths]


@pytest.mark.case("R81")
async def test_repeated_typed_text_is_masked(opened: Opening, site: Site) -> None:
    site.answers["/echo"] = ECHO
    async with opened() as booth:
        one = await pictures(booth, site, "Ada7ovelace")
        other = await pictures(booth, site, "Zvo9acheqxy")
        kept = await pictures(booth, site, "Zvo9acheqxy", keep_text=True)
    assert one == other
    assert all(shown != hidden for shown, hidden in zip(kept, other, strict=True))


async def test_later_tasks_mask_texts_typed_by_earlier_ones(opened: Opening, site: Site) -> None:
    site.answers["/echo"] = ECHO
    async with opened() as booth:
        options = InstanceOptions(policy=Policy.for_start(site.url))
        instance = await booth.engine.instances.launch(options)
        typing = do("type", selector="#f", text="hunter2-x")
        there = {"instanceId": instance.id}
        await booth.run(do("goto", url=f"{site.url}/echo"), typing, **there)
        later = await booth.run(do("get_text", selector="#echo"), **there)
        assert later["status"] == "completed"
        assert "hunter2-x" not in str(later)


async def test_network_requests_may_use_the_operators_list(opened: Opening, site: Site) -> None:
    place = site.url.partition("//")[2]
    async with opened(route="http", allow_private=(place,)) as booth:
        done = await booth.run(do("goto", url=f"{site.url}/static/1"))
    assert done["status"] == "completed"


@pytest.mark.case("R81")
async def test_stored_markup_has_no_password_values(opened: Opening, site: Site) -> None:
    site.answers["/login"] = Answer(b"<form><input type=password value=s3cretvalue><b>Log in</b>")
    async with opened() as booth:
        whole, part = do("get_html"), do("get_html", selector="form")
        done = await booth.run(do("goto", url=f"{site.url}/login"), whole, part)
    assert done["status"] == "completed"
    assert str(done).count("<b>Log in</b>") == 2
    assert "s3cretvalue" not in str(done)
