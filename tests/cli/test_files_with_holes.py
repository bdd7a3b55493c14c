"""Huge files with nothing in them: `octask` does not read the holes, and says what it left out."""

from __future__ import annotations

import json

from tests.gui.result_ledgers import put_task
from tests.support.octask import Octask
from tests.support.sparse_files import dig, needs_holes, task_with_holes

pytestmark = needs_holes
LEFT_OUT = "events.jsonl: 1 unreadable line was left out"
DAMAGED = "result.json is damaged: parts of it were never written (holes)"


def test_events_and_results_are_printed_around_the_holes(octask: Octask) -> None:
    task_id = task_with_holes(octask.home, 1)
    said = octask("get", task_id, "--events", "--result", code=1)
    assert "before" in said
    assert '{"note": "behind"}' in said
    assert said.count(LEFT_OUT) == 1
    assert said.count(DAMAGED) == 1
    assert "text of page 2" in said
    assert '"behind"' in said
    said = octask("get", task_id, "--events", "--result", "--json", code=1)
    answer, end = json.JSONDecoder().raw_decode(said)
    assert [one["data"]["note"] for one in answer["events"]] == ["before", "behind"]
    assert answer["result"] is None
    assert LEFT_OUT in said[end:]
    assert "result.json is not valid JSON" in said[end:]


def test_lists_exports_waits_and_maintenance_do_not_read_them(octask: Octask) -> None:
    task_id, orphan = task_with_holes(octask.home, 1), task_with_holes(octask.home, 2, "RUNNING")
    record = json.loads((octask.home / "tasks" / orphan / "meta.json").read_bytes())
    record["pid"] = 2**22 + 5  # larger than any
    (octask.home / "tasks" / orphan / "meta.json").write_text(json.dumps(record))
    out = str(octask.home / "out.jsonl")
    said = octask("export", task_id, "--format", "jsonl", "--output", out)
    assert all(said.splitlines()), "an empty line"
    exported = (octask.home / "out.jsonl").read_text().splitlines()
    assert [json.loads(one)["title"] for one in exported] == ["Page 1", "Page 2", "Page 3"]
    assert "COMPLETED" in octask("wait", task_id)
    assert task_id in octask("list")
    assert f"{orphan}  FAILED: orphaned" in octask("reap")
    assert task_id in octask("prune", "--keep", "0")


def test_a_result_of_a_hole_alone_is_refused_with_the_reason(octask: Octask) -> None:
    folder = put_task(octask.home, 1)
    (folder / "result.json").touch()
    dig(folder / "result.json")
    said = octask("export", folder.name, "--format", "csv", code=1)
    assert "a part of it was never written (a hole in the file)" in said
