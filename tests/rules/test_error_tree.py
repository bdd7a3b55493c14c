"""Every error that a user can meet: a code of its own, a title, a sentence, and a way out that
can be filled in wherever the error is raised."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine.model.errors import EngineError

ROOT = Path(__file__).resolve().parents[2]
# Codes that others have named: Node's, and those of seed 002.
FOREIGN = {
    "ETIMEDOUT",
    "EXECUTION_ERROR",
    "COMMAND_TIMEOUT",
    "INSTANCE_DISCONNECTED",
    "INVALID_ARGUMENTS",
}


def tree() -> list[type[EngineError]]:
    """Every class of error that the engine has."""
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: set[type[EngineError]] = set()
    left = [EngineError]
    while left:
        below = left.pop().__subclasses__()
        left += below
        found |= {each for each in below if each.__module__.startswith("engine.")}
    return sorted(found, key=lambda each: each.__qualname__)


ERRORS = tree()


def slots(*templates: str) -> set[str]:
    """The fields that these templates ask for."""
    parsed = (part for each in templates for part in string.Formatter().parse(each))
    return {name for _, name, _, _ in parsed if name}


def test_the_tree_is_found() -> None:
    assert len(ERRORS) > 70


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: each.__name__)
def test_an_error_has_a_code_of_its_own_a_title_and_a_sentence(error: type[EngineError]) -> None:
    assert "code" in vars(error)
    assert error.code in FOREIGN or re.fullmatch(r"[a-z][a-z0-9_]*", error.code)
    assert re.match(r"[A-Z]", error.title)
    assert not error.title.endswith(".")
    assert error.sentence.strip()
    assert error.title != EngineError.title
    assert (error.__doc__ or "").strip()


def test_no_two_errors_share_a_code() -> None:
    shared = [code for code, times in Counter(each.code for each in ERRORS).items() if times > 1]
    assert not shared


def calls() -> Iterator[tuple[str, type[EngineError], set[str]]]:
    """Each place that makes an error by naming its fields: (place, class, the fields' names)."""
    named = {each.__name__: each for each in ERRORS if makes_itself(each)}
    for file in sorted((ROOT / "engine").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = {each.arg for each in node.keywords}
            if name in named and None not in given:  # None stands for **fields
                place = f"{file.relative_to(ROOT).as_posix()}:{node.lineno}"
                yield place, named[name], {each for each in given if each}


def makes_itself(error: type[EngineError]) -> bool:
    return inspect.unwrap(error.__init__) is EngineError.__init__


def recommended(error: type[EngineError]) -> set[str]:
    """The field of the operation that an error recommends, which its class fills in."""
    return {"step"} if error.step_verb and error.step else set()


def test_wherever_an_error_is_made_its_sentence_and_advice_can_be_filled_in() -> None:
    made = list(calls())
    assert len(made) > 100
    short = [
        (place, sorted(lacking))
        for place, error, given in made
        if (lacking := slots(error.sentence, error.advice_text) - given - recommended(error))
    ]
    assert not short
