"""The guide for hosts shows exactly what the program writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.server.hosts.host_table import (
    HOSTS,
    TOKEN_VARIABLE,
    Host,
    Machine,
    ServerCommand,
    http_snippet,
    stdio_snippet,
)

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text("utf-8")
SECTION = GUIDE.split("\n## Connect a host\n")[1].split("\n## ")[0]
COMMAND = ServerCommand("/home/ann/.local/bin/octask")
URL = "http://127.0.0.1:8931/mcp"
MACHINES = (
    Machine("linux", "~", {}),
    Machine("darwin", "~", {}),
    Machine("win32", "%USERPROFILE%", {}),
)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_the_guide_shows_the_texts_of_each_host(host: Host) -> None:
    part = SECTION.split(f"\n### {host.title}\n")[1].split("\n### ")[0]
    shown = re.findall(rf"^```{host.format.lower()}\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)
    made = [stdio_snippet(host, COMMAND), http_snippet(host, URL)]
    assert shown == [text for text in made if text]


def test_the_guide_shows_no_other_host() -> None:
    assert re.findall(r"^### (.+)$", SECTION, re.MULTILINE) == [h.title for h in HOSTS.values()]
    assert f"export {TOKEN_VARIABLE}=" in SECTION


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_the_guide_names_the_files_of_each_host(host: Host) -> None:
    files = [str(host.user_file(machine)) for machine in MACHINES]
    files[2] = files[2].replace(r"%USERPROFILE%\AppData\Roaming", "%APPDATA%")
    cells = [f"`{host.name}`", *(f"`{file}`" for file in files)]
    cells.append(f"`{host.project_file}`" if host.project_file else "")
    (row,) = [line for line in SECTION.splitlines() if line.startswith(f"| `{host.name}` |")]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == cells
