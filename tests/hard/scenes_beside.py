"""The scenes beside the ledger: contracts, task runs, envelopes and lifecycle records."""

from __future__ import annotations

from engine.budgets import ToolCall
from engine.budgets.envelopes import EnvelopeRequest
from engine.contracts.completing import force_of
from engine.model.records import EngineFields, Status
from tests.hard.place import RUN_ID, URL, Place, Scene, Step

LIST = {"scope": "batch", "expected_total": 3, "items": ["a", "b", "c"]}
FORCE = force_of("the rest of the list is gone for good", "operator")


def contract(place: Place) -> None:
    place.ids["contract"] = place.goals.contracts.start(LIST).contract.contract_id


def words(place: Place) -> None:
    place.goals.contracts.update(place.ids["contract"], {"completed": ["a"]})
    place.goals.contracts.update(place.ids["contract"], {"completed": ["a", "b"]})


def task_run(place: Place) -> None:
    terms = {"scope": "task_run", "expected_total": 2}
    view = place.goals.runs.start({"goal": "see all"}, terms)
    place.ids["run"] = str(view.raw["run_id"])
    place.ids["contract"] = str(view.raw["bulk_contract_id"])


def opened_task_run(place: Place) -> None:
    place.open()
    task_run(place)


def bound(place: Place) -> None:
    """A crawl with a contract of its own, for a task run."""
    record = place.goals.accept(
        "crawl",
        {"expected_total": 3, "min_completed": 1},
        place.ids["run"],
        lambda link: place.ledger.create("crawl", URL, engine=EngineFields(contract_id=link)),
    )
    place.ids["task"] = record.task_id


def envelope(place: Place) -> None:
    request = EnvelopeRequest("look around", None, {"maxToolCalls": 5})
    place.ids["task"] = place.envelopes.start(request).task_id


def opened_envelope(place: Place) -> None:
    place.open()
    envelope(place)


def accept(place: Place) -> None:
    place.linked.accept(place.create(run_id=RUN_ID), {})


def end_run(place: Place) -> None:
    place.goals.completing.run(place.ids["run"], {"status": "COMPLETED"}, FORCE)


BESIDE: tuple[Scene, ...] = (
    Scene(
        "contract",
        Place.open,
        (
            Step("start", contract, lambda place: place.completed() >= 0),
            Step("words", words, lambda place: place.completed() == 2),
        ),
    ),
    Scene(
        "task run",
        Place.open,
        (
            Step("start", task_run, lambda place: place.task_run()["goal"] == "see all"),
            Step(
                "update",
                lambda place: place.goals.runs.update(
                    place.ids["run"], {"completed_items": ["a"], "progress_summary": "one"}
                ),
                lambda place: place.completed() == 1,
            ),
        ),
    ),
    Scene(
        "task run's end",
        opened_task_run,
        (
            Step(
                "checkpoint",
                lambda place: place.goals.runs.checkpoint(place.ids["run"], {"summary": "half"}),
                lambda place: place.task_run()["progress_summary"] == "half",
            ),
            Step("force", end_run, lambda place: place.task_run()["status"] == "COMPLETED"),
        ),
    ),
    Scene(
        "bound crawl",
        opened_task_run,
        (Step("accept", bound, lambda place: bool(place.raw()["engine"]["contract_id"])),),
    ),
    Scene(
        "envelope",
        Place.open,
        (
            Step("start", envelope, lambda place: bool(place.raw()["objective"])),
            Step(
                "call",
                lambda place: place.envelopes.record(place.ids["task"], ToolCall("navigate")),
                lambda place: place.raw()["counters"]["toolCalls"] == 1,
            ),
        ),
    ),
    Scene(
        "envelope's end",
        opened_envelope,
        (
            Step(
                "update",
                lambda place: place.envelopes.update(place.ids["task"], phase="act", note="on"),
                lambda place: place.raw()["args_summary"]["last_note"] == "on",
            ),
            Step(
                "finish",
                lambda place: place.envelopes.finish(place.ids["task"], "completed"),
                lambda place: place.status() == "COMPLETED",
            ),
        ),
    ),
    Scene(
        "linked",
        Place.open,
        (
            Step("accept", accept, lambda place: place.run_status() != ""),
            Step(
                "claim",
                lambda place: place.ledger.claim(place.ids["task"]),
                lambda place: place.run_status() in ("running", "failed", "completed"),
            ),
            Step(
                "finish",
                lambda place: place.ledger.finish(place.ids["task"], Status.COMPLETED),
                lambda place: place.run_status() == "completed",
            ),
        ),
    ),
    Scene(
        "runs",
        Place.open,
        (
            Step(
                "start",
                lambda place: place.runs.start_run("thread", run_id="one"),
                lambda place: place.run_status("one") != "",
            ),
            Step(
                "update",
                lambda place: place.runs.update_run("one", metadata={"a": 1}),
                lambda place: (place.runs.known_run("one").metadata or {}) == {"a": 1},
            ),
            Step(
                "abort",
                lambda place: place.runs.abort_run("one", "enough"),
                lambda place: place.run_status("one") == "aborted",
            ),
        ),
    ),
)
