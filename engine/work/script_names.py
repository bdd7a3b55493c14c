"""What the scripts of a page name of it: ids, classes, elements and data attributes.

A script finds what it changes by a name, and the name stands in its source. Pages that run the
same scripts are alike in what these do to them as far as the same names stand in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.work.asset_loading import AssetLoader, Get, resolved

MAX_SCRIPTS: Final = 50  # of one page that are read
MAX_NAMES: Final = 5_000  # of one page

# Ids and elements stand right behind a quotation mark or a `#`; classes in lists as well.
_QUOTED: Final = re.compile(r"(?<=[#\"'`])-?[A-Za-z_][\w-]*", re.ASCII)
_LISTED: Final = re.compile(r"(?<=[.\s\"'`,(>\[])-?[A-Za-z_][\w-]*", re.ASCII)
_TAG: Final = re.compile(r"<([a-z][a-z0-9-]*)", re.IGNORECASE)
_DATA: Final = re.compile(r"\s(data-[\w-]+)", re.ASCII)
_NAMED: Final = re.compile(
    r"\s(class|id)\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE
)


class Script(NamedTuple):
    """One script of a page: its source, or else the address of it."""

    text: str
    src: str
    is_module: bool = False


class Words(NamedTuple):
    """What stands in a source right behind a quotation mark, and where any name can stand."""

    quoted: frozenset[str]
    all: frozenset[str]


def words_of(source: str) -> Words:
    return Words(frozenset(_QUOTED.findall(source)), frozenset(_LISTED.findall(source)))


def names_in(html: str) -> frozenset[str]:
    """`#id`, `.class`, `tag` and `data-name` as they stand in a page."""
    found = {tag for tag in map(str.lower, set(_TAG.findall(html))) if len(tag) > 1}
    found.update(_DATA.findall(html))
    for kind, *values in set(_NAMED.findall(html)):
        sign = "." if kind in {"class", "CLASS"} else "#"
        found.update(sign + name for name in "".join(values).split())
        if len(found) > MAX_NAMES:
            break
    return frozenset(found)


class ScriptLoader:
    """The scripts that one crawl has met; used by several workers at once."""

    def __init__(self, get: Get) -> None:
        self._scripts: AssetLoader[Words | None] = AssetLoader(get, words_of, None)

    async def close(self) -> None:
        await self._scripts.close()

    async def named(
        self, names: frozenset[str], scripts: Iterable[Script], base: str, deadline: float
    ) -> frozenset[str]:
        """Which of a page's `names` its scripts name; of scripts that cannot be read, whose
        source did not come or is spread over modules, all but the ids.
        """
        known: list[Words | None] = []
        places: list[str] = []
        for script in list(scripts)[:MAX_SCRIPTS]:
            if script.is_module:
                known.append(None)
            elif script.src:
                places.append(resolved(base, script.src))
            else:
                known.append(await self._scripts.parsed(script.text))
        await self._scripts.load(places, deadline)
        known += (self._scripts.known(place) for place in places)
        return frozenset(name for name in names if any(_is_named(name, each) for each in known))


def _is_named(name: str, words: Words | None) -> bool:
    if words is None:
        return name[0] != "#"
    return name[1:] in words.all if name[0] == "." else name.removeprefix("#") in words.quoted
