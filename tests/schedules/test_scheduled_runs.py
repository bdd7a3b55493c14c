"""Schedules of a real engine: what is stored, what is due, and the runs that it starts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.context import Clock
from engine.ledger.record_store import RecordNotFound
from engine.model.config import Settings
from engine.model.errors import EngineError, InvalidArguments
from engine.model.records import SCHEDULES_FOLDER, Status, TaskRecord, Units
from engine.schedules.schedule_store import ScheduleRunGoing
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.service.rerun import Asked
from engine.service.schedules import ScheduleSecret, Started
from tests.schedules.changing_site import ChangingSite
from tests.support.written_files import contents

HOUR_MS = 3_600_000
HOURLY = {"every_minutes": 60}
FAST = {"engine": "static", "delay_ms": 0, "respect_robots": False}


class SetClock:
    """The wall clock of an engine, which a test sets."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return Clock().now_ms() + self.ahead_ms


@asynccontextmanager
async def engine_at(home: Path, clock: SetClock, **settings: Any) -> AsyncIterator[Engine]:
    given = replace(Settings.at(home=home), **settings)
    engine = Engine(given, accepts=True, clock=Clock(now_ms=clock.now_ms))
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


@pytest.fixture
def site() -> Iterator[ChangingSite]:
    with ChangingSite() as found:
        yield found


def crawl(url: str, **args: Any) -> Asked:
    return Asked("crawl", {"url": url, **FAST, **args}, "Shop")


async def ended(engine: Engine, started: Started) -> list[TaskRecord]:
    return [await engine.tasks.wait(one.task_id) for one in started.tasks]


async def test_each_run_follows_the_one_before_and_counts_its_changes(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY, notify=True)
        assert (await engine.schedules.run_due()).tasks == []
        clock.ahead_ms += HOUR_MS
        (first,) = await ended(engine, await engine.schedules.run_due())
        assert first.status == Status.COMPLETED
        assert first.engine is not None
        assert first.engine.parent_task_id is None
        assert first.engine.schedule is not None
        assert first.engine.schedule.changes is None  # nothing to compare with
        site.pages["/"] = "<p>Home, new <a href=/c>c</a><a href=/b>b</a></p>"
        site.pages["/c"] = "<p>Third</p>"
        clock.ahead_ms += HOUR_MS
        (second,) = await ended(engine, await engine.schedules.run_due())
        assert second.engine is not None
        link = second.engine.schedule
        assert link is not None
        assert link.id == added.schedule.schedule_id
        assert link.due_at == added.schedule.created_at + 2 * HOUR_MS
        assert link.notify
        assert second.engine.name == "Shop"
        assert second.engine.parent_task_id == first.task_id
        changes = link.changes
        assert changes is not None
        assert changes.before == first.task_id
        assert (changes.added, changes.removed, changes.changed, changes.same) == (1, 1, 1, 1)
        shown = await engine.schedules.get(added.schedule.schedule_id)
        assert shown.last is not None
        assert shown.last.task_id == second.task_id
        assert shown.next_at == link.due_at + HOUR_MS


