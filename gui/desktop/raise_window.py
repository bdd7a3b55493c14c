"""Raise a window from the tray, the task bar or the background."""

from __future__ import annotations

import os
from collections.abc import Mapping

from PySide6.QtWidgets import QApplication, QWidget

# Activation tokens of the desktop launcher: Wayland requires one to raise a window, and on X11 the
# startup id prevents focus stealing prevention.
_TOKENS = ("XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID")


def token_in(environ: Mapping[str, str]) -> str:
    """Return the activation token of this program start, or an empty string."""
    return next((environ[name] for name in _TOKENS if environ.get(name)), "")


def come_forward(window: QWidget, token: str = "") -> None:
    """Show and focus `window`, with the desktop's activation token."""
    from PySide6.QtCore import Qt  # The import takes 45 ms, which the first paint does not need

    if token:
        # Qt's Wayland plugin reads this variable, uses it once and clears it.
        os.environ[_TOKENS[0]] = token
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
    if is_kept_back(QApplication.platformName(), token):
        QApplication.alert(window)


def is_kept_back(platform: str, token: str) -> bool:
    """Return whether the desktop ignores a raise without token, so that an alert is needed."""
    return platform.startswith("wayland") and not token
