"""`octask run` as typed: real processes, exit codes, a report, and nothing kept of variables."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import pytest

from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import do, task
from tests.support.loaded_octask import FAR_LIMITS
from tests.support.octask import run_as_text
from tests.support.written_files import contents

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "fixtures" / "tasks"
FOREVER = do("wait_for", selector="#never", timeout=1_000_000)  # longer than any test


class Octask:
    """The command line on a home of its own, with a folder for files."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            "PYTHONIOENCODING": "utf-8",
            FAR_LIMITS: "1",
        }

    def file(self, name: str, value: Any) -> str:
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
        return str(path)

    def __call__(
        self, *words: str, code: int = 0, given: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        words = (*words, "--home", str(self.home))
        ran = run_as_text(*words, given=given, environment={**self.environment, **environment})
        assert "Traceback" not in ran.stdout + ran.stderr, ran
        assert ran.returncode == code, ran
        return ran

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "engine.cli", *words, "--home", str(self.home)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=self.environment,
        )

    def metas(self) -> list[dict[str, Any]]:
        return [
            json.loads(path.read_bytes())
            for path in sorted((self.home / "tasks").glob("[0-9a-f]*/meta.json"))
        ]

    def everything(self) -> bytes:
        return b"".join(contents(self.home).values())


@pytest.fixture
def octask(home: Path, tmp_path: Path) -> Octask:
    return Octask(home, tmp_path)


@pytest.fixture
def place(octask: Octask, site: Site) -> str:
    """A file of variables with the site's address."""
    return octask.file("variables.json", {"site": site.url})


@pytest.mark.case("R81")
def test_the_five_examples_of_the_seed_run_on_their_pages(octask: Octask, place: str) -> None:
    files = sorted(map(str, EXAMPLES.glob("*.json")))
    assert len(files) == 5
    answer = json.loads(octask("run", *files, "--variables", place, "--json").stdout)
    found = {each["task"]["name"]: each["task"] for each in answer["tasks"]}
    assert {each["status"] for each in found.values()} == {"completed"}
    product = [command["result"] for command in found["Extract Product Info"]["commands"]]
    assert [each["text"] for each in product[2:4]] == ["Tin whistle in D", "€ 12.50"]
    assert product[4]["width"] in (160, 161)  # its place may be half a pixel off
    scrolled = found["Wikipedia Search"]["commands"][5]["result"]
    assert scrolled == {"x": 0, "y": 500}
    api = found["API Test"]
    assert api["metadata"]["requestId"] == "req-abc-123"
    assert api["commands"][1]["result"]["value"] == {"requestId": "req-abc-123", "status": "ok"}
    assert b"password123" not in octask.everything()
    assert b"user@example.com" not in octask.everything()


def test_in_a_pipe_each_command_is_a_plain_line(octask: Octask, place: str) -> None:
    document = task(do("goto", url="{{site}}/static/1"), do("click", selector="#x", timeout=200))
    document["commands"].append(do("reload"))
    said = octask("run", octask.file("a.json", document), "--variables", place, code=1).stdout
    lines = said.splitlines()
    assert lines[0].startswith("✓ 1/3 to goto (")
    # On a busy machine the command ends later than at its limit, and says when; it may not have
    # looked at the page at all, and then there is no more to tell.
    assert re.match(r"✗ 2/3 to click \([\d.]+ (ms|s)\): not done within [\d.]+ s: ", lines[1])
    assert re.search(r"s: #x( \(there is no such element\))? \[COMMAND_TIMEOUT\]$", lines[1])
    assert lines[2] == "– 3/3 to reload"
    assert lines[3].startswith("A try: failed, 2 of 3 commands, 1 of them failed in ")
    assert "\x1b" not in said


def test_where_the_signs_cannot_be_written_words_stand_in_their_place(octask: Octask) -> None:
    document = octask.file("a.json", task(do("list"), do("back", timeout=1)))
    said = octask("run", document, code=1, PYTHONIOENCODING="ascii").stdout
    assert said.startswith("ok 1/2 to list (")
    assert "\nFAILED 2/2 to back (" in said


def test_standard_input_is_a_file_too(octask: Octask, site: Site) -> None:
    document = task(do("goto", url=f"{site.url}/static/1"))
    assert "A try: completed" in octask("run", "-", given=json.dumps(document)).stdout