async def test_a_failed_run_is_passed_over_by_the_comparison(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        await engine.schedules.add(crawl(site.url), HOURLY)
        runs = list[TaskRecord]()
        for down in (False, True, False):
            site.down = down
            clock.ahead_ms += HOUR_MS
            runs += await ended(engine, await engine.schedules.run_due())
        assert [run.status for run in runs] == ["COMPLETED", "FAILED", "COMPLETED"]
        first, failed, last = (run.engine.schedule for run in runs if run.engine is not None)
        assert last is not None
        assert last.changes is not None
        assert last.changes.before == runs[0].task_id
        assert last.changes.total == 0
        assert failed is not None
        assert failed.changes is None
        assert first is not None


async def test_a_run_that_is_still_going_is_not_doubled_and_the_reason_is_kept(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    site.answers.clear()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        clock.ahead_ms += HOUR_MS
        (running,) = (await engine.schedules.run_due()).tasks
        clock.ahead_ms += HOUR_MS
        assert (await engine.schedules.run_due()).tasks == []
        skip = (await engine.schedules.get(added.schedule.schedule_id)).schedule.skips[-1]
        assert (skip.why, skip.number, skip.task_id) == ("running", 1, running.task_id)
        with pytest.raises(ScheduleRunGoing, match=running.task_id):
            await engine.schedules.run_now(added.schedule.schedule_id)
        site.answers.set()
        await engine.tasks.wait(running.task_id)


async def test_a_clock_that_is_set_back_starts_nothing_again(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        await engine.schedules.add(crawl(site.url), HOURLY)
        clock.ahead_ms += 3 * HOUR_MS
        assert len(await ended(engine, await engine.schedules.run_due())) == 1
        for ahead_ms in (0, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS):
            clock.ahead_ms = ahead_ms
            done = await engine.schedules.run_due()
            assert done.tasks == []
            assert done.skips == []
        clock.ahead_ms = 4 * HOUR_MS
        assert len(await ended(engine, await engine.schedules.run_due())) == 1


@pytest.mark.parametrize(("missed", "runs", "skipped"), [("once", 1, 4), ("skip", 0, 5)])
async def test_missed_occurrences_run_once_or_not_at_all(
    tmp_path: Path, site: ChangingSite, missed: str, runs: int, skipped: int
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY, missed=missed)
        clock.ahead_ms += 5 * HOUR_MS + HOUR_MS // 2
        done = await engine.schedules.run_due()
        assert len(await ended(engine, done)) == runs
        kept = (await engine.schedules.get(added.schedule.schedule_id)).schedule.skips
        assert [(skip.why, skip.number) for skip in kept] == [("missed", skipped)]


async def test_a_paused_schedule_starts_only_by_hand_and_a_resumed_one_misses_nothing(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        schedule_id = added.schedule.schedule_id
        assert (await engine.schedules.pause(schedule_id)).next_at is None
        clock.ahead_ms += 5 * HOUR_MS
        assert (await engine.schedules.run_due()).tasks == []
        by_hand = await engine.schedules.run_now(schedule_id)
        await engine.tasks.wait(by_hand.task_id)
        assert by_hand.engine is not None
        assert by_hand.engine.schedule is not None
        assert by_hand.engine.schedule.id == schedule_id
        assert by_hand.engine.schedule.due_at is None
        resumed = await engine.schedules.resume(schedule_id)
        assert (await engine.schedules.run_due()).tasks == []
        assert resumed.next_at is not None
        assert clock.now_ms() < resumed.next_at <= clock.now_ms() + HOUR_MS


async def test_a_run_that_lacks_a_variable_stays_due_until_a_program_has_it(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    asked = crawl(site.url, username="me", password={"secret": "env:SHOP_PASSWORD"})
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(asked, HOURLY)
        clock.ahead_ms += HOUR_MS
        for _ in range(2):
            done = await engine.schedules.run_due()
            assert done.tasks == []
            assert "SHOP_PASSWORD" in done.refused[0][1].message
        found = (await engine.schedules.get(added.schedule.schedule_id)).schedule
        assert found.refusal is not None
        assert "SHOP_PASSWORD" in found.refusal.message
    async with engine_at(tmp_path, clock, environ={"SHOP_PASSWORD": "k33per-of-sh0ps"}) as engine:
        (run,) = await ended(engine, await engine.schedules.run_due())
        assert run.status == Status.COMPLETED
        found = (await engine.schedules.get(added.schedule.schedule_id)).schedule
        assert found.refusal is None
    written = contents(tmp_path).values()
    assert not any(b"k33per-of-sh0ps" in data for data in written)


@pytest.mark.parametrize(
    "asked",
    [
        Asked("crawl", {"url": "https://user:s3cr3t-word@example.com/"}),
        Asked("crawl", {"url": "https://example.com/?token=s3cr3t-word"}),
        Asked("crawl", {"url": "https://a.test/", "username": "me", "password": "s3cr3t-word"}),
        Asked("crawl", {"url": "https://a.test/"}, terms=Terms(objective="password: s3cr3t-word")),
        Asked(
            "commands",
            {
                "task_name": "Log in",
                "task_intention": "log in",
                "commands": [
                    {
                        "tool_name": "browser_interact",
                        "intention": "type the word",
                        "args": {"action": "type", "selector": "#p", "text": "s3cr3t-word"},
                    }
                ],
            },
        ),
    ],
)
async def test_a_request_with_a_secret_is_refused_and_nothing_of_it_is_written(
    tmp_path: Path, asked: Asked
) -> None:
    async with engine_at(tmp_path, SetClock()) as engine:
        with pytest.raises((ScheduleSecret, InvalidArguments)) as refused:
            await engine.schedules.add(asked, HOURLY)
        assert isinstance(refused.value, ScheduleSecret), refused.value
        assert "env:NAME" in refused.value.advice
        assert await engine.schedules.all() == []
    written = contents(tmp_path).values()
    assert not any(b"s3cr3t-word" in data for data in written)


@pytest.mark.parametrize(
    ("asked", "rule", "options", "paths"),
    [
        (crawl("ftp://x.test/"), {"daily_at": "27:00"}, {}, {"url", "daily_at"}),
        (crawl("https://x.test/"), HOURLY, {"missed": "twice"}, {"missed"}),
        (crawl("https://x.test/"), HOURLY, {"grace_minutes": -1}, {"grace_minutes"}),
        (Asked("browser_task", {}, terms=Terms(objective="x")), HOURLY, {}, {"kind"}),
    ],
)
async def test_mistakes_of_a_schedule_are_all_named(
    tmp_path: Path, asked: Asked, rule: Any, options: Any, paths: set[str]
) -> None:
    async with engine_at(tmp_path, SetClock()) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.schedules.add(asked, rule, **options)
        assert {one.path for one in refused.value.problems} == paths
        assert await engine.schedules.all() == []


async def test_a_changed_rule_counts_from_now_and_a_deleted_schedule_starts_nothing(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        schedule_id = added.schedule.schedule_id
        clock.ahead_ms += HOUR_MS
        changed = await engine.schedules.change(schedule_id, rule={"every_minutes": 10}, name="N")
        assert changed.schedule.name == "N"
        assert (await engine.schedules.run_due()).tasks == []
        clock.ahead_ms += HOUR_MS // 6
        (run,) = await ended(engine, await engine.schedules.run_due())
        await engine.schedules.remove(schedule_id)
        clock.ahead_ms += HOUR_MS
        assert (await engine.schedules.run_due()).tasks == []
        assert (await engine.tasks.get(run.task_id)).entry == run
        with pytest.raises(RecordNotFound, match="schedule"):
            await engine.schedules.remove(schedule_id)


async def test_changed_arguments_count_from_the_next_run_and_the_runs_before_stay_known(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        added = await engine.schedules.add(crawl(site.url, max_pages=1), HOURLY, missed="skip")
        schedule_id = added.schedule.schedule_id
        clock.ahead_ms += HOUR_MS
        (first,) = await ended(engine, await engine.schedules.run_due())
        changed = await engine.schedules.change(
            schedule_id, args={"max_pages": None, "max_depth": 1}
        )
        before, after = (one.schedule.request.document["args"] for one in (added, changed))
        assert after == {**{k: v for k, v in before.items() if k != "max_pages"}, "max_depth": 1}
        assert (changed.schedule.rule, changed.schedule.missed) == (added.schedule.rule, "skip")
        assert changed.last is not None
        assert changed.last.task_id == first.task_id
        clock.ahead_ms += HOUR_MS
        (second,) = await ended(engine, await engine.schedules.run_due())
        assert first.units == Units(1, 1)
        assert second.units is not None
        assert second.units.done > 1
        assert second.engine is not None
        assert second.engine.parent_task_id == first.task_id


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"max_pages": 0}, InvalidArguments),
        ({"no_such": 1}, InvalidArguments),
        ({"url": None}, InvalidArguments),
        ({"username": "ann", "password": "hunter2"}, ScheduleSecret),
    ],
)
async def test_refused_arguments_leave_the_schedule_as_it_was(
    tmp_path: Path, site: ChangingSite, args: dict[str, Any], wrong: type[EngineError]
) -> None:
    async with engine_at(tmp_path, SetClock()) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        with pytest.raises(wrong):
            await engine.schedules.change(added.schedule.schedule_id, args=args, name="Other")
        kept = await engine.schedules.get(added.schedule.schedule_id)
        assert kept.schedule == added.schedule


async def test_a_schedule_keeps_its_kind(tmp_path: Path, site: ChangingSite) -> None:
    async with engine_at(tmp_path, SetClock()) as engine:
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        other = Asked("crawl_sitemap", {"url": site.url})
        with pytest.raises(InvalidArguments, match="kind"):
            await engine.schedules.change(added.schedule.schedule_id, asked=other)


async def test_a_damaged_schedule_is_shown_and_the_others_run(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        broken = await engine.schedules.add(crawl(site.url), HOURLY)
        await engine.schedules.add(crawl(site.url), HOURLY)
        place = tmp_path / "tasks" / SCHEDULES_FOLDER / f"{broken.schedule.schedule_id}.json"
        raw = json.loads(place.read_text())
        raw["rule"]["every_minutes"] = "often"
        place.write_text(json.dumps(raw))
        clock.ahead_ms += HOUR_MS
        assert len(await ended(engine, await engine.schedules.run_due())) == 1
        shown = await engine.schedules.all()
        assert "unreadable" in getattr(shown[-1], "reason", "")
        assert json.loads(place.read_text()) == raw


async def test_an_open_engine_starts_what_is_due_by_itself(
    tmp_path: Path, site: ChangingSite
) -> None:
    clock = SetClock()
    async with engine_at(tmp_path, clock) as engine:
        engine.schedules.keep_running()
        clock.ahead_ms -= HOUR_MS
        added = await engine.schedules.add(crawl(site.url), HOURLY)
        clock.ahead_ms += HOUR_MS
        await engine.schedules.change(added.schedule.schedule_id, name="Woken")
        async with aclosing(engine.tasks.changes()) as batches:
            async for batch in batches:
                if any(
                    not one.entry.is_live
                    for one in batch.views
                    if isinstance(one.entry, TaskRecord)
                ):
                    break
        (view,) = await engine.tasks.list()
        assert isinstance(view.entry, TaskRecord)
        assert view.entry.engine is not None
        assert view.entry.engine.schedule is not None
        assert view.entry.engine.schedule.id == added.schedule.schedule_id
