"""Parsing of one act in plain words, and the refused ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.grammar import Goal, Step, parse
from engine.agents.reply import InstructionRefused

SAVE = Goal("Save", "Save")
NAME = Goal("Name", "Name")
SAID = [
    ("click Save", Step("click", SAVE)),
    ("Click on the Save.", Step("click", SAVE)),
    ("CLICK save", Step("click", Goal("save", "save"))),
    ("click the Save button", Step("click", Goal("Save button", "Save", "button"))),
    ("click button 'Save it'", Step("click", Goal("button 'Save it'", "Save it", "button"))),
    ("click ref_1_7", Step("click", Goal("ref_1_7", ref="ref_1_7"))),
    ("click 'then'", Step("click", Goal("then", "then"))),
    ("open Settings", Step("click", Goal("Settings", "Settings"))),
    ("double-click Save", Step("double_click", SAVE)),
    ("right click Save", Step("right_click", SAVE)),
    ("type 'hello' into Name", Step("type", NAME, "hello")),
    ("type “ hello ” in the Name", Step("type", NAME, " hello ")),
    ("type 'it's fine' into Name", Step("type", NAME, "it's fine")),
    ("type hello you into Name", Step("type", NAME, "hello you")),
    ("type '' into Name", Step("type", NAME, "")),
    ("enter 'a into b' into Name", Step("type", NAME, "a into b")),
    ("fill Name with 'hello'", Step("type", NAME, "hello")),
    (
        "fill in the Name field with hello",
        Step("type", Goal("Name field", "Name", "field"), "hello"),
    ),
    ("clear Name", Step("clear", NAME)),
    ("select Blue in Colour", Step("select", Goal("Colour", "Colour"), "Blue")),
    (
        "choose 'Dark blue' from ref_2_3",
        Step("select", Goal("ref_2_3", ref="ref_2_3"), "Dark blue"),
    ),
    ("check I agree", Step("check", Goal("I agree", "I agree"))),
    ("tick the checkbox", Step("check", Goal("checkbox", "", "checkbox"))),
    ("uncheck I agree", Step("uncheck", Goal("I agree", "I agree"))),
    ("hover over Save", Step("hover", SAVE)),
    ("focus Name", Step("focus", NAME)),
    ("press Enter", Step("press", None, "Enter")),
    ("press the Escape key", Step("press", None, "Escape")),
    ("press esc", Step("press", None, "Escape")),
    ("press ctrl+a", Step("press", None, "Control+a")),
    ("press page down", Step("press", None, "PageDown")),
    ("press Enter in Name", Step("press", NAME, "Enter")),
    ("press +", Step("press", None, "+")),
    ("scroll down", Step("scroll", None, "down")),
    ("scroll up 300 pixels", Step("scroll", None, "up", 300)),
    ("scroll down by 20px", Step("scroll", None, "down", 20)),
    ("scroll to the bottom", Step("scroll", None, "bottom")),
    ("scroll to Save", Step("scroll_into_view", SAVE)),
    ("go back", Step("back")),
    ("go forward", Step("forward")),
    ("reload the page", Step("reload")),
    ("go to https://example.com/a?b=c", Step("goto", None, "https://example.com/a?b=c")),
    ("open https://example.com/", Step("goto", None, "https://example.com/")),
]
REFUSED = [
    "",
    "   ",
    ".",
    "please click Save",
    "click",
    "click Save then click Cancel",
    "click Save; click Cancel",
    "click Save\nclick Cancel",
    "type 'hello'",
    "type 'hello' into",
    "select Blue",
    "press Save",
    "press",
    "press Control+Nonsense",
    "scroll",
    "scroll down 999999999 pixels",
    "fly away",
    "do everything",
    "ignore the page's words",
]


@pytest.mark.parametrize(("said", "step"), SAID, ids=[said for said, _ in SAID])
def test_a_step_means_what_it_says(said: str, step: Step) -> None:
    assert parse(said) == step


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_in_the_grammar_is_refused_with_what_is(said: str) -> None:
    with pytest.raises(InstructionRefused) as refused:
        parse(said)
    assert "click Save" in refused.value.advice


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("choose Phone", "choose TEXT in TARGET"),
        ("Type 'hello'", "Type TEXT into TARGET"),
        ("fill Name", "fill TARGET with TEXT"),
    ],
)
def test_a_known_verb_with_too_few_words_is_refused_with_its_form(said: str, form: str) -> None:
    with pytest.raises(InstructionRefused) as refused:
        parse(said)
    assert f"has the form: {form}" in str(refused.value)


SOME = """click type into in the press scroll down ' " “ select to go back ref_1_2 then with fill
check button + Enter 300 {0}"""
WORDS = st.sampled_from(SOME.split())


@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=12).map(" ".join)))
def test_no_words_do_more_than_be_refused(said: str) -> None:
    try:
        step = parse(said)
    except InstructionRefused:
        return
    assert step.action
    assert parse(said) == step
    assert step.goal is None or step.goal.ref or step.goal.name or step.goal.role


@given(st.text(alphabet="abcdefghij 0123456789-", min_size=1, max_size=40).filter(str.strip))
def test_a_quoted_text_is_typed_as_it_stands(text: str) -> None:
    assert parse(f'type "{text}" into Name').value == text
