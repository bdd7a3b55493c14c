"""The guide for agents: its table names every tool, and its examples run as they stand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from engine.model.config import Settings
from engine.sample.site import Answer
from engine.server.tool_table import TOOLS
from tests.server.conftest import data, in_memory, place_of

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text("utf-8")
TABLE = GUIDE.split("\n## The tools\n")[1].split("\n## ")[0]
EXAMPLES = {
    part.split("\n")[0]: re.findall(r"^```text\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)[0]
    for part in GUIDE.split("\n## Three worked examples\n")[1].split("\n### ")[1:]
}
PASSWORD = "correct-horse-battery"
FORM = (
    "<title>Log in</title><form action='/account' method='post'><input id='user' name='user'>"
    "<input id='password' name='password' type='password'><button>Log in</button></form>"
)


def test_the_table_names_every_tool() -> None:
    named = set[str]()
    for row in TABLE.splitlines():
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if row.startswith("|") else ""):
            stem = re.sub(r"_[a-z]+$", "", next(iter(re.findall(r"`(\w+)`", row))))
            named.add(stem + name if name.startswith("_") else name)
    assert named == {*TOOLS}


@pytest.mark.parametrize("title", EXAMPLES)
async def test_an_example_runs_as_it_stands(title: str, home: Path, site: Any) -> None:
    site.answers["/login"] = Answer(FORM.encode())
    site.answers["/account"] = Answer(b"<title>Account</title><p id='account'>Hello</p>")
    place = place_of(site.url)
    settings = replace(
        Settings.at(home=home),
        environ={"SHOP_PASSWORD": PASSWORD},
        allow_secrets=("SHOP_PASSWORD",),
    )
    task_id = ""
    async with in_memory(settings, [place]) as face, Client(face.server) as client:
        for line in EXAMPLES[title].splitlines():
            tool, _, text = line.replace("https://example.com", site.url.rstrip("/")).partition(" ")
            arguments = json.loads(text.replace("$TASK", task_id))
            found = data(await client.call_tool(tool, arguments))
            task_id = task_id or str(found.get("task_id") or found["task"]["id"])
    whole = json.dumps(found)
    assert PASSWORD not in whole
    assert found.get("status", found.get("task", {}).get("status")) in ("COMPLETED", "completed")
