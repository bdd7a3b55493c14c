"""`octask list --query`, `cancel --all-matching`, `rerun`, and options before the verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.records import EngineFields, Status
from engine.sample.site import Answer
from tests.support.linked_site import LinkedSite, random_links
from tests.support.octask import FAST, Octask

FOREIGN = "00000000000000f0"


class Tasks:
    """One task of each sort: what they are called is what a request to stop does to them."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        def made(name: str, kind: str = "crawl") -> str:
            url = f"http://{name}.test/"
            fields = EngineFields(name=name)
            return ledger.create(kind, {"url": url}, engine=fields).task_id

        self.root, self.ledger = root, ledger
        self.pending, self.running, self.ended = made("pending"), made("running"), made("ended")
        ledger.claim(self.running)
        ledger.claim(self.ended)
        ledger.finish(self.ended, Status.COMPLETED)
        self.foreign = FOREIGN
        (root / FOREIGN).mkdir()
        meta = {"task_id": FOREIGN, "kind": "crawl", "status": "RUNNING", "pid": os.getppid()}
        meta |= {
            "created_at": time.time_ns() // 1_000_000,
            "args_summary": {"url": "http://foreign.test/"},
        }
        (root / FOREIGN / "meta.json").write_text(json.dumps(meta))

    def status(self, task_id: str) -> str:
        status: str = self.ledger.read_raw(task_id)["status"]
        return status

    def asked(self, task_id: str) -> bool:
        return "cancel_requested_at" in self.ledger.read_raw(task_id)


@pytest.fixture
def tasks(home: Path) -> Iterator[Tasks]:
    root = home / "tasks"
    root.mkdir()
    lease = Lease.acquire(root)
    yield Tasks(root, Ledger(root, lease=lease))
    lease.release()


def found(octask: Octask, query: str, *more: str) -> set[str]:
    lines = octask("list", "--query", query, *more).splitlines()
    return {line.split("\t")[0] for line in lines if "\t" in line}  # not what stderr adds


def test_the_limit_of_a_list_counts_matching_tasks(octask: Octask, tasks: Tasks) -> None:
    assert found(octask, "status:running host:foreign.test") == {FOREIGN}
    assert found(octask, "-status:ended") == {tasks.pending, tasks.running, FOREIGN}
    assert found(octask, "name:ended OR name:pending") == {tasks.pending, tasks.ended}
    assert len(found(octask, "kind:crawl", "--limit", "2")) == 2
    listed = json.loads(octask("list", "--query", "status:completed", "--json"))
    assert [task["task_id"] for task in listed["tasks"]] == [tasks.ended]


def test_a_list_takes_a_kind_by_each_of_its_words(octask: Octask, tasks: Tasks) -> None:
    bundle = tasks.ledger.create("oc_evidence_bundle", {"url": "http://x.test/"}).task_id
    other = tasks.ledger.create("oc_planet", {}).task_id

    def listed(*words: str) -> set[str]:
        kinds = (part for word in words for part in ("--kind", word))
        return {each["task_id"] for each in json.loads(octask("list", "--json", *kinds))["tasks"]}

    assert listed("evidence") == listed("Bundle") == listed("oc_evidence_bundle") == {bundle}
    assert listed("oc_planet", "evidence") == {bundle, other}


def test_a_mistaken_query_is_bad_usage_with_its_place(octask: Octask, tasks: Tasks) -> None:
    assert "Unknown field ‘stat’. Try status:" in octask("list", "--query", "stat:x", code=2)
    said = json.loads(octask("list", "--query", "a stat:x", "--json", code=2))
    assert (said["error"]["code"], said["error"]["position"]) == ("unknown_field", 2)
    assert "Unknown field" in octask("cancel", "--all-matching", "stat:x", "--yes", code=2)


def test_all_mistakes_of_a_query_are_told_at_once(octask: Octask, tasks: Tasks) -> None:
    said = octask("list", "--query", "stat:x age:1h", code=2)
    assert "character 1: Unknown field ‘stat’" in said
    assert "character 8: ‘1h’ cannot be compared in age:" in said
    told = json.loads(octask("list", "--query", "stat:x age:1h", "--json", code=2))["error"]
    assert [one["position"] for one in told["mistakes"]] == [0, 7]


def test_a_list_by_a_ledger_that_is_not_this_one_says_so(octask: Octask, tasks: Tasks) -> None:
    assert "‘nas’ is no value of root:. Known: here." in octask("list", "--query", "root:nas")
    assert "no value" not in octask("list", "--query", "root:here")


