"""The program's own log: one rotating file in the system's place for logs, without secrets."""

from __future__ import annotations

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

import platformdirs

from engine.display import display
from engine.places import private_folder

APP = "openchrome-monitor"
MAX_BYTES, KEPT = 2 * 1024 * 1024, 3
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def log_path() -> Path:
    """Where the log is, whether or not it could be opened."""
    return Path(platformdirs.user_log_dir(APP, appauthor=False)) / f"{APP}.log"


def clean(text: str) -> str:
    """`text` as it may be written down and shown: without secrets, line by line as it reads."""
    from engine import redact  # its patterns are compiled when first needed, not at each start

    return "\n".join(display(redact.text(line)) for line in text.split("\n"))


class _Clean(logging.Formatter):
    """Redacts, and keeps a record on its lines: what pages say must not forge log lines."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record)).replace("\n", "\n    ")


class _Private(RotatingFileHandler):
    """The log is for its owner's eyes: 0600 whatever the umask."""

    def _open(self) -> io.TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        # `_open` of the standard library returns the same; the file lives as long as we do.
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener)  # type: ignore[return-value]


def log_to_file(level: int = logging.INFO) -> None:
    """Send this process' log to the file; a place that cannot be written is done without."""
    root = logging.getLogger()
    if any(isinstance(handler, RotatingFileHandler) for handler in root.handlers):
        return
    path = log_path()
    handler: logging.Handler
    try:
        private_folder(path.parent)
        handler = _Private(path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8", delay=True)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_Clean(_FORMAT))
    root.addHandler(handler)
    root.setLevel(level)
    logging.raiseExceptions = False  # a full disk must not print tracebacks
