"""Links swapped in between check and use lead nowhere outside the ledger."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.contracts.contract_service import Goals
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, LedgerWriteFailed
from engine.model.records import COMMANDS_NAME

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links need a right on Windows")

ROUNDS = 360
FILES = (
    *("meta.json", "events.jsonl", "pages.jsonl", "result.json", COMMANDS_NAME),
    *("lock", ".lock", "artifacts"),
)
OPERATIONS: tuple[Callable[[Ledger, str], object], ...] = (
    lambda ledger, task: ledger.mutate(task, lambda raw: raw.update(n=raw.get("n", 0) + 1)),
    lambda ledger, task: ledger.append_event(task, "log", {"note": "x"}),
    lambda ledger, task: ledger.append_page(task, {"url": "http://site.test/"}),
    lambda ledger, task: ledger.write_result(task, [b"{}"]),
    lambda ledger, task: ledger.write_document(task, COMMANDS_NAME, b"{}\n"),
    lambda ledger, task: ledger.write_artifact(task, "a.png", b"png"),
    lambda ledger, task: ledger.request_cancel(task),
    lambda ledger, task: ledger.read_raw(task),
    lambda ledger, task: ledger.read_events(task),
    lambda ledger, task: ledger.open_result(task).close(),
    lambda ledger, task: list(ledger.read_pages(task)),
    lambda ledger, task: ledger.list(),
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A task's folder that is not in the ledger, with a file of each name."""
    place = tmp_path / "outside"
    (place / "artifacts").mkdir(parents=True)
    for name in FILES[:-1]:
        (place / name).write_bytes(b"SECRET-" + name.encode())
    return place


def content(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in place.rglob("*")}


@contextmanager
def swapping(swap: Callable[[random.Random], None]) -> Iterator[None]:
    """Somebody else swaps and puts back, over and over, while the body works."""
    done = threading.Event()
    failed: list[BaseException] = []

    def go_on() -> None:
        chance = random.Random(47)
        try:
            while not done.is_set():
                swap(chance)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(30)
    assert not failed


def swapped(place: Path, target: Path) -> None:
    """A link to `target` in the place of `place`, for a moment."""
    aside = place.with_name(f".aside-{place.name}")
    with suppress(OSError):  # not there just now; or the one of before could not be put back
        place.rename(aside)
    with suppress(FileExistsError):
        place.symlink_to(target)
    if place.is_symlink():
        place.unlink()
    if aside.exists():
        with suppress(OSError):  # a new one was made meanwhile
            aside.rename(place)


def hammer(ledger: Ledger, task_id: str) -> int:
    """Do all there is to do, over and over; how often it was refused."""
    refused = 0
    for number in range(ROUNDS):
        operation = OPERATIONS[number % len(OPERATIONS)]
        try:
            operation(ledger, task_id)
        except EngineError:
            refused += 1
    return refused


@pytest.mark.case("R47", "R45")
def test_planted_links_are_not_followed(ledger: Ledger, task_id: str, outside: Path) -> None:
    before = content(outside)
    folder = ledger.root / task_id

    def swap(chance: random.Random) -> None:
        name = chance.choice(FILES)
        swapped(folder / name, outside / name)

    with swapping(swap):
        hammer(ledger, task_id)
    assert content(outside) == before
    told = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"SECRET" not in told


@pytest.mark.case("R47", "R44")
def test_a_folder_swapped_for_a_link(ledger: Ledger, task_id: str, outside: Path) -> None:
    before = content(outside)
    with swapping(lambda _: swapped(ledger.root / task_id, outside)):
        hammer(ledger, task_id)
    assert content(outside) == before
    assert ledger.read_raw(task_id)["task_id"] == task_id


@pytest.mark.case("R47")
def test_a_swapped_folder_receives_no_change(ledger: Ledger, task_id: str) -> None:
    other = ledger.create("crawl", {"url": "http://other.test/"}).task_id
    folder, theirs, aside = (ledger.root / name for name in (task_id, other, ".aside"))

    def swap(_: random.Random) -> None:
        folder.rename(aside)
        theirs.rename(folder)
        folder.rename(theirs)
        aside.rename(folder)

    with swapping(swap):
        for _ in range(ROUNDS):
            with suppress(EngineError):
                ledger.append_page(task_id, {"url": "http://site.test/"})
                ledger.mutate(task_id, lambda raw: raw.update(mark=raw["task_id"]))
    for name in (task_id, other):  # a change is made in one folder, from its reading to its end
        raw = ledger.read_raw(name)
        assert raw.get("mark", name) == name


@pytest.mark.case("R47")
@pytest.mark.parametrize("name", ["meta.json", "result.json", "commands.json"])
def test_a_link_under_the_name_of_our_next_temp_file_is_not_written_through(
    ledger: Ledger, lease: Lease, task_id: str, outside: Path, name: str
) -> None:
    def write() -> None:
        if name == "meta.json":
            ledger.mutate(task_id, lambda raw: raw.update(new=1))
        elif name == "result.json":
            ledger.write_result(task_id, [b"{}"])
        else:
            ledger.write_document(task_id, name, b"{}\n")

    before = content(outside)
    number = int(lease.temp_name("x").split(".")[-2]) + 1
    plant = ledger.root / task_id / f".{name}.{lease.nonce}.{number}.tmp"
    plant.symlink_to(outside / name)
    with pytest.raises(LedgerWriteFailed, match="File exists"):
        write()
    assert content(outside) == before
    write()
    assert content(outside) == before


@pytest.mark.case("R47")
def test_a_link_under_the_name_of_a_shelfs_temp_file_is_replaced(home: Path, outside: Path) -> None:
    goals = Goals(home, lambda: Ledger(home / "tasks"))
    view = goals.contracts.start({"scope": "batch", "expected_total": 2})
    contract_id = view.contract.contract_id
    folder = home / "progress-contracts"
    before = content(outside)
    (folder / f".{contract_id}.json.tmp").symlink_to(outside / "meta.json")
    goals.contracts.update(contract_id, {"completed": ["a"]})
    assert content(outside) == before
    assert goals.contracts.get(contract_id).contract.completed_total == 1


@pytest.mark.case("R47")
def test_a_root_swapped_for_a_link(ledger: Ledger, task_id: str, tmp_path: Path) -> None:
    """The user may choose a link as root; what is done then is done in one of both, whole."""
    other = tmp_path / "other"
    other.mkdir()
    with swapping(lambda _: swapped(ledger.root, other)):
        made = []
        for _ in range(ROUNDS // 2):
            with suppress(EngineError):
                made.append(ledger.create("crawl", {"url": "http://site.test/"}).task_id)
    for one in made:
        places = [root / one / "meta.json" for root in (ledger.root, other)]
        assert [place.exists() for place in places].count(True) == 1
    half = [path for root in (ledger.root, other) for path in root.glob("*.tmp")]
    assert half == []
