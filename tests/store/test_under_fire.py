"""Short form of a hard rig: kills at random instants."""

from __future__ import annotations

import sys

import pytest

from tests.hard import kill_ledger

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.mark.timeout(180)
def test_fifteen_kills_lose_nothing_that_was_acknowledged():
    result = kill_ledger.run(15, seed=20_261_122)
    assert result["acknowledged"] > 15
    assert {result[name] for name in ("lost", "unreadable", "torn_result", "alive")} == {0}
    assert result["litter"] == 0
