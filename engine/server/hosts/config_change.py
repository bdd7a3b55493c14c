"""Add the server to a host's configuration file or remove it: the change first, then the write.

The rest of the file is kept, and a file that cannot be understood is never written.
"""

from __future__ import annotations

import copy
import difflib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.ledger.files import MIB, Folder, Unusable
from engine.model.errors import EngineError
from engine.server.hosts import config_text
from engine.server.hosts.host_table import SERVER_NAME, Entry, Host, Machine, ServerCommand

MAX_BYTES: Final = 32 * MIB  # Claude Code also keeps a history in its file
PRIVATE_MODE, PROJECT_MODE = 0o600, 0o644  # of new files; a project's file is read by its group
# What describes the connection in an entry of any host. Other keys are the user's and are kept.
_CONNECTION: Final = frozenset(
    {"command", "args", "url", "httpUrl", "serverUrl", "headers", "http_headers"}
    | {"env_http_headers", "bearer_token_env_var"}
)


class HostConfigUnreadable(EngineError):
    """The file exists but cannot be read."""

    code = "host_config_unreadable"
    title = "The configuration cannot be read"
    sentence = "{path} cannot be read: {reason}"
    advice_text = "Make the file readable, or add the entry in the host itself."


class HostConfigBroken(EngineError):
    """The file is not valid JSON or TOML."""

    code = "host_config_broken"
    title = "The configuration has a mistake"
    sentence = "{path} is not valid {format}: {reason}"
    advice_text = "Nothing was changed. Correct the file, then try again."


class HostConfigNotEditable(EngineError):
    """The file is valid, but the entry cannot be changed without touching other parts."""

    code = "host_config_not_editable"
    title = "The configuration must be changed by hand"
    sentence = "{path} cannot be changed safely: {reason}"
    advice_text = "Nothing was changed. Change the entry {name} in an editor."


class HostConfigMoved(EngineError):
    """Another program changed the file after the preview."""

    code = "host_config_moved"
    title = "The configuration has changed meanwhile"
    sentence = "{path} was changed by another program."
    advice_text = "Nothing was written. Run the command again."


class HostConfigNotWritten(EngineError):
    """The file cannot be written; the old one is unchanged."""

    code = "host_config_not_written"
    title = "The configuration was not written"
    sentence = "{path} cannot be written: {reason}"
    advice_text = "The old file is unchanged. Make the file and its folder writable."


# A user can still correct these files in an editor.
CHANGED_BY_HAND: Final = (HostConfigUnreadable, HostConfigBroken, HostConfigNotEditable)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Contents of a file before (None if it is missing) and after a change.

    `target` is the file behind the links of `path`.
    """

    path: Path
    target: Path
    before: bytes | None
    after: bytes
    mode: int

    @property
    def is_needed(self) -> bool:
        return self.after != (self.before or b"")

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff."""
        old = "/dev/null" if self.before is None else str(self.path)
        lines, new_lines = (_lines(data) for data in (self.before or b"", self.after))
        yield from difflib.unified_diff(
            lines, new_lines, fromfile=old, tofile=str(self.path), lineterm=""
        )


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8").splitlines()


def config_path(host: Host, machine: Machine, project: Path | None = None) -> Path | None:
    """Return the user's file, or the one of a project; None if the host knows no such file."""
    if project is None:
        return Path(host.user_file(machine))
    return project / host.project_file if host.project_file else None


def plan_install(
    host: Host, path: Path, command: ServerCommand, *, mode: int = PRIVATE_MODE
) -> ConfigChange:
    """Return the change that adds the server, or corrects its entry.

    Raises:
        HostConfigUnreadable: the file cannot be read.
        HostConfigBroken: it is not valid.
        HostConfigNotEditable: the entry is written in a way that cannot be changed.
    """
    return _plan(host, path, host.stdio_entry(command), mode)


def plan_uninstall(host: Host, path: Path) -> ConfigChange:
    """Return the change that removes the server. Raises as `plan_install`."""
    return _plan(host, path, None, PRIVATE_MODE)


def _plan(host: Host, path: Path, entry: Entry | None, mode: int) -> ConfigChange:
    target = Path(os.path.realpath(path))
    before, mode = _read(path, target, mode)
    mark, text = _decoded(path, before or b"")
    edit = _edit_toml if host.format == "TOML" else _edit_json
    try:
        data = _parsed(host, text)
    except ValueError as error:
        reason = str(error)
        raise HostConfigBroken(path=str(path), format=host.format, reason=reason) from error
    try:
        wanted = _expected(host, data, entry)
        after = text if wanted == data else edit(host, text, data, wanted)
        if after != text:
            _check_result(host, after, wanted)
        written = (mark + after).encode("utf-8")
    except ValueError as error:  # also text of the result that is not valid
        reason = str(error)
        raise HostConfigNotEditable(path=str(path), name=SERVER_NAME, reason=reason) from error
    return ConfigChange(path, target, before, written, mode)


