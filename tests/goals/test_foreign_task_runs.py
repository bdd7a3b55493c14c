"""Task runs that OpenChrome has written: read as they are, listed, and gone on with."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.contracts.contract_progress import RunView, run_data
from engine.contracts.contract_service import Goals
from engine.model.errors import InvalidArguments
from tests.goals.task_runs import again

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome"
INDEX = json.loads((CORPUS / "INDEX.json").read_text("utf-8"))


@pytest.fixture
def corpus(home: Path) -> Goals:
    for name in ("task-runs", "task-runs-bulk"):
        shutil.copytree(CORPUS / name, home / "task-runs", dirs_exist_ok=True)
    shutil.copytree(CORPUS / "progress-contracts", home / "progress-contracts")
    return again(home)


@pytest.mark.parametrize("entry", INDEX["task_runs"], ids=lambda entry: Path(entry["path"]).name)
def test_foreign_task_runs_are_read(corpus: Goals, entry: dict[str, Any]) -> None:
    found = corpus.runs.get(Path(entry["path"]).name, events=True)
    assert found.raw == entry["meta"]
    assert found.events[0].kind == "started"
    assert run_data(found)["task_run"]["status"] == entry["meta"]["status"]


def test_looking_at_the_other_programs_folders_writes_nothing(corpus: Goals, home: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    folders = sum(1 for _ in (home / "task-runs").iterdir())
    assert len(corpus.runs.list()) == folders > 10
    corpus.contracts.list()
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_the_other_programs_run_goes_on_here_with_all_its_fields(corpus: Goals) -> None:
    before = corpus.runs.get("767d408a1c1c8e7b").raw
    found = corpus.runs.update("767d408a1c1c8e7b", {"completed_items": ["more"]}).raw
    assert found["completed_items"] == [*before["completed_items"], "more"]
    kept = set(before) - {"completed_items", "updated_at"}
    assert {name: found[name] for name in kept} == {name: before[name] for name in kept}
    with pytest.raises(BulkCompletionRefused, match="2/5 row_id"):
        corpus.completing.run("b4109cb13e9c7cd8", {})


LINES = {
    "develop, running": "767d408a1c1c8e7b",
    "develop, needs help": "c1a1a0c7f0c77bb8",
    "bulk contracts": "b4109cb13e9c7cd8",
}
STEPS: dict[str, Callable[[Goals, str], object]] = {
    "update": lambda goals, run_id: goals.runs.update(run_id, {"current_cursor": "p2"}),
    "items": lambda goals, run_id: goals.runs.update(run_id, {"completed_items": ["more"]}),
    "checkpoint": lambda goals, run_id: goals.runs.checkpoint(run_id, {"summary": "half"}),
    "help": lambda goals, run_id: goals.runs.needs_help(run_id, {"reason": "a login"}),
    "end": lambda goals, run_id: goals.completing.run(run_id, {"status": "FAILED"}),
}
CHANGED = {
    *("status", "current_cursor", "completed_items", "progress_summary", "needs_help"),
    *("completed_at", "updated_at"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("run_id", LINES.values(), ids=LINES)
def test_each_step_keeps_the_fields_of_both_lines(
    corpus: Goals, home: Path, run_id: str, step: str
) -> None:
    path = home / "task-runs" / run_id / "meta.json"
    theirs = {
        "later": {"words": ["é", "half \ud83d"], "numbers": [1e21, -1e-7, 0]},
        "x \ud83d": None,
    }
    before = {**json.loads(path.read_bytes()), **theirs}
    text = json.dumps(before, indent=2, ensure_ascii=False)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
    events = (path.parent / "events.jsonl").read_bytes()
    STEPS[step](corpus, run_id)
    found = json.loads(path.read_bytes())
    kept = set(before) - CHANGED
    assert {name: found[name] for name in kept} == {name: before[name] for name in kept}
    assert [name for name in found if name in kept] == [name for name in before if name in kept]
    assert (path.parent / "events.jsonl").read_bytes().startswith(events)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    assert path.read_bytes() == text.encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("run_id", LINES.values(), ids=LINES)
def test_a_run_that_openchrome_has_locked_is_waited_for(
    corpus: Goals, home: Path, run_id: str
) -> None:
    folder = home / "task-runs" / run_id
    (folder / "meta.lock.lock").mkdir()
    thread = threading.Thread(target=lambda: STEPS["update"](corpus, run_id))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    before = json.loads((folder / "meta.json").read_bytes())
    (folder / "meta.json").write_text(json.dumps({**before, "theirs": 1}, indent=2))
    (folder / "meta.lock.lock").rmdir()
    thread.join(60)
    after = json.loads((folder / "meta.json").read_bytes())
    assert (after["theirs"], after["current_cursor"]) == (1, "p2")
    assert not (folder / "meta.lock.lock").exists()


def test_runs_are_listed_newest_first_and_by_state(corpus: Goals) -> None:
    listed = [one for one in corpus.runs.list() if isinstance(one, RunView)]
    made = [one.raw["created_at"] for one in listed]
    assert made == sorted(made, reverse=True)
    needing = corpus.runs.list(["NEEDS_HELP"])
    assert [getattr(one, "run_id", "") for one in needing] == ["c1a1a0c7f0c77bb8"]
    assert len(corpus.runs.list(limit=3)) == 3
    assert corpus.runs.list(since=made[0]) == listed[:1]
    with pytest.raises(InvalidArguments):
        corpus.runs.list(limit=0)
