"""meta.json as bytes, as a whole dict and as a record.

Two decoders. For a list, `decode_record` decodes straight into the record, fast and lenient: a
field of an unusable shape reads as its default and is named in `odd`. Before a rewrite, or for one
task, `decode_task` returns the whole dict and is strict, because two programs may read invalid data
differently, so it must not be written back.

Another tool may rewrite the file in place: truncated, absent, and whole again. `read_stable`
repeats a read for as long as that may be the case.
"""

from __future__ import annotations

import functools
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable
from gc import is_tracked
from sys import intern
from typing import Any, Final, TypeVar

import msgspec

from engine.ledger.files import MIB, Folder, Unusable
from engine.ledger.json_stream import MAX_DEPTH, is_deep, is_deep_text, may_be_deep
from engine.model.records import META_NAME, TERMINAL, EngineFields, ErrorInfo, TaskRecord, Units

META_CAP: Final = MIB
MAX_DIGITS: Final = 400
MAX_EXACT: Final = 2**53  # beyond it JavaScript, which shares the file, loses digits
PAUSE_S: Final = 0.012  # longer than a rewrite takes
TRIES: Final = 40
QUIET: Final = 10  # pauses without a change, after which no writer is assumed
FRESH_NS: Final = 10 * 10**9
T = TypeVar("T")
Mark = tuple[int, int, int]  # changes with each rewrite; the second is a time (ns)

decode_fast: Final = msgspec.json.Decoder(TaskRecord).decode  # raises one of REFUSED
_set_field: Final = msgspec.structs.force_setattr
REFUSED: Final = (msgspec.MsgspecError, RecursionError, ValueError)
# Fields that may hold any value, in the record and in our own part of it.
_FREE: Final = ("args_summary", "owner", "policy", "counters")
_FREE_OURS: Final = ("args", "metadata")
LARGE: Final = 32 * 1024  # bytes of a file above which a list keeps only a part of the record
RERUN_LARGE: Final = 320 * 1024  # our own tasks keep up to 256 KiB, for a re-run
_LONG_TEXT, _MANY = 4_096, 20
_TEXTS: Final = ("kind", "status", "objective", "phase", "result_path", "recommended_next")
_MOST_INTERNED: Final = 4096
_interned_values: dict[Any, Any] = {}  # values of a few types, none of which equals one of another
_intern_value: Final = _interned_values.setdefault  # returns one shared object for equal values
_SURROGATE = re.compile("[\ud800-\udfff]")
_fields: Final = functools.cache(msgspec.structs.fields)
_NESTED: Final[dict[str, type[msgspec.Struct]]] = {
    "engine": EngineFields,
    "error": ErrorInfo,
    "units": Units,
}


def interned(record: TaskRecord, task_id: str) -> TaskRecord:
    """Intern values that many records have in common, to save memory.

    `task_id` is its id as the caller has it already. Each record belongs to its reader alone, so no
    other code sees it change.
    """
    if len(_interned_values) >= _MOST_INTERNED:
        _interned_values.clear()
    _set_field(record, "task_id", task_id)
    _set_field(record, "kind", intern(record.kind))
    _set_field(record, "status", intern(record.status))
    if type(pid := record.pid) is int:
        _set_field(record, "pid", _intern_value(pid, pid))
    ours = record.engine
    if ours is not None:
        if ours.client is not None:
            _set_field(ours, "client", intern(ours.client))
        if ours.route is not None:
            _set_field(ours, "route", intern(ours.route))
        if ours.args is None and ours.metadata is None:
            _set_field(record, "engine", _intern_value(ours, ours))
        else:
            _intern_fields(ours)
    return record


def compact(record: TaskRecord, task_id: str) -> TaskRecord:
    """Do as `interned`, and drop fields that a list does not need: half a kilobyte less per task.

    The nonce of its id is dropped and, once the task has ended, the process that ran it: a list
    does not check whether that one lives.
    """
    if record.task_nonce is not None:
        _set_field(record, "task_nonce", None)
    ours = record.engine
    if ours is not None and record.status in TERMINAL:
        if ours.runner is not None:
            _set_field(ours, "runner", None)
        if ours.owner_started_at is not None:
            _set_field(ours, "owner_started_at", None)
        if ours.pid_space is not None:
            _set_field(ours, "pid_space", None)
    return interned(record, task_id)


