"""Short forms of the hard rigs: kills at random instants, many writers on one task."""

from __future__ import annotations

import sys

import pytest

from tests.hard import kill_ledger, many_writers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.mark.timeout(180)
def test_fifteen_kills_lose_nothing_that_was_acknowledged():
    result = kill_ledger.run(15, seed=20_261_122)
    assert result["acknowledged"] > 15
    assert {result[name] for name in ("lost", "unreadable", "torn_result", "alive")} == {0}
    assert result["litter"] == 0


@pytest.mark.timeout(180)
def test_every_change_of_every_writer_is_counted():
    result = many_writers.run(4, 40, 5)
    assert (result["mutations"], result["lost"]) == (160, 0)
    assert result["litter"] == []
    if result["node"] != "2 programs":
        pytest.skip(result["node"])
    assert (result["node_acknowledged"], result["node_lost"], result["node_crashed"]) == (10, 0, 0)
