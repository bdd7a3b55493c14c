"""docs/reliability.md: every case of the list has a test with its id, or says why not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (R\d\d) \| .+ \| (.*) \|$", re.MULTILINE)


@cache
def marked_cases() -> dict[str, list[str]]:
    """Case id -> the tests that carry it as `@pytest.mark.case("R05")`."""
    found: dict[str, list[str]] = {}
    for place in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(place.read_text("utf-8"))):
            for case in _cases(node):
                found.setdefault(case, []).append(getattr(node, "name", ""))
    return found


def _cases(node: ast.AST) -> list[str]:
    marks = getattr(node, "decorator_list", [])
    calls = [mark for mark in marks if isinstance(mark, ast.Call)]
    ours = [call for call in calls if ast.unparse(call.func) == "pytest.mark.case"]
    return [str(ast.literal_eval(word)) for call in ours for word in call.args]


def test_every_case_of_the_list_has_a_test_or_says_why_not() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    found = ROW.findall(page)
    rows = dict(found)
    assert sorted(case for case, _ in found) == [f"R{at:02}" for at in range(1, len(found) + 1)]
    bare = [case for case in rows if case not in marked_cases() and "not here:" not in rows[case]]
    assert not bare


def test_every_id_beside_a_test_is_a_case_of_the_list() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    assert set(marked_cases()) <= dict(ROW.findall(page)).keys()
