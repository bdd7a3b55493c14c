"""The position of a text or a time in an event file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.export.output import ExportRefused
from engine.ledger import event_search
from engine.ledger.event_search import Needle, find, place_of
from engine.ledger.files import Folder
from engine.model.errors import TaskUnreadable
from engine.service.queries import Past

NAME = "events.jsonl"
TASK = f"{7:016x}"


def event(ts: int, note: str) -> bytes:
    return json.dumps({"ts": ts, "kind": "log", "data": {"note": note}}).encode() + b"\n"


def everywhere(folder: Folder, text: str, most: int) -> list[int]:
    """All places, slice by slice, as a window asks for them."""
    found: list[int] = []
    at = 0
    while True:
        part = find(folder, NAME, Needle(text), at, most)
        found += [place for place in part.places if place not in found[-1:]]
        if part.next_offset == at:
            return found
        at = part.next_offset


def starts(data: bytes, wanted: bytes) -> list[int]:
    """The same, found by looking at each line."""
    found, at = [], 0
    for line in data.splitlines(keepends=True):
        if wanted in line.lower():
            found.append(at)
        at += len(line)
    return found


NOTES = st.lists(st.sampled_from(["", "needle", "a NEEDLE b", "needleneedle", "nee", "x" * 40]))


@given(notes=NOTES, block=st.integers(8, 90), most=st.integers(1, 300), torn=st.booleans())
def test_every_line_that_holds_a_text_is_found_once_whatever_the_slices(
    tmp_path_factory: pytest.TempPathFactory, notes: list[str], block: int, most: int, torn: bool
) -> None:
    data = b"".join(event(n, note) for n, note in enumerate(notes)) + (b"needle" if torn else b"")
    place = tmp_path_factory.mktemp("seek")
    (place / NAME).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch, Folder.at(str(place)) as folder:
        patch.setattr(event_search, "_BLOCK", block)
        assert everywhere(folder, "Needle", most) == starts(data, b"needle")


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("ÄRGER", {"note": "viel Ärger"}),
        ("ärger", {"note": "VIEL ÄRGER"}),
        ('say "no"', {"note": 'they SAY "NO" again'}),
        ("41/120", {"unitsDone": 41, "unitsTotal": 120}),
        ('"unitsDone":41', {"unitsDone": 41, "unitsTotal": 120}),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
def test_search_ignores_json_escapes(tmp_path: Path, text: str, data: object, plain: bool) -> None:
    line = json.dumps({"ts": 1, "data": data}, ensure_ascii=plain, separators=(",", ":"))
    (tmp_path / NAME).write_bytes(event(1, "first") + line.encode() + b"\n")
    with Folder.at(str(tmp_path)) as folder:
        assert everywhere(folder, text, 1 << 20) == [len(event(1, "first"))]
        assert everywhere(folder, "not there", 1 << 20) == []


@given(times=st.lists(st.integers(1, 10_000), min_size=1, max_size=80), at=st.integers(0, 10_001))
def test_a_moment_is_found_by_halving(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], at: int
) -> None:
    lines = [event(ts, "n" * (ts % 70)) for ts in sorted(times)]
    place = tmp_path_factory.mktemp("moment")
    (place / NAME).write_bytes(b"".join(lines))
    with Folder.at(str(place)) as folder:
        before = sum(len(one) for one, ts in zip(lines, sorted(times), strict=True) if ts < at)
        assert place_of(folder, NAME, at) == before


def planted(tmp_path: Path, *lines: bytes, name: str = NAME) -> Past:
    folder = tmp_path / "tasks" / TASK
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"".join(lines))
    return Past(tmp_path / "tasks")


def test_the_whole_log_is_copied_as_it_stands_and_told_of(tmp_path: Path) -> None:
    lines = [event(n, "x" * 1000) for n in range(3000)]
    past, told = planted(tmp_path, *lines, b"torn"), []
    place = tmp_path / "log.jsonl"
    place.write_text("an older file")
    done = asyncio.run(past.save_events(TASK, place, lambda *how_far: told.append(how_far)))
    assert place.read_bytes() == b"".join(lines) + b"torn"
    assert told[-1] == (done, place.stat().st_size)


def test_nothing_is_saved_into_a_ledger(tmp_path: Path) -> None:
    past = planted(tmp_path, event(1, "one"))
    with pytest.raises(ExportRefused):
        asyncio.run(past.save_lines(["x"], tmp_path / "tasks" / "log.txt"))


def test_a_save_that_nobody_waits_for_leaves_no_file(tmp_path: Path) -> None:
    past = planted(tmp_path, *(event(n, "x" * 100_000) for n in range(300)))
    place = tmp_path / "out" / "log.jsonl"
    place.parent.mkdir()

    async def leave() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        saving = asyncio.ensure_future(
            past.save_events(TASK, place, lambda *_: loop.call_soon_threadsafe(begun.set))
        )
        await begun.wait()
        saving.cancel()
        await asyncio.wait({saving})

    asyncio.run(leave())  # waits for its threads
    assert list(place.parent.iterdir()) == []


def test_units_tell_how_long_they_took_and_strange_ones_are_passed_over(tmp_path: Path) -> None:
    lines = [
        {"url": "https://a.test/", "response_ms": 20, "render_ms": 5.5, "content": "x" * 9},
        {"url": "https://b.test/", "response_ms": None, "render_ms": "long"},
        {"url": "https://c.test/", "response_ms": 7, "error": "no"},
        {"startedAt": 100, "completedAt": 140, "tool_name": "browser_navigate"}
        | {"intention": "open it", "args": {"action": "goto", "url": "https://a.test/"}},
        {"startedAt": 140, "completedAt": 141, "tool_name": [], "intention": 1, "args": "x"},
    ]
    raw = [json.dumps(line).encode() + b"\n" for line in lines]
    past = planted(tmp_path, *raw, b"[1]\n", b"torn", name="pages.jsonl")
    found = asyncio.run(past.unit_times(TASK))
    told = [(unit.label, unit.took_ms, unit.began, unit.failed) for unit in found.units]
    assert told == [
        ("https://a.test/", 25.5, None, False),
        ("https://c.test/", 7, None, True),
        ("browser_navigate goto", 40, 100, False),
        ("", 1, 140, False),
    ]
    assert [unit.about for unit in found.units] == ["", "", "open it", ""]
    assert asyncio.run(past.unit_times(TASK, found.next_offset)).units == ()


def test_events_that_are_no_file_are_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tasks" / TASK / NAME).mkdir(parents=True)
    with pytest.raises(TaskUnreadable):
        asyncio.run(Past(tmp_path / "tasks").find(TASK, "x"))
