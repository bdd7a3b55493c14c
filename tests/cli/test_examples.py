"""A wrong option is answered with a correct example."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.octask import octask
from engine.cli.start import OF_JSON, json_example
from engine.service.admission import Terms
from engine.service.requests import problems

Said = Callable[..., str]


@pytest.fixture
def said(tmp_path: Path) -> Said:
    def run(*words: str) -> str:
        done = CliRunner().invoke(octask, [*words, "--home", str(tmp_path / "home")])
        assert done.exit_code == 2, done.output
        return done.output

    return run


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (("--contract", "a,b,c"), '{"items": ["a", "b", "c"]}'),
        (("--contract", "[1]"), '{"items": ["a", "b", "c"]}'),
        (("--policy", "50"), '{"maxToolCalls": 50}'),
        (("--metadata", "order 17"), '{"order": 17}'),
        (("--args", "max_pages=5"), '{"max_pages": 5}'),
        (("--args", "7"), '{"max_pages": 5}'),
    ],
)
def test_a_wrong_option_shows_an_example(said: Said, words: tuple[str, str], way_out: str) -> None:
    told = said("start", "crawl", "https://a.example/", *words)
    assert f"For example: {words[0]} " in told
    assert way_out in told.replace('\\"', '"')


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (("list", "--limit", "few"), "'few' is not a whole number. For example: --limit 30"),
        (("contract", "start", "--contract", "x"), '{"expected_total": 3}'),
        (("contract", "start", "--contract", "[]"), '{"expected_total": 3}'),
        (("recording", "export", "0123456789abcdef"), "such as flow.json"),
    ],
)
def test_other_commands_show_one_as_well(said: Said, words: tuple[str, ...], way_out: str) -> None:
    assert way_out in said(*words)


def test_every_example_is_taken_by_the_engine() -> None:
    args = {"url": "https://a.example/", **OF_JSON["--args"]}
    terms = Terms(
        policy=OF_JSON["--policy"], contract=OF_JSON["--contract"], metadata=OF_JSON["--metadata"]
    )
    assert problems("crawl", args, None, terms) == ()


@pytest.mark.skipif(os.name == "nt", reason="another shell takes its words apart otherwise")
@given(st.text(max_size=30))
def test_an_example_is_two_words_of_the_shell_whatever_was_typed(text: str) -> None:
    option, value = shlex.split(json_example("--contract", text))
    assert option == "--contract"
    assert json.loads(value)["items"]


def test_a_number_out_of_range_is_refused_as_before(said: Said) -> None:
    assert "-1 is not in the range" in said("list", "--limit", "-1")


def test_a_number_is_a_number(tmp_path: Path) -> None:
    done = CliRunner().invoke(octask, ["list", "--limit", "3", "--home", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert isinstance(octask.commands["list"], click.Command)
