"""Write `engine/browser/devices.json` anew: `python -m tests.support.device_list`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

import engine.browser

FILE = Path(engine.browser.__path__[0]) / "devices.json"


async def playwright_devices() -> dict[str, dict[str, Any]]:
    """Return Playwright's own list, which only its driver knows."""
    async with async_playwright() as playwright:
        return dict(playwright.devices)


def file_of(devices: dict[str, dict[str, Any]]) -> str:
    """Return the text of the file: user agents once, then one line for each device."""
    agents = list(dict.fromkeys(one["user_agent"] for one in devices.values()))
    lines = [f"  {json.dumps(name)}: {json.dumps(_row(devices[name], agents))}" for name in devices]
    texts = [f"  {json.dumps(one)}" for one in agents]
    parts = [",\n".join(texts), ",\n".join(lines)]
    return f'{{"agents": [\n{parts[0]}\n], "devices": {{\n{parts[1]}\n}}}}\n'


def _row(one: dict[str, Any], agents: list[str]) -> list[Any]:
    size, screen = one["viewport"], one.get("screen") or one["viewport"]
    sizes = [[part["width"], part["height"]] for part in (size, screen)]
    return [agents.index(one["user_agent"]), *sizes, int(one["is_mobile"]), int(one["has_touch"])]


if __name__ == "__main__":
    FILE.write_text(file_of(asyncio.run(playwright_devices())), "utf-8")
