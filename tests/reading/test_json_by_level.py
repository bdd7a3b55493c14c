from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.errors import TaskUnreadable
from engine.results.file_reader import TaskFileReader
from engine.results.json_tree import Broken, Hit, Node, Rest, Scan, Search, members, path_of

WithFile = Callable[[str, Any], str]
ROOT = Node("$", "object", 0, "")


def reader(data: bytes, block: int) -> Callable[[int], bytes]:
    return lambda at: data[at : at + block]


def opened(data: bytes, node: Node, block: int) -> Any:
    """The value at `node`, made again from its members only."""
    if node.kind in ("object", "array"):
        scan = Scan(reader(data, block), node.start)
        scan.peek()
        scan.step()
        found = [one for one in members(scan, node.kind, 0, 10_000) if isinstance(one, Node)]
        values = [opened(data, one, block) for one in found]
        if node.kind == "array":
            return values
        return dict(zip([one.step for one in found], values, strict=True))
    scan = Scan(reader(data, block), node.start)
    for _ in scan.skip():
        pass
    return json.loads(data[node.start : scan.place])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=4),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([None, 1]),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_json_read_level_by_level_is_the_same_json(
    value: dict[str, Any], block: int, ascii_only: bool, indent: int | None
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")
    whole = json.loads(data)
    assert opened(data, ROOT, block) == whole


@given(st.binary(max_size=60), st.integers(1, 9))
def test_invalid_json_reports_the_position(data: bytes, block: int) -> None:
    for walk in (
        lambda: members(Scan(reader(data, block)), "array", 0, 50),
        lambda: Search(Scan(reader(data, block)), "a").hits(),
        lambda: Search(Scan(reader(data, block)), "a", lines=True).hits(),
    ):
        place = 0
        try:
            for _ in walk():
                pass
        except Broken as error:
            place = error.at
        assert 0 <= place <= len(data)


def found(value: Any, needle: str) -> list[Hit]:
    data = json.dumps(value).encode()
    return [one for one in Search(Scan(reader(data, 7)), needle).hits() if one is not None]


def test_a_search_tells_the_way_to_each_name_and_value() -> None:
    value = {"pages": [{"url": "A"}, {}, {"url": "Needle é", "needles": [1, [2, "needle"]]}]}
    assert [path_of(one.steps) for one in found(value, "needle")] == [
        "$.pages[2].url",
        "$.pages[2].needles",
        "$.pages[2].needles[1][1]",
    ]
    assert [path_of(one.steps) for one in found({"a b": {"it's": True}}, "tru")] == [
        "$['a b']['it\\'s']"
    ]


async def kids(reading: TaskFileReader, where: tuple[str, str], node: Node) -> list[Node | Rest]:
    return [one async for part in reading.members(*where, node) for one in part]


async def test_a_long_list_comes_in_parts(reading: TaskFileReader, with_file: WithFile) -> None:
    where = with_file("result.json", {"pages": list(range(1200)), "end": 1}), "result.json"
    pages, end = await kids(reading, where, ROOT)
    assert isinstance(pages, Node)
    assert isinstance(end, Node)
    assert end.preview == "1"
    *first, rest = await kids(reading, where, pages)
    assert len(first) == 500
    assert isinstance(rest, Rest)
    assert rest.number == 500
    more = [one async for part in reading.members(*where, pages, rest, 1000) for one in part]
    assert [one.preview for one in more if isinstance(one, Node)] == [*map(str, range(500, 1200))]


async def test_json_in_text_is_expanded(reading: TaskFileReader, with_file: WithFile) -> None:
    inner = json.dumps({"pages": [{"url": 'a "b"'}]})
    where = with_file("result.json", {"content": [{"text": inner}]}), "result.json"
    node = ROOT
    for _ in range(5):
        # A child has another type than the root.
        node = (await kids(reading, where, node))[0]  # type: ignore[assignment]
    assert (node.step, node.preview) == (0, '{"url": "a \\"b\\""}')
    value = await reading.value(*where, node)
    assert value is not None
    assert json.loads(value) == {"url": 'a "b"'}


async def test_jsonl_lines_are_members(reading: TaskFileReader, with_file: WithFile) -> None:
    where = with_file("more.jsonl", '{"a": 1}\n{torn\n[2]\n'), "more.jsonl"
    found = await kids(reading, where, Node("$", "lines", 0, ""))
    assert [one.kind for one in found if isinstance(one, Node)] == ["object", "object", "array"]


async def test_truncated_files_are_shown(reading: TaskFileReader, with_file: WithFile) -> None:
    task_id = with_file("result.json", '{"a": 1, "b": [1, 2')
    seen: list[Node | Rest] = []

    async def look() -> None:
        async for part in reading.members(task_id, "result.json", ROOT):
            seen.extend(part)

    with pytest.raises(TaskUnreadable):
        await look()
    assert [one.step for one in seen if isinstance(one, Node)] == ["a", "b"]


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=4),
    st.sampled_from(["a", "0", "tru", "é", "\\", '"', "ab c"]),
    st.booleans(),
)
def test_skipping_objects_keeps_hits(value: dict[str, Any], needle: str, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")
    quick, slow = (Search(Scan(reader(data, 64)), needle) for _ in range(2))
    slow._bytes = b""
    assert [*filter(None, quick.hits())] == [*filter(None, slow.hits())]


@pytest.mark.parametrize("value", ["x" * 200, [1] * 200, {"a": "y" * 300}, 10**250])
def test_a_preview_that_is_cut_says_so(value: Any) -> None:
    for more in ("", "z"):  # exactly as long as a preview, and longer by one
        shown = value + more if isinstance(value, str) else value
        data = json.dumps([shown]).encode()
        scan = Scan(reader(data, 64), 1)
        (node,) = members(scan, "array", 0, 10)
        assert isinstance(node, Node)
        is_cut = not isinstance(value, str) or bool(more)
        assert (len(node.preview), node.preview.endswith("…")) == (200, is_cut)
