"""A task is validated before anything starts, and every mistake is reported with its path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.commands.command_check import check
from engine.kinds.commands.command_table import TOOLS
from engine.model.errors import InvalidArguments
from tests.commands.conftest import do, mistakes, task

GOTO = do("goto", url="https://example.com/")


def refused(document: Any, **options: Any) -> dict[str, str]:
    with pytest.raises(InvalidArguments) as caught:
        check(document, **options)
    return mistakes(caught.value)


def told(document: Any, **options: Any) -> dict[str, str]:
    """The sentences of the mistakes, by place."""
    with pytest.raises(InvalidArguments) as caught:
        check(document, **options)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_every_mistake_of_a_task_is_told_at_once_each_with_its_json_path() -> None:
    document = {
        "task_name": " ",
        "commands": [
            do("goto"),
            {"tool_name": "browser_interact", "intention": "", "args": {"action": "clik"}},
            {"tool_name": "browser_teleport", "intention": "x", "args": {}},
            do("scroll", direction="sideways", amount=0),
            do("click", selector="#a", sellector="#b"),
            "not a command",
            do("wait_for", selector="#a", timeout=0),
        ],
        "colour": "red",
    }
    assert refused(document) == {
        "colour": "unknown_argument",
        "task_name": "invalid_value",
        "task_intention": "missing",
        "commands[0].args.url": "missing",
        "commands[1].intention": "invalid_value",
        "commands[1].args.action": "unknown_action",
        "commands[2].tool_name": "unknown_tool",
        "commands[3].args.direction": "invalid_value",
        "commands[3].args.amount": "invalid_value",
        "commands[4].args.sellector": "unknown_argument",
        "commands[5]": "wrong_type",
        "commands[6].args.timeout": "invalid_value",
    }


def test_a_name_that_was_misspelt_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidArguments) as caught:
        check(task({**do("click", selectr="#a"), "tool_name": "browser_interct"}))
    with pytest.raises(InvalidArguments) as argument:
        check(task(do("click", selectr="#a")))
    assert "did you mean browser_interact?" in str(caught.value)
    assert "did you mean selector?" in str(argument.value)


REQUIRED = {
    "goto": ["url"],
    "wait_for": ["selector"],
    "click": ["selector"],
    "check": ["selector"],
    "uncheck": ["selector"],
    "press": ["selector", "key"],
    "type": ["selector", "text"],
    "keyboard": ["key"],
    "scroll": ["direction"],
    "select": ["selector", "value"],
    "hover": ["selector"],
    "upload": ["selector", "files"],
    "dialog": ["answer"],
    "switch_tab": ["tab"],
    "drag": ["selector", "target"],
    "expect": ["state"],
    "get_text": ["selector"],
    "evaluate": ["script"],
    "close": ["instanceId"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_each_action_asks_for_exactly_what_the_seed_requires(tool: str) -> None:
    for action in TOOLS[tool]:
        needed = REQUIRED.get(action, [])
        bare = task({"tool_name": tool, "intention": "x", "args": {"action": action}})
        if not needed:
            check(bare)
        else:
            assert refused(bare) == {f"commands[0].args.{name}": "missing" for name in needed}


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (do("goto", url="ftp://example.com/"), "url"),
        (do("goto", url="javascript:alert(1)"), "url"),
        (do("goto", url=3), "url"),
        (do("click", selector=""), "selector"),
        (do("click", selector=["#a"]), "selector"),
        (do("type", selector="#a", text=5), "text"),
        (do("type", selector="#a", text="x", keep_text="yes"), "keep_text"),
        (do("keyboard", key="Entr"), "key"),
        (do("keyboard", key="Hyper+A"), "key"),
        (do("scroll", direction="down", amount=1.5), "amount"),
        (do("scroll", direction="down", amount=True), "amount"),
        (do("screenshot", timeout="5000"), "timeout"),
        (do("screenshot", timeout=3_600_001), "timeout"),
        (do("launch", width=10), "width"),
    ],
)
def test_a_value_of_the_wrong_shape_is_refused(bad: dict[str, Any], path: str) -> None:
    assert refused(task(bad)) == {f"commands[0].args.{path}": "invalid_value"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"commands": []}, {"commands": "empty"}),
        ({"commands": {}}, {"commands": "wrong_type"}),
        ({"commands": [GOTO] * 1_001}, {"commands": "too_many"}),
        ({"metadata": []}, {"metadata": "wrong_type"}),
        ({"metadata": {"a": float("nan")}}, {"metadata": "not_json"}),
        ({"instanceId": ""}, {"instanceId": "invalid_value"}),
        ({"variables": ["x"]}, {"variables": "wrong_type"}),
        ({"variables": {"a b": "x"}}, {'variables["a b"]': "invalid_value"}),
        ({"variables": {"a": None}}, {"variables.a": "invalid_value"}),
    ],
)
def test_bad_task_fields_are_refused(fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert refused({**task(GOTO), **fields}) == expected


def test_an_instance_that_does_not_live_is_refused() -> None:
    document = task(GOTO, instanceId="inst_12345678")
    assert refused(document, living=lambda _: False) == {"instanceId": "unknown_instance"}
    assert check(document, living=lambda _: True).instance_id == "inst_12345678"


def test_a_secret_may_stand_for_a_text_and_only_for_a_text() -> None:
    secret = {"secret": "env:PW"}
    plan = check(task(do("type", selector="#a", text=secret)), environ={"PW": "hunter2"})
    assert plan.steps[0].args["text"] == "hunter2"
    assert refused(
        task(
            do("scroll", direction=secret),
            do("type", selector="#a", text={"secret": "PW"}),
            do("type", selector="#a", text={"secret": "env:PW", "more": 1}),
            do("type", selector="#a", text={"secret": "env:NOT_THERE"}),
        ),
        environ={"PW": "hunter2"},
    ) == {
        "commands[0].args.direction": "invalid_value",
        "commands[1].args.text": "invalid_value",
        "commands[2].args.text": "invalid_value",
        "commands[3].args.text": "missing_secret",
    }


def test_what_a_secret_holds_is_checked_as_if_it_had_been_written() -> None:
    document = task(do("goto", url={"secret": "env:PLACE"}))
    assert refused(document, environ={"PLACE": "no address"}) == {
        "commands[0].args.url": "invalid_value"
    }


def test_no_mistake_quotes_a_secret() -> None:
    document = task(
        do("keyboard", key={"secret": "env:PW"}),
        do("keyboard", key="{{word}}"),
        variables={"word": "swordfish"},
    )
    with pytest.raises(InvalidArguments) as caught:
        check(document, environ={"PW": "hunter2"})
    assert len(caught.value.problems) == 2
    assert "hunter2" not in str(caught.value)
    assert "swordfish" not in str(caught.value)


def of_many_mistakes(typed: str) -> dict[str, Any]:
    """Wrong in our words and in quoted ones, with `typed` as a text, a variable and a secret."""
    return task(
        do("type", selector="#a", text=typed),
        do("type", selector="#a", text={"secret": "env:WORD"}),
        do("drag", selector="#a"),
        do("wait_for"),
        do("select", selector="#a", value="a", label="b"),
        do("press", selector="#a", key="Controll+a"),
        do("press", selector="#a", key="{{word}} is no key"),
        {"tool_name": "is no tool", "intention": "x", "args": {}},
        variables={"word": typed},
    )


OUR_WORDS = st.sampled_from(["a", "is", "or", "x", "y", "the", "of", "key", "needed"])
NO_CHORD = st.text(min_size=1).filter(lambda typed: "+" not in typed)


@given(st.one_of(NO_CHORD, OUR_WORDS))
def test_a_given_value_takes_no_word_out_of_our_own_sentences(typed: str) -> None:
    options: dict[str, Any] = {"environ": {"WORD": typed}}
    ours = told(of_many_mistakes("never"), **options)
    said = told(of_many_mistakes(typed), **options)
    quoting = {"commands[6].args.key", "commands[7].tool_name"}
    for path in ours.keys() - quoting:
        assert said[path] == ours[path]
    assert said["commands[6].args.key"].endswith("' is not the name of a key")
    assert said["commands[7].tool_name"].startswith("there is no tool '")
    assert "; there are browser_navigate, browser_interact" in said["commands[7].tool_name"]


def test_a_value_is_hidden_where_it_is_quoted_also_when_the_quote_is_cut() -> None:
    document = task(
        do("type", selector="#a", text="x"),
        do("press", selector="#a", key="x is no key"),
        do("press", selector="#a", key="{{long}}"),
        variables={"long": "planted" * 20},
    )
    said = told(document)
    assert said["commands[1].args.key"].startswith("'[redacted] is no key' is not")
    assert said["commands[2].args.key"].startswith("'{{long}}' is not")


def test_variables_are_filled_in_once_and_missing_ones_are_listed_with_their_places() -> None:
    plan = check(
        task(
            do("goto", url="http://{{ host }}:{{port}}/"),
            do("type", selector="#a", text="{{word}}"),
            variables={"host": "127.0.0.1", "port": 80, "word": "{{host}}"},
        )
    )
    assert plan.steps[0].args["url"] == "http://127.0.0.1:80/"
    assert plan.steps[1].args["text"] == "{{host}}"
    document = task(do("click", selector="{{a}} {{b}}"), variables={"b": "#b"})
    assert refused(document) == {"commands[0].args.selector": "unknown_variable"}


def test_without_variables_double_braces_are_plain_text() -> None:
    plan = check(task(do("type", selector="#a", text="Dear {{name}}")))
    assert plan.steps[0].args["text"] == "Dear {{name}}"


def test_only_literal_addresses_open_a_way_to_private_places() -> None:
    plan = check(
        task(
            do("goto", url="http://127.0.0.1:8080/x"),
            do("evaluate", script="return fetch('https://intern.example/api')"),
            do("click", selector="a[href='http://10.0.0.1:99/']"),
        )
    )
    assert plan.places == ("127.0.0.1:8080", "intern.example:443", "10.0.0.1:99")


WORDS = """task_name task_intention commands tool_name intention args action selector text secret
url key timeout variables instanceId metadata script direction amount keep_text"""
NAMES = WORDS.split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=10), inner, max_size=6)
    ),
    max_leaves=30,
)
COMMAND = st.fixed_dictionaries(
    {
        "tool_name": st.sampled_from([*TOOLS, "browser"]) | JSON,
        "intention": st.text(max_size=5),
        "args": st.fixed_dictionaries(
            {"action": st.sampled_from([name for tool in TOOLS.values() for name in tool])},
            optional={
                name: JSON | st.just({"secret": "env:A"})
                for name in ("selector", "text", "url", "key", "timeout", "amount", "script")
            },
        ),
    }
)


@given(
    JSON
    | st.fixed_dictionaries(
        {
            "task_name": st.text(max_size=5),
            "task_intention": st.text(max_size=5),
            "commands": st.lists(COMMAND, max_size=4),
        },
        optional={"variables": JSON, "metadata": JSON, "instanceId": JSON},
    )
)
def test_whatever_is_given_is_accepted_or_refused_with_its_mistakes(document: Any) -> None:
    problems = None
    try:
        plan = check(document, environ={"A": "x"}, living=lambda _: False)
    except InvalidArguments as error:
        problems = error.problems
    if problems is None:
        assert len(plan.steps) == len(document["commands"])
        json.dumps(plan.stored)
    else:
        assert problems
        assert all(problem.code and problem.message for problem in problems)


@given(st.lists(st.sampled_from(["good", "tool", "selector", "extra"]), min_size=1, max_size=12))
def test_no_mistake_hides_another(kinds: list[str]) -> None:
    commands = {
        "good": do("click", selector="#a"),
        "tool": {**do("click", selector="#a"), "tool_name": "nothing"},
        "selector": do("click"),
        "extra": do("click", selector="#a", more=1),
    }
    suffix = {"tool": "tool_name", "selector": "args.selector", "extra": "args.more"}
    expected = {f"commands[{at}].{suffix[kind]}" for at, kind in enumerate(kinds) if kind != "good"}
    document = task(*(commands[kind] for kind in kinds))
    if expected:
        assert set(refused(document)) == expected
    else:
        check(document)
