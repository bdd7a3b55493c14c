"""What a person chose for good: a versioned JSON file outside of every ledger, with a backup.

Written whole or not at all. A damaged file is set aside and the backup read; without one
the defaults hold. Values of keys that this version does not know survive.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs
from PySide6.QtCore import QObject, Signal

from engine.logging.private_files import private_file, private_folder
from gui.state.window_state import APP_FOLDER

# Every preference with its default: a new one is one line here, its control is the settings'.

DEFAULTS: dict[str, object] = {
    "general.language": "system",  # system, en, de; when a window is opened
    "appearance.theme": "system",  # system, light, dark
    "appearance.distinct": False,  # states without red and green
    "appearance.letters": 100,  # percent of the desktop's size
    "appearance.density": "normal",  # compact, normal, roomy: the rows of the list
    "shortcuts.keys": {},  # action -> its keys, where they are not the usual ones
    "engine.slots": 0,  # tasks at once; 0 is as many as suit this machine
    "engine.away_s": 60,  # so long a run waits for a folder that is away
    "browser.path": "",  # the program; empty: look for one
    "commands.allow_files": "",  # the folder whose files command tasks may upload; empty: none
    "retention.days": 30,  # what is offered to be cleared away: older than so many days …
    "retention.keep": 0,  # … but never the newest so many
    "retention.gigabytes": 0,  # … and what is over so many; 0 is no limit
    "force.reasons": [],  # the last reasons of a force, as they were kept
    "start.presets": [],  # requests kept by name
    "start.recent": [],  # the last that were started, without secrets
    "appearance.contrast": "system",  # system, more
    "desktop.tray": True,  # a sign in the tray, where the desktop has one
    "desktop.close_to_tray": False,  # closing the window hides it there
    "desktop.start_hidden": False,  # in the tray, without one minimised
    "desktop.quit_with_tasks": "ask",  # ask, keep (in the tray), cancel
    "desktop.keep_awake": True,  # the machine does not sleep while tasks run here
    "ledgers.beside": [],  # folders that are shown beside the window's own
    "export.format": "csv",  # the last one that was chosen
    "export.folder": "",  # the last one; empty: the documents
    "notify.failed": "popup",  # popup, list, none
    "notify.attention": "popup",
    "notify.completed": "list",
    "notify.cancelled": "none",
    "notify.while_active": False,  # pop-ups also while the window has the focus
    "notify.sound": False,
    "notify.quiet_from": "",  # HH:MM of local time; no pop-ups from then on …
    "notify.quiet_until": "",  # … until then
    "views.saved": [],  # what the list was narrowed to, by name
    "views.last": "",  # the key of the view that was chosen last
}


log = logging.getLogger(__name__)

VERSION = 1
MAX_BYTES = 1024 * 1024
LOCK_S = 0.5  # a save takes a few ms; without the lock it is better done than left undone
_LOCK_STALE_MS = 10_000
_LOCK_LOOK_S = 0.005
_T = TypeVar("_T")


def default_file() -> Path:
    return Path(platformdirs.user_config_dir(APP_FOLDER, appauthor=False)) / "preferences.json"


class Preferences(QObject):
    """Values by key; `changed` tells which key has another value. Kept at once.

    Windows of several ledgers share the file: what they change is merged by key, under a lock.
    Without a file they hold until the program ends.
    """

    changed = Signal(str)

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file = file
        self._values: dict[str, Any] = _read(file) if file is not None else {}
        self._on_disk, self._stamp = dict(self._values), _stamp(file)

    def get(self, key: str, kind: type[_T]) -> _T:
        """The value of `key`; its default where none was chosen or it is of another type."""
        value = self._values.get(key)
        # exactly this type: a bool is an int, and no number
        if not isinstance(value, kind) or type(value) is not kind:
            value = DEFAULTS[key]
        assert isinstance(value, kind), f"{key} is asked for as what it is no default of"
        return value

    def set(self, key: str, value: object) -> None:
        """Choose `value` (anything JSON has), for now and for good."""
        self.refresh()
        if self._values.get(key, DEFAULTS[key]) == value:
            return
        self._values[key] = value
        self._save()
        self.changed.emit(key)

    def refresh(self) -> None:
        """Take over what another window has chosen meanwhile; else it costs a look at the file."""
        for key in self._merge():
            self.changed.emit(key)

    def _merge(self) -> list[str]:
        """Read the file again if it is another one; the keys whose values are another's now.

        What was changed here and is not written yet wins.
        """
        stamp, known = _stamp(self._file), self._on_disk
        if self._file is None or stamp in (None, self._stamp):
            return []
        found = _read_one(self._file)
        if found is None:
            return []  # damaged: what is known here is better than nothing
        own = _differing(known, self._values)
        keys = [key for key in _differing(known, found) if key not in own]
        for key in keys:
            if key in found:
                self._values[key] = found[key]
            else:
                self._values.pop(key, None)
        self._on_disk, self._stamp = found, stamp
        return keys

    def restore(self, prefix: str, besides: tuple[str, ...] = ()) -> None:
        """The defaults again, for every key that begins so and with none of `besides`."""
        for key in [key for key in self._values if key.startswith(prefix) and key in DEFAULTS]:
            if not key.startswith(besides):
                self.set(key, DEFAULTS[key])
                self._values.pop(key, None)
        self._save()

    def as_text(self) -> str:
        """All that was chosen, to be taken to another machine."""
        import json  # neither this nor QSaveFile is needed for a first paint

        return json.dumps({"version": VERSION, "values": self._values}, indent=2, sort_keys=True)

    def take_text(self, text: str) -> None:
        """Choose what `as_text` told elsewhere.

        Raises:
            ValueError: it is no such text; nothing was changed.
        """
        for key, value in _values_in(text).items():
            if key in DEFAULTS:
                self.set(key, value)

    def _save(self) -> None:
        if self._file is None:
            return
        others: list[str] = []
        try:
            private_folder(self._file.parent)
            with locked(self._file):
                others = self._merge()
                if self._file.exists():
                    write_whole(self._file.with_suffix(".json.bak"), self._file.read_bytes())
                write_whole(self._file, self.as_text().encode())
                self._on_disk, self._stamp = dict(self._values), _stamp(self._file)
        except OSError:
            log.warning("the preferences cannot be kept", exc_info=True)
        for key in others:  # not before: whoever hears of it may save as well
            self.changed.emit(key)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other windows from changing `file` meanwhile; none of them is waited for long."""
    from PySide6.QtCore import QLockFile  # the first paint saves nothing

    place = file.with_name(f"{file.name}.lock")
    lock = QLockFile(str(place))
    lock.setStaleLockTime(_LOCK_STALE_MS)  # also one that a dead window left on another host
    end = time.monotonic() + LOCK_S
    while not (held := lock.tryLock(0)) and lock.error() == QLockFile.LockError.LockFailedError:
        if time.monotonic() > end:
            log.warning("%s is saved without its lock, which another program holds", file)
            break
        time.sleep(_LOCK_LOOK_S)
    if held:
        with suppress(OSError):  # Qt leaves its mode to the umask
            place.chmod(0o600)
    try:
        yield
    finally:
        if held:
            lock.unlock()


