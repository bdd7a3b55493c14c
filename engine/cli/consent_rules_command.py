"""`octask consent-rules`: show and install the rules by which consent banners are dismissed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from engine.browser.chromium import consent_rules
from engine.browser.chromium.consent_rules import ConsentRules
from engine.cli.calls import Interrupts, print_json, refuse
from engine.cli.exit_codes import OK
from engine.cli.options import place_options
from engine.logging.logs import log_to_file
from engine.model.errors import ConsentDownloadFailed, EngineError
from engine.text.cli_messages import say


@click.group("consent-rules", invoke_without_command=True)
@place_options
@click.pass_context
def consent_rules_group(ctx: click.Context, /, as_json: bool, **_: object) -> None:
    """Show and install the rules by which consent banners are dismissed.

    Tasks with `--dismiss-consent` need them. They are those of DuckDuckGo's autoconsent (MPL-2.0),
    and no part of this program.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        version = consent_rules.installed_version()
    except EngineError as error:
        refuse(error, as_json=as_json)
    if as_json:
        print_json({"version": version or None, "path": str(consent_rules.place())})
    elif version:
        click.echo(say("consent.present", version=version, path=consent_rules.place()))
    else:
        click.echo(say("consent.missing", version=consent_rules.VERSION))
    sys.exit(OK)


@consent_rules_group.command("install")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--base-url",
    default=consent_rules.BASE_URL,
    envvar=consent_rules.SERVER_VARIABLE,
    metavar="URL",
    help="Server with the single files of npm packages, as NAME@VERSION/FILE.",
)
@place_options
def install(file: Path | None, base_url: str, as_json: bool, **_: object) -> None:
    """Install the rules from FILE, the npm package `@duckduckgo/autoconsent` (.tgz).

    Without FILE the version that was tested is downloaded, and its checksums are verified. Proxies
    are read from HTTPS_PROXY.
    """
    log_to_file()
    try:
        if file is None:
            found = asyncio.run(_download(base_url))
        else:
            found = consent_rules.install_file(file)
    except EngineError as error:
        refuse(error, as_json=as_json)
    if as_json:
        print_json({"version": found.version, "path": str(consent_rules.place())})
    else:
        path = consent_rules.place()
        click.echo(say("consent.done", version=found.version, path=path))
    sys.exit(OK)


async def _download(base_url: str) -> ConsentRules:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(say("consent.downloading"), total=consent_rules.SIZE)
        try:
            async with asyncio.timeout(None) as limit:
                with Interrupts(lambda: limit.reschedule(asyncio.get_running_loop().time())):
                    return await consent_rules.download(
                        lambda size: bars.update(bar, completed=size), base_url
                    )
        except TimeoutError:
            reason = "the download was cancelled"
            server = consent_rules.server_of(base_url)
            raise ConsentDownloadFailed(host=server, reason=reason) from None
