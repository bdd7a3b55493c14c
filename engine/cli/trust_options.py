"""Options of `octask mcp` and `octask serve`: what their tasks may reach and use, and their proxy.

A page may control the program, so access needs the operator's permission (docs/agents.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import click

from engine.cli.run_files import allow_files_option, check_folder
from engine.kinds.arguments import PROXY, proxy_problems, read_all
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, Problem
from engine.model.proxies import DefaultProxy
from engine.service.allowlists import is_allowed_secret, is_variable, private_place

F = TypeVar("F", bound=Callable[..., Any])


PROXY_OPTIONS: Final = {
    "--proxy": "proxy",
    "--proxy-username": "proxy_username",
    "--proxy-password": "proxy_password",
    "--proxy-bypass": "proxy_bypass",
}


def proxy_options(command: F) -> F:
    """Add the options of the proxy to a command."""
    for option in (
        click.option(
            "--proxy-bypass",
            multiple=True,
            metavar="HOST",
            help="Connect to this host directly: HOST, .DOMAIN, HOST:PORT, network (repeatable).",
        ),
        click.option(
            "--proxy-password",
            metavar="env:NAME",
            help="The variable that holds the proxy's password; never the password itself.",
        ),
        click.option("--proxy-username", metavar="NAME", help="User name for the proxy."),
        click.option(
            "--proxy",
            metavar="URL",
            help="Upstream proxy of its tasks: http://, https://, socks5:// or socks5h://HOST:PORT,"
            " env or none (default: OC_PROXY).",
        ),
    ):
        command = option(command)
    return command


def default_proxy(settings: Settings, given: Mapping[str, Any]) -> DefaultProxy:
    """Return the proxy of the options, else the one of the settings.

    Raises:
        InvalidArguments: an option has no valid value.
    """
    values = {name: given[name] for name in PROXY_OPTIONS.values()}
    secret = values["proxy_password"]
    problems: list[Problem] = []
    if secret is not None and not (secret.startswith("env:") and is_variable(secret[4:])):
        problems.append(Problem("--proxy-password", "invalid_value", "must be env:NAME"))
    fields, wrong = read_all({name: one for name, one in values.items() if one}, PROXY, "a proxy")
    for problem in [*wrong, *([] if wrong else proxy_problems(fields))]:
        option = f"--{problem.path.replace('_', '-')}"
        problems.append(Problem(option, problem.code, problem.message))
    if problems:
        raise InvalidArguments(tuple(problems))
    if not values["proxy"]:
        return settings.proxy
    return DefaultProxy(
        proxy=fields["proxy"],
        username=fields.get("proxy_username", ""),
        password=secret or "",
        bypass=fields.get("proxy_bypass", ()),
        environ=settings.environ,
    )


def proxy_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the proxy of the options as arguments of a task, which are stored with it."""
    values = {name: given[name] for name in PROXY_OPTIONS.values() if given[name]}
    if "proxy_password" in values:
        values["proxy_password"] = {"secret": values["proxy_password"]}
    if "proxy_bypass" in values:
        values["proxy_bypass"] = [*values["proxy_bypass"]]
    return values


def with_proxy(args: Mapping[str, Any], proxy: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the proxy of the options, instead of all that they say of theirs."""
    kept = {name: value for name, value in args.items() if name not in PROXY}
    return {**kept, **proxy} if "proxy" in proxy else {**args, **proxy}


def trust_options(command: F) -> F:
    """Add the options to a command."""
    for option in (
        allow_files_option,
        click.option(
            "--allow-secret",
            multiple=True,
            metavar="NAME",
            help="An environment variable that its tasks may use as a secret, or profile:NAME "
            "(repeatable).",
        ),
        click.option(
            "--allow-private",
            multiple=True,
            metavar="HOST:PORT",
            help="A private address that its tasks and tools may open (repeatable).",
        ),
    ):
        command = option(command)
    return proxy_options(command)


def trusting(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """Return the settings with the permissions of the options.

    Raises:
        InvalidArguments: an option has no valid value.
    """
    check_folder(given["allow_files"])
    problems: list[Problem] = []
    places: list[str] = []
    for typed in given["allow_private"]:
        if (place := private_place(typed)) is not None:
            places.append(place)
        else:
            problem = "must be a host and a port, such as localhost:8080"
            problems.append(Problem("--allow-private", "invalid_value", problem))
    for name in given["allow_secret"]:
        if not is_allowed_secret(name):
            problem = "must be the name of an environment variable, or profile:NAME"
            problems.append(Problem("--allow-secret", "invalid_value", problem))
    if problems:
        raise InvalidArguments(tuple(problems))
    return replace(
        settings,
        allow_files=given["allow_files"],
        allow_private=tuple(places),
        allow_secrets=tuple(given["allow_secret"]),
        proxy=default_proxy(settings, given),
    )
