"""A failed command keeps what the page showed: address, masked picture, source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.browser.interact import command_reading
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import WAIT_MS, Booth, Opening, do
from tests.support.far_limits import FAR_S

ECHO = Answer(
    b"<title>Log in</title><style>*{font:16px monospace}</style><input id=f><p id=echo>-</p>"
    b"<script>f.oninput = () => { echo.textContent = f.value }</script>"
)
MISSING = do("click", selector="#nowhere", timeout=100)


@pytest.fixture(autouse=True)
def patient_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a picture and a source as long as a crowded machine needs for them."""
    for limit in ("PICTURE_S", "SOURCE_S", "EVIDENCE_S"):
        monkeypatch.setattr(command_reading, limit, FAR_S)


async def failed(booth: Booth, *commands: dict[str, Any], **fields: Any) -> tuple[Path, Any]:
    """The folder of a task whose last command failed, and that command."""
    record = await booth.start(*commands, MISSING, **fields)
    await booth.engine.tasks.wait(record.task_id, WAIT_MS)
    done = await booth.look(record.task_id)
    assert done["commands"][-1]["status"] == "error", done
    return booth.folder(record.task_id), done["commands"][-1]


async def test_address_picture_and_source_of_the_failure_are_kept(
    opened: Opening, site: Site
) -> None:
    site.answers["/echo"] = ECHO
    async with opened() as booth:
        folder, command = await failed(booth, do("goto", url=f"{site.url}/echo"))
        kept = command["failure"]
        assert kept["url"] == f"{site.url}/echo"
        assert (folder / kept["screenshot"]).read_bytes().startswith(b"\x89PNG")
        assert "<title>Log in</title>" in (folder / kept["source"]).read_text()
        assert kept["screenshot"] == "artifacts/command-002-failed.png"
        stored = json.loads((folder / "result.json").read_text())
        assert stored["commands"][-1]["failure"] == kept
        units = [unit async for part in booth.engine.reading.units(folder.name)
                 for unit in part.units]  # fmt: skip
        assert units[-1].shot == "command-002-failed.png"


@pytest.mark.case("R81")
async def test_typed_texts_are_in_no_part_of_what_is_kept(opened: Opening, site: Site) -> None:
    site.answers["/echo"] = ECHO
    pictures = []
    async with opened() as booth:
        for text in ("Ada7ovelace", "Zvo9acheqxy"):
            typing = do("type", selector="#f", text=text)
            goto = do("goto", url=f"{site.url}/echo")
            address = do("evaluate", script=f"history.pushState(0, '', '?q={text}')")
            folder, command = await failed(booth, goto, typing, address)
            pictures.append((folder / command["failure"]["screenshot"]).read_bytes())
            source = (folder / command["failure"]["source"]).read_bytes()
            assert text.encode() not in source
            assert text not in str(command["failure"])
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("short", [("PICTURE_S", "SOURCE_S"), ("EVIDENCE_S",)])
async def test_a_page_that_hangs_is_said_to_and_the_task_still_ends(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch, short: tuple[str, ...]
) -> None:
    for limit in short:
        monkeypatch.setattr(command_reading, limit, 0.5)
    async with opened() as booth:
        spin = do("evaluate", script="setTimeout(() => { for (;;); }, 0)")
        folder, command = await failed(booth, do("goto", url=f"{site.url}/static/1"), spin)
        assert command["failure"]["missing"] == "the page did not answer"
        assert command["failure"]["url"] == f"{site.url}/static/1"
        assert not (folder / "artifacts").exists()


async def test_a_task_without_a_page_keeps_nothing_of_it(opened: Opening) -> None:
    async with opened() as booth:
        record = await booth.start(do("close", instanceId="inst-none"))
        await booth.engine.tasks.wait(record.task_id, WAIT_MS)
        done = await booth.look(record.task_id)
        assert done["commands"][0]["status"] == "error"
        assert "failure" not in done["commands"][0]
