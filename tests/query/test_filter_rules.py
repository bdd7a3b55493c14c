"""Rules of the filter language that hold for every text and every tree."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from engine.query import FIELDS, Filter, QueryError, subject
from engine.query.attention_reasons import reasons
from engine.query.fields import needs_attention
from engine.query.parse import EVERYTHING, And, Node, Not, Or, Term, Text, is_plain, parse, written

NOW = 1_000_000_000_000
PIECES = st.sampled_from(
    [*FIELDS, ":", '"', "(", ")", "-", " ", "<", ">=", "OR", "AND", "NOT", "*", "1h", "a", "\\"]
)
TYPED = st.text(max_size=40) | st.lists(PIECES, max_size=25).map("".join)

QUOTED = st.text(max_size=6)
PLAIN = st.text("ab*.:/é1-", min_size=1, max_size=6).filter(is_plain)
TEXTS = st.builds(Text, QUOTED, st.just(True)) | st.builds(Text, PLAIN, st.just(False))
KEYS = st.sampled_from(sorted(FIELDS))
BARE = st.text("ab*.1h", min_size=1, max_size=5)
TERMS = st.builds(Term, KEYS, BARE, st.sampled_from(["", "<", ">=", "="])) | st.builds(
    Term, KEYS, QUOTED, st.sampled_from(["", ">"]), st.just(True)
)


def joined(kind: type[And] | type[Or], parts: list[Node]) -> Node:
    """Trees as reading makes them: an AND in an AND is one AND."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, kind) else (part,))]
    return kind(tuple(flat))


TREES = st.recursive(
    TEXTS | TERMS,
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: joined(And, parts))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: joined(Or, parts))
    ),
    max_leaves=8,
)


@settings(max_examples=400)
@given(TYPED)
def test_no_text_breaks_the_reader_in_another_way_than_its_own(text: str) -> None:
    test: Filter | None = None
    mistake: QueryError | None = None
    try:
        test = Filter.of(text)
    except QueryError as error:
        mistake = error
    if test is not None:
        test.shows(TaskView(TaskRecord(task_id="0" * 16)), NOW)
        assert Filter.of(test.text).text == test.text
    else:
        assert mistake is not None
        assert 0 <= mistake.position <= len(text)
        assert str(mistake)


@settings(max_examples=400)
@given(TREES)
def test_what_is_written_reads_back_as_the_same_tree(tree: Node) -> None:
    assert parse(written(tree)) == tree


def test_nothing_reads_as_everything() -> None:
    assert parse(" \t\n") == EVERYTHING


# A small model of matching: straight from the words of the documentation, without folding.

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "": operator.eq,
}
MODEL_TERMS = st.one_of(
    st.builds(Term, st.just("status"), st.sampled_from(["running", "failed", "live", "ended"])),
    st.builds(
        Term, st.just("kind"), st.sampled_from(["crawl", "CRAWL", "c*", "*l", "Command", "bundle"])
    ),
    st.builds(
        Term, st.just("kind"), st.sampled_from(["other", "CRAWL", "command"]), st.just(""),
        st.just(True),
    ),
    st.builds(Term, st.just("name"), st.sampled_from(["a", "B", "a*", "ab"])),
    st.builds(Term, st.just("client"), st.sampled_from(["ab", "AB", "a*", "*", "mcp"])),
    st.builds(Term, st.just("route"), st.sampled_from(["mcp", "CLI", "http"])),
    st.builds(Term, st.just("code"), st.sampled_from(["orphaned", "orph*", "x"])),
    st.builds(
        Term, st.sampled_from(["done", "pages", "failed"]), st.sampled_from("012"),
        st.sampled_from(sorted(COMPARE)),
    ),
    st.builds(Term, st.just("age"), st.sampled_from(["1s", "2s"]), st.sampled_from("<>")),
)  # fmt: skip
MODEL_TEXTS = st.builds(Text, st.sampled_from(["crawl", "AB", "a*b", "0"]), st.booleans())
MODEL_TREES = st.recursive(
    MODEL_TERMS | MODEL_TEXTS,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.tuples(inner, inner))
        | st.builds(Or, st.tuples(inner, inner))
    ),
    max_leaves=6,
)
RECORDS = st.builds(
    TaskRecord,
    task_id=st.just("0123456789abcdef"),
    kind=st.sampled_from(["crawl", "commands", "oc_evidence_bundle", "other", "command", ""]),
    status=st.sampled_from(["RUNNING", "PENDING", "FAILED", "COMPLETED"]),
    created_at=st.sampled_from([NOW - 500, NOW - 1500, NOW - 2500, 0]),
    error=st.none()
    | st.builds(ErrorInfo, st.just("AB was bad"), st.sampled_from([None, "orphaned"])),  # E
    engine=st.none()
    | st.builds(
        EngineFields,
        name=st.sampled_from([None, "ab", "Ba"]),
        client=st.sampled_from([None, "", "Ab", "mcp"]),
        route=st.sampled_from([None, "mcp", "cli", "ftp"]),
    ),
)
UNITS = st.none() | st.builds(Units, done=st.integers(0, 3), failed=st.integers(0, 2))


