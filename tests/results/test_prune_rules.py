"""The pruning rules over random tasks, and their notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.errors import InvalidArguments
from engine.model.records import Stamp
from engine.service.pruning import Ended, Rules, chosen, rules_of

NOW = 1_000_000.0
STATES = ("COMPLETED", "FAILED", "CANCELLED")


def ended(number: int, at: float, size: int, status: str = "COMPLETED") -> Ended:
    return Ended(f"{number:016x}", "crawl", status, "", at, size, Stamp(number, 0, 0))


tasks = st.lists(
    st.tuples(st.integers(0, 2_000_000), st.integers(0, 100), st.sampled_from(STATES)), max_size=12
).map(lambda found: [ended(n, at, size, status) for n, (at, size, status) in enumerate(found)])
limits = st.none() | st.integers(0, 14)
rules = st.builds(
    Rules,
    older_than_ms=st.none() | st.integers(0, 1_500_000),
    keep=limits,
    max_bytes=st.none() | st.integers(0, 600),
    status=st.sampled_from([(), ("FAILED",), ("FAILED", "CANCELLED")]),
)


@given(tasks, rules)
def test_what_goes_is_what_the_rules_say(found, asked) -> None:
    gone = chosen(found, asked, NOW)
    ids = {one.task_id for one in gone}
    pool = [one for one in found if not asked.status or one.status in asked.status]
    newest = sorted(pool, key=lambda one: (-one.ended_at, one.task_id))
    safe = {one.task_id for one in newest[: asked.keep or 0]}
    assert not ids & safe
    assert ids <= {one.task_id for one in pool}
    assert [one.ended_at for one in gone] == sorted(one.ended_at for one in gone)
    if asked.is_empty:
        assert not gone
    if asked.older_than_ms is not None:
        old = {one.task_id for one in pool if one.ended_at < NOW - asked.older_than_ms}
        assert old - safe <= ids
        if asked.max_bytes is None:
            assert ids <= old
    if asked.max_bytes is not None:
        left = sum(one.size_bytes for one in pool if one.task_id not in ids)
        assert left <= asked.max_bytes or ids == {one.task_id for one in pool} - safe
    if asked.keep is not None and asked.older_than_ms is None and asked.max_bytes is None:
        assert ids == {one.task_id for one in pool} - safe


@given(tasks, st.integers(0, 600))
def test_a_size_takes_no_more_than_it_must(found, most) -> None:
    gone = chosen(found, Rules(max_bytes=most), NOW)
    if gone:
        left = sum(one.size_bytes for one in found) - sum(one.size_bytes for one in gone)
        assert left + gone[-1].size_bytes > most


def test_a_task_that_ended_in_the_future_is_not_old() -> None:
    assert not chosen([ended(1, NOW + 10_000, 5)], Rules(older_than_ms=0), NOW)


@pytest.mark.parametrize(
    ("written", "ms"), [("30d", 2_592_000_000), ("12h", 43_200_000), ("2W", 1_209_600_000)]
)
def test_a_length_of_time_is_read(written, ms) -> None:
    assert rules_of(written, None, None, ()).older_than_ms == ms


@pytest.mark.parametrize(
    ("written", "size"),
    [("2GB", 2_000_000_000), ("500 MB", 500_000_000), ("1.5g", 1_500_000_000), ("0", 0)],
)
def test_a_size_is_read(written, size) -> None:
    assert rules_of(None, None, written, ()).max_bytes == size


def test_every_mistake_is_named() -> None:
    with pytest.raises(InvalidArguments) as refused:
        rules_of("30 moons", None, "large", ("running", "FAILED"))
    paths = sorted(problem.path for problem in refused.value.problems)
    assert paths == ["max_size", "older_than", "status"]


def test_no_rule_at_all_is_a_mistake() -> None:
    with pytest.raises(InvalidArguments, match="say what may go"):
        rules_of(None, None, None, ("FAILED",))
