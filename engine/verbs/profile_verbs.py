"""Verbs of profiles: list, show, check and remove. No program from outside may use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from engine.model import redact
from engine.model.records import Unreadable
from engine.profiles.profile import Profile
from engine.verbs.model import Param, Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine

NAME = Param("name", "the name of a profile", positional=True, required=True)


def profile_data(one: Profile | Unreadable) -> dict[str, Any]:
    """Return a profile as JSON values; its addresses without what looks like a secret."""
    if isinstance(one, Unreadable):
        return {"name": one.task_id, "unreadable": one.reason, "path": one.path}
    found: dict[str, Any] = msgspec.to_builtins(one)
    return {**found, "url": redact.url(one.url), "check_url": one.shown_check}


async def _list(engine: Engine, _: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [profile_data(one) for one in await engine.profiles.all()]


async def _show(engine: Engine, given: Mapping[str, Any]) -> dict[str, Any]:
    return profile_data(await engine.profiles.get(given["name"]))


async def _check(engine: Engine, given: Mapping[str, Any]) -> dict[str, Any]:
    return profile_data(await engine.profiles.check(given["name"]))


async def _remove(engine: Engine, given: Mapping[str, Any]) -> dict[str, Any]:
    await engine.profiles.remove(given["name"])
    return {"removed": given["name"]}


VERBS: tuple[Verb, ...] = (
    Verb("profile list", "List profiles by name.", (), _list, faces=("cli",)),
    Verb("profile show", "Show one profile, without its cookies.", (NAME,), _show, faces=("cli",)),
    Verb(
        "profile check",
        "Check whether the profile is signed in, by its page.",
        (NAME,),
        _check,
        faces=("cli",),
    ),
    Verb(
        "profile remove",
        "Delete a profile with its cookies; its tasks stay.",
        (NAME,),
        _remove,
        faces=("cli",),
    ),
)
