"""Whatever lies in a ledger is a record or a reason, never an exception, a hang or a change."""

from __future__ import annotations

import errno
import json
import os
import socket
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger import meta
from engine.ledger.files import Unusable
from engine.ledger.ledger import Ledger
from engine.model.errors import LedgerUnusable, TaskNotFound, TaskUnreadable
from engine.model.records import Status, TaskRecord, Unreadable

ID = "0123456789abcdef"
GOOD = {"task_id": ID, "kind": "crawl", "status": "RUNNING", "pid": 7, "created_at": 5}


def text(**extra: object) -> bytes:
    return json.dumps({**GOOD, **extra}).encode()


def planted(ledger: Ledger, data: bytes) -> Path:
    folder = ledger.root / ID
    folder.mkdir()
    (folder / "meta.json").write_bytes(data)
    return folder


BROKEN = {
    "cut": (text()[:-9], "meta.json is cut short"),
    "cut in a text": (text()[:14], "meta.json is cut short"),
    "empty": (b"", "meta.json is empty"),
    "zeros": (b"\0" * 400, "meta.json is empty"),
    "not json": (b"{task_id: 1}", "not valid JSON (line 1, column 2)"),
    "on a later line": (b'{\n "task_id": x\n}', "not valid JSON (line 2, column 13)"),
    "two values": (text() + b" {}", "not valid JSON"),
    "cut on a later line": (b'{\n "task_id": "', "meta.json is cut short (line 2, column 13)"),
    "nan": (text()[:-1] + b', "x": NaN}', "not valid JSON"),
    "infinity": (text()[:-1] + b', "x": -Infinity}', "not valid JSON"),
    "overflow": (text()[:-1] + b', "created_at": 1e999}', "not valid JSON"),
    "bom": (b"\xef\xbb\xbf" + text(), "it starts with a byte order mark"),
    "latin": (text()[:-1] + b', "objective": "\xff"}', "not valid UTF-8"),
    "array": (b"[1, 2]", "not a JSON object"),
    "text": (b'"crawl"', "not a JSON object"),
    "no id": (b'{"status": "RUNNING"}', "it has no task_id"),
    "large": (b" " * (1024 * 1024) + text(), "larger than 1 MiB"),
    "deep": (text()[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper"),
}


@pytest.mark.case("R32", "R34", "R35", "R37")
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_meta_is_shown_with_its_reason_and_left_alone(ledger: Ledger, case: str):
    data, reason = BROKEN[case]
    folder = planted(ledger, data)
    for entry in (ledger.read(ID), ledger.list()[0], ledger.read_many([ID])[0].entry):
        assert isinstance(entry, Unreadable)
        assert reason in entry.reason
        assert entry.path == str(folder / "meta.json")
    with pytest.raises(TaskUnreadable):
        ledger.request_cancel(ID)
    assert os.listdir(folder) == ["meta.json"]
    assert (folder / "meta.json").read_bytes() == data


@pytest.mark.case("R35")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (text()[:-1] + b', "pid": 8}', "the key 'pid' is there twice"),
        (text(x=2**53 + 1), "a number beyond 2^53"),
        (text()[:-1] + b', "x": ' + b"9" * 5_000 + b"}", "a number of 5000 digits"),
        (text(x=json.loads("[" * 65 + "]" * 65)), "nested deeper than 64"),
    ],
)
def test_ambiguous_records_are_listed_unreadable(ledger: Ledger, data: bytes, reason: str):
    planted(ledger, data)
    assert isinstance(ledger.list()[0], TaskRecord)
    opened = ledger.read(ID)
    assert isinstance(opened, Unreadable)
    assert reason in opened.reason
    with pytest.raises(TaskUnreadable):
        ledger.mutate(ID, lambda raw: raw.update(x=1))


def test_fields_of_an_unusable_shape_are_named_and_the_rest_is_read(ledger: Ledger):
    odd = {"pid": "7", "started_at": True, "args_summary": [1], "error": "text", "phase": 4}
    engine = {"runner": 5, "host": "here", "units": {"done": "x", "total": 4}}
    planted(ledger, text(**odd, engine=engine))
    for record in (ledger.read(ID), ledger.list()[0]):
        assert isinstance(record, TaskRecord)
        assert set(record.odd) == {*odd, "engine.runner", "engine.units.done"}
        assert (record.kind, record.pid, record.args_summary) == ("crawl", None, {})
        assert record.engine is not None
        assert record.engine.host == "here"
    ledger.mutate(ID, lambda raw: raw.update(note=1))
    assert {key: ledger.read_raw(ID)[key] for key in odd} == odd


