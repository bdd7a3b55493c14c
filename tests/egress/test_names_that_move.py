"""Names that an operator typed, and whose answers mix or change between public and private."""

from __future__ import annotations

import pytest

from engine.browser.chromium.launch import FLAGS
from engine.egress.egress_policy import KEPT_S, LOOPBACK, Place, Policy, place_of
from engine.kinds.context import reach
from engine.model.config import Settings
from engine.model.errors import PageError
from tests.egress.conftest import PUBLIC, START, World

HOME = "192.168.1.1"
PLACE = place_of(START)


async def why(policy: Policy) -> str:
    try:
        await policy.check(START)
    except PageError as refused:
        return str(refused)
    return "may be opened"


@pytest.mark.case("R65")
async def test_a_name_with_a_private_address_uses_its_public_one(world: World) -> None:
    """It would serve the page itself, then fall silent, and read the other as its own page."""
    world.names["trap.example"] = [f"{HOME} {PUBLIC}"]
    policy = world.policy()
    assert list(map(str, await policy.addresses(PLACE, START))) == [PUBLIC]
    assert list(map(str, policy.known_addresses(PLACE) or ())) == [PUBLIC]


@pytest.mark.case("R65")
async def test_a_private_start_is_not_lent_a_public_script(world: World) -> None:
    now = [0.0]
    world.names["trap.example"] = [HOME, PUBLIC, f"{HOME} {PUBLIC}", HOME]
    policy = world.policy(now=lambda: now[0])
    told = []
    for _ in range(4):
        told.append(await why(policy))
        now[0] += KEPT_S + 1
    moved = "blocked: the name was private, and is public now"
    assert told == ["may be opened", moved, moved, "may be opened"]


@pytest.mark.case("R65")
async def test_a_further_address_of_a_command_task_may_not_turn_inwards(world: World) -> None:
    policy = reach(Settings(), "http://first.example/", START, "http://10.0.0.9:8080/")
    now = [0.0]
    policy._lookup, policy._now = world.lookup, lambda: now[0]
    world.names["trap.example"] = [PUBLIC, "127.0.0.1"]
    assert await why(policy) == "may be opened"
    now[0] += KEPT_S + 1
    assert await why(policy) == "blocked: private address"
    assert policy.known("http://10.0.0.9:8080/") is None
    await policy.check("http://10.0.0.9:8080/x")
    assert policy.known("http://10.0.0.9:8081/") is False


async def test_a_name_that_was_not_found_at_first_is_judged_when_it_is(world: World) -> None:
    world.names["trap.example"] = []
    policy = world.policy()
    assert await why(policy) == "name not found"
    world.names["trap.example"] = [HOME]
    policy._kept.clear()
    assert await why(policy) == "may be opened"


def test_the_browser_itself_finds_three_hosts_and_no_name_that_looks_like_them() -> None:
    rules = next(flag for flag in FLAGS if flag.startswith("--host-resolver-rules="))
    assert rules.endswith(", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in LOOPBACK)]))
    direct = {host: Policy(Place(host, 81)).loopback_places() for host in (*LOOPBACK, "127.0.0.2")}
    assert direct == {**{host: (f"{host}:81",) for host in LOOPBACK}, "127.0.0.2": ()}
