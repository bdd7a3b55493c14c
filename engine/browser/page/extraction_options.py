"""Options of the extraction script: how long to wait, how much to extract, and its modules."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from engine.browser.chromium.cookie_jar import REFUSALS
from engine.model.addresses import site_of
from engine.pages.custom_fields import ADDRESSES, MAX_VALUE_CHARS, MAX_VALUES
from engine.pages.fetch import MAX_HTML_CHARS, MAX_LINK_CHARS
from engine.pages.meta_refresh import PATTERN
from engine.pages.page_facts import MAX_SCRIPT_CHARS, MAX_SCRIPTS, MAX_TYPES, RELS
from engine.pages.spaced_text import APART

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from engine.pages.fetch import PageOptions


LOOK_S = 0.1


async def is_importing(wire: CDPSession, site: str = "", frames: Collection[str] = ()) -> bool:
    """Return whether the document waits for a script, of `site` if given, without any data yet.

    `frames` are the addresses of frames that belong to it.
    """
    tree = (await wire.send("Page.getResourceTree"))["frameTree"]
    inner = _inner_frames(tree) if frames else ()
    parts = [tree, *(one for one in inner if one["frame"]["url"] in frames)]
    return any(
        one["type"] == "Script"
        and not (one["mimeType"] or one.get("contentSize"))
        and not (one.get("failed") or one.get("canceled"))
        and site in ("", site_of(one["url"]))
        for part in parts
        for one in part["resources"]
    )


def _inner_frames(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for inner in tree.get("childFrames", ()):
        yield inner
        yield from _inner_frames(inner)


async def imported(
    wire: CDPSession, deadline: float, site: str = "", frames: Collection[str] = ()
) -> bool:
    """Wait for those scripts; return False after `deadline` (loop clock) or the request limit."""
    clock = asyncio.get_running_loop().time
    limit = min(deadline, clock() + REQUEST_MS / 1_000)
    while await is_importing(wire, site, frames):
        if clock() >= limit:
            return False
        await asyncio.sleep(LOOK_S)  # the browser sends no event for it
    return True


WORLD: Final = "openchrome-monitor"  # isolated from the page's own scripts
REQUEST_MS: Final = 10_000  # limit for each request that a page makes itself
READ_MS: Final = 5_000  # after the load event, for IndexedDB, which some pages use without end
# The page learns of the request of a new frame 10 to 40 ms later, at most 229 on a busy machine.
FRAME_MS: Final = 300
COMPUTES_MS: Final = 5_000  # on a busy machine a second of a page's work takes so long
REVEAL_MS: Final = 2_000  # for timers and animations that may show hidden text
# A page may load more this long after it seems to be at rest, as by a debounced handler.
MORE_MS: Final = 1_000
# A browser grants a site 5 Mi; above this limit a page can store hardly anything.
MAX_STORED_CHARS: Final = 4 * 1024 * 1024
TEXTS_OF_AN_ELEMENT: Final = 2  # text nodes an element; a page with more is cut


def script(name: str) -> str:
    """Return a page script, by name, as an expression."""
    return files("engine.browser").joinpath(f"{name}.js").read_text("utf-8").strip()


def compact(source: str) -> str:
    """Strip comment lines and indents, a fifth of `source`: every page parses it."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def taking_script() -> str:
    """Return the function that receives options, waits for the page, and extracts it."""
    names = ("settle", "later", "shown", "loads")
    scripts = ", ".join(script(name) for name in names)
    return compact(f"(({', '.join(names)}) => {script('take')})({scripts})")


@cache
def _taking() -> str:
    return _TAKING.replace("TAKE", taking_script())


def settle_limits() -> dict[str, int]:
    """Return the limits of `settle.js` that no option changes, in ms."""
    limits = {"requestMs": REQUEST_MS, "readMs": READ_MS, "frameMs": FRAME_MS}
    return {**limits, "computesMs": COMPUTES_MS, "revealMs": REVEAL_MS}


def extraction_options(
    left_ms: float,
    options: PageOptions,
    pending: str,
    held: Sequence[str] = (),
    *,
    cut_off: bool,
    written: bool = False,
) -> dict[str, Any]:
    """Build the options of `take.js`.

    Args:
        left_ms: the rest of the page's time limit.
        pending: the name under which the page's scripts report pending work.
        held: names of requests known to be held open.
        cut_off: the document is incomplete and ended.
        written: scripts are known to write this page.
    """
    return {
        "limitMs": left_ms,
        "settleMs": options.settle_ms,
        **settle_limits(),
        "held": list(held),
        "waitFor": options.wait_for,
        "maxLinks": options.max_links,
        "maxLinkChars": MAX_LINK_CHARS,
        "maxText": min(options.max_bytes, options.max_text),
        "maxHtml": min(options.max_bytes, MAX_HTML_CHARS),
        "maxTexts": options.max_elements * TEXTS_OF_AN_ELEMENT,
        "maxElements": options.max_elements,
        "maxStored": MAX_STORED_CHARS,
        "maxScripts": MAX_SCRIPTS,
        "maxScriptChars": MAX_SCRIPT_CHARS,
        "maxTypes": MAX_TYPES,
        "rels": RELS,
        "lines": sorted(APART),
        "refresh": PATTERN,
        "refusals": sorted(REFUSALS),
        "scroll": options.scroll,
        "loadMore": options.load_more,
        "maxLoads": options.max_loads,
        "moreMs": MORE_MS,
        "clickLinks": options.click_links,
        "fields": [rule._asdict() for rule in options.fields],
        "addresses": sorted(ADDRESSES),
        "maxValues": MAX_VALUES,
        "maxValueChars": MAX_VALUE_CHARS,
        "pending": pending,
        # A page that loads more is idle several times, but not at rest.
        "reportsIdle": not (options.scroll or options.load_more),
        "cutOff": cut_off,
        "written": written,
    }


# Each call waits for the result, or for a change of the page's state if that is first.
_TAKING: Final = """((ask) => {
  const reports = [];
  let wake = () => {};
  ask.onIdle = (state) => {
    if (state !== "over") reports.push({ state }); // the result follows at once
    wake();
  };
  const result = TAKE(ask);
  globalThis.octaskNext = async () => {
    let report;
    const reported = new Promise((resolve) => {
      wake = () => {
        if (report || !reports.length) return;
        report = reports.shift();
        resolve(report);
      };
      wake();
    });
    try {
      return await Promise.race([result, reported]);
    } finally {
      if (!report) delete globalThis.octaskNext; // and with it the result
    }
  };
  return globalThis.octaskNext();
})"""
_NEXT: Final = "() => globalThis.octaskNext()"


def extraction_request(ask: dict[str, Any] | None) -> dict[str, Any]:
    """Build the `Runtime.callFunctionOn` parameters for `take.js` with these options.

    The function's text is the same for every page, so that V8 compiles it once for each renderer.
    Its answer is a result, or `{"state": …}` if the page's state changes before; then a request
    without options waits for the next answer.
    """
    return {
        "functionDeclaration": _taking() if ask else _NEXT,
        "arguments": [{"value": ask}] if ask else [],
        "awaitPromise": True,
        "returnByValue": True,
    }
