from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.ledger.ledger import Ledger
from engine.model.display import display
from engine.model.errors import TaskUnreadable
from engine.results.file_reader import TaskFileReader
from engine.results.unit_filter import UnitFilter
from engine.results.units import Unit, unit_of

WithFile = Callable[[str, Any], str]
PAGE = {"url": "http://site.test/", "status": 200, "title": "Notes", "depth": 1, "bytes": 9}


async def units(
    reading: TaskFileReader, task_id: str, since: int = 0, number: int = 0
) -> list[Unit]:
    return [one async for part in reading.units(task_id, since, number) for one in part.units]


def crawl(ledger: Ledger, *pages: dict[str, Any]) -> str:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    ledger.claim(task_id)
    for page in pages:
        ledger.append_page(task_id, page)
    return task_id


async def test_each_row_links_to_its_page(reading: TaskFileReader, ledger: Ledger) -> None:
    task_id = crawl(ledger, PAGE, {**PAGE, "url": "http://site.test/2", "content": "all of it"})
    first, second = await units(reading, task_id)
    assert (first.name, first.code, first.state) == ("http://site.test/", 200, "done")
    whole = await reading.unit(task_id, second)
    assert whole is not None
    assert whole["content"] == "all of it"


async def test_new_units_are_read_incrementally(reading: TaskFileReader, ledger: Ledger) -> None:
    task_id = crawl(ledger, PAGE)
    (part,) = [part async for part in reading.units(task_id)]
    ledger.append_page(task_id, {**PAGE, "url": "http://site.test/new"})
    (new,) = await units(reading, task_id, part.resume, len(part.units))
    assert (new.number, new.name) == (1, "http://site.test/new")


async def test_wrapped_results_have_units(reading: TaskFileReader, with_file: WithFile) -> None:
    inner = json.dumps({"pages": [PAGE, {**PAGE, "error": "HTTP 500", "status": 500}]})
    task_id = with_file("result.json", {"content": [{"type": "text", "text": inner}]})
    found = await units(reading, task_id)
    assert [one.state for one in found] == ["done", "failed"]
    whole = await reading.unit(task_id, found[1])
    assert whole is not None
    assert whole["error"] == "HTTP 500"


async def test_truncation_is_located(reading: TaskFileReader, with_file: WithFile) -> None:
    task_id = with_file("result.json", '{"pages": [{"url": "a"}, {"url": ')
    with pytest.raises(TaskUnreadable) as caught:
        await units(reading, task_id)
    assert "result.json" in str(caught.value)


async def test_no_file_outside_of_the_task_is_opened(
    reading: TaskFileReader, with_file: WithFile, tmp_path: Path
) -> None:
    task_id = with_file("notes.txt", "in the task")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link = reading._root / task_id / "link.json"
    link.symlink_to(secret)
    names = [one.name for one in await reading.files(task_id)]
    assert "notes.txt" in names
    assert "link.json" not in names
    assert "lock" not in names
    for name in ("link.json", "../secret", "artifacts/../../x", "/etc/passwd", ".lock", ""):
        with pytest.raises(TaskUnreadable):
            await reading.part(task_id, name, 0, 100)


async def test_search_crosses_block_edges(reading: TaskFileReader, with_file: WithFile) -> None:
    task_id = with_file("big.txt", "a" * (1024 * 1024 - 3) + "Needle" + "b" * 100)
    told: list[tuple[int, int]] = []
    at = await reading.find(task_id, "big.txt", "nEEDLE", 0, lambda *one: told.append(one))
    assert at == 1024 * 1024 - 3
    assert await reading.find(task_id, "big.txt", "needle", at + 1, lambda *_: None) == -1


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ({"url": "u", "error": "Blocked by robots.txt"}, "refused"),
        ({"url": "u", "status": 404, "error": "HTTP 404"}, "failed"),
        ({"intention": "i", "status": "skipped"}, "skipped"),
        ({"intention": "i", "status": "error", "error": {"code": "C", "message": "m"}}, "failed"),
        ({"intention": "i", "status": "success"}, "done"),
        ({"url": "u", "status": 200, "error": None}, "done"),
    ],
)
def test_what_became_of_a_unit(row: dict[str, Any], state: str) -> None:
    assert unit_of(row, 0).state == state


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("url", "status", "title", "error", "depth", "bytes", "response_ms", "screenshot")


@given(st.dictionaries(st.sampled_from(FIELDS), anything))
@example({"error": "\U00010d3a"})  # assigned later than this Python's Unicode, and harmless
def test_no_unit_of_a_stranger_is_too_odd_for_a_row(row: dict[str, Any]) -> None:
    unit = unit_of(row, 0)
    assert unit.answer
    assert unit.name == display(unit.name)
    assert unit.reason == display(unit.reason)


def test_a_filter_asks_for_every_word_and_one_of_the_kinds() -> None:
    unit = unit_of({**PAGE, "status": 404, "error": "HTTP 404"}, 0)
    assert UnitFilter.of(frozenset({"4xx"}), "NOTES site", by_answer=True).passes(unit)
    assert not UnitFilter.of(frozenset({"2xx"}), "", by_answer=True).passes(unit)
    assert not UnitFilter.of(frozenset(), "notes absent").passes(unit)
