"""Classify addresses as public or not; pure rules, no lookups.

A browser parses more host spellings than `ipaddress` does (`127.1`, `0x7f.1`, `2130706433`,
full-width digits), and an IPv6 address can contain an IPv4 address. Both are normalized here
before the check.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from engine.model import addresses

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

PRIVATE = "private address"  # the reason of a refusal that the operator can lift
METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # container credentials
            "fd00:ec2::254",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",  # in public space, but responds only inside its cloud
        ),
    )
)

# Prefixes whose addresses contain an IPv4 address, and its shift to the right (bits).
_CARRIERS = (
    (ipaddress.IPv6Network("::/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)
# All allocated IPv6 addresses are in the first of these; the rest is for private use
# (`fec0::/10` among it), or for examples. RFC 4291, section 2.4; RFC 9637.
_GIVEN_OUT = ipaddress.IPv6Network("2000::/3")
_EXAMPLES = ipaddress.IPv6Network("3fff::/20")
_TRANSLATED_LOCALLY = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+){3}", re.ASCII)


def refusal(address: IPAddress) -> str | None:
    """Return why `address` is blocked, in two words; None if it is public."""
    for one in _unfolded(address):
        if one in METADATA:
            return "metadata address"
        if one.is_multicast or not one.is_global or not _is_given_out(one):
            return PRIVATE
    return None


def _is_given_out(address: IPAddress) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return True
    return address in _GIVEN_OUT and address not in _EXAMPLES


def _unfolded(address: IPAddress) -> Iterator[IPAddress]:
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    teredo = address.teredo
    if teredo is not None:
        yield from teredo
    for network, shift in _CARRIERS:
        if address in network:
            yield ipaddress.IPv4Address(int(address) >> shift & 0xFFFF_FFFF)
            if int(address) > 1:
                # Only the IPv4 address counts: Python versions differ on whether the prefix itself
                # is global (3.11.2, as Debian 12 has it, denies 2002::/16).
                return
    if address in _TRANSLATED_LOCALLY:
        yield ipaddress.IPv4Address("127.0.0.1")
    yield address


def literal(host: str) -> IPAddress | None:
    """Return the address of a numeric host in canonical form; None for a name."""
    if host.startswith("["):
        return ipaddress.IPv6Address(host.strip("[]"))
    return ipaddress.IPv4Address(host) if _IPV4.fullmatch(host) else None


def host(address: IPAddress) -> str:
    """Return an address in the canonical form of a host."""
    return f"[{address}]" if address.version == 6 else str(address)


def canonical_host(host: str) -> str:
    """Return the canonical form of `host`: lower case, ASCII, no trailing dot.

    Raises:
        ValueError: not a valid host.
    """
    plain = (addresses.host_of(host) or "").removesuffix(".")
    if not plain:
        raise ValueError("not a host name")
    return plain
