"""Hosts of the MCP server: where each keeps its configuration, and its entry for the server.

Paths come from a `Machine`, so that the table of every platform can be read on any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final, Literal

from engine.server.hosts.config_text import toml_table

SERVER_NAME: Final = "openchrome-monitor"
TOKEN_VARIABLE: Final = "OPENCHROME_MONITOR_TOKEN"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """Platform (as `sys.platform`), home folder and environment."""

    platform: str
    home: str
    environ: Mapping[str, str]

    def under_home(self, *parts: str) -> PurePath:
        return self._path(self.home).joinpath(*parts)

    def from_variable(self, name: str, *otherwise: str) -> PurePath:
        """Return the folder that a variable names, else `otherwise` under the home folder.

        A relative path is ignored, as the XDG specification asks.
        """
        given = self._path(self.environ.get(name, ""))
        return given if given.is_absolute() else self.under_home(*otherwise)

    def settings_folder(self) -> PurePath:
        """Return the folder in which desktop applications keep their settings."""
        if self.platform == "win32":
            return self.from_variable("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.under_home("Library", "Application Support")
        return self.from_variable("XDG_CONFIG_HOME", ".config")

    def _path(self, text: str) -> PurePath:
        return PureWindowsPath(text) if self.platform == "win32" else PurePosixPath(text)


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """Command line that starts the server on standard input and output."""

    program: str
    arguments: tuple[str, ...] = ("mcp",)


@dataclass(frozen=True, slots=True)
class Host:
    """A program that runs or calls MCP servers.

    `user_file` applies to all projects, `project_file` (relative) to one; `servers` is the object
    or table of the file that holds one entry for each server. `http_entry` is None for hosts whose
    file describes no server by its address, and `http_document` has what such an entry needs
    beside it.
    """

    name: str
    title: str
    user_file: Callable[[Machine], PurePath]
    servers: str
    stdio_entry: Callable[[ServerCommand], Entry]
    http_entry: Callable[[str], Entry] | None
    project_file: str | None = None
    format: Literal["JSON", "TOML"] = "JSON"
    http_document: Entry | None = None


def _plain(command: ServerCommand) -> Entry:
    return {"command": command.program, "args": list(command.arguments)}


def _typed(command: ServerCommand) -> Entry:
    return {"type": "stdio", **_plain(command)}


def _http(address_key: str, token: str, **more: str) -> Callable[[str], Entry]:
    """Return the entry of a host that sends the token as a header."""
    headers = {"Authorization": f"Bearer {token}"}
    return lambda url: {**more, address_key: url, "headers": headers}


def _codex_http(url: str) -> Entry:
    return {"url": url, "bearer_token_env_var": TOKEN_VARIABLE}


def _claude_code_file(machine: Machine) -> PurePath:
    return machine.from_variable("CLAUDE_CONFIG_DIR") / ".claude.json"


def _zed_file(machine: Machine) -> PurePath:
    if machine.platform == "win32":
        return machine.settings_folder() / "Zed" / "settings.json"
    if machine.platform == "darwin":
        return machine.under_home(".config", "zed", "settings.json")
    return machine.settings_folder() / "zed" / "settings.json"


LITERAL_TOKEN: Final = "<token>"  # for hosts that replace no variables in their file
_INPUT_ID: Final = "openchrome-monitor-token"
_ALL: Final = (
    Host(
        "claude-desktop",
        "Claude Desktop",
        lambda machine: machine.settings_folder() / "Claude" / "claude_desktop_config.json",
        "mcpServers",
        _plain,
        None,
    ),
    Host(
        "claude-code",
        "Claude Code",
        _claude_code_file,
        "mcpServers",
        _typed,
        _http("url", f"${{{TOKEN_VARIABLE}}}", type="http"),
        ".mcp.json",
    ),
    Host(
        "cursor",
        "Cursor",
        lambda machine: machine.under_home(".cursor", "mcp.json"),
        "mcpServers",
        _plain,
        _http("url", f"${{env:{TOKEN_VARIABLE}}}"),
        ".cursor/mcp.json",
    ),
    Host(
        "vscode",
        "VS Code",
        lambda machine: machine.settings_folder() / "Code" / "User" / "mcp.json",
        "servers",
        _typed,
        _http("url", f"${{input:{_INPUT_ID}}}", type="http"),
        ".vscode/mcp.json",
        http_document={
            "inputs": [
                {
                    "type": "promptString",
                    "id": _INPUT_ID,
                    "description": "Token of octask serve",
                    "password": True,
                }
            ]
        },
    ),
    Host(
        "codex",
        "Codex",
        lambda machine: machine.from_variable("CODEX_HOME", ".codex") / "config.toml",
        "mcp_servers",
        _plain,
        _codex_http,
        ".codex/config.toml",
        format="TOML",
    ),
    Host(
        "gemini-cli",
        "Gemini CLI",
        lambda machine: machine.under_home(".gemini", "settings.json"),
        "mcpServers",
        _plain,
        _http("httpUrl", f"${{{TOKEN_VARIABLE}}}"),
        ".gemini/settings.json",
    ),
    Host(
        "windsurf",
        "Windsurf",
        lambda machine: machine.under_home(".codeium", "windsurf", "mcp_config.json"),
        "mcpServers",
        _plain,
        _http("serverUrl", f"${{env:{TOKEN_VARIABLE}}}"),
    ),
    Host(
        "zed",
        "Zed",
        _zed_file,
        "context_servers",
        _plain,
        _http("url", LITERAL_TOKEN),
        ".zed/settings.json",
    ),
    Host(
        "lm-studio",
        "LM Studio",
        lambda machine: machine.under_home(".lmstudio", "mcp.json"),
        "mcpServers",
        _plain,
        _http("url", LITERAL_TOKEN),
    ),
)
HOSTS: Final[Mapping[str, Host]] = {host.name: host for host in _ALL}


def stdio_snippet(host: Host, command: ServerCommand) -> str:
    """Return the text of a file with nothing but the server as a command."""
    return _document(host, host.stdio_entry(command), {})


def http_snippet(host: Host, url: str) -> str | None:
    """Return the text of a file with nothing but the server at its address."""
    if host.http_entry is None:
        return None
    return _document(host, host.http_entry(url), host.http_document or {})


def _document(host: Host, entry: Entry, more: Entry) -> str:
    if host.format == "TOML":
        return toml_table((host.servers, SERVER_NAME), entry)
    return json.dumps({**more, host.servers: {SERVER_NAME: entry}}, indent=2) + "\n"