@pytest.mark.parametrize("status", [[], {}, 7, None, True])
def test_an_invalid_status_is_refused_and_kept(ledger: Ledger, status: object):
    path = planted(ledger, text(status=status)) / "meta.json"
    before = path.read_bytes()
    for change in (
        ledger.request_cancel,
        ledger.claim,
        partial(ledger.finish, status=Status.FAILED),
    ):
        with pytest.raises(TaskUnreadable, match="its status is not a text"):
            change(ID)
    assert path.read_bytes() == before


def test_a_ledger_that_cannot_be_listed_says_so(ledger: Ledger, task_id: str, monkeypatch):
    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as fault:
        fault.setattr(os, "scandir", none_left)
        for look in (ledger.list, lambda: list(ledger.scan())):
            with pytest.raises(LedgerUnusable, match=os.strerror(errno.EMFILE)):
                look()
    assert [entry.task_id for entry in ledger.list()] == [task_id]


def test_the_folders_name_is_the_id(ledger: Ledger):
    planted(ledger, text(task_id="ffffffffffffffff"))
    assert [entry.task_id for entry in (ledger.read(ID), *ledger.list())] == [ID, ID]
    ledger.mutate(ID, lambda raw: raw.update(note=1))
    assert ledger.read_raw(ID)["task_id"] == "ffffffffffffffff"


@pytest.mark.case("R44")
def test_a_linked_task_folder_is_passed_over(ledger: Ledger, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "meta.json").write_bytes(text())
    (ledger.root / ID).symlink_to(outside)
    assert ledger.list() == []
    for ask in (ledger.read, ledger.request_cancel, ledger.read_raw):
        with pytest.raises(TaskNotFound):
            ask(ID)
    assert os.listdir(outside) == ["meta.json"]


@pytest.mark.case("R45")
@pytest.mark.parametrize("name", ["meta.json", "events.jsonl", "result.json", "lock", ".lock.lock"])
def test_task_links_are_not_followed(ledger: Ledger, task_id: str, tmp_path: Path, name: str):
    outside = tmp_path / "outside"
    outside.write_bytes(text())
    place = ledger.root / task_id / name
    place.unlink(missing_ok=True)
    place.symlink_to(outside)
    if name == "meta.json":
        entry = ledger.read(task_id)
        assert isinstance(entry, Unreadable)
        assert entry.reason == "refusing to follow a link"
        assert ledger.list()[0] == entry
    elif name == "events.jsonl":
        with pytest.raises(Exception, match="refusing to follow a link"):
            ledger.append_event(task_id, "log")
        with pytest.raises(TaskUnreadable, match="refusing to follow a link"):
            ledger.read_events(task_id)
    elif name == "result.json":
        with pytest.raises(TaskUnreadable, match="refusing to follow a link"):
            ledger.open_result(task_id)
    elif name == "lock":
        with pytest.raises(Exception, match="refusing to follow a link"):
            ledger.request_cancel(task_id)
    assert outside.read_bytes() == text()


@pytest.mark.case("R38")
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_what_is_no_file_does_not_hang_us(ledger: Ledger, kind: str, monkeypatch):
    folder = ledger.root / ID
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / "meta.json")
    elif kind == "folder":
        (folder / "meta.json").mkdir()
    else:
        monkeypatch.chdir(folder)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("meta.json")
    for entry in (ledger.read(ID), ledger.list()[0]):
        assert isinstance(entry, Unreadable)
        assert entry.reason == "not a regular file"


@pytest.mark.case("R37")
def test_a_huge_sparse_meta_is_not_read(ledger: Ledger):
    planted(ledger, b"")
    os.truncate(ledger.root / ID / "meta.json", 50 * 1024**3)
    entry = ledger.list()[0]
    assert isinstance(entry, Unreadable)
    assert entry.reason == "larger than 1 MiB"


@pytest.mark.case("R42")
@given(st.data())
def test_any_change_of_bytes_is_a_record_or_a_reason(data):
    raw = bytearray(text(args_summary={"url": "http://x.test/é"}, engine={"runner": "a" * 16}))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
        if not raw:
            break
    for read in (meta.decode_record, meta.decode_strict):
        try:
            answer: object = read(bytes(raw), ID)
        except Unusable as error:
            answer = str(error)
        assert answer


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(codec=None), min_size=1), JSON, max_size=6))
def test_unknown_fields_survive_a_rewrite_in_their_order(unknown):
    raw = {**unknown, "task_id": ID}
    again = meta.decode_task(meta.encoded(raw))
    # Two lone halves side by side are one character once written, as in any JSON.
    assert meta.encoded(again) == meta.encoded(meta.decode_task(meta.encoded(again)))
    assert [_joined(key) for key in raw] == list(again)
    assert _joined(raw) == again


def _joined(value):
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, list):
        return [_joined(item) for item in value]
    if isinstance(value, dict):
        return {_joined(key): _joined(item) for key, item in value.items()}
    return value
