"""The filter language as people type it: matches, and messages for mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from engine.query import FIELDS, Filter, QueryError, subject, term
from engine.query.fields import OWNERS, PARTS, STATES

NOW = 1_763_773_200_000
HOUR = 3_600_000

VIEWS = {
    "crawl": TaskView(
        TaskRecord(
            task_id="00000000000000a1",
            kind="crawl",
            status="RUNNING",
            created_at=NOW - 2 * HOUR,
            started_at=NOW - 2 * HOUR,
            args_summary={"url": "https://Docs.Example.com:8443/guide?a=(b)"},
            engine=EngineFields(
                name="Nightly docs", contract_id="c", client="Claude Code", route="mcp"
            ),
        ),
        Units(done=41, total=120, failed=2),
        last_event_at=NOW - 5_000,
        ours=True,
    ),
    "failed": TaskView(
        TaskRecord(
            task_id="00000000000000a2",
            kind="crawl_sitemap",
            status="FAILED",
            created_at=NOW - 30 * HOUR,
            started_at=NOW - 29 * HOUR,
            ended_at=NOW - 28 * HOUR,
            args_summary={"sitemap_url": "http://127.0.0.1:8080/sitemap.xml"},
            error=ErrorInfo("Timeout of 30 s was reached", "page_timeout"),
        ),
        Units(done=3, failed=3),
    ),
    "envelope": TaskView(
        TaskRecord(
            task_id="00000000000000b3",
            kind="browser_task",
            status="RUNNING",
            created_at=NOW - 60_000,
            objective="Compare the prices",
            phase="verify",
            budget_status="exceeded",
            cancel_requested_at=None,
        ),
        foreign=True,
    ),
    "forced": TaskView(
        TaskRecord(
            task_id="00000000000000b4",
            kind="crawl",
            status="COMPLETED",
            created_at=NOW - 10 * 24 * HOUR,
            started_at=NOW - 10 * 24 * HOUR,
            ended_at=NOW - 10 * 24 * HOUR + 90_000,
            args_summary={"url": "http://example.com/"},
            budget_status="warning",
            engine=EngineFields(
                forced_at=1.0,
                parent_task_id="00000000000000a2",
                command_task_id="task_1763773200000_2a",
                route="cli",
            ),
        ),
        Units(done=20, total=20),
    ),
    "odd": TaskView(TaskRecord(task_id="00000000000000c5", kind="x", status="PAUSED")),
    "orphan": TaskView(
        TaskRecord(task_id="00000000000000c6", kind="crawl", status="PENDING", created_at=NOW),
        orphaned=True,
    ),
    "unreadable": TaskView(Unreadable("00000000000000c7", "not valid JSON", "meta.json", NOW)),
}


def found(query: str) -> set[str]:
    test = Filter.of(query)
    return {name for name, view in VIEWS.items() if test.shows(view, NOW)}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", set(VIEWS)),
        ("status:running", {"crawl", "envelope"}),
        ("STATUS:Running kind:crawl", {"crawl"}),
        ("status:failed", {"failed"}),
        ("status:ended", {"failed", "forced", "odd"}),
        ("status:live", {"crawl", "envelope", "orphan"}),
        ("status:orphaned", {"orphan"}),
        ("status:unreadable", {"unreadable"}),
        ("status:attention", {"envelope", "orphan", "unreadable"}),
        ('status:"paused"', {"odd"}),
        ("status:paus*", {"odd"}),
        ("kind:crawl*", {"crawl", "failed", "forced", "orphan"}),
        ("kind:sitemap OR kind:AGENT", {"failed", "envelope"}),
        ("kind:crawl_sitemap -kind:sitemap", set()),
        ('kind:"X"', {"odd"}),
        ("kind:X", {"odd"}),
        ('kind:"agent"', set()),
        ("kind:crawl -status:completed", {"crawl", "orphan"}),
        ("host:docs.example.com", {"crawl"}),
        ("host:docs.example.com:8443", {"crawl"}),
        ("host:example.com", {"forced"}),
        ("host:*example.com", {"crawl", "forced"}),
        ("host:127.0.0.1", {"failed"}),
        ("url:/guide", {"crawl"}),
        ("url:*/sitemap.xml", {"failed"}),
        ('url:"(b)"', {"crawl"}),
        ("https://docs.example.com", {"crawl"}),
        ("id:00000000000000c", {"odd", "orphan", "unreadable"}),
        ("id:*a1", {"crawl"}),
        ("id:task_1763773200000_2a", {"forced"}),
        ("_2a", {"forced"}),
        ("parent:00000000000000a2", {"forced"}),
        ("name:nightly", {"crawl"}),
        ("objective:PRICES phase:verify", {"envelope"}),
        ('error:"timeout of"', {"failed"}),
        ("error:page_timeout", {"failed"}),
        ("code:page_*", {"failed"}),
        ("budget:exceeded", {"envelope"}),
        ("budget:near", {"forced"}),
        ("age:<1h", {"envelope", "orphan", "unreadable"}),
        ("age:>1w", {"forced"}),
        ("age:>1d6h age:<1w", set()),
        ("age:>=1d6h age:<1w", {"failed"}),
        ("updated:<10s", {"crawl", "orphan", "unreadable"}),
        ("took:>=1h", {"crawl", "failed"}),
        ("duration:<2m", {"forced"}),
        ("pages:>20", {"crawl"}),
        ("done:20", {"forced"}),
        ("failed:>0", {"crawl", "failed"}),
        ("total:>=120", {"crawl"}),
        ("forced:yes", {"forced"}),
        ("forced:no kind:crawl", {"crawl", "orphan"}),
        ("owner:ours", {"crawl"}),
        ("owner:foreign", {"envelope"}),
        ("owner:gone", {"orphan"}),
        ("owner:gone root:here", {"orphan"}),
        ("root:nas OR -root:h*e", set()),
        ('client:"claude code"', {"crawl"}),
        ("client:claude*", {"crawl"}),
        ("client:* OR client:mcp", {"crawl"}),
        ("route:MCP", {"crawl"}),
        ("route:cli", {"forced"}),
        ("route:cli OR route:mcp -has:client", {"forced"}),
        ("route:http", set()),
        ("has:result", {"failed", "forced"}),
        ("has:contract", {"crawl"}),
        ("has:error", {"failed"}),
        ('"timeout"', {"failed"}),
        ("json", {"unreadable"}),
        ("time*reached", {"failed"}),
        ('"*"', set()),
        ("status:failed OR status:completed", {"failed", "forced"}),
        ("kind:crawl (status:running OR has:parent)", {"crawl", "forced"}),
        ("NOT (kind:crawl OR kind:crawl_sitemap) status:running", {"envelope"}),
        ("-kind:crawl -kind:crawl_sitemap AND -age:<1h", {"odd"}),
        ("10:30", set()),
    ],
)
def test_a_query_finds_what_it_says(query: str, names: set[str]) -> None:
    assert found(query) == names


@pytest.mark.parametrize(
    ("query", "code", "position", "words"),
    [
        ("kind:crawl stat:failed", "unknown_field", 11, "Unknown field ‘stat’. Try status:"),
        ("hsot:example.com", "unknown_field", 0, "Try host:"),
        ("qqqqq:1", "unknown_field", 0, "Known: status, kind,"),
        ("status:runing", "unknown_value", 0, "Try status:running."),
        ("kind:crwl", "unknown_value", 0, "‘crwl’ is no value of kind:. Try kind:crawl."),
        ("kind:<crawl", "bad_comparison", 0, "Write it like kind:crawl."),
        ("budget:<ok", "unknown_value", 0, "‘<ok’ is no value of budget:"),
        ("owner:me", "unknown_value", 0, "Known: ours, foreign, gone."),
        ("age:1h", "bad_comparison", 0, "Write it like age:<1h."),
        ("age:<soon", "bad_comparison", 0, "‘<soon’ cannot be compared in age:"),
        ("x pages:>many", "bad_comparison", 2, "Write it like pages:>100."),
        ("route:ftp", "unknown_value", 0, "Known: mcp, cli, http."),
        ("route:htp", "unknown_value", 0, "Try route:http."),
        ("client:<x", "bad_comparison", 0, "Write it like client:claude-code."),
        ("host:<x", "bad_comparison", 0, "Write it like host:example.com."),
        ("status:", "missing_part", 7, "status: needs something after it"),
        ("age:<", "missing_part", 5, "age:< needs something after it"),
        ("a OR", "missing_part", 4, "OR needs something after it"),
        ("OR a", "missing_part", 0, "The beginning needs something after it"),
        ("a NOT", "missing_part", 5, "NOT needs something after it"),
        ("()", "missing_part", 1, "( needs something after it"),
        ("(a OR b", "unclosed_mark", 0, "bracket at position 1 has no other half"),
        ("a) b", "unclosed_mark", 1, "bracket at position 2 has no other half"),
        ('name:"open', "unclosed_mark", 5, "quote at position 6 has no other half"),
        ("(" * 51 + "a" + ")" * 51, "query_too_long", 50, "50 levels"),
        ("a" * 4097, "query_too_long", 4096, "4096 characters"),
    ],
)
def test_a_mistake_is_told_with_its_place(query: str, code: str, position: int, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        Filter.of(query)
    assert caught.value.code == code
    assert caught.value.position == position
    assert words in str(caught.value)


def test_a_failure_needs_attention_for_a_day_and_a_stall_from_its_moment_on() -> None:
    test = Filter.of("status:attention")
    failed, running = subject(VIEWS["failed"]), subject(VIEWS["crawl"], stall_after_ms=60_000)
    ended = NOW - 28 * HOUR
    assert test.passes(failed, ended + 23 * HOUR)
    assert not test.passes(failed, ended + 25 * HOUR)
    assert not test.passes(running, NOW - 5_000 + 59_999)
    assert test.passes(running, NOW - 5_000 + 60_000)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("crawl", "crawl"),
        ("crawl_sitemap", "sitemap crawl_sitemap"),
        ("recording", "recording"),
        ("oc_evidence_bundle", "evidence bundle oc_evidence_bundle"),
        ("oc_session_snapshot", "snapshot oc_session_snapshot"),
        ("commands", "command commands"),
        ("browser_task", "agent browser_task"),
        ("task_run", "run task_run"),
    ],
)
def test_a_kind_is_found_by_its_short_word_and_its_stored_name(kind: str, words: str) -> None:
    view = TaskView(TaskRecord(task_id="00000000000000d1", kind=kind))
    other = TaskView(TaskRecord(task_id="00000000000000d2", kind="another"))
    for word in words.split():
        assert Filter.of(f"kind:{word}").shows(view, NOW)
        assert not Filter.of(f"kind:{word}").shows(other, NOW)


@pytest.mark.parametrize("kind", ["crawl", "commands", "agent", "another", "two words", "a*"])
def test_a_term_for_a_stored_kind_finds_this_kind_alone(kind: str) -> None:
    test = Filter.of(term("kind", kind))
    for other in ("crawl", "commands", "browser_task", "agent", "another", "two words", "ab", kind):
        view = TaskView(TaskRecord(task_id="00000000000000d1", kind=other))
        assert test.shows(view, NOW) == (other == kind)


def test_every_field_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert [name for name in FIELDS if f"`{name}`" not in rows] == []
    words = (*STATES, *PARTS, *OWNERS, *FIELDS["kind"].values)
    assert [word for word in words if word not in rows and word != "all"] == []


@pytest.mark.parametrize(
    ("age_ms", "status"), [(100, "ok"), (800, "near"), (2_000, "exceeded"), (HOUR, "exceeded")]
)
def test_a_budget_of_time_runs_out_without_calls(age_ms: int, status: str) -> None:
    record = TaskRecord(
        task_id="00000000000000b5",
        kind="browser_task",
        status="RUNNING",
        created_at=NOW - age_ms,
        policy={"maxWallMs": 1_000},
        budget_status="ok",
    )
    one = subject(TaskView(record))
    found = {
        name for name in ("ok", "near", "exceeded") if Filter.of(f"budget:{name}").passes(one, NOW)
    }
    assert found == {status}