def bounded(record: TaskRecord, size: int) -> TaskRecord:
    """Reduce the record of a file of `size` bytes for a list: of a large one, to its short values.

    The rest is read when the task itself is opened.
    """
    if size <= LARGE:
        return record
    found: dict[str, Any] = {
        name: value[:_LONG_TEXT]
        for name in _TEXTS
        if isinstance(value := getattr(record, name), str) and len(value) > _LONG_TEXT
    }
    found |= {name: _short_items(value) for name in _FREE[1:] if (value := getattr(record, name))}
    short = _short_items(record.args_summary)
    if len(short) < len(record.args_summary):
        found["args_summary"] = {**short, "_truncated": True, "_bytes": size}
    if record.error is not None:
        message, code = record.error.message[:_LONG_TEXT], (record.error.code or "")[:_LONG_TEXT]
        found["error"] = msgspec.structs.replace(record.error, message=message, code=code or None)
    if record.budget_exceeded:
        found["budget_exceeded"] = [one[:_LONG_TEXT] for one in record.budget_exceeded[:_MANY]]
    if (ours := record.engine) is not None:
        args = ours.args if size <= RERUN_LARGE else None
        metadata = ours.metadata if _weight(ours.metadata) <= _LONG_TEXT else None
        texts = {
            name: value[:_LONG_TEXT]
            for name in ("client", "route")
            if (value := getattr(ours, name)) is not None
        }
        found["engine"] = msgspec.structs.replace(ours, args=args, metadata=metadata, **texts)
    return msgspec.structs.replace(record, **found)


def _short_items(values: dict[str, Any]) -> dict[str, Any]:
    """Return the short items, up to a common limit."""
    found: dict[str, Any] = {}
    left = _LONG_TEXT
    for name, value in values.items():
        weight = len(name) + _weight(value)
        if weight <= left:
            found[name] = value
            left -= weight
    return found


def _weight(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, RecursionError, UnicodeError, TypeError, ValueError):
        return META_CAP


def _intern_fields(ours: EngineFields) -> None:
    """Intern the shareable values of the engine part."""
    for name in ("host", "boot_id", "units"):
        if (value := getattr(ours, name)) is not None:
            _set_field(ours, name, _intern_value(value, value))


def is_flat(record: TaskRecord) -> bool:
    """Return whether no value is nested, so that brackets need not be counted, which is slow.

    A dict that holds a container is tracked by the garbage collector, or cycles would be lost.
    """
    if is_tracked(record.args_summary) or record.owner or record.policy or record.counters:
        return False
    ours = record.engine
    return ours is None or not (ours.args or ours.metadata)


def decode_record(data: bytes, task_id: str) -> TaskRecord:
    """Decode the record in `data` for a list, fast and lenient. Raises Unusable."""
    try:
        record = decode_fast(data)
    except REFUSED:
        return as_record(_parse(data, strict=False), task_id)
    if not is_flat(record) and may_be_deep(data):
        record = _without_deep_values(record)
    # The folder's name is the id, whatever the file contains.
    return record if record.task_id == task_id else msgspec.structs.replace(record, task_id=task_id)


def _without_deep_values(record: TaskRecord) -> TaskRecord:
    """Remove values from `record` that are nested too deeply to show, and name them in `odd`."""
    deep = [name for name in _FREE if is_deep(getattr(record, name), MAX_DEPTH - 1)]
    found: dict[str, Any] = {name: {} if name == "args_summary" else None for name in deep}
    engine = record.engine
    if engine is not None:
        inner = [name for name in _FREE_OURS if is_deep(getattr(engine, name), MAX_DEPTH - 2)]
        found["engine"] = msgspec.structs.replace(engine, **dict.fromkeys(inner))
        deep += [f"engine.{name}" for name in inner]
    return msgspec.structs.replace(record, **found, odd=(*record.odd, *deep)) if deep else record


def decode_task(data: bytes) -> dict[str, Any]:
    """Decode the whole of `data`, strictly: for one task or a rewrite. Raises Unusable."""
    raw = decode_object(data)
    if not isinstance(raw.get("task_id"), str):
        raise Unusable("it has no task_id")
    return raw


def decode_object(data: bytes) -> dict[str, Any]:
    """Decode the JSON object in `data`, as strictly, for any record. Raises Unusable."""
    raw = _parse(data, strict=True)
    _check_exact(raw)
    return raw


def decode_lenient(data: bytes) -> dict[str, Any]:
    """Decode the JSON object in `data`; of a duplicate key the last. Raises Unusable."""
    return _parse(data, strict=False)


def decode_strict(data: bytes, task_id: str) -> TaskRecord:
    """Decode the record in `data` for one task, as strictly as a rewrite. Raises Unusable."""
    decode_task(data)
    return decode_record(data, task_id)


