"""meta.json as bytes, as a whole dict and as a record.

Two decoders. For a list, `glance` decodes straight into the record, fast and lenient: a field of an
unusable shape reads as its default and is named in `odd`. Before a rewrite, or for one task,
`opened` returns the whole dict and is strict, because two programs may read invalid data
differently, so it must not be written back.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from gc import is_tracked
from sys import intern
from typing import Any, Final

import msgspec

from engine.ledger.files import MIB, Unusable
from engine.ledger.json_depth import MAX_DEPTH, is_deep, is_deep_text, may_be_deep
from engine.model.records import TERMINAL, EngineFields, ErrorInfo, TaskRecord, Units

META_CAP: Final = MIB
MAX_DIGITS: Final = 400
MAX_EXACT: Final = 2**53  # beyond it JavaScript, which shares the file, loses digits

glimpse: Final = msgspec.json.Decoder(TaskRecord).decode  # raises one of REFUSED
_put: Final = msgspec.structs.force_setattr
REFUSED: Final = (msgspec.MsgspecError, RecursionError, ValueError)
# Fields that may hold any value, in the record and in our own part of it.
_FREE: Final = ("args_summary", "owner", "policy", "counters")
_FREE_OURS: Final = ("args", "metadata")
LARGE: Final = 32 * 1024  # bytes of a file above which a list keeps only a part of the record
RERUN_LARGE: Final = 320 * 1024  # our own tasks keep up to 256 KiB, for a re-run
_LONG_TEXT, _MANY = 4_096, 20
_TEXTS: Final = ("kind", "status", "objective", "phase", "result_path", "recommended_next")
_MOST_SEEN: Final = 4096
_seen: dict[Any, Any] = {}  # values of a few types, none of which equals one of another
_one_of: Final = _seen.setdefault  # returns one shared object for equal values
_SURROGATE = re.compile("[\ud800-\udfff]")
_fields: Final = functools.cache(msgspec.structs.fields)
_NESTED: Final[dict[str, type[msgspec.Struct]]] = {
    "engine": EngineFields,
    "error": ErrorInfo,
    "units": Units,
}


def shared(record: TaskRecord, task_id: str) -> TaskRecord:
    """Intern values that many records have in common, to save memory.

    `task_id` is its id as the caller has it already. Each record belongs to its reader alone, so no
    other code sees it change.
    """
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    _put(record, "task_id", task_id)
    _put(record, "kind", intern(record.kind))
    _put(record, "status", intern(record.status))
    if type(pid := record.pid) is int:
        _put(record, "pid", _one_of(pid, pid))
    ours = record.engine
    if ours is not None:
        if ours.args is None and ours.metadata is None:
            _put(record, "engine", _one_of(ours, ours))
        else:
            _lighten(ours)
    return record


def lighter(record: TaskRecord, task_id: str) -> TaskRecord:
    """Do as `shared`, and drop fields that a list does not need: half a kilobyte less per task.

    The nonce of its id is dropped and, once the task has ended, the process that ran it: a list
    does not check whether that one lives.
    """
    if record.task_nonce is not None:
        _put(record, "task_nonce", None)
    ours = record.engine
    if ours is not None and record.status in TERMINAL:
        if ours.runner is not None:
            _put(ours, "runner", None)
        if ours.owner_started_at is not None:
            _put(ours, "owner_started_at", None)
        if ours.pid_space is not None:
            _put(ours, "pid_space", None)
    return shared(record, task_id)


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
        found["engine"] = msgspec.structs.replace(ours, args=args, metadata=metadata)
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


def _lighten(ours: EngineFields) -> None:
    """Intern the shareable values of the engine part."""
    for name in ("host", "boot_id", "units"):
        if (value := getattr(ours, name)) is not None:
            _put(ours, name, _one_of(value, value))


def is_flat(record: TaskRecord) -> bool:
    """Return whether no value is nested, so that brackets need not be counted, which is slow.

    A dict that holds a container is tracked by the garbage collector, or cycles would be lost.
    """
    if is_tracked(record.args_summary) or record.owner or record.policy or record.counters:
        return False
    ours = record.engine
    return ours is None or not (ours.args or ours.metadata)


def glance(data: bytes, task_id: str) -> TaskRecord:
    """Decode the record in `data` for a list, fast and lenient. Raises Unusable."""
    try:
        record = glimpse(data)
    except REFUSED:
        return as_record(_parse(data, strict=False), task_id)
    if not is_flat(record) and may_be_deep(data):
        record = _levelled(record)
    # The folder's name is the id, whatever the file contains.
    return record if record.task_id == task_id else msgspec.structs.replace(record, task_id=task_id)


def _levelled(record: TaskRecord) -> TaskRecord:
    """Remove values from `record` that are nested too deeply to show, and name them in `odd`."""
    deep = [name for name in _FREE if is_deep(getattr(record, name), MAX_DEPTH - 1)]
    found: dict[str, Any] = {name: {} if name == "args_summary" else None for name in deep}
    engine = record.engine
    if engine is not None:
        inner = [name for name in _FREE_OURS if is_deep(getattr(engine, name), MAX_DEPTH - 2)]
        found["engine"] = msgspec.structs.replace(engine, **dict.fromkeys(inner))
        deep += [f"engine.{name}" for name in inner]
    return msgspec.structs.replace(record, **found, odd=(*record.odd, *deep)) if deep else record


def opened(data: bytes) -> dict[str, Any]:
    """Decode the whole of `data`, strictly: for one task or a rewrite. Raises Unusable."""
    raw = whole(data)
    if not isinstance(raw.get("task_id"), str):
        raise Unusable("it has no task_id")
    return raw


def whole(data: bytes) -> dict[str, Any]:
    """Decode the JSON object in `data`, as strictly, for any record. Raises Unusable."""
    raw = _parse(data, strict=True)
    _check_exact(raw)
    return raw


def forgiving(data: bytes) -> dict[str, Any]:
    """Decode the JSON object in `data`; of a duplicate key the last. Raises Unusable."""
    return _parse(data, strict=False)


def strict(data: bytes, task_id: str) -> TaskRecord:
    """Decode the record in `data` for one task, as strictly as a rewrite. Raises Unusable."""
    opened(data)
    return glance(data, task_id)


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
                kept[field.name] = msgspec.convert(shown(value), field.type)
        except (msgspec.ValidationError, TypeError, RecursionError):
            odd.append(name)
    return kept


def shown(value: Any) -> Any:
    """Replace lone surrogates in `value`, which UTF-8 output cannot represent."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {shown(key): shown(item) for key, item in value.items()}
    return value


def _parse(data: bytes, *, strict: bool) -> dict[str, Any]:
    if is_deep_text(data):
        raise Unusable(f"nested deeper than {MAX_DEPTH} levels")
    try:
        text = data.decode("utf-8")
        raw = json.loads(
            text,
            object_pairs_hook=_without_doubles if strict else None,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
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
    cut = error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip())
    return "meta.json is cut short" if cut else "not valid JSON"


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        name, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Unusable(f"the key '{shown(name)[:40]}' is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise Unusable("not valid JSON")  # NaN and Infinity are Python's, not JSON's


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Unusable("not valid JSON")
    return number


def _whole(text: str) -> int:
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
