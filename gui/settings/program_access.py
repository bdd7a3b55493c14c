"""Preferences for other programs, applied to the server of the window."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject

from engine.service.allowlists import is_allowed_secret, private_place
from gui.context.preferences import Preferences
from gui.context.window_context import WindowContext
from gui.engine_link.program_server import ServerSettings
from gui.engine_link.scheduling import Debounce

PREFIX: Final = "programs."
MOST_PORT: Final = 65_535
SETTLE_MS: Final = 400  # a port that is stepped through must not start a server at each step


def server_settings(preferences: Preferences) -> ServerSettings:
    """Return the settings; invalid entries of the lists are left out."""
    places = map(private_place, typed_lines(preferences, "programs.allow_private"))
    names = typed_lines(preferences, "programs.allow_secrets")
    return ServerSettings(
        enabled=preferences.get("programs.serve", bool),
        port=min(max(preferences.get("programs.port", int), 0), MOST_PORT),
        allow_private=tuple(dict.fromkeys(filter(None, places))),
        allow_secrets=tuple(dict.fromkeys(filter(is_allowed_secret, names))),
    )


def typed_lines(preferences: Preferences, key: str) -> list[str]:
    """Return the lines of a list as they were typed; other values are left out."""
    return [line for line in preferences.get(key, list) if isinstance(line, str)]


class ProgramAccess(QObject):
    """Apply the preferences to the server, from the first complete list on."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._loaded = False
        self._settling = Debounce(self, SETTLE_MS, self._apply)
        ctx.bridge.loaded.connect(self._begin)
        ctx.preferences.changed.connect(self._follow)

    def _begin(self) -> None:
        if not self._loaded:
            self._loaded = True
            self._apply()

    def _follow(self, key: str) -> None:
        if key == "programs.port":
            self._settling.request()
        elif key.startswith(PREFIX):
            self._settling.cancel()
            self._apply()

    def _apply(self) -> None:
        if self._loaded:
            self._ctx.bridge.programs.apply(server_settings(self._ctx.preferences))
