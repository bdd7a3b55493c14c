"""Counting call by call: against OpenChrome's own records and against a model."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import budgets
from engine.budgets import ToolCall
from tests.envelopes.counted import after, navigations, record

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome" / "tasks"
WORDS = re.compile(r"(?P<tool>\S+) (?P<ok>ok|error) durationMs=(?P<ms>\d+)")


@pytest.mark.parametrize(
    "folder",
    [
        folder
        for folder in sorted(CORPUS.iterdir())
        if folder.joinpath("meta.json").exists()
        and b"budget_status" in folder.joinpath("meta.json").read_bytes()
        and 0 < folder.joinpath("meta.json").read_bytes().count(b"durationMs=") < 11
    ],
    ids=lambda folder: folder.name,
)
def test_openchromes_own_envelopes_come_out_the_same(folder: Path) -> None:
    """Its recorded calls, counted by us, give its counters, its words and its verdict."""
    theirs = json.loads(folder.joinpath("meta.json").read_bytes())
    visits = theirs["counters"]["sameUrlNavigations"]
    if theirs["counters"]["toolCalls"] != len(theirs["recent_events"]) or len(visits) > 1:
        pytest.skip("it does not keep all calls that it counted")
    ours = {**record(), "policy": theirs["policy"], "created_at": theirs["created_at"]}
    for event in theirs["recent_events"]:
        found = WORDS.match(event["summary"])
        assert found is not None
        args = {"url": next(iter(visits))} if found["tool"] == "navigate" and visits else {}
        call = ToolCall(found["tool"], args, found["ok"] == "ok", int(found["ms"]))
        ours = after(ours, call, now_ms=event["ts"])
    for name in ("counters", "recent_events", "budget_status", "last_tool_name"):
        assert ours.get(name) == theirs.get(name), name
    for name in ("budget_exceeded", "recommended_next"):
        assert ours.get(name) == theirs.get(name), name


calls = st.builds(
    ToolCall,
    tool=st.sampled_from(["navigate", "read_page", "find", "act", "computer", "other"]),
    args=st.sampled_from(
        [{}, {"url": "http://a.test/"}, {"url": "http://b.test/"}, {"action": "screenshot"}]
    ),
    ok=st.booleans(),
)


limits = st.dictionaries(
    st.sampled_from(
        [key for key in budgets.BUDGETS if key not in ("maxWallMs", "checkpointEveryCalls")]
    ),
    st.integers(1, 9),
)


def streak(items: list[Any], fits: Any) -> int:
    count = 0
    for item in reversed(items):
        if not fits(item):
            break
        count += 1
    return count


@given(policy=limits, made=st.lists(calls, max_size=40))
def test_incremental_counts_match_the_total(policy: dict[str, int], made: list[ToolCall]) -> None:
    meta = record(policy)
    for number, call in enumerate(made, 1):
        meta = after(meta, call)
        story = made[:number]
        looks = [c.tool in ("read_page", "find") or (c.tool, c.args.get("action")) == (
            "computer", "screenshot") for c in story]  # fmt: skip
        visits = Counter(c.args["url"] for c in story if c.tool == "navigate" and "url" in c.args)
        counters = {
            "toolCalls": number,
            "actionCalls": looks.count(False),
            "observationCalls": looks.count(True),
            "failureCalls": sum(not c.ok for c in story),
            # called at once, in this very turn of the loop
            "consecutiveSameTool": streak(story, lambda c: c.tool == call.tool),  # noqa: B023
            "observationStreak": streak(looks, bool),
            "failureStreak": streak(story, lambda c: not c.ok),
            "sameUrlNavigations": dict(visits),
        }
        assert meta["counters"] == counters
        values = {
            "maxToolCalls": number,
            "maxConsecutiveSameTool": counters["consecutiveSameTool"],
            "maxObservationStreak": counters["observationStreak"],
            "maxFailureStreak": counters["failureStreak"],
            "maxSameUrlNavigations": max(visits.values(), default=0),
        }
        over = {key for key, value in values.items() if value > meta["policy"].get(key, 10**9)}
        assert set(meta.get("budget_exceeded", [])) == over
        assert len(meta["recent_events"]) == min(number, 10)


@given(
    meta=st.dictionaries(
        st.sampled_from(
            ["kind", "policy", "counters", "recent_events", "created_at", "started_at", "ended_at"]
        )
        | st.sampled_from(["last_tool_name", "budget_exceeded", "last_activity_at"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["toolCalls", "sameUrlNavigations", "maxToolCalls", "x"])
                    | st.sampled_from(["allowedDomains", "checkpointEveryCalls", "maxWallMs"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ),
    ),
    call=calls,
)
def test_foreign_records_do_not_break_counting(meta: dict[str, Any], call: ToolCall) -> None:
    changed = after(meta, call)
    assert changed["budget_status"] in ("ok", "warning", "exceeded")
    assert changed["counters"]["toolCalls"] >= 1
    assert budgets.before(meta).status in ("ok", "warning", "exceeded")


def test_thousands_of_addresses_do_not_outgrow_the_record() -> None:
    meta = after(record(), *navigations(4))
    for number in range(2_000):
        meta = after(meta, ToolCall("navigate", {"url": f"http://site.test/{number}"}))
    assert len(meta["counters"]["sameUrlNavigations"]) == 500
    assert meta["budget_exceeded"] == ["maxConsecutiveSameTool", "maxSameUrlNavigations"]
