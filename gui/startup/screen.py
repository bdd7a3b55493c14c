"""Choice of the Qt platform, and the error without a usable screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.model.errors import EngineError

INVISIBLE: Final = "offscreen"  # Qt's platform that draws in memory only


class NoScreen(EngineError):
    """A screen is configured, but no window can be shown there."""

    code = "window_without_screen"
    title = "There is no screen for the window"
    sentence = "No window can be shown: Qt cannot use the screen that is spoken of ({wanted})."
    advice_text = (
        "Check WAYLAND_DISPLAY, DISPLAY and QT_QPA_PLATFORM, and install what Qt needs "
        "(./dev setup does). `octask` needs no screen."
    )


def wanted_screens(environ: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """Return Qt's platform names for the environment, best first."""
    if not platform.startswith("linux"):
        return ()
    if given := environ.get("QT_QPA_PLATFORM"):
        return tuple(given.split(";"))
    known = (("wayland", "WAYLAND_DISPLAY"), ("xcb", "DISPLAY"))
    return tuple(name for name, variable in known if environ.get(variable))


def platform_for(environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """Return the Qt platform variable: invisible without a screen, else as fallback.

    Without a fallback Qt ends the process without a message when all platforms fail; `check_screen`
    reports it instead.
    """
    wanted = wanted_screens(environ, platform)
    if not platform.startswith("linux") or _invisible(wanted):
        return {}
    return {"QT_QPA_PLATFORM": ";".join([*wanted, INVISIBLE])}


def check_screen(wanted: Sequence[str], drawn_on: str) -> None:
    """Raise NoScreen if the window would be invisible against the configuration."""
    if wanted and drawn_on == INVISIBLE and not _invisible(wanted):
        raise NoScreen(wanted=", ".join(wanted))


def _invisible(wanted: Sequence[str]) -> bool:
    return any(name.split(":")[0] == INVISIBLE for name in wanted)
