"""`octask` as typed: real processes, exit codes, words with a way out, never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.doctor.verification import _seen
from tests.support.endless_site import endless
from tests.support.far_limits import start_patient_programs
from tests.support.octask import ENDLESS, FAST, LIMIT_S, Octask, only_task, until
from tests.support.task_folders import write_meta
from tests.support.written_files import contents


def test_an_address_needs_no_scheme(octask: Octask, site: Any) -> None:
    typed = site.url.removeprefix("http://")
    octask("start", "crawl", typed, "--engine", "static", "--max-pages", "1", "--delay-ms", "0")
    assert octask.tasks()[0]["args_summary"]["url"] == site.url
    assert "must look like https://" in octask("start", "crawl", "no address", code=2)


def test_a_crawl_in_the_foreground_tells_each_page_and_its_end(octask: Octask, site: Any) -> None:
    said = octask("start", "crawl", site.url, *FAST, "--max-pages", "3")
    assert "Started " in said
    assert "3/3" in said
    assert "COMPLETED: 3 pages in " in said
    task = octask.tasks()[0]
    assert task["status"] == "COMPLETED"
    result = json.loads(octask("get", task["task_id"], "--result", "--json"))
    assert len(result["result"]["pages"]) == 3
    assert result["engine"]["units"]["done"] == 3


def test_json_answers_are_json_alone(octask: Octask, site: Any) -> None:
    ran = subprocess.run(
        octask.command(
            *("start", "crawl", site.url, *FAST, "--json"),
            *("--home", str(octask.home), "--max-pages", "2"),
        ),
        capture_output=True,
        timeout=LIMIT_S,
        env=octask.environment(),
        check=True,
    )
    assert json.loads(ran.stdout)["status"] == "COMPLETED"
    assert ran.stderr == b""


def test_three_mistakes_are_all_named_and_nothing_is_started(octask: Octask) -> None:
    said = octask(
        "start", "crawl", "ftp://x.example", "--max-pages", "0", "--concurrency", "lots", code=2
    )
    assert "url: only http and https addresses can be opened" in said
    assert "max_pages: " in said
    assert "concurrency: " in said
    assert not (octask.home / "tasks").exists() or octask.tasks() == []


@pytest.mark.parametrize(
    ("since", "number"), [("1h", 1), ("99999w", 2), ("2001-01-01", 2), ("2001-01-01T08:00Z", 2)]
)
def test_a_list_begins_at_a_time_as_it_is_typed(octask: Octask, since: str, number: int) -> None:
    root = octask.home / "tasks"
    write_meta(root, 1, "COMPLETED", created_at=int(time.time() * 1000))
    write_meta(root, 2, "COMPLETED", created_at=1_000_000_000_000)  # in September 2001
    assert len(octask("list", "--since", since).splitlines()) == number


def test_mistakes_in_json_options_are_named_with_all_others(octask: Octask) -> None:
    wrong = ("--max-pages", "0", "--engine", "foo", "--policy", "{bad", "--contract", "[1]")
    said = octask("start", "crawl", "http://x.example", *wrong, code=2)
    for place in ("--policy: ", "--contract: ", "max_pages: ", "engine: "):
        assert place in said


def test_an_objective_without_a_kind_opens_an_envelope(octask: Octask) -> None:
    task_id = octask("start", "--objective", "compare prices").strip()
    assert [(task["task_id"], task["kind"]) for task in octask.tasks()] == [
        (task_id, "browser_task")
    ]
    octask("finish", task_id, "--outcome", "completed")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["get", "0123456789abcdef"], 4, "There is no task 0123456789abcdef"),
        (["get", "0123456789ABCDEF"], 2, "is not a task id (16 lower-case hex digits)"),
        (["cancel", "../../etc"], 2, "is not a task id"),
        (["wait", "0123456789abcdef\n"], 2, "is not a task id"),
        (["start", "crawl", "no url"], 2, "url: "),
        (["start", "crawl"], 2, "url: "),
        (["start", "fly", "http://x.example"], 2, "'fly' cannot be started here"),
        (["start", "crwl", "http://x.example"], 2, "did you mean crawl?"),
        (["start"], 2, "Missing argument 'KIND'"),
        (["start", "crawl", "--args", "{nonsense"], 2, "--args: is not valid JSON"),
        (["start", "crawl", "http://x.example", "--args", "[1]"], 2, "must be a JSON object"),
        (["list", "--status", "maybe"], 2, "PENDING, RUNNING, COMPLETED, FAILED, CANCELLED"),
        (["list", "--kind", "crawls"], 2, "'crawls' is no kind"),
        (["runs", "list", "--status", "maybe"], 2, "'maybe' is no state"),
        (["task-run", "list", "--status", "maybe"], 2, "'maybe' is no state"),
        (["list", "--since", "soon"], 2, "For example: 1d, 2h30m, 2026-03-01"),
        (["list", "--limit", "few"], 2, "Invalid value for '--limit'"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_bad_input_exit_codes(octask: Octask, words: list[str], code: int, sentence: str) -> None:
    place = words != ["frobnicate"]
    assert sentence in octask(*words, code=code, place=place)


def test_a_root_that_is_a_file_is_said_with_the_way_out(octask: Octask, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a folder")
    for verb in (["list"], ["reap"], ["start", "crawl", "http://x.example"]):
        said = octask(*verb, "--root", str(plain), code=1)
        assert str(plain) in said
        assert "--root" in said


def test_a_missing_browser_ends_the_task_with_the_fix(octask: Octask, site: Any) -> None:
    environment = {**octask.environment(), "OC_BROWSER": "/nowhere/chromium"}
    ran = subprocess.run(
        octask.command("start", "crawl", site.url, "--home", str(octask.home)),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment,
        check=False,
    )
    assert ran.returncode == 1
    assert "Chromium could not be started" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert octask.tasks()[0]["error"]["code"] == "browser_missing"


def test_the_first_interrupt_cancels_and_keeps_the_pages(octask: Octask, site: Any) -> None:
    run = octask.start("start", "crawl", endless(site), *ENDLESS)
    task_id = only_task(octask)
    until(lambda: octask.pages(task_id) >= 3)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 3, err
    assert f"{task_id}  CANCELLED" in out
    assert "Traceback" not in err
    result = json.loads((octask.home / "tasks" / task_id / "result.json").read_bytes())
    assert len(result["pages"]) == octask.pages(task_id) >= 3


def test_a_crawl_ends_two_seconds_after_a_foreign_cancel(octask: Octask, site: Any) -> None:
    run = octask.start("start", "crawl", site.url + "/hang", *ENDLESS)
    task_id = only_task(octask)
    until(lambda: site.hits["/hang"])
    assert "asked to stop" in octask("cancel", task_id, "--reason", "enough")
    run.communicate(timeout=LIMIT_S)  # not the page's 600 s; a rig holds the two seconds
    assert run.returncode == 3
    assert octask("wait", task_id, "--timeout-ms", "1000", code=3)
    told = next(line for line in octask("get", task_id).splitlines() if "cancelled:" in line)
    assert told.endswith(": enough")


def test_a_detached_task_is_owned_by_a_worker_that_ends_with_it(octask: Octask, site: Any) -> None:
    task_id = octask("start", "crawl", site.url, *FAST, "--max-pages", "4", "--detach").strip()
    assert len(task_id) == 16
    assert "COMPLETED" in octask("wait", task_id)
    meta = json.loads((octask.home / "tasks" / task_id / "meta.json").read_bytes())
    assert meta["pid"] != os.getpid()
    assert meta["engine"]["route"] == "cli"
    assert "client" not in meta["engine"]
    until(lambda: not psutil.pid_exists(meta["pid"]))


def test_a_detached_request_with_mistakes_is_refused_with_all_of_them(octask: Octask) -> None:
    said = octask("start", "crawl", "ftp://x", "--max-pages", "0", "--detach", code=2)
    assert "url: " in said
    assert "max_pages: " in said


def test_a_password_in_the_start_url_reaches_no_file(octask: Octask, site: Any) -> None:
    url = site.url.replace("http://", "http://ann:hunter2secret@")
    octask("start", "crawl", url, *FAST, "--max-pages", "2")
    for place, data in contents(octask.home).items():
        assert b"hunter2secret" not in data, place


def test_waiting_too_short_ends_with_124(octask: Octask, site: Any) -> None:
    run = octask.start("start", "crawl", site.url + "/hang", *ENDLESS)
    task_id = only_task(octask)
    until(lambda: site.hits["/hang"])
    assert "did not end within 100 ms" in octask("wait", task_id, "--timeout-ms", "100", code=124)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT_S)


def test_a_killed_crawl_is_reaped_with_its_pages(octask: Octask, site: Any) -> None:
    run = octask.start("start", "crawl", endless(site), *ENDLESS)
    task_id = only_task(octask)
    until(lambda: octask.pages(task_id) >= 3)
    run.kill()
    run.communicate()
    assert "Orphaned" in octask("get", task_id)
    assert task_id in octask("reap")
    task = octask.tasks()[0]
    assert (task["status"], task["error"]["code"]) == ("FAILED", "orphaned")
    result = json.loads((octask.home / "tasks" / task_id / "result.json").read_bytes())
    assert len(result["pages"]) >= 3


def test_events_and_list_read_well_in_a_pipe(octask: Octask, site: Any) -> None:
    octask("start", "crawl", site.url, *FAST, "--max-pages", "2", "--name", "my = name")
    line = octask("list").splitlines()[0].split("\t")
    assert line[1:4] == ["Completed", "crawl", "2/2"]
    events = octask("get", line[0], "--events")
    assert "started" in events
    assert "completed" in events
    assert line[0] in octask("watch", "--once")


def test_doctor_names_the_browser_and_the_ledger(
    octask: Octask, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_patient_programs(monkeypatch)
    report = json.loads(octask("doctor", "--json"))
    assert report["healthy"]
    subjects = {finding["subject"] for finding in report["findings"]}
    assert {"browser", "ledger", "log", "program"} <= subjects


# How soon a step ends is the machine's to say: the limits of the steps are moved away, as are the
# two seconds of one of them.
VERIFY_PATIENTLY = """
import sys
from engine.cli.__main__ import main
from engine.doctor import verification
verification.CANCEL_S, verification.STEP_S, verification.END_S = 100.0, 1_000.0, 1_000.0
sys.argv = ["octask", "doctor", "--verify", *sys.argv[1:]]
main()
"""
# Its crawl runs in another process then.
# The step "cancel" lasts until Ctrl-C, which is looked at between two steps.
VERIFY_UP_TO_CANCEL = """
import asyncio, sys
from engine.cli.__main__ import main
from engine.cli.calls import Interrupts
from engine.doctor import verification
from engine.doctor.verification import Finding, _Steps
verification.STEP_S = verification.END_S = 1_000.0
asked, interrupted = asyncio.Event(), Interrupts._interrupted
def note(interrupts, cause):
    interrupted(interrupts, cause)
    asked.set()
