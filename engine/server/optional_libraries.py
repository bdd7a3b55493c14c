"""Import of the modules that need the libraries of MCP and HTTP, which are an extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from engine.model.errors import EngineError


class ServerNotInstalled(EngineError):
    """The libraries of the served interfaces are not installed."""

    code = "server_not_installed"
    title = "The server is not installed"
    sentence = "The libraries that serve MCP and HTTP are not installed ({name} is missing)."
    advice_text = "Install them with: pip install 'openchrome-monitor[server]'"


def import_server(module: str) -> ModuleType:
    """Import a module of `engine.server`, whose libraries are an extra and slow to import.

    Raises:
        ServerNotInstalled: a library is missing.
    """
    try:
        return importlib.import_module(f"engine.server.{module}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("engine"):
            raise
        raise ServerNotInstalled(name=error.name or "a library") from error
