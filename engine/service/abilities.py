"""Permissions that a request from elsewhere implies, for review before its start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from engine.egress.egress_policy import Place, place_of
from engine.egress.public_addresses import literal, refusal
from engine.kinds.commands.command_values import filled, is_reference, variable_text
from engine.model.errors import AddressBlocked
from engine.model.kind_traits import traits_of
from engine.service.forms import COMMANDS
from engine.service.rerun import Asked

_ADDRESS: Final = re.compile(r"https?:[/\\]*[^\s\"'<>`]+", re.IGNORECASE)
_PLAIN_PORTS: Final = (80, 443)
_NEAR_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa", ".lan")
_STEPS: Final = {
    "type": "typing",
    "keyboard": "typing",
    "select": "typing",
    "evaluate": "scripts",
    "click": "clicks",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """`hosts` lists all hosts in the request, `private` those of this machine or network.

    `scripts`, `typing` and `clicks` count commands; `secrets` are names of environment
    variables; `instance` is a browser that is already open and may be logged in.
    """

    hosts: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    follows_links: bool = False
    anywhere: bool = False
    scripts: int = 0
    typing: int = 0
    clicks: int = 0
    secrets: tuple[str, ...] = ()
    headed: bool = False
    cookies: bool = False
    instance: bool = False


def abilities(asked: Asked) -> Abilities:
    """Collect abilities from the request alone, without resolving or opening an address."""
    args = asked.args
    places = dict.fromkeys(_places(_named(asked)))
    commands = _commands(args) if asked.kind == COMMANDS else []
    kinds = [_STEPS.get(str(each.get("action")), "") for each in commands]
    crawls = traits_of(asked.kind).crawls
    return Abilities(
        hosts=tuple(map(_shown, places)),
        private=tuple(str(place) for place in places if _is_private(place)),
        follows_links=traits_of(asked.kind).follows_links,
        anywhere=crawls and (args.get("scope") == "**" or args.get("other_origins") is True),
        scripts=kinds.count("scripts"),
        typing=kinds.count("typing"),
        clicks=kinds.count("clicks"),
        secrets=tuple(dict.fromkeys(_secrets(args))),
        headed=_is_headed(asked, commands),
        cookies=bool(args.get("include_cookies") or args.get("include_storage")),
        instance=isinstance(args.get("instanceId"), str) or isinstance(args.get("tab"), str),
    )


def _named(asked: Asked) -> Any:
    """Return the texts that may hold addresses: all command texts, or the address arguments."""
    if asked.kind == COMMANDS:
        known = _variables(asked.args.get("variables"))
        return [filled(text, known) for text in _texts(asked.args.get("commands"))]
    return [asked.args.get(name) for name in ("url", "sitemap_url", "tabs")]


def _variables(given: object) -> dict[str, str]:
    """Return the values of `{{name}}`; skip invalid ones, which `start` rejects later."""
    known: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        with suppress(ValueError):
            known[str(name)] = variable_text(value)
    return known


def _places(given: Any) -> Iterator[Place]:
    for text in _texts(given):
        for found in _ADDRESS.findall(text):
            try:
                yield place_of(found)
            except AddressBlocked:
                continue  # `start` rejects the request for this address


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        yield from (text for value in given.values() for text in _texts(value))
    elif isinstance(given, list | tuple):
        yield from (text for value in given for text in _texts(value))


def _commands(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = args.get("commands")
    listed = found if isinstance(found, list | tuple) else ()
    inner = (each.get("args") for each in listed if isinstance(each, Mapping))
    return [each for each in inner if isinstance(each, Mapping)]


def _secrets(given: Any) -> Iterator[str]:
    if is_reference(given):
        yield str(given["secret"]).removeprefix("env:")
    elif isinstance(given, Mapping):
        yield from (name for value in given.values() for name in _secrets(value))
    elif isinstance(given, list | tuple):
        yield from (name for value in given for name in _secrets(value))


def _is_headed(asked: Asked, commands: list[Mapping[str, Any]]) -> bool:
    if traits_of(asked.kind).opens_window:
        return asked.args.get("headless") is not True
    return any(each.get("headed") is True for each in commands)


def _is_private(place: Place) -> bool:
    host = place.host
    if host == "localhost" or host.endswith(_NEAR_NAMES):
        return True
    address = literal(host)
    return address is not None and refusal(address) is not None


def _shown(place: Place) -> str:
    return place.host if place.port in _PLAIN_PORTS else str(place)