def encoded(raw: dict[str, Any]) -> bytes:
    """Encode as OpenChrome does: 2 spaces, raw UTF-8, no last newline.

    A lone surrogate (OpenChrome cuts texts in the middle of a pair) is kept as its escape.
    """
    text = json.dumps(raw, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def as_record(raw: dict[str, Any], task_id: str) -> TaskRecord:
    """Convert `raw` to a record; fields of an unusable shape are named in `odd`."""
    if not isinstance(raw.get("task_id"), str):
        raise Unusable("it has no task_id")
    odd: list[str] = []
    fields = _coerced({**raw, "odd": ()}, TaskRecord, odd, "")
    fields["task_id"] = task_id
    fields["odd"] = tuple(odd)
    return TaskRecord(**fields)


def _coerced(
    raw: dict[str, Any], into: type[msgspec.Struct], odd: list[str], path: str
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for field in _fields(into):
        value = raw.get(field.encode_name)
        if value is None:
            continue
        name = path + field.name
        nested = _NESTED.get(field.name)
        try:
            if nested is not None and isinstance(value, dict):
                kept[field.name] = nested(**_coerced(value, nested, odd, f"{name}."))
            else:
                kept[field.name] = msgspec.convert(without_surrogates(value), field.type)
        except (msgspec.ValidationError, TypeError, RecursionError):
            odd.append(name)
    return kept


def without_surrogates(value: Any) -> Any:
    """Replace lone surrogates in `value`, which UTF-8 output cannot represent."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def _parse(data: bytes, *, strict: bool) -> dict[str, Any]:
    if is_deep_text(data):
        raise Unusable(f"nested deeper than {MAX_DEPTH} levels")
    try:
        text = data.decode("utf-8")
        raw = json.loads(
            text,
            object_pairs_hook=_unique_keys if strict else None,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except UnicodeDecodeError as error:
        raise Unusable("not valid UTF-8") from error
    except json.JSONDecodeError as error:
        raise Unusable(_broken(error, data)) from error
    if not isinstance(raw, dict):
        raise Unusable("not a JSON object")
    return raw


def _broken(error: json.JSONDecodeError, data: bytes) -> str:
    if not data.strip(b" \t\r\n\0"):
        return "meta.json is empty"
    if data.startswith(b"\xef\xbb\xbf"):
        return "it starts with a byte order mark"
    line, column = error.lineno, error.colno
    cut = error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip())
    if cut:
        return f"meta.json is cut short (line {line}, column {column})"
    return f"not valid JSON (line {line}, column {column})"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        name, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Unusable(f"the key '{without_surrogates(name)[:40]}' is there twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise Unusable("not valid JSON")  # NaN and Infinity are Python's, not JSON's


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Unusable("not valid JSON")
    return number


def _parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise Unusable(f"it holds a number of {len(text)} digits")
    return int(text)


def _check_exact(raw: dict[str, Any]) -> None:
    # A pid that cannot be one is a known fault: its task must stay reapable.
    left: list[Any] = [value for key, value in raw.items() if key != "pid"]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, int) and abs(value) > MAX_EXACT:
            raise Unusable("it holds a number beyond 2^53")


def read_stable(
    marks: Callable[[], list[Mark]], read: Callable[[], T], is_whole: Callable[[T], bool]
) -> T:
    """Repeat `read` for half a second while its result is not whole and `marks` change.

    A file that was not changed lately is not retried.
    """
    before, found = marks(), read()
    quiet = 0
    for _ in range(TRIES):
        if is_whole(found) or quiet == QUIET or not any(map(_is_fresh, before)):
            break
        time.sleep(PAUSE_S)  # the writer that rewrites in place sends no notice
        after = marks()
        quiet = quiet + 1 if after == before else 0
        before, found = after, read()
    return found


def _is_fresh(mark: Mark) -> bool:
    return abs(time.time_ns() - mark[1]) < FRESH_NS


def read_meta(folder: Folder) -> tuple[bytes, dict[str, Any]]:
    """Read the meta.json in `folder`: its bytes and the whole dict, strictly.

    Raises Unusable, FileNotFoundError, OSError.
    """

    def read() -> tuple[bytes, dict[str, Any]] | Exception:
        try:
            data = folder.read(META_NAME, META_CAP)
            return data, decode_task(data)
        except (Unusable, FileNotFoundError) as error:
            return error

    found = read_stable(lambda: mark_of(folder), read, lambda one: not isinstance(one, Exception))
    if isinstance(found, Exception):
        raise found
    return found


def mark_of(folder: Folder) -> list[Mark]:
    """Mark of the meta.json in `folder`; of the folder itself while it is absent."""
    try:
        facts = folder.facts(META_NAME)
    except OSError:
        facts = folder.facts(".")
    return [(facts.st_ino, facts.st_mtime_ns, facts.st_size)]
