"""Files that a command task may upload: those in one folder that the operator allowed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

MAX_FILES: Final = 20  # of one command
MAX_BYTES: Final = 50 * 1024 * 1024  # of one command; the limit of Playwright
MAX_NAME: Final = 1_024  # characters
NONE_ALLOWED: Final = (
    "no files may be uploaded; the operator allows a folder with --allow-files or in the settings"
)
NOT_INSIDE: Final = "must lie in the folder that the operator allowed"
_OPEN: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a writer would block the task
    | getattr(os, "O_BINARY", 0)
)


class UploadRefused(Exception):
    """A file is not allowed for upload, or cannot be read."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def read_name(given: object) -> str:
    """Validate the name of a file in the allowed folder. Raises ValueError."""
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be the name of a file, or a list of them")
    if len(given) > MAX_NAME or not given.isprintable():
        raise ValueError("is no usable name of a file")
    parts = given.replace("\\", "/").split("/")
    if given.startswith(("/", "\\", "~")) or ":" in parts[0] or ".." in parts:
        raise ValueError(NOT_INSIDE)
    return given


class Uploads:
    """Reader of the files below `folder`; links to files outside are rejected."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def check(self, name: str) -> None:
        """Check that the file can be uploaded now.

        Raises:
            UploadRefused: no folder is allowed, or `name` is not a regular file in it.
        """
        self._place(name)

    def read(self, name: str, most: int = MAX_BYTES) -> bytes:
        """Return the bytes of a file with at most `most` bytes. Raises UploadRefused."""
        path = self._place(name)
        try:
            number = os.open(path, _OPEN)
            with os.fdopen(number, "rb") as source:
                # A folder may have been replaced by a link between the check and the opening.
                if not stat.S_ISREG(os.fstat(number).st_mode) or path.resolve() != path:
                    raise UploadRefused("not_allowed", NOT_INSIDE)
                data = source.read(most + 1)
        except OSError as error:
            raise UploadRefused("no_file", f"cannot be read: {error.strerror}") from error
        if len(data) > most:
            raise UploadRefused("too_large", f"more than {MAX_BYTES // 1024**2} MiB at once")
        return data

    def _place(self, name: str) -> Path:
        if self._folder is None:
            raise UploadRefused("not_allowed", NONE_ALLOWED)
        try:
            folder = self._folder.resolve(strict=True)
            path = (folder / name).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise UploadRefused("no_file", "is not there") from None
        if not path.is_relative_to(folder):
            raise UploadRefused("not_allowed", NOT_INSIDE)
        if not path.is_file():
            raise UploadRefused("no_file", "is not a file")
        return path
