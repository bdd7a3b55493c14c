"""A window comes forward: out of the tray, out of the task bar, before the others."""

from __future__ import annotations

import os
from collections.abc import Mapping

from PySide6.QtWidgets import QApplication, QWidget

# What a launcher gives the program that it starts: leave to take the focus. Wayland lets no
# window come forward without; on X11 the other one keeps the window manager from refusing.
_TOKENS = ("XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID")


def token_in(environ: Mapping[str, str]) -> str:
    """The leave that this start of the program was given; empty without one."""
    return next((environ[name] for name in _TOKENS if environ.get(name)), "")


def come_forward(window: QWidget, token: str = "") -> None:
    """Show `window` and give it the focus; `token` is the desktop's leave to do so."""
    from PySide6.QtCore import Qt  # 45 ms, and the first paint needs none of it

    if token:
        os.environ[_TOKENS[0]] = token  # Qt's Wayland part looks here, uses it once, and clears it
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
    if is_kept_back(QApplication.platformName(), token):
        QApplication.alert(window)


def is_kept_back(platform: str, token: str) -> bool:
    """Does the desktop ignore a window without leave? Then its entry at least asks to be seen."""
    return platform.startswith("wayland") and not token
