"""Texts of folders and pages reach terminals and logs only as plain text."""

from __future__ import annotations

import json
import logging
import os
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.calls import json_text
from engine.cli.run import ReportNotWritten, report, write_report
from engine.logging.logs import _Clean
from engine.model.display import display, display_lines
from engine.text import cli_messages
from fixtures.hostile_ledger import HOSTILE_TEXTS, STEERING
from fixtures.hostile_ledger.traps import base
from tests.support.loaded_octask import CAN_FORK, Loaded

ANY_TEXT = st.text(st.characters(codec=None)) | st.sampled_from(sorted(HOSTILE_TEXTS.values()))
forks = pytest.mark.skipif(not CAN_FORK, reason="this system has no fork")


@pytest.mark.case("R85", "R36")
@given(ANY_TEXT)
def test_what_is_displayed_steers_no_terminal(text: str) -> None:
    for shown in (display(text), display_lines(text)):
        assert not STEERING & set(shown)
        shown.encode()
    assert "\n" not in display(text)


@pytest.mark.case("R85", "R36")
@given(st.lists(ANY_TEXT, max_size=2) | st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2))
def test_json_for_programs_steers_no_terminal_and_says_the_same(value: Any) -> None:
    text = json_text(value)
    assert not STEERING & set(text)
    assert json.loads(text.encode()) == json.loads(json.dumps(value))


@pytest.mark.case("R85")
@given(ANY_TEXT)
def test_a_sentence_that_is_filled_in_stays_one_line_without_controls(text: str) -> None:
    said = cli_messages.say("list.none", root=text)
    assert not STEERING & set(said)
    assert len(said.splitlines()) == 1


@pytest.mark.case("R85")
@given(ANY_TEXT)
def test_a_log_has_one_record_for_each_event(text: str) -> None:
    clean = _Clean("%(asctime)s %(levelname)s %(name)s: %(message)s")
    record = logging.LogRecord("engine", logging.INFO, "", 1, "page %s", (text,), None)
    written = clean.format(record)
    assert not STEERING & set(written)
    first, *more = written.split("\n")
    assert "INFO engine: page" in first
    assert all(line.startswith("    ") for line in more)


@pytest.mark.case("R85")
@given(ANY_TEXT)
def test_a_junit_report_of_any_texts_is_xml_and_steers_no_terminal(text: str) -> None:
    command: dict[str, Any] = {"id": text, "tool_name": text, "intention": text, "status": "error"}
    command |= {"error": {"code": text, "message": text}}
    task = {"id": text, "name": text, "status": "failed", "createdAt": 5, "commands": [command]}
    data = report([(task, Path("folder"))])
    assert not STEERING & set(data.decode())
    assert Xml.fromstring(data).find(".//failure") is not None


def test_a_report_that_cannot_be_written_is_told_in_its_own_words(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "report.xml", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(ReportNotWritten, match="report cannot be written"):
            write_report(place, b"<x/>")
    assert os.listdir(tmp_path) == []


@forks
@pytest.mark.case("R85", "R36")
@pytest.mark.parametrize("name", [name for name, said in HOSTILE_TEXTS.items() if len(said) < 100])
def test_hostile_tasks_are_printed_as_text(tmp_path: Path, octask: Loaded, name: str) -> None:
    said = HOSTILE_TEXTS[name]
    home = hostile_home(tmp_path, said)
    task_id = "0123456789abcdef"
    for words in (("list",), ("list", "--json"), ("get", task_id, "--events")):
        answer = octask(*words, "--home", str(home), terminal=True)
        assert answer.code == 0, answer.said
        assert not STEERING & set(answer.said), words
        answer.out.decode("utf-8")
    listed = octask("list", "--home", str(home)).out.decode()
    assert len(listed.splitlines()) == 1


def hostile_home(home: Path, said: str) -> Path:
    folder = home / "tasks" / "0123456789abcdef"
    folder.mkdir(parents=True)
    error = {"message": said, "code": said}
    record = base(kind=said, objective=said, status="FAILED", error=error, engine={"name": said})
    (folder / "meta.json").write_text(json.dumps(record))
    event = {"ts": 1_700_000_000_000, "kind": said, "data": {said: said}}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    return home


NAMES = ("$(touch owned)", "`touch owned`", "a'b\"c", "a;touch owned", "x\x1b]0;owned\x07", "a\nb")


@forks
@pytest.mark.case("R86", "R85")
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_folder_names_are_never_commands(tmp_path: Path, octask: Loaded, name: str) -> None:
    home = hostile_home(tmp_path / name, "x")
    task_id = "0123456789abcdef"
    (home / "tasks" / task_id / "result.json").write_text('{"pages": [{"url": "x"}]}')
    target = str(tmp_path / name / "out.csv")
    calls = (
        ("list",),
        ("doctor",),
        ("get", task_id, "--result"),
        ("get", "0" * 16),
        ("export", task_id, "-o", target),
        ("prune", "--keep", "0"),
        ("list", "--root", str(tmp_path / name / "nothing")),
    )
    for words in calls:
        answer = octask(*words, "--home", str(home), terminal=True)
        assert answer.code in (0, 1, 4)
        assert not STEERING & set(answer.said), words
    assert "url" in Path(target).read_text()
    assert not list(tmp_path.rglob("owned"))
    assert not Path("owned").exists()


WRONG = (
    ("list", "--no-such-option"),
    ("no-such-verb",),
    ("get",),
    ("list", "--limit", "\x1b]0;owned\x07"),
    ("get", "\x9b31m"),
    ("export", "0123456789abcdef", "--format", "\x1b[2J"),
    ("list", "--query", "status:\x1b[31m"),
)


@forks
@pytest.mark.case("R85")
@pytest.mark.parametrize("words", WRONG, ids=ascii)
def test_mistakes_are_text_or_json(tmp_path: Path, octask: Loaded, words: tuple[str, ...]) -> None:
    for terminal in (False, True):
        plain = octask(*words, terminal=terminal)
        assert plain.code == 2
        assert not STEERING & set(plain.said)
    told = octask(*words, "--json")
    assert told.code == 2
    error = json.loads(told.out)["error"]
    assert error["code"]
    assert error["message"]
    assert told.err == b""


def test_no_line_of_a_private_key_is_in_the_log() -> None:
    lines = ("MIIEpAIBAAKCAQEAx7Qw9kLmZ2Vb5nRt8yPs3dGh6jXc1fKe4u", "x7Zk3vQx8mLp2wRt6yAAAAB3Nz==")
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"))
    record = logging.LogRecord(
        "engine", logging.ERROR, "", 1, "no: %s", (f"{key}\nand more",), None
    )
    written = _Clean("%(message)s").format(record)
    assert "and more" in written
    assert not [line for line in lines if line in written]