def test_the_mistakes_of_all_files_are_told_and_nothing_starts(octask: Octask, place: str) -> None:
    good = octask.file("good.json", task(do("goto", url="{{site}}/")))
    bad = octask.file("bad.json", task(do("goto", url="{{nowhere}}/"), do("click")))
    broken = octask.file("broken.json", '{"a": 1, "a": 2}')
    missing = str(octask.folder / "missing.json")
    said = octask("run", good, bad, broken, missing, "--variables", place, "--json", code=2).stdout
    problems = json.loads(said)["error"]["problems"]
    assert [(problem["path"], problem["code"]) for problem in problems] == [
        (f"{bad}: commands[0].args.url", "unknown_variable"),
        (f"{bad}: commands[1].args.selector", "missing"),
        (broken, "not_json"),
        (missing, "no_file"),
    ]
    assert not octask.metas()


def test_a_mistake_of_a_whole_file_names_the_file_and_its_size(octask: Octask) -> None:
    text = '{"a": "' + "x" * 1_101_026 + '"}'
    huge = octask.file("huge.json", text)
    size = f"{len(text):,} bytes"
    assert f"{huge}: is larger than 1 MiB ({size})" in octask("run", huge, code=2).stderr
    listed = octask.file("l.json", [1])
    assert f"{listed}: a task must be a JSON object" in octask("run", listed, code=2).stderr


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["--variables", "{tmp}/none.json"], "none.json"),
        (["--variables", "{list}"], "list.json"),
        (["--junit", "{tmp}/none/report.xml"], "--junit"),
        (["--junit", "{tmp}"], "--junit"),
        (["--detach", "--junit", "{tmp}/report.xml"], "--junit"),
        (["--headed"], "--headed"),
    ],
)
def test_wrong_usage_starts_nothing(octask: Octask, words: list[str], path: str) -> None:
    listed = octask.file("list.json", [1])
    words = [word.format(tmp=octask.folder, list=listed) for word in words]
    ran = octask("run", octask.file("a.json", task(do("list"))), *words, code=2)
    assert path in ran.stderr
    assert not octask.metas()


def test_values_of_variables_and_secrets_are_kept_nowhere(octask: Octask, site: Site) -> None:
    site.answers["/hello"] = Answer(
        b"<title>t</title><input id=a oninput='out.textContent=a.value'><p id=out></p>"
    )
    document = task(
        do("goto", url="{{site}}/hello"),
        do("type", selector="#a", text="{{word}}"),
        do("get_text", selector="#out"),
        do("type", selector="#a", text={"secret": "env:WORD_OF_MINE"}),
        do("get_text", selector="#out"),
        do("click", selector="#{{word}}", timeout=100),
        variables={"word": "replaced by the file"},
    )
    values = octask.file("values.json", {"site": site.url, "word": "planted-one"})
    report = octask.folder / "report.xml"
    ran = octask(
        "run", octask.file("a.json", document), "--variables", values, "--junit", str(report),
        "--json", code=1, WORD_OF_MINE="planted-two",
    )  # fmt: skip
    found = json.loads(ran.stdout)["tasks"][0]["task"]
    assert found["commands"][2]["result"] == {"text": "{{word}}"}
    assert found["commands"][4]["result"] == {"text": "[redacted]"}
    kept = octask.everything() + report.read_bytes() + (ran.stdout + ran.stderr).encode()
    for planted in (b"planted-one", b"planted-two", b"replaced by", site.url.encode()):
        assert planted not in kept


def test_the_junit_report_has_a_case_for_each_command(octask: Octask, site: Site) -> None:
    document = task(
        do("goto", url=f"{site.url}/static/1"),
        do("screenshot"),
        do("evaluate", script="throw new Error('bad \\u0001\\u001b[31m <b>&\\ud800 end')"),
        do("reload"),
        task_name="A <task> & \x00 more",
    )
    report = octask.folder / "report.xml"
    octask("run", octask.file("a.json", document), "--junit", str(report), code=1)
    root = Xml.parse(report).getroot()
    assert root.tag == "testsuites"
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == list("4101")
    (suite,) = root
    assert suite.get("name") == "A <task> & \ufffd more"
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [
        "001 to goto", "002 to screenshot", "003 to evaluate", "004 to reload",
    ]  # fmt: skip
    attached = cases[1].findtext("system-out") or ""
    path = Path(attached.removeprefix("[[ATTACHMENT|").removesuffix("]]"))
    assert path.read_bytes().startswith(b"\x89PNG")
    properties = {each.get("name"): each.get("value") for each in cases[1].iter("property")}
    assert properties["attachment"] == str(path)
    failed = cases[2].find("failure")
    assert failed is not None
    assert failed.get("type") == "EXECUTION_ERROR"
    assert "<b>&" in str(failed.get("message"))
    assert str(failed.text).endswith(f"at {site.url}/static/1")
    kept = [Path(line.removeprefix("[[ATTACHMENT|").removesuffix("]]"))
            for line in str(cases[2].findtext("system-out")).splitlines()]  # fmt: skip
    assert [path.name for path in kept] == ["command-003-failed.png", "command-003-failed.html"]
    assert b"<html" in kept[1].read_bytes()
    skipped = cases[3].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "an earlier command failed"
    assert sum(float(case.get("time", "")) for case in cases) <= float(suite.get("time", "")) + 0.01


