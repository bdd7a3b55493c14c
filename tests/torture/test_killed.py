"""Processes killed at chosen places; the rigs kill at all of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hard import kill_ledger
from tests.hard.fail_syscalls import Failing, fail
from tests.hard.failing_program import failed_starts
from tests.hard.kill_syscalls import Point, kill
from tests.hard.stage import Stage
from tests.hard.syscalls import points, traced, within


@pytest.mark.case("R01")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_kills_at_any_instant_lose_nothing_that_was_acknowledged() -> None:
    figures = kill_ledger.run(4, seed=20_261_122)
    assert figures.misses == []
    assert figures.facts["acknowledged"] > 4


@pytest.mark.case("R02", "R04", "R06")
def test_a_kill_at_any_call_of_an_end_is_atomic(stage: Stage, tmp_path: Path) -> None:
    _, calls = traced(stage, "complete", tmp_path / "home", tmp_path / "trace")
    wrong = []
    for call in points(calls, tmp_path / "home"):
        found = kill(stage, Point("complete", call), tmp_path)
        wrong += [f"{call}: {why}" for why in found["wrong"]]
        assert found["killed"]
    assert wrong == []


@pytest.mark.case("R03", "R20")
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EDQUOT", "EROFS", "EMFILE"])
def test_an_error_at_any_call_is_atomic(stage: Stage, tmp_path: Path, error: str) -> None:
    _, calls = traced(stage, "fail", tmp_path / "home", tmp_path / "trace")
    told = 0
    for call in within(calls, tmp_path / "home"):
        found = fail(stage, Failing(Point("fail", call), error), tmp_path)
        assert found["wrong"] == []
        told += found["refused"]
    assert told >= 10


@pytest.mark.case("R03")
def test_a_failing_call_has_an_exit_code(stage: Stage, tmp_path: Path, site: Any) -> None:
    assert list(failed_starts(tmp_path, site.url, ["ENOSPC", "EIO"], 2, seed=3)) == []
