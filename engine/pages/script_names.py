"""What the scripts of a page name of it: ids, classes, elements and data attributes.

A script finds what it changes by a name, and the name stands in its source. Pages that run the
same scripts are alike in what these do to them as far as the same names stand in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.pages.asset_loading import AssetLoader, Get, resolved

MAX_SCRIPTS: Final = 50  # of one page that are read
MAX_NAMES: Final = 5_000  # of one page

# Where sources name ids and classes: in selectors, and in calls that take nothing else. All other
# words in texts would be names too, but libraries are full of words such as `data` and `function`.
_SELECTED: Final = re.compile(r"[\"'`\s,>+~(\w\])*]([#.]-?[A-Za-z_][\w-]*)", re.ASCII)
# Comments first: the apostrophes of their words begin no text.
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
    """One script of a page: its source, or else the address of it."""

    text: str
    src: str
    is_module: bool = False


def named_in(source: str) -> frozenset[str]:
    """`#id`, `.class`, `tag` and `data-name` as a source names them to find elements."""
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
    """`#id`, `.class`, `tag` and `data-name` as they stand in a page."""
    found = {tag for tag in map(str.lower, set(_TAG.findall(html))) if len(tag) > 1}
    found.update(_DATA.findall(html))
    for kind, *values in set(_NAMED.findall(html)):
        sign = "." if kind.lower() == "class" else "#"
        found.update(sign + name for name in "".join(values).split())
        if len(found) > MAX_NAMES:
            break
    return frozenset(found)


class ScriptLoader:
    """The scripts that one crawl has met; used by several workers at once."""

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
        """Which of a page's `names` its scripts name; of scripts that cannot be read, whose
        source did not come or is spread over modules, all but the ids.
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