def test_the_worst_of_several_tasks_is_the_exit_code(octask: Octask, place: str) -> None:
    good = octask.file("good.json", task(do("goto", url="{{site}}/static/1")))
    bad = octask.file("bad.json", task(do("goto", url="{{site}}/loop")))
    octask("run", good, good, "--variables", place)
    said = octask("run", good, bad, good, "--variables", place, code=1).stdout
    assert said.count("A try: completed") == 2
    assert said.count("A try: failed") == 1


def test_several_files_may_share_one_instance_in_their_order(octask: Octask, place: str) -> None:
    go = do("goto", url="{{site}}/static/1")
    write = octask.file("write.json", task(go, do("evaluate", script="localStorage.x = 'here'")))
    read = octask.file("read.json", task(go, do("evaluate", script="localStorage.x ?? 'no'")))

    def last(*words: str) -> Any:
        answer = json.loads(
            octask("run", write, read, "--variables", place, "--json", *words).stdout
        )
        return answer["tasks"][1]["task"]["commands"][1]["result"]["value"]

    assert last("--one-instance") == "here"
    assert last() == "no"


def until(condition: Any) -> Any:
    deadline = time.monotonic() + 90
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)  # no event to wait for: another process changes it
    return found


def commands_of(octask: Octask) -> list[str]:
    found = list((octask.home / "tasks").glob("[0-9a-f]*/commands.json"))
    return [c["status"] for c in json.loads(found[0].read_bytes())["commands"]] if found else []


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one child there")
def test_ctrl_c_cancels_and_keeps_finished_commands(octask: Octask, site: Site) -> None:
    document = task(do("goto", url=f"{site.url}/static/1"), FOREVER, do("reload"))
    report = octask.folder / "report.xml"
    running = octask.start("run", octask.file("a.json", document), "--junit", str(report))
    until(lambda: commands_of(octask)[1:2] == ["running"])
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=90)
    assert running.returncode == 3, errors
    assert "A try: cancelled, 1 of 3 commands" in said
    assert commands_of(octask) == ["success", "skipped", "skipped"]
    assert Xml.parse(report).getroot().get("skipped") == "2"


def test_the_task_of_a_killed_process_is_reaped_as_failed(octask: Octask, site: Site) -> None:
    document = task(do("goto", url=f"{site.url}/static/1"), FOREVER, do("reload"))
    running = octask.start("run", octask.file("a.json", document))
    until(lambda: commands_of(octask)[1:2] == ["running"])
    running.kill()
    running.communicate(timeout=90)
    octask("reap")
    (meta,) = octask.metas()
    assert (meta["status"], meta["error"]["code"]) == ("FAILED", "orphaned")
    from engine.kinds.commands.command_document import command_task
    from engine.ledger.reader import LedgerReader

    found = command_task(LedgerReader(octask.home / "tasks"), meta["task_id"])
    assert found is not None
    assert found["status"] == "failed"
    assert [c["status"] for c in found["commands"]] == ["success", "error", "skipped"]
    assert found["error"]["code"] == "orphaned"


@pytest.mark.case("R81")
def test_a_detached_task_reads_its_secrets_and_variables(octask: Octask, site: Site) -> None:
    document = task(
        do("goto", url="{{site}}/login"),
        do("type", selector="#email", text="{{who}}"),
        do("type", selector="#password", text={"secret": "env:WORD_OF_MINE"}),
        do("click", selector="button[type=submit]"),
        do("wait_for", selector=".dashboard"),
        metadata={"run": 1},
    )
    values = octask.file("values.json", {"site": site.url, "who": "user@example.com"})
    ran = octask(
        "run", octask.file("a.json", document), "--variables", values, "--detach",
        WORD_OF_MINE="password123",
    )  # fmt: skip
    task_id = ran.stdout.strip()
    name = octask.metas()[0]["engine"]["command_task_id"]
    assert task_id in octask("wait", name, "--timeout-ms", "120000").stdout
    assert octask.metas()[0]["engine"]["metadata"] == {"run": 1}
    kept = octask.everything()
    assert b"password123" not in kept
    assert b"user@example.com" not in kept