def test_a_dry_run_lists_the_tasks_and_changes_nothing(octask: Octask, tasks: Tasks) -> None:
    before = {path: path.read_bytes() for path in tasks.root.rglob("meta.json")}
    said = octask("cancel", "--all-matching", "kind:crawl", "--dry-run")
    assert "1 waiting: cancelled at once" in said
    assert "1 running: they stop after the unit they are on" in said
    assert "1 run by another program: asked only" in said
    assert "1 skipped: 1 already ended" in said
    for task_id in (tasks.pending, tasks.running, FOREIGN):
        assert task_id in said
    assert tasks.ended not in said
    told = json.loads(octask("cancel", "--all-matching", "kind:crawl", "--dry-run", "--json"))
    assert told["ids"]["foreign"] == [FOREIGN]
    assert told["counts"]["ended"] == 1
    assert {path: path.read_bytes() for path in tasks.root.rglob("meta.json")} == before


def test_in_a_pipe_a_query_cancels_nothing_without_a_yes(octask: Octask, tasks: Tasks) -> None:
    said = octask("cancel", "--all-matching", "kind:crawl", code=2)
    assert "3 tasks match; none was changed." in said
    assert "--yes" in said
    assert tasks.status(tasks.pending) == "PENDING"
    error = json.loads(octask("cancel", "--all-matching", "kind:crawl", "--json", code=2))
    assert error["error"]["code"] == "not_confirmed"


def test_with_a_yes_each_task_gets_what_its_state_allows(octask: Octask, tasks: Tasks) -> None:
    ended = (tasks.root / tasks.ended / "meta.json").read_bytes()
    said = octask("cancel", "--all-matching", "kind:crawl", "--yes", "--reason", "enough")
    assert tasks.status(tasks.pending) == "CANCELLED"
    assert (tasks.status(tasks.running), tasks.asked(tasks.running)) == ("RUNNING", True)
    assert (tasks.status(FOREIGN), tasks.asked(FOREIGN)) == ("RUNNING", True)
    assert (tasks.root / tasks.ended / "meta.json").read_bytes() == ended
    assert said.count("asked to stop") == 2
    assert f"{tasks.pending}  CANCELLED" in said


def test_one_refusal_keeps_nobody_else_from_being_asked(octask: Octask, tasks: Tasks) -> None:
    gone = "00000000000000ee"
    said = octask("cancel", tasks.pending, gone, tasks.running, "--json", code=4)
    answer = json.loads(said)
    assert {task["task_id"] for task in answer["tasks"]} == {tasks.pending, tasks.running}
    assert [error["code"] for error in answer["refused"]] == ["task_not_found"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "task_ids: give the ids of tasks, or --all-matching QUERY"),
        (["--all-matching", ""], "all_matching: must not be empty"),
        (["--all-matching", "x", "0123456789abcdef"], "give either ids or a query, not both"),
    ],
)
def test_cancel_needs_a_clear_selection(octask: Octask, words: list[str], sentence: str) -> None:
    assert sentence in octask("cancel", *words, code=2)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("answer", "status"), [(b"n\n", "PENDING"), (b"y\n", "CANCELLED")])
def test_confirmation_defaults_no(octask: Octask, tasks: Tasks, answer: bytes, status: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        octask.command("cancel", "--all-matching", "name:pending", "--home", str(octask.home)),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=octask.environment(),
    )
    os.close(theirs)
    asked = b""
    while b"Cancel 1 task? [y/N]" not in asked:
        asked += os.read(ours, 4096)
    # The set stands now: what comes after the question was not asked about.
    late = tasks.ledger.create(
        "crawl", {"url": "http://x.test/"}, engine=EngineFields(name="pending")
    )
    os.write(ours, answer)
    out, _ = asking.communicate(timeout=120)
    os.close(ours)
    assert asking.returncode == 0
    assert tasks.pending.encode() in out
    assert tasks.status(tasks.pending) == status
    assert tasks.status(late.task_id) == "PENDING"


