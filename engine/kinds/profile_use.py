"""The argument `profile` of every kind, and the sign-in of a task that has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from engine.egress.egress_policy import Policy
from engine.kinds.arguments import Argument, FormField, optional, proxy_secrets
from engine.kinds.context import FROM_OUTSIDE, Context
from engine.kinds.spec import Tools
from engine.model.addresses import address_of
from engine.model.config import Settings
from engine.model.errors import EngineError, Problem
from engine.profiles.profile import profile_name
from engine.profiles.profile_store import ProfileStore
from engine.profiles.sign_in import SignIn
from engine.profiles.storage_state import host_of
from engine.secrets.given_secrets import Hidden

PROFILE_HINT: Final = "The name of a profile (Tools → Profiles…)."
PROFILE: Final = Argument(
    optional(profile_name),
    FormField("Profile", "identity", editor="line", hint=PROFILE_HINT, shade="none"),
    help="Profile to sign in with; see octask profile.",
)
ALLOWED: Final = "profile:"  # in the operator's list of secrets for programs, before the name
_FIELDS: Final = ("profile", "save_profile")
_ADDRESSES: Final = ("url", "sitemap_url")


@asynccontextmanager
async def using_profile(
    name: str | None, context: Context, tools: Tools
) -> AsyncIterator[SignIn | None]:
    """Yield the sign-in of a task, None without a profile; store its renewed cookies at the end.

    Its tokens are masked in everything that the task stores.

    Raises:
        RecordNotFound, RecordUnreadable, KeyLost, KeyringFailed: it cannot be used.
    """
    if name is None:
        yield None
        return
    store = ProfileStore(tools.settings.home)
    sign_in = await asyncio.to_thread(lambda: SignIn(store.read(name), store.state(name)))
    context.conceal(sign_in.secrets)
    sign_in.on_secrets.append(context.conceal_later)
    try:
        yield sign_in
    finally:
        await asyncio.shield(_keep(store, sign_in, context))


def secrets_of(sign_in: SignIn | None, policy: Policy) -> tuple[Hidden, ...]:
    """Return the values of a sign-in and of the policy's proxy that no output may repeat.

    The proxy may be that of the settings, which no argument of the task names.
    """
    tokens = () if sign_in is None else tuple(sign_in.secrets)
    return (*tokens, *proxy_secrets(policy.proxy))


async def _keep(store: ProfileStore, sign_in: SignIn, context: Context) -> None:
    """Store what the task learned of the profile; the task's own end does not depend on it."""
    name, now_ms = sign_in.profile.name, context.now_ms()

    def keep() -> None:
        if sign_in.lost:
            store.note_check(sign_in.profile, now_ms, signed_in=False)
        elif sign_in.has_changed:
            store.renew(name, sign_in.cookies, sign_in.stored)

    try:
        await asyncio.to_thread(keep)
    except EngineError as error:
        await context.log("profile", f"The profile {name} was not updated: {error}")


def profile_problems(args: Mapping[str, Any], tools: Tools) -> list[Problem]:
    """Return the problems of a task's profile as it is now: it is missing, or for other sites."""
    settings = tools.settings
    if settings.route in FROM_OUTSIDE:
        refused = [_refusal(field, args[field], settings) for field in _FIELDS if args.get(field)]
        if found := list(filter(None, refused)):
            return found
    try:
        name = profile_name(args.get("profile"))
    except ValueError:
        return []  # the parser reports it, or there is none
    store = ProfileStore(settings.home)
    try:
        if not store.has(name):
            why = (
                f"there is no profile {name}; make it under Tools → Profiles… or with "
                f"`octask profile new {name} URL`"
            )
            return [Problem("profile", "unknown_profile", why)]
        profile = store.read(name)
    except EngineError as error:
        return [Problem("profile", "unusable_profile", str(error))]
    hosts = tuple(_hosts(args))
    if hosts and not any(map(profile.covers, hosts)):
        why = f"is for {', '.join(profile.sites)}, and not for {', '.join(hosts[:3])}"
        return [Problem("profile", "other_site", why)]
    return []


def _refusal(field: str, name: object, settings: Settings) -> Problem | None:
    """Return the problem of a profile that a program may neither use nor replace."""
    if f"{ALLOWED}{name}" in settings.allow_secrets:
        return None
    why = (
        f"is not allowed to programs; the operator allows it with --allow-secret {ALLOWED}{name}, "
        "or in the settings of the window"
    )
    return Problem(field, "not_allowed", why)


def _hosts(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hosts of the addresses that a task is given."""
    given: Iterable[object] = [
        *(args.get(name) for name in _ADDRESSES),
        *_listed(args.get("urls")),
        *_listed(args.get("tabs")),
    ]
    for one in given:
        url = one.get("url") if isinstance(one, Mapping) else one
        address = address_of(url) if isinstance(url, str) else None
        if address is not None:
            yield host_of(address)


def _listed(given: object) -> Iterable[object]:
    return given if isinstance(given, list | tuple) else ()
