"""`octask profile`: named sign-ins, made by hand in a browser window or from a file of cookies."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import call, print_json, refuse, settings_from
from engine.cli.exit_codes import FAILED
from engine.cli.options import place_options
from engine.cli.show import now_ms
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import Unreadable
from engine.profiles.profile import Profile
from engine.profiles.storage_state import read_cookie_file
from engine.profiles.system_keyring import has_keyring
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs import Verb
from engine.verbs.profile_verbs import profile_data

if TYPE_CHECKING:
    from engine.service.engine import Engine

Made = tuple[Profile, EngineError | None]


def _options(command: Any) -> Any:
    for option in reversed(
        (
            click.option(
                "--site",
                "sites",
                multiple=True,
                metavar="HOST",
                help="A host that the profile is for (repeatable; default: those that are opened, "
                "or that of URL for a file).",
            ),
            click.option(
                "--check-url",
                metavar="URL",
                help="A page that tells whether the profile is signed in (default: the last one, "
                "or that of the profile).",
            ),
            click.option(
                "--check-selector",
                metavar="CSS",
                help="An element that this page has only if it is signed in.",
            ),
        )
    ):
        command = option(command)
    return place_options(command)


@click.command
@click.argument("name")
@click.argument("url")
@_options
def new(name: str, url: str, **given: Any) -> None:
    """Sign in by hand in a browser window, and keep the sign-in as NAME.

    The window opens at URL. Sign in there, then close it, or press Enter here. Cookies and stored
    data of the sites that were opened are kept in a private file, encrypted where the system has a
    keyring. `--profile NAME` of `octask start` uses it.
    """
    _sign_in(name, url, renews=False, **given)


@click.command
@click.argument("name")
@click.argument("url", required=False)
@_options
def renew(name: str, url: str | None, **given: Any) -> None:
    """Sign in once more for the profile NAME, at its address or at URL."""
    _sign_in(name, url or "", renews=True, **given)


@click.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("url")
@_options
def import_profile(name: str, file: Path, url: str, **given: Any) -> None:
    """Make the profile NAME from the cookies in FILE, for the site of URL.

    FILE is a storage state of Playwright, a JSON list of cookies, or a cookies.txt.
    """
    # Read before the loop runs: it would wait for a pipe without a writer through every Ctrl-C.
    try:
        state = read_cookie_file(file)
    except EngineError as error:
        refuse(error, as_json=given["as_json"])

    async def make(engine: Engine, request: Any) -> Profile | None:
        return await engine.profiles.take(request, state)

    _make(name, url, make, renews=False, **given)


def _sign_in(name: str, url: str, **given: Any) -> None:
    async def make(engine: Engine, request: Any) -> Profile | None:
        async with engine.profiles.signing_in(request) as window:
            is_terminal = sys.stdin is not None and sys.stdin.isatty()
            click.echo(say("profile.wait" if is_terminal else "profile.wait.window"), err=True)
            if is_terminal:
                _set_on_enter(window.done)
            await window.until_done()
            seen = await window.seen()
        return await engine.profiles.save(request, seen)

    _make(name, url, make, **given)


def _make(
    name: str,
    url: str,
    make: Callable[[Engine, Any], Coroutine[Any, Any, Profile | None]],
    **given: Any,
) -> None:
    """Make a profile, check it, and print both; `given` are the options of the command."""
    as_json, home, root = given.pop("as_json"), given.pop("home"), given.pop("root")

    async def work(engine: Engine) -> Made:
        request = await engine.profiles.request(name, url, **given)
        made = await make(engine, request)
        assert made is not None
        try:
            return await engine.profiles.check(made.name), None
        except EngineError as error:  # the profile is stored all the same
            return made, error

    try:
        settings = settings_from(home, root)
    except EngineError as error:
        refuse(error, as_json=as_json)
    made, unchecked = call(settings, work, accepts=True, as_json=as_json)
    if as_json:
        print_json(profile_data(made))
    else:
        _print(made)
    if unchecked is not None:
        click.echo(say("profile.unchecked", reason=str(unchecked)), err=True)
    if made.signed_in is False:
        click.echo(say("profile.not_signed_in", url=made.shown_check), err=True)
        sys.exit(FAILED)


def _set_on_enter(done: asyncio.Event) -> None:
    """Set `done` at a line of standard input, on a thread that the end of the program abandons."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if sys.stdin.readline():
            with suppress(RuntimeError):  # the program has ended
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=read, name="wait for Enter", daemon=True).start()


def profile_list(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print one line for each profile."""

    async def read(engine: Engine) -> Any:
        return await verb.call(engine, given) if as_json else await engine.profiles.all()

    found = call(settings, read, as_json=as_json)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(say("profile.none"))
    for one in found:
        if isinstance(one, Unreadable):
            click.echo(say("profile.unreadable", name=one.task_id, reason=one.reason))
        else:
            click.echo(_line(one))


def show(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print what is known of one profile."""

    async def read(engine: Engine) -> Any:
        if as_json:
            return await verb.call(engine, given)
        return await engine.profiles.get(given["name"])

    found = call(settings, read, as_json=as_json)
    if as_json:
        print_json(found)
    else:
        _print(found)


def check(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print whether the profile is signed in; exit code 1 if it is not."""

    async def ask(engine: Engine) -> Profile:
        return await engine.profiles.check(given["name"])

    found = call(settings, ask, accepts=True, as_json=as_json)
    if as_json:
        print_json(profile_data(found))
    else:
        click.echo(_line(found))
    if not found.signed_in:
        sys.exit(FAILED)


def remove(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Delete the profile, and say so."""
    found = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json(found)
    else:
        click.echo(say("profile.removed", name=given["name"]))


def _line(one: Profile) -> str:
    age = words.ago(one.signed_in_at, now_ms())
    sites = ", ".join(one.sites)
    return say("profile.line", name=one.name, sites=sites, age=age, state=state_words(one))


def state_words(one: Profile) -> str:
    """Return in words whether the last check or task found the profile signed in."""
    if one.signed_in is None:
        return say("profile.state.unknown")
    return say("profile.state.in" if one.signed_in else "profile.state.out")


def _print(one: Profile) -> None:
    click.echo(_line(one))
    click.echo(say("profile.check", url=one.shown_check, selector=one.check_selector or "–"))
    if one.encrypted:
        click.echo(say("profile.encrypted"))
    else:
        click.echo(say("profile.plain" if not has_keyring() else "profile.plain.keyring"))


RENDERERS: Final = {
    "profile list": profile_list,
    "profile show": show,
    "profile check": check,
    "profile remove": remove,
}
