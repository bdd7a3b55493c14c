"""The options `--cluster` and `--remote-browser` of commands whose options are not of one kind.

`octask start` makes the same options from its kinds; the engine checks both in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from engine.kinds.cluster_use import CLUSTER
from engine.kinds.remote_browser_use import REMOTE_BROWSER

F = TypeVar("F", bound=Callable[..., Any])

_NAMES: Final = ("cluster", "remote_browser")

cluster_option: Final = click.option(
    "--cluster",
    metavar="ADDRESS",
    help=CLUSTER.help.replace("default: ", "default: that of the task, else "),
)
remote_browser_option: Final = click.option(
    "--remote-browser", metavar="ADDRESS", help=REMOTE_BROWSER.help
)


def machine_options(command: F) -> F:
    """Add both options to a command that starts a task again."""
    return cluster_option(remote_browser_option(command))


def machine_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options as arguments of a task, which replace those that it has."""
    return {name: given[name] for name in _NAMES if given.get(name) is not None}