def write_whole(file: Path, content: bytes) -> None:
    """Write a file of the window's own, whole or not at all, private. Raises OSError."""
    from PySide6.QtCore import QSaveFile

    private_file(file)
    saved = QSaveFile(str(file))
    if saved.open(QSaveFile.OpenModeFlag.WriteOnly):
        saved.write(content)
        if saved.commit():
            return
    raise OSError(saved.errorString())


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The keys that have another value in `other`, or stand in one of them only."""
    return [key for key in {**one, **other} if one.get(key) != other.get(key)]


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """What a file that was written again has another one of; None where there is none."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _read(file: Path) -> dict[str, Any]:
    places = (file, file.with_suffix(".json.bak"))
    return next((found for found in map(_read_one, places) if found is not None), {})


def _read_one(place: Path) -> dict[str, Any] | None:
    """The values in this file; None where it is not there, or no preferences."""
    try:
        if place.stat().st_size <= MAX_BYTES:
            return _values_in(place.read_text("utf-8"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError, RecursionError):
        log.warning("the preferences in %s cannot be read", place, exc_info=True)
    return None


def _parsed(text: str) -> Any:
    """The JSON in `text`; `json` is asked, and imported, only where the faster one refuses."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):  # a lone surrogate, as in some file names
        import json

        return json.loads(text)


def _values_in(text: str) -> dict[str, Any]:
    found = _parsed(text)
    values = found.get("values") if isinstance(found, dict) else None
    if not isinstance(values, dict):
        raise ValueError("no preferences in there")
    return values
