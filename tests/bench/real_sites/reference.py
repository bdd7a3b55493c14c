"""Text, links and title of an address in plain Playwright, a while after the load event."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.browser.chromium.launch import LEAN_FLAGS
from engine.browser.chromium.locate import locate

TABS = 6
# The body's text as the browser tells it, and what stands in open shadow roots beside it: all
# text that is laid out, in words, which is how it is compared.
_LOOK = """() => {
  const links = new Set(), words = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll('*')) {
      if (element.matches('a[href], area[href]')) links.add(String(element.href));
      if (!element.shadowRoot) continue;
      for (const child of element.shadowRoot.children) {
        if (child instanceof HTMLElement && child.checkVisibility()) words.push(child.innerText);
      }
      walk(element.shadowRoot);
    }
  };
  walk(document);
  const text = document.body ? document.body.innerText : '';
  const found = { text, shadow: words.join('\\n'), links: [...links], title: document.title };
  found.html = document.documentElement.outerHTML;
  for (const sheet of document.styleSheets) if (sheet.href) sheet.disabled = true;
  return { ...found, unstyled: document.body ? document.body.innerText : '' };
}"""


@dataclass(frozen=True)
class Seen:
    """`text` is `innerText`, `unstyled` the same without linked stylesheets.

    `shadow` has what stands in open shadow roots, `html` is the whole document.
    """

    text: str
    unstyled: str
    shadow: str
    links: tuple[str, ...]
    title: str
    html: str = ""


async def look(
    urls: Iterable[str], *, wait_ms: int, scripts: bool = True, tabs: int = TABS
) -> dict[str, Seen]:
    """Load each address and look at it `wait_ms` after its load event."""
    from playwright.async_api import async_playwright

    queue = list(dict.fromkeys(urls))[::-1]
    found: dict[str, Seen] = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=locate(os.environ.get("OC_BROWSER")).path,
            args=["--disable-gpu", *LEAN_FLAGS],
            chromium_sandbox=os.geteuid() != 0,
        )

        async def work() -> None:
            context = await browser.new_context(java_script_enabled=scripts)
            while queue:
                url = queue.pop()
                page = await context.new_page()
                found[url] = await _seen(page, url, wait_ms)
                await page.close()
            await context.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(min(tabs, len(queue))):
                group.create_task(work())
        await browser.close()
    return found


async def _seen(page: Any, url: str, wait_ms: int) -> Seen:
    await page.goto(url, wait_until="load", timeout=60_000)
    await page.wait_for_timeout(wait_ms)
    told = await page.evaluate(_LOOK)
    return Seen(**{**told, "links": tuple(told["links"])})
