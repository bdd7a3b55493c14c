"""The program's own log: one rotating file in the system's place for logs, without secrets."""

from __future__ import annotations

import logging
from pathlib import Path

import platformdirs

from engine.model.display import display

APP = "openchrome-monitor"
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def log_path() -> Path:
    """Where the log is, whether or not it could be opened."""
    return Path(platformdirs.user_log_dir(APP, appauthor=False)) / f"{APP}.log"


def clean(text: str) -> str:
    """`text` as it may be written down and shown: without secrets, line by line as it reads."""
    from engine.model import (
        redact,  # its patterns are compiled when first needed, not at each start
    )

    return "\n".join(display(redact.text(line)) for line in text.split("\n"))


class _Clean(logging.Formatter):
    """Redacts, and keeps a record on its lines: what pages say must not forge log lines."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record)).replace("\n", "\n    ")


class _Late(logging.Handler):
    """Opens the file for the first line: most starts have none, and rotating takes 10 ms of one."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            from engine.logging.log_file import opened

            self._file = opened(self._path)
            self._file.setFormatter(self.formatter)
        self._file.emit(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def log_to_file(level: int = logging.INFO) -> None:
    """Send this process' log to the file; a place that cannot be written is done without."""
    root = logging.getLogger()
    if any(isinstance(handler, _Late) for handler in root.handlers):
        return
    handler = _Late(log_path())
    handler.setFormatter(_Clean(_FORMAT))
    root.addHandler(handler)
    root.setLevel(level)
    logging.raiseExceptions = False  # a full disk must not print tracebacks
