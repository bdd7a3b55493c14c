"""Documented defaults: each kind's arguments, the paths, the limits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.evidence_kind import parse_evidence
from engine.kinds.recording.recording_kind import parse_recording
from engine.kinds.sitemap.sitemap_crawl import parse_sitemap
from engine.kinds.snapshot_kind import parse_snapshot
from engine.model import redact
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, LedgerUnusable
from engine.service.queries import TaskQueries
from engine.verbs.verb_table import VERBS

URL = "http://a.example/"
PAGES = {
    "output_format": "markdown",
    "respect_robots": True,
    "delay_ms": 1_000,
    "concurrency": 3,
    "engine": "browser",
    "block_resources": True,
    "screenshot": "none",
    "settle_ms": 100,
    "wait_for": None,
    "timeout_ms": 30_000,
    "redact_content": True,
    "fail_on_page": None,
    "fragments": "ignore",
}
CRAWL = {
    "max_depth": 2,
    "max_pages": 20,
    "scope": None,
    "include_patterns": (),
    "exclude_patterns": (),
    **PAGES,
}


@pytest.mark.parametrize(
    ("parse", "given", "promised"),
    [
        (parse_crawl, {"url": URL}, CRAWL),
        (lambda given: parse_sitemap(given).pages, {"url": URL}, {**PAGES, "max_pages": 50}),
        (parse_sitemap, {"url": URL}, {"filter": None, "other_origins": False}),
        (
            parse_recording,
            {"url": URL},
            {
                "duration_ms": None,
                "headless": False,
                "keep_text": False,
                "label": None,
                "redact_content": True,
            },
        ),
        (parse_evidence, {"url": URL}, {"include": ("dom", "screenshot"), "tab": None}),
        (
            parse_snapshot,
            {"objective": "x"},
            {
                "current_step": "",
                "next_actions": (),
                "tabs": None,
                "include_cookies": False,
                "include_storage": False,
                "redact_content": True,
            },
        ),
    ],
    ids=["crawl", "crawl_sitemap's pages", "crawl_sitemap", "recording", "evidence", "snapshot"],
)
def test_what_is_not_said_is_as_promised(
    parse: Callable[[dict[str, Any]], Any], given: dict[str, Any], promised: dict[str, Any]
) -> None:
    read = msgspec.structs.asdict(parse(given))
    assert {name: read[name] for name in promised} == promised


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("max_depth", 0, 100), ("max_pages", 1, 1_000_000), ("concurrency", 1, 16)],
)
def test_numbers_are_bounded(name: str, least: int, most: int) -> None:
    for fits in (least, most):
        assert getattr(parse_crawl({"url": URL, name: fits}), name) == fits
    for beyond in (least - 1, most + 1):
        with pytest.raises(InvalidArguments):
            parse_crawl({"url": URL, name: beyond})


@pytest.mark.parametrize("parse", [parse_crawl, parse_sitemap])
def test_terms_are_no_arguments(parse: Callable[[dict[str, Any]], Any]) -> None:
    terms = {"enforce": True, "policy": {"maxToolCalls": 1}, "contract": {}, "phase": "act"}
    with pytest.raises(InvalidArguments) as refused:
        parse({"url": URL, **terms})
    found = {problem.path: problem.code for problem in refused.value.problems}
    assert found == dict.fromkeys(terms, "unknown_argument")


def default_of(verb: str, name: str) -> Any:
    return {param.name: param.default for param in VERBS[verb].params}[name]


def test_a_list_has_fifty_tasks_and_a_wait_a_minute_for_faces_and_programs_alike() -> None:
    assert default_of("list", "limit") == 50
    assert default_of("wait", "timeout_ms") == 60_000
    assert inspect.signature(TaskQueries.list).parameters["limit"].default == 50
    assert inspect.signature(TaskQueries.wait).parameters["timeout_ms"].default == 60_000


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has said nothing about places."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def places(environ: dict[str, str], **asked: Path) -> tuple[Path, Path]:
    found = Settings.chosen(environ, **asked)
    return found.home, found.root


def test_tasks_lie_in_the_users_own_folder_unless_somebody_says_otherwise(user: Path) -> None:
    own = user / ".openchrome"
    assert places({}) == (own, own / "tasks")
    assert (Settings().home, Settings().root) == (own, own / "tasks")


def test_each_word_moves_what_it_says_and_no_more(user: Path, tmp_path: Path) -> None:
    own, far = user / ".openchrome", tmp_path / "far"
    assert places({"OPENCHROME_TASK_ROOT": str(far)}) == (own, far)
    assert places({"OPENCHROME_HOME": str(far)}) == (far, own / "tasks")
    assert places({}, root=far) == (own, far)
    moved = {"OPENCHROME_TASK_ROOT": str(tmp_path / "x"), "OPENCHROME_HOME": str(tmp_path / "y")}
    assert places(moved, home=far) == (far, far / "tasks")
    assert places(moved, root=far) == (tmp_path / "y", far)


def test_a_root_that_depends_on_where_one_stands_is_refused(user: Path) -> None:
    with pytest.raises(LedgerUnusable, match="must be an absolute path"):
        places({"OPENCHROME_TASK_ROOT": "tasks"})


@pytest.mark.parametrize(
    "word",
    [
        *("password", "passwd", "secret", "token", "apikey", "authorization"),
        *("cookie", "credential", "session"),
    ],
)
def test_a_field_with_one_of_these_words_in_its_name_is_never_kept(word: str) -> None:
    for name in (word, word.upper(), f"my_{word}", f"{word}s", f"x-{word}-y"):
        assert redact.value({name: "Xk7vQ9z2"}) == {name: "[redacted]"}, name
