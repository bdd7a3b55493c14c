"""The fast first reading of a large ledger finds the same tasks as a full one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger.json_stream import MAX_DEPTH, is_deep
from engine.ledger.meta import decode_fast, is_flat
from engine.ledger.reader import LedgerReader
from engine.model.records import TaskRecord

ID = "00000000000000aa"
PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=2), VALUES, max_size=3)
METAS = st.fixed_dictionaries(
    {"task_id": st.just(ID)},
    optional={
        "args_summary": OBJECTS,
        "owner": OBJECTS,
        "policy": OBJECTS,
        "counters": OBJECTS,
        "engine": st.fixed_dictionaries({}, optional={"args": OBJECTS, "metadata": VALUES}),
    },
)


@given(METAS)
def test_a_record_that_is_called_flat_holds_no_value_within_a_value(meta: dict[str, Any]) -> None:
    record = decode_fast(json.dumps(meta).encode())
    ours = record.engine
    free = [record.args_summary, record.owner, record.policy, record.counters]
    free += [ours.args, ours.metadata] if ours is not None else []
    if is_flat(record):
        assert not any(is_deep(value, 1) for value in free)


def test_a_usual_record_is_called_flat() -> None:
    meta = {"task_id": ID, "args_summary": {"url": "https://example.org/", "max_pages": 20}}
    assert is_flat(decode_fast(json.dumps(meta).encode()))


def test_what_is_nested_too_deeply_is_found_in_every_free_field(tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(MAX_DEPTH + 1):
        deep = {"more": deep}
    names = ("args_summary", "owner", "policy", "counters", "args", "metadata")
    for number, name in enumerate(names):
        ours = name in ("args", "metadata")
        _write(tmp_path, f"{number:016x}", {"engine": {name: deep}} if ours else {name: deep})
    look = LedgerReader(tmp_path)
    ids = [f"{number:016x}" for number in range(len(names))]
    found = [entry for entry in look.entries(ids) if isinstance(entry, TaskRecord)]
    assert [entry.odd for entry in found] == [
        (name if name in names[:4] else f"engine.{name}",) for name in names
    ]
    assert look.ended(ids) == ([], ids)  # they want the closer look


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_folder_whose_name_is_two_ids_in_two_lines_is_no_task(tmp_path: Path) -> None:
    _write(tmp_path, ID, {})
    _write(tmp_path, f"{ID}\n{ID}", {})
    assert [name for part in LedgerReader(tmp_path).folders(10) for name in part] == [ID]


def _write(root: Path, name: str, more: dict[str, Any]) -> None:
    (root / name).mkdir()
    meta = {"task_id": name, "kind": "crawl", "status": "COMPLETED", "created_at": 1, **more}
    (root / name / "meta.json").write_text(json.dumps(meta), "utf-8")
