"""The static engine's text beside a real browser's `innerText`, on pages made at random.

Told are the pages that are equal sign by sign, line by line with white space made equal, and word
by word; and with `--show` the first that differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter

from tests.work.random_pages import random_page, static_text

AIM = 0.95


def likeness(ours: str, theirs: str) -> str:
    """How near the two are: "same", "lines", "words" or "other"."""
    if ours == theirs:
        return "same"
    if _lines(ours) == _lines(theirs):
        return "lines"
    return "words" if ours.split() == theirs.split() else "other"


def _lines(text: str) -> list[list[str]]:
    return [words for line in text.splitlines() if (words := line.split())]


async def compare(first: int, pages: int, show: int) -> Counter[str]:
    from playwright.async_api import async_playwright

    from engine.browser.chromium.locate import locate

    found: Counter[str] = Counter()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=locate(os.environ.get("OC_BROWSER")).path,
            chromium_sandbox=os.geteuid() != 0,
        )
        page = await browser.new_page()
        for seed in range(first, first + pages):
            html = random_page(seed)
            await page.set_content(html, wait_until="domcontentloaded")
            theirs = await page.evaluate("document.body.innerText")
            ours = static_text(html)
            how = likeness(ours, theirs)
            found[how] += 1
            if how != "same" and show:
                show -= 1
                print(f"--- {seed} {how}\n{html}\n  browser {theirs!r}\n  ours    {ours!r}")
        await browser.close()
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench rendered_text", description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first page")
    parser.add_argument("--show", type=int, default=0)
    given = parser.parse_args(argv)
    found = asyncio.run(compare(given.first, given.pages, given.show))
    by_lines = found["same"] + found["lines"]
    told = {
        "bench": "rendered_text",
        "pages": given.pages,
        "same_text": found["same"],
        "same_lines": by_lines,
        "same_words": by_lines + found["words"],
        "aim": AIM,
        "ok": by_lines >= AIM * given.pages,
    }
    print(json.dumps(told))
    return 0 if told["ok"] else 1
