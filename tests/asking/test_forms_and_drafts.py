"""A request as a form and as a document: nothing is offered that is refused, no secret is kept."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.recording.recording_export import MARK
from engine.model.errors import InvalidArguments
from engine.service.drafts import Asked, Terms, asked_of, document, lacks, read, storable, text_of
from engine.service.forms import (
    Placeholder,
    abilities,
    actions,
    inputs,
    own_names,
    placeholders_in,
    startable,
)
from engine.service.requests import problems
from tests.support.kinds import FLAT, least

COMMANDS: dict[str, Any] = {
    "task_name": "log in",
    "task_intention": "see the account",
    "variables": {"user": "ada"},
    "commands": [
        {
            "tool_name": "browser_navigate",
            "intention": "open",
            "args": {"action": "goto", "url": "http://127.0.0.1:9/login"},
        },
        {
            "tool_name": "browser_interact",
            "intention": "type it",
            "args": {"action": "type", "selector": "#p", "text": "hunter2"},
        },
        {
            "tool_name": "browser_interact",
            "intention": "type that",
            "args": {"action": "type", "selector": "#q", "text": {"secret": "env:PIN"}},
        },
        {
            "tool_name": "browser_execute",
            "intention": "look",
            "args": {"action": "evaluate", "script": "fetch('https://evil.example/')"},
        },
    ],
}


@pytest.mark.parametrize("kind", FLAT)
def test_every_default_and_bound_of_a_form_is_one_that_the_engine_takes(kind: str) -> None:
    found = inputs(kind)
    assert set(least(kind)) <= set(found)
    for name, one in found.items():
        for value in (one.low, one.high, *one.choices):
            if value is not None:
                assert not problems(kind, {**least(kind), name: value}), (name, value)
        for value in (None if one.low is None else one.low - 1, "?" if one.choices else None):
            if value is not None:
                assert problems(kind, {**least(kind), name: value}), (name, value)


def test_a_forms_defaults_are_what_the_engine_takes_for_nothing() -> None:
    assert inputs("crawl")["max_pages"].default == 20
    assert inputs("crawl_sitemap")["max_pages"].default == 50
    assert inputs("recording")["headless"].default is False
    assert inputs("crawl")["timeout_ms"] == inputs("crawl_sitemap")["timeout_ms"]


def test_other_spellings_of_an_argument_come_under_its_own_name() -> None:
    assert own_names("crawl", {"maxPages": 3, "failOnPage": 1, "x": 2}) == {
        "max_pages": 3,
        "failOnPage": 1,
        "x": 2,
    }


def test_every_action_of_every_tool_is_there_with_what_it_needs() -> None:
    found = {(tool, action): args for tool, action, args in actions()}
    assert found["browser_navigate", "goto"]["url"].required
    assert found["browser_interact", "scroll"]["direction"].choices[0] == "up"
    assert found["browser_interact", "type"]["text"].secret
    assert found["browser_content", "get_html"]["timeout"].default == 30_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(
    kind=st.sampled_from([kind for kind in startable() if kind != "browser_task"]),
    args=st.dictionaries(st.text(max_size=9), json_values, max_size=4),
    name=st.none() | st.text(min_size=1, max_size=9),
    policy=st.none() | st.dictionaries(st.text(max_size=9), st.integers(1, 9), min_size=1),
    enforce=st.booleans(),
)
def test_a_request_comes_back_from_its_document(
    kind: str, args: dict[str, Any], name: str | None, policy: Any, enforce: bool
) -> None:
    asked = Asked(kind, own_names(kind, args), name, Terms(policy=policy, enforce=enforce))
    assert asked_of(json.loads(json.dumps(document(asked)))) == asked


@given(given=json_values)
def test_no_json_value_does_more_than_be_refused(given: Any) -> None:
    with suppress(InvalidArguments):
        assert text_of(asked_of(given))


def test_an_envelopes_objective_is_found_wherever_it_was_written() -> None:
    inside = asked_of({"kind": "browser_task", "args": {"objective": "x", "phase": "act"}})
    outside = asked_of({"kind": "browser_task", "objective": "x", "phase": "act"})
    assert inside == outside == Asked("browser_task", {}, None, Terms(objective="x", phase="act"))


def test_a_command_task_and_a_tasks_own_record_are_requests_too() -> None:
    assert read(json.dumps(COMMANDS).encode(), "x.json") == Asked("commands", COMMANDS)
    meta = {
        "task_id": "0" * 16,
        "kind": "crawl",
        "status": "FAILED",
        "args_summary": {"url": "https://a.example/"},
        "engine": {"name": "mine"},
    }
    assert asked_of(meta) == Asked("crawl", {"url": "https://a.example/"}, "mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "must be an object"),
        ('{"kind": "moon"}', "must be one of crawl"),
        ('{"kind": "crawl", "args": 3}', "must be an object"),
        ('{"kind": "crawl", "color": 3}', "is not known"),
        ('{"kind": "crawl",\n "args": {,}}', "line 2, column 11"),
        ('{"kind": "crawl", "kind": "recording"}', "twice"),
    ],
)
def test_what_is_no_request_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        read(text.encode(), "task.json")
    assert said in str(refused.value)


def test_what_is_kept_of_a_request_holds_no_secret_and_says_so() -> None:
    url = "https://ada:pw@example.com/?token=abcdef"
    for asked in (Asked("crawl", {"url": url}), Asked("commands", COMMANDS)):
        kept, lost = storable(asked)
        assert lost
        told = json.dumps(kept)
        assert not any(secret in told for secret in ("hunter2", "pw@", "abcdef", '"ada"'))
        assert lacks(asked_of(kept))
    assert "env:PIN" in told
    assert "text_length" not in told
    assert storable(Asked("crawl", {"url": "https://example.com/"}))[1] is False


def test_what_a_file_may_do_is_told_before_anything_is_done() -> None:
    found = abilities(Asked("commands", COMMANDS))
    assert found.hosts == ("127.0.0.1:9", "evil.example")
    assert found.private == ("127.0.0.1:9",)
    assert (found.typing, found.scripts, found.secrets) == (2, 1, ("PIN",))
    step = {"args": {"action": "goto", "url": "{{site}}:{{port}}/x"}}
    variables = {"site": "http://10.0.0.7", "port": 81, "odd": []}
    asked = Asked("commands", {"variables": variables, "commands": [step]})
    assert abilities(asked).private == ("10.0.0.7:81",)
    crawl = abilities(Asked("crawl", {"url": "http://printer.local/", "scope": "**"}))
    assert crawl.private == ("printer.local:80",)
    assert crawl.follows_links
    assert crawl.anywhere
    recording = {"url": "https://example.com"}
    assert abilities(Asked("recording", recording)).headed
    assert not abilities(Asked("recording", {**recording, "headless": True})).headed


def test_the_mark_that_a_replay_sets_is_no_script_of_its_own() -> None:
    mark = {"args": {"action": "evaluate", "script": MARK}}
    more = {"args": {"action": "evaluate", "script": MARK + ";steal()"}}
    assert abilities(Asked("commands", {"commands": [mark, mark]})).scripts == 0
    assert abilities(Asked("commands", {"commands": [mark, more]})).scripts == 1
    hidden = {"args": {"action": "click", "selector": "#buy", "script": MARK}}
    assert abilities(Asked("commands", {"commands": [mark, hidden]})).clicks == 1


def test_only_what_a_start_resolves_counts_as_a_secret_of_this_machine() -> None:
    listed = [{"name": "password", "secret": True}, {"name": "user", "secret": False}]
    odd = {"commands": [{"args": {"text": {"secret": True}}}], "metadata": {"variables": listed}}
    assert abilities(Asked("commands", odd)).secrets == ()
    named = {"commands": [], "variables": {"password": {"secret": "env:PIN"}}}
    assert abilities(Asked("commands", named)).secrets == ("PIN",)


def test_every_name_in_double_braces_is_listed_with_its_label_and_whether_it_is_secret() -> None:
    steps = [
        {"args": {"url": "{{site}}/login"}, "intention": "{{not_here}}"},
        {"args": {"text": "{{user}}", "alternatives": ["text={{greeting}}", "{{site}}"]}},
        {"args": {"text": "{{password}}"}},
        {"args": {"text": "{{pin}}"}},
    ]
    listed = [
        {"name": "user", "field": "Your name", "secret": False},
        {"name": "pin", "secret": True},
        {"name": "password", "secret": False},
        "odd",
    ]
    assert placeholders_in({"commands": steps, "metadata": {"variables": listed}}) == [
        Placeholder("site"),
        Placeholder("user", "Your name"),
        Placeholder("greeting"),
        Placeholder("password", secret=True),  # whatever the file says of it
        Placeholder("pin", secret=True),
    ]


@given(args=st.dictionaries(st.text(max_size=9), json_values, max_size=4))
def test_no_request_is_too_odd_to_be_judged(args: dict[str, Any]) -> None:
    placeholders_in({**args, "commands": [args, {"args": args}]})
    placeholders_in({"commands": [{"args": {"text": "{{a}}"}}], "metadata": {"variables": args}})
    abilities(Asked("commands", {**args, "commands": [args, {"args": args}]}))
    msgspec.json.encode(storable(Asked("commands", {**args, "commands": [{"args": args}]}))[0])
