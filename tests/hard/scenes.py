"""The scenes to kill or break, call by call: the life of a task in the ledger."""

from __future__ import annotations

import os

from engine.ledger.files import Folder
from engine.ledger.lock import TaskLock
from engine.model.records import COMMANDS_NAME, ErrorInfo, Status, Units
from tests.hard.place import Place, Scene, Step
from tests.hard.scenes_beside import BESIDE

PAGE = {"url": "http://site.test/1", "depth": 0, "content": "y" * 500}
RESULT = [b'{"pages":[', b'{"url":"http://site.test/1"}', b"]}"]
DOCUMENT = b'{"commands":[]}\n'


def page(place: Place) -> None:
    place.ledger.append_page(place.ids["task"], PAGE)
    place.ledger.append_event(place.ids["task"], "progress", {"unitsDone": 1, "unitsTotal": 3})


def kept_pages(place: Place, least: int) -> bool:
    """A page that was asked for twice, because its event failed, stands twice."""
    return place.pages() >= least and place.told("progress") >= least


def create_commands(place: Place) -> None:
    record = place.ledger.create("commands", {}, documents={COMMANDS_NAME: DOCUMENT})
    place.ids["commands"] = record.task_id


def write_files(place: Place) -> None:
    place.ledger.write_artifact(place.ids["task"], "a.png", b"png")
    place.ledger.write_document(place.ids["task"], COMMANDS_NAME, DOCUMENT)


def fail(place: Place) -> None:
    error = ErrorInfo(message="no", code="x")
    place.ledger.finish(place.ids["task"], Status.FAILED, error=error)


def waiting(place: Place) -> None:
    place.open()
    place.create()


def running(place: Place) -> None:
    waiting(place)
    place.ledger.claim(place.ids["task"])
    page(place)


def running_and_waiting(place: Place) -> None:
    running(place)
    place.create("waiting")


def died(place: Place) -> None:
    """Another process took a task, kept a page, and died in the middle of a change."""
    child = os.fork()
    if child == 0:
        running(place)
        assert place.lease is not None
        with Folder.at(str(place.root / place.ids["task"])) as folder:
            folder.write_new(place.lease.temp_name("meta.json"), b"{")
            TaskLock(folder, place.ids["task"]).__enter__()
            os._exit(0)
    os.waitpid(child, 0)
    place.ids["task"] = next(path.name for path in place.root.iterdir() if path.name[0] != ".")


SCENES: tuple[Scene, ...] = (
    Scene(
        "first",
        lambda place: None,
        (
            Step("open", Place.open, lambda place: place.root.is_dir()),
            Step("create", Place.create, lambda place: bool(place.status())),
            Step(
                "create commands",
                create_commands,
                lambda place: (
                    place.ledger.read_document(place.ids["commands"], COMMANDS_NAME) == DOCUMENT
                ),
            ),
        ),
    ),
    Scene(
        "run",
        waiting,
        (
            Step(
                "claim",
                lambda place: place.ledger.claim(place.ids["task"]),
                lambda place: place.raw()["started_at"] > 0,
            ),
            Step("page", page, lambda place: kept_pages(place, 1)),
        ),
    ),
    Scene(
        "progress",
        running,
        (
            Step("page", page, lambda place: kept_pages(place, 2)),
            Step(
                "change",
                lambda place: place.ledger.mutate(place.ids["task"], lambda raw: raw.update(a=1)),
                lambda place: place.raw().get("a") == 1,
            ),
            Step(
                "files",
                write_files,
                lambda place: (
                    place.ledger.read_artifact(place.ids["task"], "a.png") == b"png"
                    and place.ledger.read_document(place.ids["task"], COMMANDS_NAME) == DOCUMENT
                ),
            ),
        ),
    ),
    Scene(
        "cancel",
        running_and_waiting,
        (
            Step(
                "ask",
                lambda place: place.ledger.request_cancel(place.ids["task"], "enough"),
                lambda place: place.raw().get("cancel_requested_at") is not None,
            ),
            Step(
                "cancel",
                lambda place: place.ledger.request_cancel(place.ids["waiting"]),
                lambda place: place.status("waiting") == "CANCELLED",
            ),
        ),
    ),
    Scene(
        "complete",
        running,
        (
            Step(
                "result",
                lambda place: place.ledger.write_result(place.ids["task"], iter(RESULT)),
                lambda place: len(place.result()["pages"]) == 1,
            ),
            Step(
                "finish",
                lambda place: place.ledger.finish(
                    place.ids["task"], Status.COMPLETED, units=Units(done=1, total=1)
                ),
                lambda place: place.status() == "COMPLETED" and "result_path" in place.raw(),
            ),
        ),
    ),
    Scene(
        "fail",
        running,
        (
            Step(
                "fail",
                fail,
                lambda place: place.raw().get("error") == {"message": "no", "code": "x"},
            ),
        ),
    ),
    Scene(
        "reap",
        died,
        (
            Step(
                "recover",
                Place.recover,
                lambda place: place.status() == "FAILED" and len(place.result()["pages"]) == 1,
            ),
        ),
    ),
    *BESIDE,
)
BY_NAME = {scene.name: scene for scene in SCENES}
