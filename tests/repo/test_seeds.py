"""docs/seeds.md names tests as proof: each of them must be there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "seeds.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def test_every_test_that_is_named_as_a_proof_exists() -> None:
    missing = [f"{path}::{name}" for path, name in NAMED if not is_there(path, name)]
    assert len(NAMED) > 100
    assert not missing


def is_there(path: str, name: str) -> bool:
    place = ROOT / "tests" / path
    if not place.is_file():
        return False
    line = rf"^(?:async )?def {name}\(|^{name} = "
    return re.search(line, place.read_text("utf-8"), re.MULTILINE) is not None


def test_every_line_of_a_seed_has_a_proof_or_says_why_not() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    bare = [row[0] for row in rows if len(row) >= 2 and not "".join(row[1:]).strip(" |")]
    assert not bare


def test_every_bench_and_every_hard_test_that_is_named_exists() -> None:
    named = re.findall(r"`python -m tests\.(bench|hard)[. ](\w+)`", PAGE)
    assert named
    gone = [f"{room}/{name}" for room, name in named if not there(room, name)]
    assert not gone


def there(room: str, name: str) -> bool:
    return (ROOT / "tests" / room / f"{name}.py").is_file()
