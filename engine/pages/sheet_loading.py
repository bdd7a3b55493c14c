"""The rules of each page's style sheets, with those that a sheet imports."""

from __future__ import annotations

from typing import Final

from engine.model.addresses import link_address
from engine.pages.asset_loading import AssetLoader, Get, resolved
from engine.pages.style_sheets import MAX_SHEETS, Rule, Sheet, parse_sheet, sheets_of

MAX_DEPTH: Final = 6  # sheets that import each other, one after another
MAX_ADDED: Final = 60  # sheets of one page with all that they import
_NONE: Final = Sheet()

Styles = tuple[tuple[Rule, ...], ...]


class SheetLoader:
    """The style sheets that one crawl has met; used by several workers at once."""

    def __init__(self, get: Get) -> None:
        self._sheets = AssetLoader(get, parse_sheet, _NONE)

    async def close(self) -> None:
        await self._sheets.close()

    async def of_page(self, html: str, url: str, deadline: float, charset: str = "") -> Styles:
        """The rules for a page in `charset`, sheet by sheet; `deadline` is of the loop's clock."""
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
        """Add a sheet's rules behind those of the sheets that it imports."""
        places = [resolved(at, to) for to in sheet.imports[:MAX_SHEETS]]
        if depth == MAX_DEPTH or len(rules) >= MAX_ADDED:
            return
        await self._sheets.load(places, deadline)
        for place in places:
            await self._add(rules, place, self._sheets.known(place), deadline, depth + 1)
        rules.append(sheet.rules)
