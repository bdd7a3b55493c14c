"""Log of the program without secrets, and its other private files outside of every ledger.

The log is one rotating file in the system's log folder. Private files are created 0700 and 0600
whatever the umask. No ledger or export uses this module.
"""

from __future__ import annotations

import errno
import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine.model.display import display


def private_folder(folder: Path) -> Path:
    """Create `folder` and its missing parents, each for its owner alone.

    Raises:
        OSError: it cannot be created; also where no home folder is known.
    """
    if not folder.is_absolute():
        raise OSError(errno.ENOENT, "no home folder is known", str(folder))
    for place in (*reversed(folder.parents), folder):
        try:
            os.mkdir(place, 0o700)  # mkdir(parents=True) would leave the parents to the umask
        except OSError:
            if not place.is_dir():
                raise
    return folder


def private_file(file: Path) -> None:
    """Create `file`, empty, unless it exists, and close it to others. Raises OSError."""
    private_folder(file.parent)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
    finally:
        os.close(fd)


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

    def doRollover(self) -> None:
        """Begin a new file, unless another process has this one open: Windows refuses that.

        The library would lose this record and every later one, and delete the older files.
        """
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        try:
            os.rename(self.baseFilename, self.baseFilename)
        except OSError:
            return
        super().doRollover()


APP = "openchrome-monitor"
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def log_path() -> Path:
    """Path of the log, whether or not it could be opened."""
    import platformdirs  # most starts log nothing

    return Path(platformdirs.user_log_dir(APP, appauthor=False)) / f"{APP}.log"


def clean(text: str) -> str:
    """Redact `text` line by line, private keys as a whole, and make it safe to display."""
    from engine.model import (
        redact,  # its patterns are compiled when first needed, not at each start
    )

    whole = redact.without_key_blocks(text) if " PRIVATE KEY" in text else text
    return "\n".join(display(redact.text(line)) for line in whole.split("\n"))


class _Clean(logging.Formatter):
    """Redacting formatter that indents further lines, so that page text cannot forge log lines."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record)).replace("\n", "\n    ")


class _Late(logging.Handler):
    """Handler that opens the file at the first record: most starts have none, and opening takes 10
    ms."""

    def __init__(self) -> None:
        super().__init__()
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            self._file = open_handler(log_path())
            self._file.setFormatter(self.formatter)
        self._file.emit(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def log_to_file() -> None:
    """Send this process' log to the file; without a writable folder there is no log."""
    root = logging.getLogger()
    if any(isinstance(handler, _Late) for handler in root.handlers):
        return
    handler = _Late()
    handler.setFormatter(_Clean(_FORMAT))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False  # a full disk must not print tracebacks
