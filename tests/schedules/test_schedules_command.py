"""`octask schedules` as typed: programs that start what is due, also several and killed ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.context import Clock
from engine.model.records import SCHEDULES_FOLDER
from tests.schedules.changing_site import ChangingSite
from tests.support.octask import FAST, LIMIT_S, Octask, until
from tests.support.times_of_day import far_time

HOUR_MS = 3_600_000


@pytest.fixture
def site() -> Iterator[ChangingSite]:
    with ChangingSite() as found:
        yield found


@pytest.fixture
def octask(tmp_path: Path) -> Iterator[Octask]:
    found = Octask(tmp_path)
    yield found
    found.end()


def add(octask: Octask, site: ChangingSite, *more: str) -> str:
    said = octask("schedules", "add", "crawl", site.url, *FAST, "--every", "1h", *more)
    return said.strip()


def make_due(octask: Octask, schedule_id: str) -> None:
    set_back(octask.home, schedule_id)


def set_back(home: Path, schedule_id: str) -> None:
    """Set a schedule back, as if it had been made an hour and a second ago."""
    place = home / "tasks" / SCHEDULES_FOLDER / f"{schedule_id}.json"
    raw = json.loads(place.read_text())
    raw["after"] = raw["rule"]["start_at"] = Clock().now_ms() - HOUR_MS - 1_000
    place.write_text(json.dumps(raw))


def tasks(octask: Octask, query: str = "") -> list[Any]:
    found = json.loads(octask("list", "--json", "--query", query))["tasks"]
    return sorted(found, key=lambda one: one["created_at"])


def test_a_schedule_is_added_listed_run_and_its_changes_are_told(
    octask: Octask, site: ChangingSite
) -> None:
    assert "schedules add" in octask("schedules")
    schedule_id = add(octask, site, "--name", "Shop", "--notify", "changes")
    listed = octask("schedules", "list")
    assert f"{schedule_id}  Shop  every hour  next " in listed
    assert "no run yet" in listed
    assert "Nothing is due." in octask("schedules", "run")
    make_due(octask, schedule_id)
    assert "COMPLETED" in octask("schedules", "run")
    site.pages["/a"] = "<p>Other</p>"
    assert "0 added, 0 removed, 1 changed" in octask("schedules", "run", schedule_id[:6])
    assert "0 added, 0 removed, 1 changed" in octask("schedules")
    first, second = tasks(octask)
    assert second["engine"]["parent_task_id"] == first["task_id"]
    assert "0 added, 0 removed, 1 changed" in octask("get", second["task_id"])
    shown = json.loads(octask("schedules", "show", schedule_id, "--json"))
    assert shown["last"]["task_id"] == second["task_id"]
    assert shown["last"]["engine"]["schedule"]["changes"]["changed"] == 1
    assert [one["task_id"] for one in tasks(octask, "changed:yes")] == [second["task_id"]]
    assert len(tasks(octask, f"schedule:{schedule_id[:8]}")) == 2
    assert tasks(octask, "changes:>1 or changed:no") == []
    octask("schedules", "change", schedule_id, "--args", '{"max_pages": 7}')
    shown = json.loads(octask("schedules", "show", schedule_id, "--json"))
    assert (shown["request"]["args"]["max_pages"], shown["name"]) == (7, "Shop")
    octask("schedules", "remove", schedule_id)
    assert len(octask.tasks()) == 2


def test_an_objective_is_an_argument_of_a_snapshot(octask: Octask) -> None:
    words = ["oc_session_snapshot", "--objective", "to go on", "--every", "1h", "--json"]
    added = json.loads(octask("schedules", "add", *words))
    assert added["request"]["args"]["objective"] == "to go on"
    octask("schedules", "run", added["schedule_id"])
    (task,) = octask.tasks()
    assert (task["kind"], task["status"]) == ("oc_session_snapshot", "COMPLETED")


def test_a_task_that_ran_is_repeated_and_its_first_run_is_compared_with_it(
    octask: Octask, site: ChangingSite
) -> None:
    octask("start", "crawl", site.url, *FAST)
    (done,) = octask.tasks()
    daily = far_time()
    short = daily.removeprefix("0")  # as it is typed
    added = octask("schedules", "add", "--task", done["task_id"][:8], "--daily", short)
    assert f"daily at {daily}" in octask("schedules")
    site.pages["/a"] = "<p>Other</p>"
    assert "1 changed" in octask("schedules", "run", added.strip())
    octask("schedules", "pause", added.strip())
    assert "paused" in octask("schedules")
    octask("schedules", "change", added.strip(), "--every", "2h", "--missed", "skip")
    octask("schedules", "resume", added.strip())
    assert "every 2 hours" in octask("schedules")


def test_mistakes_and_failures_have_their_exit_codes(octask: Octask, site: ChangingSite) -> None:
    said = octask("schedules", "add", "crawl", site.url, "--every", "soon", code=2)
    assert "30m, 6h or 2d" in said
    both = ("--every", "6h", "--cron", "30 7 * * 1-5")
    assert "\n  rule: give one of" in octask("schedules", "add", "crawl", site.url, *both, code=2)
    assert "--cron" in octask("schedules", "add", "--help")
    said = octask(
        "schedules", "add", "crawl", f"{site.url}?token=abcdefgh", "--every", "1h", code=1
    )
    assert "env:NAME" in said
    octask("schedules", "show", "0123456789abcdef", code=4)
    octask("schedules", "run", "0123456789abcdef", code=4)
    schedule_id = add(octask, site)
    site.down = True
    make_due(octask, schedule_id)
    assert "FAILED" in octask("schedules", "run", code=1)


def test_a_schedule_that_cannot_be_read_is_an_error_beside_those_that_run(
    octask: Octask, site: ChangingSite
) -> None:
    broken, good = add(octask, site), add(octask, site)
    place = octask.home / "tasks" / SCHEDULES_FOLDER / f"{broken}.json"
    place.write_text(place.read_text()[:-9])
    said = octask("schedules", "run", code=1)
    assert sum(broken in line for line in said.splitlines()) == 1
    assert "Nothing is due" not in said
    make_due(octask, good)
    done = json.loads(octask("schedules", "run", "--json", code=1))
    assert [one["status"] for one in done["tasks"]] == ["COMPLETED"]
    assert [one["schedule_id"] for one in done["failed"]] == [broken]
    assert done["failed"][0]["message"]


def test_a_missing_variable_is_told_and_the_run_stays_due(
    octask: Octask, site: ChangingSite
) -> None:
    schedule_id = add(octask, site, "--username", "me", "--password", "env:NO_SUCH_WORD")
    make_due(octask, schedule_id)
    for _ in range(2):
        assert "NO_SUCH_WORD" in octask("schedules", "run", code=1)
    assert "NO_SUCH_WORD" in octask("schedules")
    assert octask.tasks() == []


def test_two_programs_at_once_start_a_run_once(octask: Octask, site: ChangingSite) -> None:
    schedule_id = add(octask, site)
    for number in range(3):
        make_due(octask, schedule_id)
        programs = [octask.start("schedules", "run") for _ in range(3)]
        said = [program.communicate(timeout=LIMIT_S) for program in programs]
        assert all("Traceback" not in errors for _, errors in said)
        assert len(octask.tasks()) == number + 1


def test_a_killed_program_leaves_its_run_ended_and_the_next_one_runs(
    octask: Octask, site: ChangingSite
) -> None:
    schedule_id = add(octask, site)
    make_due(octask, schedule_id)
    site.answers.clear()
    running = octask.start("schedules", "run")
    until(lambda: [one for one in octask.tasks() if one["status"] == "RUNNING"])
    make_due(octask, schedule_id)
    said = octask("schedules", "run")  # it is still going, in another program
    assert "had not ended" in said
    running.kill()
    running.communicate()
    site.answers.set()
    assert "Nothing is due." in octask("schedules", "run")
    make_due(octask, schedule_id)
    assert "COMPLETED" in octask("schedules", "run")
    first, second = tasks(octask)
    assert first["error"]["code"] == "orphaned"
    assert second["engine"]["parent_task_id"] == first["task_id"]
