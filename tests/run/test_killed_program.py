"""kill -9 during a real crawl: no process and no page is lost. Long form: tests/hard."""

from pathlib import Path
from typing import Any

import pytest

from tests.hard.kill_program import kill_once, programs


@pytest.mark.parametrize("program", ["octask", "window"])
@pytest.mark.case("R79")
def test_a_killed_program_loses_no_page(home: Path, site: Any, program: str) -> None:
    outcome = kill_once(home, programs(home, site)[program], pages=4, limit_s=150)
    assert outcome["processes"]
    assert outcome["left"] == 0
    assert outcome["reaped"] == 1
    assert outcome["offered"] == outcome["pages"]