def says(node: Node, view: TaskView) -> bool:
    if isinstance(node, Not):
        return not says(node.part, view)
    if isinstance(node, And):
        return all(says(part, view) for part in node.parts)
    if isinstance(node, Or):
        return any(says(part, view) for part in node.parts)
    record = view.entry
    assert isinstance(record, TaskRecord)
    if isinstance(node, Text):
        return any(like(node.value, node.quoted, word, part=True) for word in texts_of(record))
    return MODEL[node.key](node, record, view.units)


def texts_of(record: TaskRecord) -> list[str]:
    words = [record.task_id, record.kind, record.status, name_of(record), code_of(record)]
    return words + ([record.error.message] if record.error else [])


def name_of(record: TaskRecord) -> str:
    return (record.engine.name or "") if record.engine else ""


def code_of(record: TaskRecord) -> str:
    return (record.error.code or "") if record.error else ""


def client_of(record: TaskRecord) -> str:
    return (record.engine.client or "") if record.engine else ""


def state_is(node: Term, record: TaskRecord, _: object) -> bool:
    live = record.status in ("RUNNING", "PENDING")
    known = {"live": live, "ended": not live}
    return known.get(node.value, record.status == node.value.upper())


def age_is(node: Term, record: TaskRecord, _: object) -> bool:
    age = NOW - record.created_at
    return record.created_at > 0 and COMPARE[node.comparison](age, int(node.value[0]) * 1000)


def kind_is(node: Term, record: TaskRecord, _: object) -> bool:
    words = {"command": "commands", "bundle": "oc_evidence_bundle"}
    word = node.value if node.quoted else words.get(node.value.lower(), node.value)
    return like(word, node.quoted, record.kind)


def count_is(node: Term, _: object, units: Units | None) -> bool:
    if units is None:
        return False
    number = units.failed if node.key == "failed" else units.done
    return COMPARE[node.comparison](number, int(node.value))


MODEL: dict[str, Callable[[Term, TaskRecord, Units | None], bool]] = {
    "status": state_is,
    "kind": kind_is,
    "name": lambda node, record, _: like(
        node.value, False, name_of(record), part="*" not in node.value
    ),
    "code": lambda node, record, _: (
        code_of(record) != "" and like(node.value, False, code_of(record))
    ),
    "client": lambda node, record, _: (
        client_of(record) != "" and like(node.value, False, client_of(record))
    ),
    "route": lambda node, record, _: (
        record.engine is not None and record.engine.route == node.value.lower()
    ),
    "age": age_is,
    "done": count_is,
    "pages": count_is,
    "failed": count_is,
}


def like(value: str, quoted: bool, text: str, part: bool = False) -> bool:
    pattern = re.escape(value) if quoted else re.escape(value).replace(r"\*", ".*")
    matched = re.search(pattern, text, re.I) if part else re.fullmatch(pattern, text, re.I)
    return matched is not None


@settings(max_examples=500)
@given(MODEL_TREES, RECORDS, UNITS)
def test_filters_match_their_words(tree: Node, record: TaskRecord, units: Units | None) -> None:
    view = TaskView(record, units)
    test = Filter.of(written(tree))
    said = says(tree, view)
    assert test.shows(view, NOW) == said
    one = subject(view)
    assert test.keep([one], NOW, lambda each: each) == ([one] if said else [])


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_example_of_every_field_can_be_typed(name: str) -> None:
    Filter.of(f"{name}:{FIELDS[name].example}")


TIMES = st.sampled_from([0, NOW - 86_400_000, NOW - 86_399_999, NOW - 30_000, NOW - 29_999, NOW])
SHOWN = st.builds(
    TaskView,
    st.builds(
        TaskRecord,
        task_id=st.just("0" * 16),
        kind=st.sampled_from(["crawl", "browser_task"]),
        status=st.sampled_from(["PENDING", "RUNNING", "FAILED", "COMPLETED", "ODD"]),
        created_at=TIMES,
        ended_at=st.none() | TIMES,
        cancel_requested_at=st.none() | TIMES,
        budget_status=st.sampled_from([None, "ok", "exceeded"]),
    )
    | st.builds(Unreadable, st.just("0" * 16), st.just("torn"), st.just("meta.json")),
    last_event_at=st.none() | TIMES,
    orphaned=st.booleans(),
)


@settings(max_examples=400)
@given(SHOWN, st.integers(NOW - 1, NOW + 86_400_001), st.sampled_from([30_000, 90_000]))
def test_query_and_sidebar_attention_agree(view: TaskView, now_ms: int, after_ms: int) -> None:
    one = subject(view, after_ms)
    assert needs_attention(one, now_ms) == bool(reasons(view, now_ms, after_ms))