async def hang(steps):
    await asked.wait()
    return Finding("cancel", "ok", "")
Interrupts._interrupted, _Steps._cancel = note, hang
sys.argv = ["octask", "doctor", "--verify", *sys.argv[1:]]
main()
"""
VERIFIED = ["browser", "start", "list", "cancel", "result", "restart", "kill", "wait"]


@pytest.mark.thorough("False")
@pytest.mark.parametrize("browser", [True, False])
def test_doctor_verifies_the_steps_of_the_seed_and_leaves_nothing(
    octask: Octask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: bool
) -> None:
    start_patient_programs(monkeypatch)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    if not browser:
        monkeypatch.setenv("OC_BROWSER", str(tmp_path / "none"))
    ran = subprocess.run(
        [sys.executable, "-c", VERIFY_PATIENTLY, "--home", str(octask.home)],
        capture_output=True,
        text=True,
        timeout=280,  # eight steps, of which one starts two browsers
        env=octask.environment(),
        check=False,
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == (0 if browser else 1), said
    assert "Traceback" not in said
    states = re.findall(r"^(ok|PROBLEM) +(\w+): ", said, re.MULTILINE)
    assert states == [
        ("ok" if browser or step != "browser" else "PROBLEM", step) for step in VERIFIED
    ]
    assert "FAILED with code orphaned; pages kept: 0" not in said
    assert [*temporary.iterdir()] == []
    assert [*octask.home.iterdir()] == []


def test_a_step_that_saw_something_else_says_what_was_expected() -> None:
    found = _seen("cancel", False, done=3, status="RUNNING", took_s="2.4")
    assert found.line().splitlines() == [
        "PROBLEM  cancel: the crawl is RUNNING after 2.4 s; pages before the cancel: 3",
        "         Expected is CANCELLED within 2 s.",
    ]


def test_an_interrupted_verification_leaves_no_process_and_no_file(
    octask: Octask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_patient_programs(monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", VERIFY_UP_TO_CANCEL, "--home", str(octask.home)],
        stdout=subprocess.PIPE,
        text=True,
        env=octask.environment(),
    ) as running:
        assert running.stdout is not None
        for step in VERIFIED[: VERIFIED.index("cancel")]:
            assert f" {step}: " in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 3
    assert " result: " not in said
    assert [*tmp_path.glob("octask-verify-*")] == []


def test_a_name_that_is_not_found_fails_with_that_reason(octask: Octask) -> None:
    said = octask("start", "crawl", "http://nosuch.invalid/", "--engine", "static", code=1)
    assert "No page could be taken" in said
    assert "Blocked by robots.txt" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_watch_redraws_its_table_until_interrupted(octask: Octask, site: Any) -> None:
    import pty

    octask("start", "crawl", site.url, *FAST, "--max-pages", "1")
    ours, theirs = pty.openpty()
    environment = {**octask.environment(), "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    watch = subprocess.Popen(
        octask.command("watch", "--home", str(octask.home)),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(theirs)
    drawn = b""
    while b"Completed" not in drawn:
        drawn += os.read(ours, 4096)  # an error at the end of the program fails the test, too
    octask("hold", "--reason", "maintenance")
    while b": maintenance." not in drawn:
        drawn += os.read(ours, 4096)
    watch.send_signal(signal.SIGINT)
    while watch.poll() is None:
        drain(ours)
    assert watch.returncode == 0
    assert watch.stderr is not None
    with watch.stderr:
        assert b"Traceback" not in watch.stderr.read()
    os.close(ours)


def drain(terminal: int) -> None:
    """Take what is drawn, so that the program is not held up by a full terminal."""
    try:
        os.read(terminal, 4096)
    except OSError:
        time.sleep(0.01)  # the terminal has no readiness event


@pytest.mark.skipif(sys.platform == "win32", reason="shells differ")
@pytest.mark.parametrize(
    ("shell", "code"),
    [
        ("{octask} list | true", 0),
        ("{octask} list >&-", 0),
        ("{octask} list --json > /dev/full", 1),
        ("PYTHONIOENCODING=cp1252 {octask} list", 0),
        ("env -u HOME {octask} list", 0),
    ],
)
def test_odd_environments_print_no_error(octask: Octask, home: Path, shell: str, code: int) -> None:
    folder = home / "tasks" / "00000000000000a1"
    folder.mkdir(parents=True)
    meta = {"task_id": folder.name, "kind": "crawl", "status": "COMPLETED", "created_at": 1}
    (folder / "meta.json").write_text(json.dumps({**meta, "engine": {"name": "価格\x9b表"}}))
    command = f"{sys.executable} -m engine.cli"
    line = shell.format(octask=command).replace(" list", f" list --home {home}", 1)
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        timeout=LIMIT_S,
        env=octask.environment(),
        check=False,
    )
    assert b"Traceback" not in ran.stderr, ran.stderr
    assert ran.returncode == code, ran.stderr


def test_a_hostile_result_is_escaped_on_terminals_and_in_json(octask: Octask, site: Any) -> None:
    octask("start", "crawl", site.url, *FAST, "--max-pages", "1")
    task_id = octask.tasks()[0]["task_id"]
    result = octask.home / "tasks" / task_id / "result.json"
    result.write_text('{"summary": "\x1b]0;owned\x07')
    said = octask("get", task_id, "--result", "--json", code=1)
    assert "result.json is not valid JSON" in said
    assert json.loads(said.replace("result.json is not valid JSON\n", ""))["result"] is None


def test_a_module_in_the_cwd_is_not_imported(octask: Octask, site: Any, tmp_path: Path) -> None:
    planted = tmp_path / "msgspec.py"
    planted.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    ran = subprocess.run(
        [
            str(Path(sys.executable).with_name("octask")),
            *("start", "crawl", site.url, *FAST, "--max-pages", "1"),
            *("--detach", "--home", str(octask.home)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={name: value for name, value in octask.environment().items() if name != "PYTHONPATH"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "ran").exists()
    octask("wait", ran.stdout.strip())


def test_get_shows_the_line_of_the_mistake_in_an_unreadable_task(octask: Octask) -> None:
    folder = octask.home / "tasks" / ("0" * 15 + "1")
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text('{\n  "task_id": RUNNING\n}')
    said = octask("get", folder.name)
    assert "not valid JSON (line 2, column 14)" in said
    assert str(folder / "meta.json") in said
