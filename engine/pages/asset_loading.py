"""Load style sheets and scripts that the pages of a crawl share, each address once.

As in a browser they belong to the page: no delay applies to them, and failures are left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar

from engine.model.addresses import in_charset, link_address
from engine.model.errors import EngineError
from engine.pages.style_sheets import MAX_SHEETS, Rule, Sheet, parse_sheet, sheets_of

ASSET_S: Final = 5.0  # for each asset; afterwards the page is loaded without it
MAX_ASSET_CHARS: Final = 1024 * 1024  # for each asset; the rest is not read
MAX_BYTES: Final = 64 * 1024 * 1024  # for all assets of a crawl
MAX_KNOWN: Final = 2_000  # addresses of a crawl that are cached, and requested at all
_THREAD_FROM_CHARS: Final = 64 * 1024

Get = Callable[[str, int], Awaitable[bytes]]
"""An address and how many bytes at most; raises EngineError, or gives nothing for what is none."""
T = TypeVar("T")


class AssetLoader(Generic[T]):
    """Cache of the parsed assets of one crawl; used by several workers at once.

    `none` is the value of an asset that did not load.
    """

    def __init__(self, get: Get, parse: Callable[[str], T], none: T) -> None:
        self._get = get
        self._parse = parse
        self._none = none
        self._room = MAX_BYTES
        self._loads: dict[str, asyncio.Task[T]] = {}
        self._inline: dict[bytes, T] = {}

    async def close(self) -> None:
        loads, self._loads = list(self._loads.values()), {}
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)

    async def load(self, places: Iterable[str], deadline: float) -> None:
        """Wait for these addresses, at most until `deadline` (of the loop's clock)."""
        coming: list[asyncio.Task[T]] = []
        for place in filter(None, places):
            if place not in self._loads and len(self._loads) < MAX_KNOWN:
                self._loads[place] = asyncio.create_task(self._load(place))
            load = self._loads.get(place)
            if load is not None and not load.done():
                coming.append(load)
        if coming:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(coming, timeout=left)

    def known(self, place: str) -> T:
        load = self._loads.get(place)
        if load is None or not load.done() or load.cancelled():
            return self._none
        return load.result()

    async def parsed(self, text: str) -> T:
        """Parse an inline asset, which often is the same on each page."""
        key = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if key not in self._inline:
            if len(self._inline) >= MAX_KNOWN:
                del self._inline[next(iter(self._inline))]
            self._inline[key] = await self._made(text)
        return self._inline[key]

    async def _load(self, place: str) -> T:
        if self._room <= 0:
            return self._none
        try:
            async with asyncio.timeout(ASSET_S):
                body = await self._get(place, MAX_ASSET_CHARS)
        except (EngineError, TimeoutError):
            return self._none
        if not body:
            return self._none
        self._room -= len(body)
        return await self._made(body.decode("utf-8-sig", "replace"))

    async def _made(self, text: str) -> T:
        if len(text) <= _THREAD_FROM_CHARS:
            return self._parse(text)
        return await asyncio.to_thread(self._parse, text)


def resolved(base: str, href: str, charset: str = "") -> str:
    """Return the absolute address of a link in `charset`; empty if there is none."""
    address = link_address(base, in_charset(href, charset)) if href else None
    return "" if address is None else address.asked


# The rules of each page's style sheets, with those of imported sheets.

MAX_DEPTH: Final = 6  # of nested imports
MAX_ADDED: Final = 60  # sheets of one page, imported ones included
_NONE: Final = Sheet()

Styles = tuple[tuple[Rule, ...], ...]


class SheetLoader:
    """The style sheets of one crawl; used by several workers at once."""

    def __init__(self, get: Get) -> None:
        self._sheets = AssetLoader(get, parse_sheet, _NONE)

    async def close(self) -> None:
        await self._sheets.close()

    async def of_page(self, html: str, url: str, deadline: float, charset: str = "") -> Styles:
        """Return the rules for a page in `charset`, sheet by sheet; `deadline` as in `load`."""
        base, named = sheets_of(html)
        if not named:
            return ()
        address = link_address(url, base) if base else None
        base = url if address is None else address.url
        order: list[tuple[str, Sheet]] = []
        for each in named:
            place = "" if each.css else resolved(base, each.href, charset)
            order.append((place, await self._sheets.parsed(each.css) if each.css else _NONE))
        await self._sheets.load((place for place, _ in order), deadline)
        rules: list[tuple[Rule, ...]] = []
        for place, sheet in order:
            whole = self._sheets.known(place) if place else sheet
            await self._add(rules, place or base, whole, deadline)
        return tuple(each for each in rules if each)

    async def _add(
        self,
        rules: list[tuple[Rule, ...]],
        at: str,
        sheet: Sheet,
        deadline: float,
        depth: int = 0,
    ) -> None:
        """Add a sheet's rules after those of the sheets that it imports."""
        places = [resolved(at, to) for to in sheet.imports[:MAX_SHEETS]]
        if depth == MAX_DEPTH or len(rules) >= MAX_ADDED:
            return
        await self._sheets.load(places, deadline)
        for place in places:
            await self._add(rules, place, self._sheets.known(place), deadline, depth + 1)
        rules.append(sheet.rules)


# The names that a page's scripts use: ids, classes, elements and data attributes.
#
# A script finds the elements that it changes by a name in its source. Pages with the same scripts
# are changed alike as far as they contain the same names.

MAX_SCRIPTS: Final = 50  # read for each page
MAX_NAMES: Final = 5_000  # for each page

# Places where sources name ids and classes: selectors, and calls that take nothing else. Other
# words in strings could be names too, but libraries are full of words such as `data`, `function`.
_SELECTED: Final = re.compile(r"[\"'`\s,>+~(\w\])*]([#.]-?[A-Za-z_][\w-]*)", re.ASCII)
# Comments come first, because an apostrophe in them begins no string.
_TEXT: Final = re.compile(
    r"/\*.*?\*/|(?:^|(?<=\s))//[^\n]*|\"((?:[^\"\\\n]|\\.)*+)\"|'((?:[^'\\\n]|\\.)*+)'|`([^`]*+)`",
    re.MULTILINE | re.DOTALL,
)
_CALLED: Final = re.compile(
    r"(?:(ById)|Class|ByClassName|classList\s*\.\s*\w+|className\s*={1,3})\s*\(?\s*"
    r"[\"'`](-?[A-Za-z_][\w -]*)[\"'`]",
    re.ASCII,
)
_QUERIED: Final = re.compile(
    r"(?:\$|querySelector(?:All)?|ByTagName|find|closest|children|parents?|siblings|is|filter)"
    r"\s*\(\s*(?:\"([^\"\n]*)\"|'([^'\n]*)'|`([^`\n]*)`)"
)
_ELEMENT: Final = re.compile(r"(?:^|[\s,>+~(])([a-z][a-z0-9-]+)", re.ASCII)
_ATTRIBUTE: Final = re.compile(r"\[(data-[\w-]+)", re.ASCII)
_TAG: Final = re.compile(r"<([a-z][a-z0-9-]*)", re.IGNORECASE)
_DATA: Final = re.compile(r"\s(data-[\w-]+)", re.ASCII)
_NAMED: Final = re.compile(
    r"\s(class|id)\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE
)


class Script(NamedTuple):
    """One script of a page: its source, or its address."""

    text: str
    src: str
    is_module: bool = False


def named_in(source: str) -> frozenset[str]:
    """Return the `#id`, `.class`, `tag` and `data-name` that a source uses to find elements."""
    found: set[str] = set()
    for texts in _TEXT.findall(source):
        text = f"'{''.join(texts)}"
        found.update(_SELECTED.findall(text), _ATTRIBUTE.findall(text))
    for texts in _QUERIED.findall(source):
        found.update(_ELEMENT.findall("".join(texts)))
    for is_id, names in _CALLED.findall(source):
        found.update(("#" if is_id else ".") + name for name in names.split())
    return frozenset(found)


def names_in(html: str) -> frozenset[str]:
    """Return the `#id`, `.class`, `tag` and `data-name` that a page contains."""
    found = {tag for tag in map(str.lower, set(_TAG.findall(html))) if len(tag) > 1}
    found.update(_DATA.findall(html))
    for kind, *values in set(_NAMED.findall(html)):
        sign = "." if kind.lower() == "class" else "#"
        found.update(sign + name for name in "".join(values).split())
        if len(found) > MAX_NAMES:
            break
    return frozenset(found)


class ScriptLoader:
    """The scripts of one crawl; used by several workers at once."""

    def __init__(self, get: Get) -> None:
        self._scripts: AssetLoader[frozenset[str] | None] = AssetLoader(get, named_in, None)

    async def close(self) -> None:
        await self._scripts.close()

    async def named(
        self,
        names: frozenset[str],
        scripts: Iterable[Script],
        base: str,
        deadline: float,
        charset: str = "",
    ) -> frozenset[str]:
        """Return those of a page's `names` that its scripts use.

        Of scripts that cannot be read, because they did not load or consist of modules, all names
        except the ids count.
        """
        known: list[frozenset[str] | None] = []
        places: list[str] = []
        for script in list(scripts)[:MAX_SCRIPTS]:
            if script.is_module:
                known.append(None)
            elif script.src:
                places.append(resolved(base, script.src, charset))
            else:
                known.append(await self._scripts.parsed(script.text))
        await self._scripts.load(places, deadline)
        known += (self._scripts.known(place) for place in places)
        found = frozenset().union(*(names & each for each in known if each is not None))
        if None in known:
            found |= {name for name in names if name[0] != "#"}
        return found
