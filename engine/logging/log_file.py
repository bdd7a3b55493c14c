"""Log file: rotating, private, and optional where it cannot be written."""

from __future__ import annotations

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine.logging.private_files import private_folder

MAX_BYTES, KEPT = 2 * 1024 * 1024, 3


def open_handler(path: Path) -> logging.Handler:
    """Open the handler for the file at `path`; a null handler where its folder cannot be
    created."""
    try:
        private_folder(path.parent)
        return _Private(path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8", delay=True)
    except OSError:
        return logging.NullHandler()


class _Private(RotatingFileHandler):
    """Rotating log for its owner only: 0600 whatever the umask."""

    def _open(self) -> io.TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        # The library's `_open` returns the same type; the file lives as long as the handler.
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener)  # type: ignore[return-value]