def test_uploads_come_from_the_operators_folder(octask: Octask, site: Site) -> None:
    site.answers["/form"] = Answer(b"<!doctype html><title>t</title><input type=file>")
    (octask.folder / "files").mkdir()
    (octask.folder / "files" / "a.txt").write_text("first")
    upload = do("upload", selector="input", files="a.txt")
    document = octask.file("up.json", task(do("goto", url=f"{site.url}/form"), upload))
    refused = octask("run", document, code=2).stderr
    assert "commands[1].args.files[0]" in refused
    assert "--allow-files" in refused
    allowed = ("--allow-files", str(octask.folder / "files"))
    assert "2 of 2 commands" in octask("run", document, *allowed).stdout
    (detached,) = octask("run", document, *allowed, "--detach").stdout.split()
    assert "COMPLETED" in octask("wait", detached).stdout


@pytest.mark.thorough("retry")
@pytest.mark.parametrize("verb", ["retry", "rerun"])
def test_a_rerun_takes_variables_and_files(octask: Octask, site: Site, verb: str) -> None:
    (octask.folder / "files").mkdir()
    (octask.folder / "files" / "a.txt").write_text("first")
    allowed = ("--allow-files", str(octask.folder / "files"))
    site.answers["/form"] = Answer(b"<!doctype html><title>t</title><input type=file><p>x</p>")
    document = task(
        do("goto", url="{{site}}/login?u={{unused}}"),
        do("goto", url="{{site}}/form"),
        do("upload", selector="input", files="a.txt"),
        do("get_text", selector="#{{word}}", timeout=5_000),
    )
    values = {"site": site.url, "word": "planted-word", "unused": "planted-too"}
    given = octask.file("values.json", values)
    octask("run", octask.file("a.json", document), "--variables", given, *allowed, code=1)
    (first,) = octask.metas()
    few = octask.file("few.json", {"site": site.url})
    error = json.loads(octask(verb, first["task_id"], "--variables", few, "--json", code=1).stdout)[
        "error"
    ]
    assert error["code"] == "variables_missing"
    names = "word" if verb == "retry" else "unused, word"  # what is left needs no other one
    assert f"these are missing: {names}." in error["message"]
    command = f"octask {verb} {first['task_id']} --variables VALUES.json --allow-files DIR"
    assert command in error["advice"]
    assert len(octask.metas()) == 1
    site.answers["/form"] = Answer(
        b"<!doctype html><title>t</title><input type=file><p id=planted-word>x</p>"
    )
    octask(verb, first["task_id"], "--variables", given, *allowed)
    again = next(one for one in octask.metas() if one["task_id"] != first["task_id"])
    assert again["engine"]["parent_task_id"] == first["task_id"]
    assert len(again["args_summary"]["commands"]) == (3 if verb == "retry" else 4)
    assert b"planted-" not in octask.everything()
    detached = octask(verb, first["task_id"], "--variables", given, *allowed, "--detach")
    assert "COMPLETED" in octask("wait", detached.stdout.strip()).stdout


def test_a_missing_typed_text_prevents_a_rerun(octask: Octask, site: Site) -> None:
    site.answers["/form"] = Answer(b"<!doctype html><title>t</title><input>")
    typed = [do("goto", url=f"{site.url}/form"), do("type", selector="input", text="planted")]
    missing = do("click", selector="#none", timeout=300)
    document = octask.file("a.json", task(*typed, missing))
    octask("run", document, code=1)
    (first,) = octask.metas()
    error = json.loads(octask("retry", first["task_id"], "--json", code=1).stdout)["error"]
    assert (error["code"], "octask run FILE" in error["advice"]) == ("typed_text_missing", True)
    before = octask.file("b.json", task(*typed, do("goto", url=f"{site.url}/form"), missing))
    octask("run", before, code=1)
    second = next(one for one in octask.metas() if one["task_id"] != first["task_id"])
    octask("retry", second["task_id"], code=1)
    again = [one for one in octask.metas() if one["engine"].get("parent_task_id")]
    assert [len(one["args_summary"]["commands"]) for one in again] == [2]


def test_variables_for_a_task_that_has_none_are_a_mistake(octask: Octask, site: Site) -> None:
    octask("start", "crawl", site.url, "--engine", "static", "--max-pages", "1")
    (first,) = octask.metas()
    given = octask.file("values.json", {"a": "b"})
    for verb in ("rerun", "retry"):
        said = octask(verb, first["task_id"], "--variables", given, code=2).stderr
        assert "variables: are for command tasks only" in said
    assert "no folder" in octask("rerun", first["task_id"], "--allow-files", "/no", code=2).stderr
