"""Whatever a verb is given: it works, or it refuses in words and leaves every file as it was."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.model.config import Settings
from engine.model.errors import EngineError, InvalidArguments
from engine.service.engine import Engine
from engine.verbs import Param, Verb
from engine.verbs.json_answers import described
from engine.verbs.model import read
from engine.verbs.verb_table import VERBS
from tests.support.octask import Octask

DEEP = "[" * 10_000 + "]" * 10_000
NO_ID: dict[str, Any] = {
    "nothing": "",
    "blanks": "  ",
    "a way up": "../../etc/passwd",
    "a way from the top": "/etc/passwd",
    "a way of Windows": "..\\..\\secret",
    "capitals": "ABCDEF0123456789",
    "digits of another script": "\uff10123456789abcdef",
    "too short": "0123456789abcde",
    "a line's end": "0123456789abcdef\n",
    "ten kilobytes": "a" * 10_240,
    "a NUL": "a\0b",
    "half a character": "a\ud800b",
    "a trailing dot": "0123456789abcdef.",
    "nobody's id": "0123456789abcdef",
    "nobody's command task": "task_9999999999999999_zzzzzzzzzzzzz",
}
NO_TEXT: dict[str, Any] = {
    "a number": 5,
    "a huge number": 10**400,
    "a fraction": 1.5,
    "not a number": float("nan"),
    "truth": True,
    "a list": ["x"],
    "a list of numbers": [1],
    "a list of halves": ["\ud800"],
    "an object": {"a": 1},
    "an object of halves": {"a": "\ud800", "\ud800": 1},
    "an object too large a number is in": {"a": 10**400},
    "bytes": b"x",
    "no JSON": "{",
    "JSON of another kind": "[1]",
    "deep JSON": DEEP,
    "a deep object": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "a number of 5,000 digits": '{"expected_total": ' + "9" * 5_000 + "}",
    "two mebibytes": "a" * 2**21,
    "a deep query": "(" * 10_000,
}
BAD = NO_ID | NO_TEXT
IDS = frozenset({"task_id", "contract_id"})
ENGINES = [verb for verb in VERBS.values() if verb.faces != ("mcp",)]
BY_ID = [verb for verb in ENGINES if IDS & {param.name for param in verb.params}]


@dataclass(frozen=True)
class World:
    """A home with one of everything, and an engine on it."""

    home: Path
    engine: Engine
    ids: Mapping[str, str]

    def given(self, verb: Verb) -> dict[str, Any]:
        return {param.name: self._good(verb, param) for param in verb.params}

    def _good(self, verb: Verb, param: Param) -> Any:
        if param.name == "run_id":
            return self.ids["run" if verb.name.startswith("runs") else "task_run"]
        if verb.name == "wait" and param.name == "task_id":
            return self.ids["ended"]  # or it would wait as long as it is told to
        extra = {"output": str(self.home / "out.csv"), "outcome": "completed"}
        return ({**extra, **self.ids}).get(param.name, param.default)

    def files(self) -> dict[str, bytes]:
        """All but the empty files on which processes wait for each other."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file() and not path.name.startswith(".lock") and path.name != "lock"
        }


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        envelope = await engine.requests.start("browser_task", {"objective": "look around"})
        ended = await engine.requests.start("browser_task", {"objective": "look around"})
        await engine.contracts.finish(ended.task_id, "completed")
        contract = engine.goals.contracts.start({"items": ["a", "b"]}).contract
        ids = {
            "task_id": envelope.task_id,
            "ended": ended.task_id,
            "contract_id": contract.contract_id,
            "task_run": engine.goals.runs.start({"goal": "reach it"}, None).run_id,
            "run": engine.runs.start_run("thread").run_id,
        }
        yield World(home, engine, ids)
    finally:
        await engine.close()


def bad_calls(here: World, verb: Verb) -> Iterator[tuple[str, dict[str, Any]]]:
    good = here.given(verb)
    for param in verb.params:
        for name, value in BAD.items():
            yield f"{param.name}: {name}", {**good, param.name: value}
        yield f"{param.name}: left out", {k: v for k, v in good.items() if k != param.name}
    yield "one argument too many", {**good, "colour": "green"}


def told(error: EngineError) -> None:
    """A refusal is words that a terminal and a JSON reader can take."""
    data = json.dumps(described(error), ensure_ascii=False).encode()
    assert error.code
    assert error.title
    assert str(error).strip()
    assert len(data) < 20_000, "a refusal is no echo of what was given"


@pytest.mark.parametrize("verb", ENGINES, ids=lambda verb: verb.name)
async def test_a_verb_refuses_bad_input_in_words_and_writes_nothing(home: Path, verb: Verb) -> None:
    async with world(home) as here:
        before = here.files()
        for what, given in bad_calls(here, verb):
            try:
                await verb.call(here.engine, given)
            except EngineError as error:
                told(error)
                assert here.files() == before, f"{verb.name}, {what}: it wrote something"
            else:  # what it may be asked for; the next one finds what it left
                before = here.files()


@pytest.mark.case("R41")
@pytest.mark.parametrize("verb", BY_ID, ids=lambda verb: verb.name)
async def test_no_verb_takes_for_an_id_what_is_none(home: Path, verb: Verb) -> None:
    async with world(home) as here:
        for name in IDS & {param.name for param in verb.params}:
            for value in BAD.values():
                with pytest.raises(EngineError):
                    await verb.call(here.engine, {**here.given(verb), name: value})


def test_every_mistake_of_a_call_is_named_at_once() -> None:
    given = {"task_id": 5, "timeout_ms": "soon", "colour": "green"}
    with pytest.raises(InvalidArguments) as refused:
        read(VERBS["wait"], given)
    found = {(problem.path, problem.code) for problem in refused.value.problems}
    assert found == {
        ("task_id", "wrong_type"),
        ("timeout_ms", "wrong_type"),
        ("colour", "unknown_argument"),
    }
    with pytest.raises(InvalidArguments, match="object"):
        read(VERBS["wait"], ["a list"])


def test_what_is_left_out_or_null_is_the_default() -> None:
    got = read(VERBS["list"], {"limit": None})
    assert got == {"status": (), "kind": (), "since": None, "query": None, "limit": 50}
    assert read(VERBS["list"], {"status": ["failed"], "limit": 0})["limit"] == 0


WORDS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (2, ("get", "../../etc/passwd")),
    (2, ("get", "\udc80")),
    (4, ("get", "0123456789abcdef")),
    (4, ("wait", "task_1_a")),
    (2, ("list", "--query", "(" * 5_000)),
    (2, ("list", "--query", "stat:us")),
    (2, ("list", "--limit", "-1")),
    (2, ("contract", "start", "--contract", DEEP)),
    (2, ("contract", "start", "--contract", '{"goal": "\\ud800"}')),
    (2, ("start", "crawl", "--args", DEEP)),
    (2, ("start", "nothing", "http://site.test/")),
    (2, ("start", "crawl", "http://[")),
    (2, ("run", "there-is-no-such-file.json")),
    (2, ("prune", "--older-than", "soon")),
    (2, ("export", "0123456789abcdef", "-o", "out.doc")),
    (2, ("no-such-command",)),
)


@pytest.mark.parametrize(("code", "words"), WORDS, ids=lambda words: str(words)[:40])
def test_bad_input_has_an_exit_code(octask: Octask, code: int, words: tuple[str, ...]) -> None:
    octask(*words, code=code)
    left = [path.name for path in octask.home.rglob("*") if path.is_file()]
    assert [name for name in left if not name.startswith((".", "lock"))] == []
