"""What a task from elsewhere may do, in sentences, before anything of it runs."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QObject

from engine.model.display import display
from engine.service.abilities import Abilities

MOST_HOSTS = 6


class MayDo(QObject):
    """The words for `engine.service.abilities`."""

    def lines(self, may: Abilities) -> list[str]:
        """One sentence for each thing that it may do; ⚠ leads what deserves a second look."""
        return [*self._places(may), *self._acts(may)]

    def _places(self, may: Abilities) -> Iterator[str]:
        if may.hosts:
            yield self.tr("It opens {0}.").format(_few(may.hosts))
        if may.private:
            words = self.tr("⚠ It reaches into this machine or network: {0}.")
            yield words.format(_few(may.private))
        if may.anywhere:
            yield self.tr("⚠ It follows addresses to any other site.")
        elif may.follows_links:
            yield self.tr("It follows links within its site.")

    def _acts(self, may: Abilities) -> Iterator[str]:
        if may.typing:
            once = self.tr("It types or chooses in a page once.")
            often = self.tr("It types or chooses in pages, {0} times.")
            yield once if may.typing == 1 else often.format(may.typing)
        if may.clicks:
            once = self.tr("It clicks in a page once.")
            often = self.tr("It clicks in pages, {0} times.")
            yield once if may.clicks == 1 else often.format(may.clicks)
        if may.scripts:
            once = self.tr("⚠ It runs a script of its own in a page.")
            often = self.tr("⚠ It runs scripts of its own in pages, {0} of them.")
            yield once if may.scripts == 1 else often.format(may.scripts)
        if may.secrets:
            yield self.tr("⚠ It uses secrets of this machine: {0}.").format(_few(may.secrets))
        if may.cookies:
            yield self.tr("⚠ It keeps cookies or what sites store.")
        if may.instance:
            yield self.tr("⚠ It uses a browser that is open already, with what it is logged in to.")
        if may.headed:
            yield self.tr("It opens a browser window that you see.")


def _few(names: tuple[str, ...]) -> str:
    shown = [display(name, 80) for name in names[:MOST_HOSTS]]
    return ", ".join([*shown, *(["…"] if len(names) > MOST_HOSTS else [])])
