"""A page that the site has not got, and one that did not come, are two sorts of failed pages."""

from __future__ import annotations

from typing import Any

import pytest

from engine.results.units import UnitState, unit_of
from gui.details.unit_columns import ITEM_COLUMNS, spoken, state_word


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ({"status": 404, "error": "HTTP 404", "error_code": "http"}, "✕ HTTP error"),
        ({"status": 404, "error": "HTTP 404"}, "✕ HTTP error"),  # kept by an older version
        ({"status": None, "error": "slow", "error_code": "timeout"}, "✕ Not loaded"),
        ({"status": None, "error": "slow"}, "✕ Failed"),
        ({"status": "error", "error": {"code": "http", "message": "x"}}, "✕ Failed"),
    ],
)
def test_each_sort_of_failure_has_its_word(row: dict[str, Any], word: str) -> None:
    unit = unit_of({"url": "http://site.test/", **row}, 0)
    assert unit.state == UnitState.FAILED
    assert state_word(unit) == word
    assert word[2:] in spoken(unit)
    assert ITEM_COLUMNS[1].text(unit) == word


def test_what_robots_forbid_is_refused_and_did_not_fail() -> None:
    row = {"error": "Blocked by robots.txt", "error_code": "robots"}
    assert state_word(unit_of(row, 0)) == "⊘ Refused"