def test_a_rerun_has_the_same_arguments_and_a_parent(octask: Octask, site: Any) -> None:
    octask("start", "crawl", site.url, *FAST, "--max-pages", "2", "--name", "docs")
    first = octask.tasks()[0]
    again = json.loads(octask("rerun", first["task_id"], "--json"))
    assert again["status"] == "COMPLETED"
    assert again["task_id"] != first["task_id"]
    assert again["engine"]["parent_task_id"] == first["task_id"]
    assert again["engine"]["name"] == "docs"
    assert again["args_summary"] == first["args_summary"]
    detached = octask("rerun", first["task_id"], "--detach").strip()
    ended = json.loads(octask("wait", detached, "--json"))
    assert ended["engine"]["parent_task_id"] == first["task_id"]
    assert {one["engine"]["route"] for one in (first, again, ended)} == {"cli"}


def test_stopped_crawls_are_resumed_by_id_and_all_that_match(octask: Octask) -> None:
    linked = LinkedSite(random_links(12, seed=1))
    with linked.running():
        deep = [*FAST, "--max-depth", "20", "--max-pages"]
        for most in ("3", "4"):
            octask("start", "crawl", f"{linked.url}/0", *deep, most)
        small, large = sorted(octask.tasks(), key=lambda one: one["engine"]["units"]["done"])
        said = octask("resume", small["task_id"], code=1)
        assert "ended by itself" in said
        dry = json.loads(octask("resume", "--all-matching", "kind:crawl", "--dry-run", "--json"))
        assert (dry["counts"]["resumes"], dry["counts"]["whole"]) == (0, 2)
        linked.requests.clear()
        query = ["resume", "--all-matching", "kind:crawl", "--max-pages", "12"]
        assert "none was changed" in octask(*query, code=2)
        assert len(octask.tasks()) == 2
        told = json.loads(octask(*query, "--yes", "--json"))
        assert [one["status"] for one in told["tasks"]] == ["COMPLETED", "COMPLETED"]
        assert [one["engine"]["units"]["done"] for one in told["tasks"]] == [12, 12]
        assert sum(linked.requests.values()) == (12 - 3) + (12 - 4)
        parents = {one["engine"]["parent_task_id"] for one in told["tasks"]}
        assert parents == {small["task_id"], large["task_id"]}
        assert f"resumes:   {small['task_id']}" in "".join(
            octask("get", one["task_id"]) for one in told["tasks"]
        )
        assert "resumed before" in octask("resume", large["task_id"], "--detach", code=1)
        last = told["tasks"][0]["task_id"]
        detached = octask("resume", last, "--max-pages", "13", "--detach").strip()
        ended = json.loads(octask("wait", detached, "--json"))
        assert ended["engine"]["parent_task_id"] == last
        assert ended["engine"]["units"]["done"] == 12
    assert "give the ids of tasks" in octask("resume", code=2)


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_request_with_a_secret_has_no_rerun(octask: Octask, site: Any, more: list[str]) -> None:
    url = site.url.replace("http://", "http://ann:hunter2secret@")
    octask("start", "crawl", url, *FAST, "--max-pages", "1")
    task_id = octask.tasks()[0]["task_id"]
    said = octask("rerun", task_id, *more, code=1)
    assert "something in it was secret and was not written down" in said
    assert len(octask.tasks()) == 1


def test_foreign_or_truncated_requests_have_no_rerun(octask: Octask, tasks: Tasks) -> None:
    error = json.loads(octask("rerun", FOREIGN, "--json", code=1))["error"]
    assert error["code"] == "request_unknown"
    huge = [f"http://x.test/{number}/*" for number in range(40_000)]
    cut = tasks.ledger.create("crawl", {"url": "http://x.test/", "exclude_patterns": huge})
    error = json.loads(octask("rerun", cut.task_id, "--json", code=1))["error"]
    assert error["code"] == "request_cut"
    assert "no task" in octask("rerun", "00000000000000ee", code=4)


def test_a_crawl_whose_engine_ignored_an_argument_is_repeated(
    octask: Octask, tasks: Tasks, site: Any
) -> None:
    args = {"url": site.url, "engine": "static", "screenshot": "failed", "max_pages": 1}
    made = tasks.ledger.create("crawl", args)
    again = json.loads(octask("rerun", made.task_id, "--json"))
    assert again["status"] == "COMPLETED"


def test_a_list_of_thousands_of_addresses_is_repeated_whole(octask: Octask, tasks: Tasks) -> None:
    urls = [f"http://x.test/{'long-name/' * 7}{number}" for number in range(5_000)]
    made = tasks.ledger.create("crawl", {"url": "http://x.test/", "urls": urls})
    kept = json.loads(octask("get", made.task_id, "--json"))
    assert kept["engine"]["args"]["urls"] == urls


