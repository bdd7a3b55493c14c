"""Doctor: the environment of a ledger, in texts without secrets."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine import doctor
from engine.doctor import Finding, Report, examine
from engine.ledger import machine
from engine.ledger.files import Folder
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.lock import TaskLock
from engine.model.config import Settings
from tests.support.octask import Octask
from tests.trust.plain_user import run_plainly

PASSWORD = "Px6kHn3vBm9w"


def subjects(found: list[Finding]) -> dict[str, str]:
    return {one.subject: one.text for one in found}


def test_it_tells_of_folder_room_locks_clock_and_limits_and_may_be_copied(home: Path) -> None:
    Octask(home)("reap")
    text = Octask(home)("doctor")
    for subject in ("folder: mode 0700, owner you, disk", "room: ", "locks: ", "clock: ", "log: "):
        assert f"ok       {subject}" in text
    report = json.loads(Octask(home)("doctor", "--json"))
    assert report["healthy"]
    assert all(set(one) == {"subject", "state", "text", "advice"} for one in report["findings"])


def test_it_tells_the_connection_to_the_browser_and_starts_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(*_: object, **__: object) -> None:
        raise AssertionError("a browser was started")

    monkeypatch.setattr("os.posix_spawn", starts)
    monkeypatch.setattr("asyncio.create_subprocess_exec", starts)
    settings = Settings.at(home=home)
    looks = [look for look in doctor.looks() if look.__name__ == "_connection"]
    texts = [one.text for look in looks for one in look(settings)]
    assert looks
    assert texts in ([], ["direct (DevTools pipe); Playwright for options that need it"])


def test_locks_that_stand_are_named_and_those_of_ours_are_not(home: Path) -> None:
    lease = Lease.acquire(home / "tasks")
    ledger = Ledger(home / "tasks", lease=lease)
    held, own = (ledger.create("crawl", {}).task_id for _ in range(2))
    (ledger.root / held / ".lock.lock").mkdir()
    with Folder.at(str(ledger.root / own)) as folder, TaskLock(folder, own):
        found = doctor.locks(Settings.at(home=home))
    lease.release()
    told = [(one.subject, one.state) for one in found]
    assert told[:2] == [("locks", "ok"), ("locks", "warning")]
    assert held in found[1].text
    assert f"{held}: process {os.getpid()} is running" in found[1].text
    assert own not in found[1].text


@pytest.mark.parametrize("given", ["http://ann:{0}@px.test:3128", "ann:{0}@px.test:3128"])
def test_a_proxys_user_and_password_are_not_shown(home: Path, given: str) -> None:
    environ = {"HTTPS_PROXY": given.format(PASSWORD), "no_proxy": "localhost"}
    found = subjects(doctor.variables(replace(Settings.at(home=home), environ=environ)))
    assert "px.test:3128" in found["proxies"]
    assert "no_proxy=localhost" in found["proxies"]
    assert PASSWORD not in found["proxies"]
    assert "ann" not in found["proxies"]


def test_where_the_environment_moves_things_is_told(home: Path) -> None:
    environ = {"OPENCHROME_TASK_ROOT": str(home), "TMPDIR": "/odd", "SECRET_KEY": PASSWORD}
    found = subjects(doctor.variables(replace(Settings.at(home=home), environ=environ)))
    assert found == {"variables": f"OPENCHROME_TASK_ROOT={home}, TMPDIR=/odd"}


def test_a_clock_in_the_past_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Octask(home)("reap")
    monkeypatch.setattr(doctor, "wall_ms", lambda: 1_000_000_000_000)
    found = {one.subject: one for one in doctor.locks(Settings.at(home=home))}
    assert (found["clock"].state, "2001-09-09" in found["clock"].text) == ("warning", True)


def test_a_disk_with_another_clock_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Octask(home)("reap")
    monkeypatch.setattr(doctor, "wall_ms", lambda: machine.wall_ms() + 60_000)
    found = {one.subject: one for one in doctor.locks(Settings.at(home=home))}
    assert found["clock"].state == "warning"
    assert "behind" in found["clock"].text


@pytest.mark.case("R50")
def test_an_unwritable_ledger_has_an_exit_code(home: Path) -> None:
    Octask(home)("reap")
    (home / "tasks").chmod(0o500)
    try:
        ran = run_plainly(home, "doctor")
    finally:
        (home / "tasks").chmod(0o700)
    assert ran.returncode == 1
    assert "PROBLEM  locks: The ledger is read-only" in ran.stdout


@pytest.mark.case("R51")
def test_a_root_that_is_a_file_is_a_problem_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("mine")
    report = examine(Settings.at(home=tmp_path))
    assert not report.healthy
    (found,) = [one for one in report.findings if one.state == "problem"]
    assert str(tmp_path / "tasks") in found.text
    assert found.advice


@pytest.mark.case("R55")
def test_exhausted_watches_are_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(28, "No space left on device")

    Octask(home)("reap")
    monkeypatch.setattr(doctor, "open_watcher", none_left)
    found = {one.subject: one for one in doctor.limits(Settings.at(home=home))}
    assert found["watches"].state == "warning"
    assert "used up" in found["watches"].text
    assert "max_user_watches" in found["watches"].advice


def test_what_a_folder_is_called_cannot_forge_a_line_of_the_report() -> None:
    report = Report((Finding("ledger", "ok", "/x\nok       locks: fine\x1b[31m"),))
    assert report.text().count("\n") == 0
    assert "\x1b" not in report.text()
