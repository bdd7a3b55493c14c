"""Preferences and window state, kept between two starts in files outside every ledger."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs
from PySide6.QtCore import QByteArray, QObject, QSettings, Signal

from engine.logging.logs import private_file, private_folder
from gui.style.theme import Theme

APP_FOLDER = "openchrome-monitor"


def config_file(name: str) -> Path:
    """Return a file in the user's configuration folder of this program."""
    return Path(platformdirs.user_config_dir(APP_FOLDER, appauthor=False), name)


class Memory:
    """Window state between two starts: geometry, layout and theme, in an ini file.

    A damaged or unwritable file counts as missing. Every read has a default of the right type.
    """

    def __init__(self, file: Path | None = None) -> None:
        place = file or config_file("window.ini")
        with suppress(OSError):  # Qt would leave its mode to the umask
            private_file(place)
        if not place.is_absolute():  # no home is known: keep the state in memory only
            place = Path(os.devnull, place.name)
        self._file = QSettings(str(place), QSettings.Format.IniFormat)

    @property
    def folder(self) -> Path:
        """The folder for other files between two starts."""
        return Path(self._file.fileName()).parent

    def shape(self, key: str) -> QByteArray:
        """Return a geometry, splitter or header state; empty if there is none."""
        value = self._value(f"shape/{key}")
        return value if isinstance(value, QByteArray) else QByteArray()

    def keep_shape(self, key: str, state: QByteArray) -> None:
        self._file.setValue(f"shape/{key}", state)

    def text(self, key: str, default: str = "") -> str:
        value = self._value(f"text/{key}")
        return value if isinstance(value, str) else default

    def keep_text(self, key: str, value: str) -> None:
        self._file.setValue(f"text/{key}", value)

    def flag(self, key: str, default: bool) -> bool:
        return self.text(f"flag-{key}", "yes" if default else "no") == "yes"

    def keep_flag(self, key: str, value: bool) -> None:
        self.keep_text(f"flag-{key}", "yes" if value else "no")

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of words, stored as one line."""
        return tuple(self.text(key).split())

    def keep_names(self, key: str, names: tuple[str, ...]) -> None:
        self.keep_text(key, " ".join(names))

    def sort_keys(self) -> tuple[tuple[str, bool], ...]:
        """Return the sort keys as (column, descending), the primary key first."""
        words = self.names("sort")
        return tuple((word.lstrip("-"), word.startswith("-")) for word in words)

    def keep_sort(self, keys: Sequence[tuple[str, bool]]) -> None:
        self.keep_names("sort", tuple(f"{'-' if down else ''}{key}" for key, down in keys))

    @property
    def theme(self) -> Theme:
        try:
            return Theme(self.text("theme"))
        except ValueError:
            return Theme.SYSTEM

    @theme.setter
    def theme(self, theme: Theme) -> None:
        self.keep_text("theme", theme.value)

    def save(self) -> None:
        """Write now; errors are ignored."""
        self._file.sync()

    def _value(self, key: str) -> Any:
        try:
            return self._file.value(key)
        except (EOFError, TypeError, ValueError):  # a type that PySide cannot read
            return None


# Every preference with its default; its control is in the settings dialog.

DEFAULTS: dict[str, object] = {
    "general.language": "system",  # system, en, de; read when a window is opened
    "appearance.theme": "system",  # system, light, dark
    "appearance.distinct": False,  # states without red and green
    "appearance.letters": 100,  # percent of the desktop's size
    "appearance.density": "normal",  # row height of the list: compact, normal, roomy
    "shortcuts.keys": {},  # action -> its keys, where changed
    "engine.slots": 0,  # concurrent tasks; 0: by the number of cores
    "engine.away_s": 60,  # seconds that a run waits for a missing folder
    "browser.path": "",  # the browser program; empty: search
    "proxy.address": "",  # the upstream proxy of all tasks; empty: none
    "proxy.username": "",
    "proxy.password": "",  # env:NAME, the variable that holds it
    "proxy.bypass": [],  # hosts that are connected to directly
    "cluster.address": "",  # the cluster of tasks that name none; empty: none
    "commands.allow_files": "",  # the folder whose files command tasks may upload; empty: none
    "programs.serve": False,  # MCP and HTTP for other programs of this machine
    # Fixed, so that the configuration of a host stays valid. Below the ports of outgoing
    # connections (from 32768), and not 8931, which MCP servers of browsers document.
    "programs.port": 8947,  # 0: any free one
    "programs.allow_private": [],  # host:port that their tasks may open
    "programs.allow_secrets": [],  # environment variables that their tasks may use
    "updates.check": False,  # one request a day for a newer version
    "retention.days": 30,  # delete tasks older than so many days …
    "retention.keep": 0,  # … but never the newest so many
    "retention.gigabytes": 0,  # … and the oldest above this total; 0: no limit
    "force.reasons": [],  # recent reasons of a force
    "start.presets": [],  # requests stored by name
    "start.recent": [],  # recently started requests, without secrets
    "start.draft": [],  # the last form that was closed without a start, without secrets
    "appearance.contrast": "system",  # system, more
    "desktop.tray": True,  # tray icon, if the desktop has a tray
    "desktop.close_to_tray": False,  # closing the window hides it in the tray
    "desktop.start_hidden": False,  # in the tray; without a tray minimised
    "desktop.quit_with_tasks": "ask",  # ask, keep (in the tray), finish, cancel
    "desktop.keep_awake": True,  # no system sleep while tasks run here
    "ledgers.beside": [],  # folders shown in addition to the window's own
    "export.format": "csv",  # last choice
    "export.folder": "",  # last choice; empty: the documents folder
    "notify.failed": "popup",  # popup, list, none
    "notify.attention": "popup",
    "notify.changed": "popup",
    "notify.completed": "list",
    "notify.cancelled": "none",
    "notify.while_active": False,  # pop-ups also while the window has the focus
    "notify.sound": False,
    "notify.quiet_from": "",  # HH:MM local time; start of the time without pop-ups
    "notify.quiet_until": "",  # its end
    "viewer.columns": {},  # column of the list of pages -> is shown, where changed
    "views.saved": [],  # filters stored by name
    "views.last": "",  # key of the last view
}


log = logging.getLogger(__name__)

VERSION = 1
MAX_BYTES = 1024 * 1024
LOCK_S = 0.5  # a save takes a few ms; after this wait it is done without the lock
_LOCK_STALE_MS = 10_000
_LOCK_LOOK_S = 0.005
_T = TypeVar("_T")


class Preferences(QObject):
    """Preferences by key in a versioned JSON file; `changed` carries the changed key.

    `restored` carries the prefix of `restore`, also where no value changed.

    Saved at once and atomically, with a backup that is read if the file is damaged; unknown keys
    are kept. Windows of several ledgers share the file: changes are merged by key, under a lock.
    Without a file the values live until the program ends.
    """

    changed = Signal(str)
    restored = Signal(str)

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file = file
        self._values: dict[str, Any] = _read(file) if file is not None else {}
        self._on_disk, self._stamp = dict(self._values), _stamp(file)

    def get(self, key: str, kind: type[_T]) -> _T:
        """Return the value of `key`; its default if it is unset or has another type."""
        value = self._values.get(key)
        # exact type: a bool is an int
        if not isinstance(value, kind) or type(value) is not kind:
            value = DEFAULTS[key]
        assert isinstance(value, kind), f"{key} is asked for as what it is no default of"
        return value

    def set(self, key: str, value: object) -> None:
        """Set and save a value (any JSON)."""
        self.refresh()
        if self._values.get(key, DEFAULTS[key]) == value:
            return
        self._values[key] = value
        self._save()
        self.changed.emit(key)

    def refresh(self) -> None:
        """Read changes of other windows; without a change it costs one stat."""
        for key in self._merge():
            self.changed.emit(key)

    def _merge(self) -> list[str]:
        """Read the file if it has changed, and return the keys whose values changed.

        Local changes that are not yet written win.
        """
        stamp, known = _stamp(self._file), self._on_disk
        if self._file is None or stamp in (None, self._stamp):
            return []
        found = _read_one(self._file)
        if found is None:
            return []  # damaged: keep the values in memory
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
        """Reset every key with this prefix, except those with a prefix in `besides`."""
        for key in [key for key in self._values if key.startswith(prefix) and key in DEFAULTS]:
            if not key.startswith(besides):
                self.set(key, DEFAULTS[key])
                self._values.pop(key, None)
        self._save()
        self.restored.emit(prefix)

    def as_text(self) -> str:
        """Encode all preferences for another machine."""
        import json  # neither this nor QSaveFile is needed for a first paint

        return json.dumps({"version": VERSION, "values": self._values}, indent=2, sort_keys=True)

    def take_text(self, text: str) -> None:
        """Import the text of `as_text`.

        Raises:
            ValueError: invalid text; nothing was changed.
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
        for key in others:  # after the save: a handler may save as well
            self.changed.emit(key)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock `file` against other windows, with a short wait."""
    from PySide6.QtCore import QLockFile  # the first paint saves nothing

    place = file.with_name(f"{file.name}.lock")
    lock = QLockFile(str(place))
    lock.setStaleLockTime(_LOCK_STALE_MS)  # also releases the lock of a dead window on another host
    end = time.monotonic() + LOCK_S
    while not (held := lock.tryLock(0)) and lock.error() == QLockFile.LockError.LockFailedError:
        if time.monotonic() > end:
            log.warning("%s is saved without its lock, which another program holds", file)
            break
        time.sleep(_LOCK_LOOK_S)  # QLockFile has no signal
    if held:
        with suppress(OSError):  # Qt leaves its mode to the umask
            place.chmod(0o600)
    try:
        yield
    finally:
        if held:
            lock.unlock()


def write_whole(file: Path, content: bytes) -> None:
    """Write a private file atomically. Raises OSError."""
    from PySide6.QtCore import QSaveFile

    private_file(file)
    saved = QSaveFile(str(file))
    if saved.open(QSaveFile.OpenModeFlag.WriteOnly):
        saved.write(content)
        if saved.commit():
            return
    raise OSError(saved.errorString())


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the keys whose values differ, or that are in one dict only."""
    return [key for key in {**one, **other} if one.get(key) != other.get(key)]


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """Return inode, time and size of a file, which change with it; None without a file."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _read(file: Path) -> dict[str, Any]:
    places = (file, file.with_suffix(".json.bak"))
    return next((found for found in map(_read_one, places) if found is not None), {})


def _read_one(place: Path) -> dict[str, Any] | None:
    """Return the values of this file; None if it is missing or invalid."""
    try:
        if place.stat().st_size <= MAX_BYTES:
            return _values_in(place.read_text("utf-8"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError, RecursionError):
        log.warning("the preferences in %s cannot be read", place, exc_info=True)
    return None


def _parsed(text: str) -> Any:
    """Parse JSON; `json` is imported only for texts that msgspec rejects."""
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