def test_a_long_request_that_was_kept_whole_is_repeated_whole(octask: Octask, site: Any) -> None:
    patterns = [f"**/never/seen/{number}/*" for number in range(150)]
    args = json.dumps({"exclude_patterns": patterns})
    octask("start", "crawl", site.url, *FAST, "--max-pages", "1", "--args", args)
    first = octask.tasks()[0]
    assert first["args_summary"]["_truncated"]
    again = json.loads(octask("rerun", first["task_id"], "--json"))
    assert again["engine"]["args"] == first["engine"]["args"]
    assert again["engine"]["args"]["exclude_patterns"] == patterns


def test_the_place_may_stand_before_the_verb(octask: Octask, tasks: Tasks) -> None:
    home = str(octask.home)
    assert tasks.pending in octask("--home", home, "list", place=False)
    assert tasks.pending in octask("--root", str(tasks.root), "list", place=False)
    assert json.loads(octask("--home", home, "--json", "list", place=False))["count"] == 4
    elsewhere = octask("--home", "/nowhere-at-all", "list", "--home", home, place=False)
    assert tasks.pending in elsewhere  # the nearer word counts


def test_a_list_that_ends_at_its_limit_says_that_there_are_more(
    octask: Octask, tasks: Tasks
) -> None:
    assert "The newest 3 tasks; there are more" in octask("list", "--limit", "3")
    assert "there are more" not in octask("list", "--limit", "4")
    cut = json.loads(octask("list", "--limit", "3", "--json"))
    assert (cut["count"], len(cut["tasks"]), cut["more"]) == (3, 3, True)
    assert json.loads(octask("list", "--json"))["more"] is False


def test_a_task_is_written_as_json_alike_by_every_command(octask: Octask, site: Any) -> None:
    started = json.loads(octask("start", "crawl", site.url, *FAST, "--max-pages", "1", "--json"))
    task_id = started["task_id"]
    waited = json.loads(octask("wait", task_id, "--json"))
    listed = json.loads(octask("list", "--json"))["tasks"][0]
    cancelled = json.loads(octask("cancel", task_id, "--json"))["tasks"][0]
    watched = json.loads(octask("watch", "--once", "--json").splitlines()[0])
    assert started == waited == listed == cancelled == watched
    got = json.loads(octask("get", task_id, "--json", "--events"))
    assert {name: got[name] for name in listed} == listed
    assert got["events"][0]["kind"] == "started"


def test_the_help_tells_the_exit_codes(octask: Octask) -> None:
    said = octask("--help", place=False)
    assert "124  `wait` ran out of time" in said
    assert "5  a completion was refused" in said


def test_a_dry_run_for_programs_is_refused_as_json_too(octask: Octask) -> None:
    said = octask("cancel", "--all-matching", "stat:us", "--dry-run", "--json", code=2)
    assert json.loads(said)["error"]["code"]


def test_what_failed_becomes_one_new_task_that_names_its_parent(octask: Octask, site: Any) -> None:
    site.answers = {f"/static/{n}": Answer(b"no", 404) for n in (2, 3)}
    octask("start", "crawl", f"{site.url}/static/", *FAST, "--max-pages", "5", "--max-depth", "1")
    first = octask.tasks()[0]
    told = json.loads(octask("get", first["task_id"], "--result", "--json"))["result"]["summary"]
    assert (told["failed"], told["http_errors"]) == (2, 2)
    assert "2 answered with an error" in octask("get", first["task_id"])
    site.answers = {}
    again = json.loads(octask("retry", first["task_id"], "--json"))
    assert again["status"] == "COMPLETED"
    assert again["engine"]["parent_task_id"] == first["task_id"]
    whole = json.loads(octask("get", again["task_id"], "--result", "--json"))
    urls = [page["url"].removeprefix(site.url) for page in whole["result"]["pages"]]
    assert sorted(urls) == ["/static/2", "/static/3"]
    error = json.loads(octask("retry", again["task_id"], "--json", code=1))["error"]
    assert error["code"] == "nothing_to_retry"
    assert "There is no task" in octask("retry", "00000000000000ee", code=4)


def test_a_task_that_has_not_ended_is_not_retried(octask: Octask, tasks: Tasks) -> None:
    assert "has not ended" in octask("retry", tasks.running, code=1)
