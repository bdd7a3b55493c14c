"""The budgets themselves: pure rules, so they are tried at every edge and against a model."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine import budgets
from engine.budgets import ToolCall
from tests.envelopes.counted import ACT, LOOK, after, navigations, record


def alternating(count: int, ok: bool = True) -> list[ToolCall]:
    """So many actions, never one tool twice in a row, so that only the number can matter."""
    return [ToolCall(("act", "interact")[number % 2], ok=ok) for number in range(count)]


CALLS = {
    "maxToolCalls": alternating,
    "maxConsecutiveSameTool": lambda count: [ToolCall(ACT)] * count,
    "maxObservationStreak": lambda count: [
        ToolCall(("read_page", "find")[number % 2]) for number in range(count)
    ],
    "maxFailureStreak": lambda count: alternating(count, ok=False),
    "maxSameUrlNavigations": navigations,
}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("key", CALLS)
@pytest.mark.case("R90")
def test_a_budget_warns_at_75_percent_and_ends_above_100(key: str, limit: int) -> None:
    for count in range(1, limit + 2):
        meta = after(record({key: limit}), *CALLS[key](count))
        level = budgets.at(meta, 1_000_001).level(key)
        warned = count >= math.ceil(0.75 * limit)
        assert level == ("exceeded" if count > limit else "warning" if warned else "ok"), count


@pytest.mark.parametrize(
    ("passed_ms", "level"),
    [(0, "ok"), (749, "ok"), (750, "warning"), (1_000, "warning"), (1_001, "exceeded")],
)
@pytest.mark.case("R90")
def test_wall_time_runs_out_also_while_nothing_is_called(passed_ms: int, level: str) -> None:
    meta = record({"maxWallMs": 1_000})
    assert budgets.at(meta, 1_000_000 + passed_ms).level("maxWallMs") == level
    assert budgets.at(meta, 1_000_000 + passed_ms).status == level


def test_wall_time_stands_still_once_the_task_has_ended() -> None:
    meta = record({"maxWallMs": 1_000}, status="COMPLETED", ended_at=1_000_500)
    assert budgets.at(meta, 9_999_999).gauges[0].value == 500


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("maxConsecutiveSameTool", 5),
        ("maxObservationStreak", 6),
        ("maxFailureStreak", 4),
        ("maxSameUrlNavigations", 3),
    ],
)
def test_a_streak_has_its_limit_without_a_policy(key: str, default: int) -> None:
    assert after(record(None), *CALLS[key](default)).get("budget_exceeded") is None
    assert key in after(record(None), *CALLS[key](default + 1))["budget_exceeded"]


def test_calls_and_time_have_no_limit_without_a_policy() -> None:
    meta = after(record(None), *alternating(500), now_ms=10**12)
    assert budgets.at(meta, 10**12).status == "ok"
    assert {gauge.key for gauge in budgets.at(meta, 10**12).gauges} == {
        "maxConsecutiveSameTool",
        "maxObservationStreak",
        "maxFailureStreak",
        "maxSameUrlNavigations",
    }


def test_repeating_one_observation_too_often_asks_for_another_strategy() -> None:
    policy = {"maxObservationStreak": 3, "maxConsecutiveSameTool": 99}
    meta = after(record(policy), *[ToolCall(LOOK)] * 4)
    assert meta["budget_status"] == "exceeded"
    assert meta["recommended_next"] == "change_strategy_or_verify"


def test_repeating_one_address_is_a_warning_first_and_stays_exceeded_for_good() -> None:
    policy = {"maxSameUrlNavigations": 2}
    meta = after(record(policy), *navigations(2))
    assert meta["budget_status"] == "warning"
    assert meta["recommended_next"] == "checkpoint_or_verify"
    meta = after(meta, ToolCall(ACT), *navigations(1))
    assert meta["budget_exceeded"] == ["maxSameUrlNavigations"]
    meta = after(meta, ToolCall("navigate", {"url": "http://site.test/other"}), ToolCall(ACT))
    assert meta["budget_exceeded"] == ["maxSameUrlNavigations"]


def test_a_streak_heals_and_takes_its_words_with_it() -> None:
    meta = after(record({"maxFailureStreak": 1}), *alternating(2, ok=False))
    assert meta["budget_status"] == "exceeded"
    meta = after(meta, ToolCall("act"))
    assert meta["budget_status"] == "ok"
    assert "budget_exceeded" not in meta
    assert "recommended_next" not in meta


@pytest.mark.parametrize("tool", sorted(budgets.OBSERVING))
def test_a_tool_that_looks_is_no_action(tool: str) -> None:
    counters = after(record(), ToolCall(tool))["counters"]
    assert (counters["observationCalls"], counters["actionCalls"]) == (1, 0)
    assert counters["observationStreak"] == 1


@pytest.mark.parametrize(
    ("call", "looks"),
    [
        (ToolCall("computer", {"action": "screenshot"}), True),
        (ToolCall("computer", {"action": "left_click"}), False),
        (ToolCall("computer"), False),
        (ToolCall("javascript_tool"), False),
        (ToolCall("navigate", {"url": "http://site.test/"}), False),
        (ToolCall("a_tool_of_tomorrow"), False),
    ],
)
def test_what_is_not_known_to_look_is_an_action(call: ToolCall, looks: bool) -> None:
    counters = after(record(), call)["counters"]
    assert counters["observationCalls"] == looks
    assert counters["actionCalls"] == (not looks)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/a", True),
        ("https://www.example.com/", True),
        ("https://EXAMPLE.com./", True),
        ("https://example.com:8443/x", True),
        ("https://example.com.evil.test/", False),
        ("https://notexample.com/", False),
        ("https://evil.test/?u=https://example.com/", False),
        ("https://example.com@evil.test/", False),
        ("http://b\u00fccher.test/", True),
        ("http://xn--bcher-kva.test/", True),
        ("not an address", False),
        ("http://[", False),
        ("about:blank", False),
    ],
)
def test_an_allowed_domain_includes_its_subdomains(url: str, allowed: bool) -> None:
    policy = {"allowedDomains": [".example.com", "B\u00dcCHER.test"]}
    assert budgets.allows(policy, url) is allowed
    meta = after(record(policy), ToolCall("navigate", {"url": url}))
    assert meta["budget_status"] == ("ok" if allowed else "exceeded")
    assert meta.get("budget_exceeded") == (None if allowed else ["allowedDomains"])


def test_a_call_without_an_address_and_the_next_allowed_one_are_no_straying() -> None:
    meta = after(record({"allowedDomains": ["a.test"]}), ToolCall("act", {"href": "http://b.test"}))
    assert budgets.at(meta, 1_000_002).exceeded == ("allowedDomains",)
    assert after(meta, ToolCall(LOOK))["budget_status"] == "ok"


def test_every_so_many_calls_a_checkpoint_is_due() -> None:
    meta, due = record({"checkpointEveryCalls": 3}), []
    for call in alternating(7):
        meta = after(meta, call)
        due.append(meta.get("recommended_next"))
    assert due == [None, None, "checkpoint_or_verify"] * 2 + [None]


def test_a_kind_with_a_body_knows_four_budgets_and_no_defaults() -> None:
    policy = {"maxToolCalls": 2, "maxSameUrlNavigations": 1, "checkpointEveryCalls": 1}
    meta = {**record(), "kind": "crawl", "policy": policy}
    meta = after(meta, *[ToolCall("navigate", {"url": "http://site.test/"}, ok=False)] * 9)
    assert meta["budget_exceeded"] == ["maxToolCalls"]
    assert [gauge.key for gauge in budgets.at(meta, 1_000_002).gauges] == ["maxToolCalls"]


def test_a_body_does_not_spend_its_time_while_it_waits_for_a_slot() -> None:
    meta = {**record(), "kind": "crawl", "policy": {"maxWallMs": 100}, "started_at": 1_005_000}
    assert budgets.at(meta, 1_005_050).status == "ok"


def test_the_last_ten_calls_are_kept_with_what_they_meant() -> None:
    meta = after(record({"maxToolCalls": 12}), *alternating(11), ToolCall("act", summary="clicked"))
    assert len(meta["recent_events"]) == 10
    assert meta["recent_events"][-1] == {
        "ts": 1_000_001,
        "tool": "act",
        "ok": True,
        "summary": "act ok durationMs=0 clicked budget_warning=maxToolCalls",
    }


@pytest.mark.parametrize(
    ("policy", "places"),
    [
        (None, []),
        ({}, []),
        ({"maxToolCalls": 1, "allowedDomains": ["a.test"]}, []),
        ([], ["policy"]),
        ({"maxToolCalls": 0}, ["policy.maxToolCalls"]),
        ({"maxToolCalls": True}, ["policy.maxToolCalls"]),
        ({"maxWallMs": 1.5}, ["policy.maxWallMs"]),
        ({"maxWallMs": 2**53}, ["policy.maxWallMs"]),
        ({"maxWallMs": "10"}, ["policy.maxWallMs"]),
        ({"maxPages": 3}, ["policy.maxPages"]),
        ({"allowedDomains": []}, ["policy.allowedDomains"]),
        ({"allowedDomains": "a.test"}, ["policy.allowedDomains"]),
        ({"allowedDomains": ["a.test", "https://b.test/", 3]},
         ["policy.allowedDomains[1]", "policy.allowedDomains[2]"]),
        ({"maxToolCalls": -1, "x": 1, "maxFailureStreak": None},
         ["policy.maxToolCalls", "policy.x", "policy.maxFailureStreak"]),
    ],
)  # fmt: skip
def test_every_mistake_in_a_policy_is_named_with_its_place(policy: Any, places: list[str]) -> None:
    assert [problem.path for problem in budgets.problems(policy)] == places


def test_a_foreign_policy_is_rounded_down_and_what_is_no_limit_counts_as_not_given() -> None:
    given_policy = {"maxToolCalls": 2.9, "maxFailureStreak": 0, "maxWallMs": "soon"}
    assert budgets.defaulted(given_policy, envelope=True) == {
        "maxToolCalls": 2,
        "maxConsecutiveSameTool": 5,
        "maxObservationStreak": 6,
        "maxFailureStreak": 4,
        "maxSameUrlNavigations": 3,
    }
