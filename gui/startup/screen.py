"""Which of the desktop's screens the window is drawn on, and what if none of them can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.model.errors import EngineError

INVISIBLE: Final = "offscreen"  # Qt's platform that draws in memory only


class NoScreen(EngineError):
    """A screen is spoken of, and no window can be shown there."""

    code = "window_without_screen"
    title = "There is no screen for the window"
    sentence = "No window can be shown: Qt cannot use the screen that is spoken of ({wanted})."
    advice_text = (
        "Check WAYLAND_DISPLAY, DISPLAY and QT_QPA_PLATFORM, and install what Qt needs "
        "(./dev setup does). `octask` needs no screen."
    )


def wanted_screens(environ: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """The names that Qt has for what the environment speaks of, the best first; or none."""
    if not platform.startswith("linux"):
        return ()
    if given := environ.get("QT_QPA_PLATFORM"):
        return tuple(given.split(";"))
    known = (("wayland", "WAYLAND_DISPLAY"), ("xcb", "DISPLAY"))
    return tuple(name for name, variable in known if environ.get(variable))


def platform_for(environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """What Qt should draw on: without a screen, on an invisible one.

    That is the last choice also where a screen is spoken of, because Qt ends the process without
    a word when all of them fail; `check_screen` says it instead.
    """
    wanted = wanted_screens(environ, platform)
    if not platform.startswith("linux") or _invisible(wanted):
        return {}
    return {"QT_QPA_PLATFORM": ";".join([*wanted, INVISIBLE])}


def check_screen(wanted: Sequence[str], drawn_on: str) -> None:
    """Raise NoScreen where a person would wait for a window that nobody can see."""
    if wanted and drawn_on == INVISIBLE and not _invisible(wanted):
        raise NoScreen(wanted=", ".join(wanted))


def _invisible(wanted: Sequence[str]) -> bool:
    return any(name.split(":")[0] == INVISIBLE for name in wanted)
