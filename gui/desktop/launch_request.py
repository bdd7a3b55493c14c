"""Launch request of another program start: tasks to show, addresses and files to open.

Its text comes from a command line, a link on any web page, or another process of this user, so a
request only ever shows something: it cannot start, cancel or delete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

SCHEME = "openchrome-monitor"
MOST_WORDS = 500
MOST_CHARS = 8192  # Limit of one argument, above any valid path or address
_TASK = re.compile(r"task/([0-9a-f]{16})/?")
_LISTS = ("tasks", "urls", "files", "strange", "beside")


class Wish(msgspec.Struct, frozen=True):
    """A parsed launch request; an empty one only raises the window.

    `files` are absolute paths, as are the ledgers in `beside`, which are shown until the window
    closes. `strange` lists arguments that were not understood, `token` is the desktop's activation
    token.
    """

    tasks: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    token: str = ""

    def message(self) -> dict[str, Any]:
        """Return the request in the form sent to another process."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return {"raise": True, "token": self.token, **lists}


def link_to(task_id: str) -> str:
    """Return the link that opens the monitor at this task."""
    return f"{SCHEME}://task/{task_id}"


def here() -> Path:
    """Return the working directory, or the home folder if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def wish_of(
    words: Iterable[str], folder: Path, token: str = "", beside: Iterable[Path] = ()
) -> Wish:
    """Parse command line arguments; relative paths start at `folder`."""
    sorted_in: dict[str, list[str]] = {name: [] for name in _LISTS}
    for word in list(words)[:MOST_WORDS]:
        name, value = _understand(word[:MOST_CHARS], folder)
        sorted_in[name].append(value)
    sorted_in["beside"] = [os.path.abspath(folder / one) for one in beside]
    return _wish({name: tuple(values) for name, values in sorted_in.items()}, token)


def wish_in(message: object) -> Wish:
    """Parse a request from another process and ignore malformed fields."""
    if not isinstance(message, Mapping):
        return Wish()
    token = message.get("token")
    lists = {name: _texts(message.get(name)) for name in _LISTS}
    wish = _wish(lists, token if isinstance(token, str) else "")
    tasks = tuple(one for one in wish.tasks if _TASK.fullmatch(f"task/{one}"))
    return msgspec.structs.replace(
        wish,
        tasks=tasks,
        files=tuple(filter(os.path.isabs, wish.files)),
        beside=tuple(filter(os.path.isabs, wish.beside)),
    )


def _wish(lists: Mapping[str, tuple[str, ...]], token: str) -> Wish:
    tasks, urls, files, strange, beside = (lists[name] for name in _LISTS)
    return Wish(tasks, urls, files, strange, beside, token[:MOST_CHARS])


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        one for one in value[:MOST_WORDS] if isinstance(one, str) and len(one) <= MOST_CHARS
    )


def _understand(word: str, folder: Path) -> tuple[str, str]:
    """Return the list of the request for this argument, and its value."""
    scheme = word.partition(":")[0].lower()
    if scheme == SCHEME:
        rest = unquote(word.partition(":")[2]).lstrip("/")
        found = _TASK.fullmatch(rest)
        return ("tasks", found[1]) if found else ("strange", word)
    if scheme in ("http", "https") and "://" in word:
        return "urls", word
    if scheme == "file":
        return _file_of(word)
    if not word.strip() or "\0" in word:
        return "strange", word
    return "files", os.path.abspath(os.path.join(folder, word))


def _file_of(address: str) -> tuple[str, str]:
    """Parse a file URL of the desktop; URLs of other hosts are rejected."""
    # The import loads an HTTP client, which is too slow for each start.
    from urllib.request import url2pathname

    try:
        parts = urlsplit(address)
        path = url2pathname(parts.path)
    except ValueError:
        return "strange", address
    local = parts.netloc in ("", "localhost") and os.path.isabs(path) and "\0" not in path
    return ("files", path) if local else ("strange", address)
