"""The log's file: rotating, private, and done without where it cannot be written."""

from __future__ import annotations

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine.logging.private_files import private_folder

MAX_BYTES, KEPT = 2 * 1024 * 1024, 3


def opened(path: Path) -> logging.Handler:
    """What writes into the file at `path`; into nothing where its folder cannot be made."""
    try:
        private_folder(path.parent)
        return _Private(path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8", delay=True)
    except OSError:
        return logging.NullHandler()


class _Private(RotatingFileHandler):
    """The log is for its owner's eyes: 0600 whatever the umask."""

    def _open(self) -> io.TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        # `_open` of the standard library returns the same; the file lives as long as we do.
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener)  # type: ignore[return-value]
