"""`octask install-browser`: download Chromium, with progress; Ctrl-C leaves nothing behind."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from engine.browser.chromium.locate import locate
from engine.cli.calls import Interrupts, bare_settings, print_json, refuse
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.logging.logs import log_to_file
from engine.model.errors import BrowserDownloadCancelled, BrowserMissing, EngineError
from engine.text.cli_messages import say

if TYPE_CHECKING:
    from engine.browser.chromium.browser_download import InstalledBrowser, Progress


@click.command("install-browser")
@click.option("--full", is_flag=True, help="Download the browser with windows, for recordings.")
@place_options
def install_browser(home: Path | None, root: Path | None, as_json: bool, full: bool) -> None:
    """Download Chromium for this program.

    Other browsers are not changed. By default this is the headless shell (about 110 MB), which is
    enough for all tasks but recordings. Proxies are read from HTTPS_PROXY.
    """
    log_to_file()
    try:
        setting = bare_settings(home, root).browser_path
        line = _Line()
        with line.shown():
            installed = asyncio.run(_install(full, line))
        used = _used(setting, full)
    except EngineError as error:
        refuse(error, as_json=as_json)
    if as_json:
        told = {"path": installed.path, "version": installed.version}
        print_json({**told, "new": installed.is_new, "used": used == installed.path})
    else:
        message = "install.done" if installed.is_new else "install.present"
        click.echo(say(message, version=installed.version, path=installed.path))
        if used != installed.path:
            click.echo(say("install.unused", path=used), err=True)
    sys.exit(OK)


def _used(setting: str | None, full: bool) -> str:
    """Return the browser that tasks use now; a wrong setting is reported as such."""
    try:
        return locate(setting, headless=not full).path
    except BrowserMissing:
        return setting or ""


async def _install(full: bool, line: _Line) -> InstalledBrowser:
    from engine.browser.chromium import browser_download  # no other command needs the driver

    try:
        async with asyncio.timeout(None) as limit:
            with Interrupts(lambda: limit.reschedule(asyncio.get_running_loop().time())):
                return await browser_download.install_browser(full=full, report=line.show)
    except TimeoutError:
        raise BrowserDownloadCancelled() from None


class _Line:
    """Progress on standard error: a bar on a terminal, otherwise one line for each stage."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), DownloadColumn())
        console = Console(stderr=True)
        self._bars = Bars(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._bar = self._bars.add_task("", total=None)
        self._is_terminal = sys.stderr.isatty()
        self._stage = ""

    def show(self, progress: Progress) -> None:
        words = say(f"install.{progress.stage}")
        if self._is_terminal:
            self._bars.update(self._bar, description=words)
            if progress.total_bytes:  # later stages keep what the bar shows
                done, total = progress.done_bytes, progress.total_bytes
                self._bars.update(self._bar, completed=done, total=total)
        elif progress.stage != self._stage:
            click.echo(words, err=True)
        self._stage = progress.stage

    def shown(self) -> AbstractContextManager[object]:
        """Return the bar as a context, where there is a terminal to show it."""
        return self._bars if self._is_terminal else nullcontext()
