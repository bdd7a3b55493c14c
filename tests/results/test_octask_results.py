"""`octask export`, `prune` and `get --result` as real programs with real pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.model.records import Status
from tests.results.conftest import page
from tests.results.reading import csv_rows, sheets
from tests.support.octask import run_as_text

LIMIT_S = 150
POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and pseudo-terminals are POSIX's")


def octask(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = (*words, "--home", str(home))
    return run_as_text(*words, environment={**os.environ, **environment})


def test_a_text_format_goes_to_standard_output(home, crawled) -> None:
    done = octask(home, "export", crawled(page(1, title="é")), "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["title"] for row in csv_rows(done.stdout)] == ["é"]


def test_the_format_may_stand_in_the_files_name(home, crawled, tmp_path) -> None:
    place = tmp_path / "pages.xlsx"
    done = octask(home, "export", crawled(page(1)), "-o", str(place))
    assert done.stdout == f"1 row in {place}\n"
    assert list(sheets(place)) == ["pages", "about"]


def test_for_programs_an_export_is_told_as_json(home, crawled, tmp_path) -> None:
    place = tmp_path / "a.jsonl"
    task_id = crawled(page(1), status=Status.CANCELLED)
    done = octask(home, "export", task_id, "-o", str(place), "--json")
    told = json.loads(done.stdout)
    assert (told["rows"], told["partial"], told["path"]) == (1, True, str(place))


def test_a_part_is_said_to_be_one_beside_the_rows(home, crawled) -> None:
    done = octask(home, "export", crawled(page(1), status=Status.FAILED), "--format", "jsonl")
    assert "Partial: the task ended as FAILED" in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--format", "pdf"), 2, "'pdf' is no format"),
        (("-o", "x.zzz"), 2, "csv, json, jsonl, xlsx, html, zip, wacz"),
        ((), 2, "is needed: one of csv, json, jsonl, xlsx, html, zip, wacz"),
        (("--format", "xlsx"), 2, "needs the name of a file"),
        (("--format", "csv", "--columns", "url,nose"), 2, "there is no column 'nose'"),
        (("--format", "csv", "-o", "{there}"), 1, "--force"),
    ],
)
def test_refusals_have_text_and_code(home, crawled, tmp_path, words, code, said) -> None:
    there = tmp_path / "there.csv"
    there.write_text("mine")
    words = [word.format(there=there) for word in words]
    done = octask(home, "export", crawled(page(1)), *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert there.read_text() == "mine"


def test_a_task_that_is_not_there_is_not_exported(home, ledger) -> None:
    done = octask(home, "export", "0123456789abcdef", "--format", "csv", "--json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "task_not_found"


@POSIX
@pytest.mark.parametrize("words", [("export", "--format", "jsonl"), ("get", "--result")])
def test_a_reader_that_leaves_is_no_error(home, crawled, words) -> None:
    task_id = crawled(*(page(n, content="x" * 10_000) for n in range(100)))
    verb, *options = words
    command = [sys.executable, "-m", "engine.cli", verb, task_id, *options, "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.read(10)
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(LIMIT_S) == 0


@POSIX
def test_ctrl_c_ends_an_export_and_leaves_nothing(home, crawled, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    task_id = crawled(*(page(n) for n in range(3)), status=None)
    without_end = (
        "import sys, time\n"
        "from engine.cli.octask import octask\n"
        "from engine.export.exporter import _Export\n"
        "rows = _Export._rows\n"
        "def again_and_again(self):\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"  # an export without end leaves room for the signal
        "        yield from rows(self)\n"
        "_Export._rows = again_and_again\n"
        "octask(sys.argv[1:])\n"
    )
    words = ["export", task_id, "-o", str(out / "a.xlsx"), "--home", str(home)]
    program = subprocess.Popen(
        [sys.executable, "-c", without_end, *words], stderr=subprocess.PIPE, text=True
    )
    try:
        while not os.listdir(out):
            assert program.poll() is None, "it ended before it could be stopped"
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=LIMIT_S)
    finally:
        program.kill()
        program.communicate()
    assert (program.returncode, os.listdir(out)) == (3, [])
    assert "stopped" in said


@POSIX
def test_a_second_ctrl_c_leaves_nothing_either(home, crawled, tmp_path) -> None:
    """The first is not obeyed here: the source of the rows hangs, as a dead network drive does."""
    out = tmp_path / "out"
    out.mkdir()
    task_id = crawled(page(1))
    hanging = (
        "import sys, time\n"
        "from engine.cli.octask import octask\n"
        "from engine.export import exporter\n"
        "def hang(out, table):\n"
        "    print('hangs', flush=True)\n"
        "    time.sleep(600)\n"
        "exporter.FORMATS['csv'] = exporter.Format(hang)\n"
        "octask(sys.argv[1:])\n"
    )
    words = ["export", task_id, "-o", str(out / "a.csv"), "--home", str(home)]
    program = subprocess.Popen(
        [sys.executable, "-c", hanging, *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "hangs\n"
        assert len(os.listdir(out)) == 1
        while program.poll() is None:  # two that come together count as one
            program.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                program.wait(0.05)
    finally:
        program.kill()
        program.communicate()
        program.communicate(timeout=LIMIT_S)
    assert (program.returncode, os.listdir(out)) == (130, [])


@POSIX
def test_a_terminal_gets_nothing_that_steers_it(home, crawled) -> None:
    import pty

    task_id = crawled(page(1, title="\x1b[31mred\u202e", content="\x9b2J"))
    for words in (("export", task_id, "--format", "csv"), ("get", task_id, "--result")):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "engine.cli", *words, "--home", str(home)]
        with subprocess.Popen(command, stdout=theirs, stderr=theirs) as program:
            os.close(theirs)
            said = b""
            while data := _read(ours):
                said += data
            assert program.wait(LIMIT_S) == 0
        os.close(ours)
        text = said.decode()
        assert "red" in text
        assert not set("\x1b\u202e\x9b") & set(text)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how a pseudo-terminal says that its other end is closed
        return b""


def test_a_result_and_its_events_are_one_json_document(home, crawled) -> None:
    task_id = crawled(page(1), page(2))
    told = json.loads(octask(home, "get", task_id, "--result", "--events", "--json").stdout)
    assert [event["kind"] for event in told["events"]][-1] == "completed"
    assert len(told["result"]["pages"]) == 2
    assert told["task_id"] == task_id


@pytest.mark.parametrize("damage", [b'{"pages": [', b'{"a": NaN}', b'"\xff"'])
def test_a_damaged_result_does_not_damage_the_document(home, with_result, damage) -> None:
    done = octask(home, "get", with_result("crawl", damage), "--result", "--json")
    assert json.loads(done.stdout)["result"] is None
    assert "not valid JSON" in done.stderr


def aged(ledger, task_id: str, days: int) -> str:
    """As if it had ended so long ago."""
    meta = ledger.root / task_id / "meta.json"
    raw = json.loads(meta.read_text())
    times = ("created_at", "started_at", "ended_at", "last_activity_at")
    earlier = {name: raw[name] - days * 86_400_000 for name in times if name in raw}
    meta.write_text(json.dumps({**raw, **earlier}))
    return task_id


def test_prune_shows_first_and_does_what_it_showed_when_told(home, ledger, crawled) -> None:
    old, new = aged(ledger, crawled(page(1)), 40), aged(ledger, crawled(page(1)), 3)
    shown = octask(home, "prune", "--older-than", "30d")
    assert shown.returncode == 0
    assert [line.split("\t")[0] for line in shown.stdout.splitlines()] == [old]
    assert "Would go to the trash: 1" in shown.stderr
    assert (ledger.root / old).exists()
    done = octask(home, "prune", "--older-than", "30d", "--yes", "--delete", "--json")
    assert [one["task_id"] for one in json.loads(done.stdout)["gone"]] == [old]
    assert not (ledger.root / old).exists()
    assert (ledger.root / new).exists()


def test_prune_with_both_words_only_shows(home, ledger, crawled) -> None:
    old = aged(ledger, crawled(page(1)), 40)
    octask(home, "prune", "--keep", "0", "--yes", "--dry-run", "--delete")
    assert (ledger.root / old).exists()


def test_prune_goes_to_the_trash(home, ledger, crawled, tmp_path) -> None:
    if sys.platform != "linux":
        pytest.skip("only there can a trash be moved into the test's own folder")
    old = aged(ledger, crawled(page(1)), 40)
    places = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
    done = octask(home, "prune", "--keep", "0", "--yes", **places)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / "share" / "Trash" / "files") == [old]


@pytest.mark.parametrize(
    ("words", "said"), [((), "say what may go"), (("--older-than", "soon"), "no length of time")]
)
def test_prune_refuses_what_says_nothing(home, ledger, words, said) -> None:
    done = octask(home, "prune", "--yes", *words)
    assert done.returncode == 2
    assert said in done.stderr


def broken_site() -> tuple[dict[str, object], dict[str, object]]:
    """A page with a link, and the page that it leads to, which is not there."""
    links = [{"href": "http://site.test/9", "text": "\x1b[31mnine"}]
    gone = page(9, final_url="http://site.test/9", error="HTTP 404", error_code="http")
    return page(1, final_url="http://site.test/1", links=links), gone


def test_an_audit_lists_the_reports_and_the_rows_of_one(home, crawled) -> None:
    task_id = crawled(*broken_site())
    done = octask(home, "audit", task_id)
    lack = "Pages of an older crawl, which stored no descriptions: 1.\n"
    assert (done.returncode, done.stderr) == (0, lack)
    assert done.stdout.splitlines()[:2] == ["broken_links\t1", "redirects\t0"]
    done = octask(home, "audit", task_id, "broken-links")
    cells = done.stdout.rstrip("\n").split("\t")
    assert cells[:3] == ["http://site.test/9", "HTTP 404", "http://site.test/1"]
    assert "\x1b" not in cells[3]
    told = json.loads(octask(home, "audit", task_id, "broken_links", "--json").stdout)
    assert (told["count"], told["rows"][0]["page"]) == (1, "http://site.test/1")
    told = json.loads(octask(home, "audit", task_id, "--json").stdout)
    assert (told["pages"], told["reports"]["broken_links"]) == (2, 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("broken_links", "--check"), 1, ""),
        (("redirects", "--check"), 0, ""),
        (("--check",), 2, "check: needs the name of a report"),
        (("nope",), 2, "'nope' is no report (there are: broken_links, "),
    ],
)
def test_an_audit_tells_scripts_by_its_exit_code(home, crawled, words, code, said) -> None:
    done = octask(home, "audit", crawled(*broken_site()), *words)
    assert done.returncode == code
    assert said in done.stderr


def test_a_check_of_a_crawl_that_did_not_complete_fails(home, crawled) -> None:
    done = octask(home, "audit", crawled(page(1), status=Status.FAILED), "broken_links", "--check")
    assert done.returncode == 1
    assert "has not ended COMPLETED" in done.stderr


def two_runs(crawled: Any, **more: Any) -> tuple[str, str]:
    """Page 1 stays, 2 says something else, 3 goes and 4 comes."""
    before = [page(1), page(2, content="same\nold", title="\x1b[31mTwo"), page(3)]
    after = [page(1), page(2, content="same\nnew", title="\x1b[31mTwo"), page(4, status=404)]
    return crawled(*before), crawled(*after, **more)


def test_two_runs_are_compared_item_by_item(home, crawled) -> None:
    before, after = two_runs(crawled)
    done = octask(home, "diff", before[:8], after)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [
        ["changed", "http://site.test/2"],
        ["added", "http://site.test/4"],
        ["removed", "http://site.test/3"],
    ]
    assert rows[0][3] == f"{rows[0][2]} (other text)"
    assert (rows[1][2], rows[1][3].split()[0]) == ("", "404")
    assert "\x1b" not in done.stdout
    assert (done.returncode, done.stderr) == (0, "1 added, 1 removed, 1 changed, 1 the same.\n")
    done = octask(home, "diff", before, after, "--text")
    assert done.stdout.splitlines()[1:5] == ["  @@", "   same", "  -old", "  +new"]
    told = json.loads(octask(home, "diff", before, after, "--text", "--json").stdout)
    assert (told["before"], told["after"], told["loaded_all"]) == (before, after, True)
    assert [told[name] for name in ("added", "removed", "changed", "same")] == [1, 1, 1, 1]
    assert told["differences"][0]["text"] == ["@@", " same", "-old", "+new"]


def test_a_comparison_tells_scripts_by_its_exit_code(home, crawled) -> None:
    before, after = two_runs(crawled)
    assert octask(home, "diff", before, after, "--check").returncode == 1
    assert octask(home, "diff", before, before, "--check").returncode == 0
    done = octask(home, "diff", before, "f" * 16, "--check")
    assert done.returncode == 4
    assert "f" * 16 in done.stderr


def test_a_comparison_says_that_a_run_did_not_load_all_pages(home, crawled) -> None:
    for more in ({"status": Status.FAILED}, {"head": {"summary": {"stopped_by": "max_pages"}}}):
        done = octask(home, "diff", *two_runs(crawled, **more))
        assert "did not load all pages: a removed one may still exist." in done.stderr


def test_what_is_no_crawl_has_no_audit(home, crawled) -> None:
    done = octask(home, "audit", crawled(page(1), kind="recording"))
    assert done.returncode == 1
    assert "has no pages of a site" in done.stderr


def test_a_report_can_be_exported(home, crawled, tmp_path) -> None:
    place = tmp_path / "broken.csv"
    done = octask(
        home, "export", crawled(*broken_site()), "--report", "broken-links", "-o", str(place)
    )
    assert done.stdout == f"1 row in {place}\n"
    assert "HTTP 404" in place.read_text("utf-8")
