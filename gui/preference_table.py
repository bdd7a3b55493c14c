"""Every preference with its default: a new one is one line here, its control is the settings'."""

from __future__ import annotations

DEFAULTS: dict[str, object] = {
    "appearance.theme": "system",  # system, light, dark
}
