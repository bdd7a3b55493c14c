from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.ledger.ledger import Ledger
from engine.results.file_reader import TaskFileReader
from engine.results.units import COMPARED, changed_lines


def crawl(ledger: Ledger, *pages: dict[str, Any]) -> str:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    ledger.claim(task_id)
    for page in pages:
        ledger.append_page(task_id, {"status": 200, "title": "T", "content": "c", **page})
    return task_id


async def test_two_runs_are_compared(reading: TaskFileReader, ledger: Ledger) -> None:
    before = crawl(ledger, {"url": "/same"}, {"url": "/gone"}, {"url": "/x"}, {"url": "/t"})
    after = crawl(
        ledger,
        {"url": "/same"},
        {"url": "/x", "status": 404},
        {"url": "/new"},
        {"url": "/t", "content": "other"},
    )
    found = await reading.differences(before, after, lambda _: None)
    assert {(one.change, one.name, one.before, one.after) for one in found.found} == {
        ("changed", "/x", "200 · T", "404 · T"),
        ("changed", "/t", "200 · T", "200 · T"),
        ("added", "/new", "", "200 · T"),
        ("removed", "/gone", "200 · T", ""),
    }
    assert (found.added, found.removed, found.changed, found.same) == (1, 1, 2, 1)
    texts = {one.name: await reading.text_difference(before, after, one) for one in found.found}
    assert texts == {"/t": ("@@", "-c", "+other"), "/x": (), "/new": (), "/gone": ()}


LINES = st.lists(st.sampled_from(["a", "b", "", "c d", "@@", "+x"]), max_size=30)


@given(LINES, LINES)
def test_changed_lines_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    found = changed_lines("\n".join(old), "\n".join(new))
    before, after = ("\n".join(text).splitlines() for text in (old, new))
    assert bool(found) == (before != after)
    assert Counter(before) - Counter(line[1:] for line in found if line[:1] == "-") == (
        Counter(after) - Counter(line[1:] for line in found if line[:1] == "+")
    )


def test_huge_texts_are_compared_by_their_first_lines() -> None:
    old, new = "\n".join(map(str, range(50_000))), "\n".join(map(str, range(100, 50_100)))
    assert 0 < len(changed_lines(old, new)) <= COMPARED