def _check_result(host: Host, text: str, wanted: dict[str, Any]) -> None:
    """Raise ValueError if the edited text holds other data than wanted."""
    found = _parsed(host, text)
    if host.servers not in wanted and not found.get(host.servers):
        found.pop(host.servers, None)  # a comment may keep the emptied object
    if found != wanted:
        raise config_text.Uneditable("other parts of the file would change")


def _read(path: Path, target: Path, mode: int) -> tuple[bytes | None, int]:
    """Return the content and the mode of the file; None and `mode` if it is missing."""
    try:
        with Folder.at(str(target.parent)) as folder:
            facts = folder.facts(target.name)
            return folder.read(target.name, MAX_BYTES), stat.S_IMODE(facts.st_mode)
    except FileNotFoundError:
        return None, mode
    except (OSError, ValueError, Unusable) as error:
        raise HostConfigUnreadable(path=str(path), reason=_reason(error)) from error


def _decoded(path: Path, data: bytes) -> tuple[str, str]:
    """Return the byte order mark, if any, and the text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HostConfigUnreadable(path=str(path), reason="it is not UTF-8") from error
    return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)


def _parsed(host: Host, text: str) -> dict[str, Any]:
    data = config_text.parse_toml(text) if host.format == "TOML" else config_text.parse_json(text)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ValueError("it is not an object")
    return data


def _expected(host: Host, data: dict[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return the data after the change. Raises Uneditable."""
    wanted = copy.deepcopy(data)
    servers = wanted.get(host.servers, {})
    if not isinstance(servers, dict):
        raise config_text.Uneditable(f'"{host.servers}" is not an object')
    if entry is not None:
        wanted.setdefault(host.servers, servers)[SERVER_NAME] = _merged(
            servers.get(SERVER_NAME), entry
        )
    elif servers.pop(SERVER_NAME, None) is not None and not servers:
        del wanted[host.servers]
    return wanted


def _merged(old: object, entry: Entry) -> Entry:
    """Return the new entry with the user's own keys of the old one."""
    own = old if isinstance(old, dict) else {}
    other_type = own.get("type", "stdio") != "stdio"
    stale = _CONNECTION | ({"type"} if other_type else frozenset())
    kept = {key: value for key, value in own.items() if key not in stale}
    return {**kept, **entry}


def _edit_json(host: Host, text: str, data: dict[str, Any], wanted: dict[str, Any]) -> str:
    path = (host.servers, SERVER_NAME)
    new = wanted.get(host.servers, {}).get(SERVER_NAME)
    if new is None:
        text = config_text.json_without_value(text, path)
        bare = host.servers not in wanted and config_text.is_bare_json(text, host.servers)
        return config_text.json_without_value(text, path[:1]) if bare else text
    old = data.get(host.servers, {}).get(SERVER_NAME)
    if not isinstance(old, dict):
        return config_text.json_with_value(text, path, new)
    for key in old.keys() - new.keys():
        text = config_text.json_without_value(text, (*path, key))
    for key, value in new.items():
        if key not in old or old[key] != value:
            text = config_text.json_with_value(text, (*path, key), value)
    return text


def _edit_toml(host: Host, text: str, data: dict[str, Any], wanted: dict[str, Any]) -> str:
    path = (host.servers, SERVER_NAME)
    new = wanted.get(host.servers, {}).get(SERVER_NAME)
    if new is None:
        return config_text.toml_without_table(text, path)
    old = data.get(host.servers, {}).get(SERVER_NAME, {})
    changed = {key: value for key, value in new.items() if key not in old or old[key] != value}
    return config_text.toml_with_values(text, path, changed, frozenset(old.keys() - new.keys()))


def write(change: ConfigChange) -> None:
    """Replace the file atomically, with its mode; missing folders are created.

    Raises:
        HostConfigMoved: another program changed the file after the change was planned.
        HostConfigNotWritten: it cannot be written.
    """
    folder = change.target.parent
    temp = f".{SERVER_NAME}-{secrets.token_hex(8)}.tmp"

    def check() -> None:
        if _read(change.path, change.target, 0)[0] != change.before:
            raise HostConfigMoved(path=str(change.path))
        os.chmod(folder / temp, change.mode)

    try:
        os.makedirs(folder, exist_ok=True)
        with Folder.at(str(folder)) as place:
            place.replace(change.target.name, [change.after], temp=temp, durable=False, check=check)
    except (OSError, ValueError, Unusable) as error:
        raise HostConfigNotWritten(path=str(change.path), reason=_reason(error)) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
