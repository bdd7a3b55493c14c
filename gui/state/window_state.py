"""Window state: geometry, layout and theme.

A user's ini file outside the ledger. A damaged or unwritable file counts as missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs
from PySide6.QtCore import QByteArray, QSettings

from engine.logging.logs import private_file
from gui.style.theme import Theme

APP_FOLDER = "openchrome-monitor"


def default_file() -> Path:
    """Return the ini file in the user's configuration folder."""
    return Path(platformdirs.user_config_dir(APP_FOLDER, appauthor=False)) / "window.ini"


class Memory:
    """Window state between two starts. Every read has a default of the right type."""

    def __init__(self, file: Path | None = None) -> None:
        place = file or default_file()
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
