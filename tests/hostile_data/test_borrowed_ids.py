"""A record that carries another task's id speaks for its own folder alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.contracts.completing import force_of
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.records import Status, TaskRecord
from engine.service.engine import Engine
from engine.verbs.json_answers import view_data
from fixtures.hostile_ledger import plant, traps


@pytest.mark.case("R46")
async def test_a_borrowed_id_does_not_affect_the_other_task(home: Path) -> None:
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        victim = await engine.requests.start("browser_task", {"objective": "left alone"})
        contract = engine.goals.contracts.start({"items": ["a", "b"]}).contract
        thief = await engine.requests.start(
            "browser_task", {"objective": "says that it is the other"}
        )
        place = engine.settings.root / thief.task_id / "meta.json"
        raw = json.loads(place.read_bytes())
        raw["task_id"] = victim.task_id
        raw["engine"]["contract_id"] = contract.contract_id
        place.write_text(json.dumps(raw))
        others = engine.settings.root / victim.task_id
        before = {path.name: path.read_bytes() for path in others.iterdir()}

        budgets = await engine.contracts.budgets(thief.task_id)
        assert budgets is not None
        assert (budgets.task_id, budgets.objective) == (thief.task_id, "says that it is the other")
        told = view_data(
            await engine.tasks.get(thief.task_id), await engine.tasks.meta(thief.task_id)
        )
        assert told["task_id"] == thief.task_id
        force = force_of("because it must be so", "me")
        await engine.contracts.complete(thief.task_id, status=Status.COMPLETED, force=force)

        assert {path.name: path.read_bytes() for path in others.iterdir()} == before
        kinds = [event.kind for event in (await engine.tasks.events(thief.task_id)).events]
        assert "guard" in kinds
    finally:
        await engine.close()


async def test_a_task_run_that_is_no_folder_is_passed_over(home: Path) -> None:
    engine = Engine(Settings.at(home=home), accepts=False)
    await engine.open()
    try:
        run = engine.goals.runs.start({"goal": "reach it"}, None)
        folder = home / "task-runs"
        (folder / ("a" * 16)).symlink_to("/etc")
        (folder / ("b" * 16)).write_bytes(b"{}")
        assert [getattr(one, "run_id", "") for one in engine.goals.runs.list()] == [run.run_id]
    finally:
        await engine.close()


@pytest.mark.case("R35")
def test_what_is_nested_too_deep_is_listed_without_it(home: Path) -> None:
    planted = plant(home / "tasks", [t for t in traps() if t.name.endswith("levels of policy")])
    for entry in Ledger(planted.root).list():
        assert isinstance(entry, TaskRecord)
        assert entry.policy is None
        assert entry.odd == ("policy",)
