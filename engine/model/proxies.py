"""The proxy that a task's connections go through: its address, its user, and its exceptions.

A request or the settings name it by an address, `env` (the variables of the environment) or `none`.
User and password are never part of that address, because the address is stored and shown.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from engine.model import addresses
from engine.model.errors import ProxyUnusable

NONE: Final = "none"
ENV: Final = "env"
PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
USER_IN_ADDRESS: Final = (
    # No colon: redaction would take the next word for the password.
    "must not hold a user or a password; give them with proxy_username and proxy_password"
)
_NO_PROXY: Final = (
    "must look like http://host:8080, https://host:443, socks5://host:1080 or socks5h://host:1080; "
    "or be env or none"
)
_NO_BYPASS: Final = "must be a host, .example.com, a host with a port, or a network (10.0.0.0/8)"
_VARIABLES: Final = ("https_proxy", "http_proxy", "all_proxy")
_ADDRESS = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?:(?P<user>[^/?#]*)@)?"
    r"(?P<host>\[[^\]/?#@]*\]|[^:/?#@\[\]\s]+)(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Bypass(NamedTuple):
    """An exception: a host, what is below a domain, or a network of numeric addresses.

    Without `port` all ports are meant; without a host every host.
    """

    host: str = ""
    port: int | None = None
    below: bool = False  # the hosts below this one as well
    network: Network | None = None

    def matches(self, host: str, port: int) -> bool:
        """Return whether the exception has this host (in canonical form) and port."""
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            number = _number(host)
            return number is not None and number in self.network
        if not self.host or host == self.host:
            return True
        return self.below and host.endswith(f".{self.host}")


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


class ProxyAddress(NamedTuple):
    """Scheme, host in canonical form, and port of a proxy."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


class UpstreamProxy(msgspec.Struct, frozen=True):
    """A proxy with its user and its exceptions, as it is connected to.

    `allowed` are the private `host:port` that its own address may be; None: any address, because
    the operator chose it.
    """

    address: ProxyAddress
    username: str = ""
    password: str = ""
    bypass: tuple[Bypass, ...] = ()
    allowed: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"UpstreamProxy({self.address})"

    def __str__(self) -> str:
        return str(self.address)

    @property
    def resolves_names(self) -> bool:
        """Whether the proxy gets names and resolves them itself."""
        return self.address.scheme != "socks5"

    @property
    def is_socks(self) -> bool:
        """Whether the proxy speaks SOCKS."""
        return self.address.scheme in ("socks5", "socks5h")

    def is_bypassed(self, host: str, port: int) -> bool:
        """Return whether this place is connected to directly."""
        return any(rule.matches(host, port) for rule in self.bypass)


class ProxyChoice(msgspec.Struct, frozen=True):
    """The proxy that a request asks for; `proxy` is an address, `env` or `none`."""

    proxy: str
    username: str = ""
    password: str = ""
    bypass: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ProxyChoice({self.proxy})"

    def upstream(self, environ: Mapping[str, str]) -> UpstreamProxy | None:
        """Return the proxy, or None for direct connections.

        Raises:
            ProxyUnusable: a text is no proxy or exception, or the environment names no proxy.
        """
        if self.proxy == NONE:
            return None
        try:
            rules = [bypass_rule(text) for text in self.bypass]
            if self.proxy == ENV:
                return _of_environment(environ, rules)
            address = proxy_address(self.proxy)
        except ValueError as wrong:
            raise ProxyUnusable(reason=str(wrong)) from None
        return UpstreamProxy(address, self.username, self.password, tuple(rules))


@dataclass(frozen=True, slots=True)
class DefaultProxy:
    """The operator's proxy for every task that asks for none; empty: direct connections.

    `password` is a reference, `env:NAME`, to a variable of `environ`.
    """

    proxy: str = ""
    username: str = ""
    password: str = ""
    bypass: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> DefaultProxy:
        """Read OC_PROXY, OC_PROXY_USERNAME, OC_PROXY_PASSWORD and OC_PROXY_BYPASS."""
        return cls(
            proxy=environ.get("OC_PROXY", "").strip(),
            username=environ.get("OC_PROXY_USERNAME", ""),
            password="env:OC_PROXY_PASSWORD" if environ.get("OC_PROXY_PASSWORD") else "",
            bypass=tuple(_words(environ.get("OC_PROXY_BYPASS", ""))),
            environ=environ,
        )

    @classmethod
    def of_words(cls, words: Mapping[str, Any], environ: Mapping[str, str]) -> DefaultProxy:
        """Return the proxy that `words` described in another process."""
        given = {**words, "bypass": tuple(words["bypass"])}
        return cls(**given, environ=environ)

    @property
    def words(self) -> dict[str, Any]:
        """The proxy for another process of the same environment, without secrets."""
        named = ("proxy", "username", "password", "bypass")
        return {name: getattr(self, name) for name in named}

    def __bool__(self) -> bool:
        return self.proxy not in ("", NONE)

    def upstream(self) -> UpstreamProxy | None:
        """Return the proxy, or None for direct connections.

        Raises:
            ProxyUnusable: as `ProxyChoice.upstream`, or the variable of the password is not set.
        """
        if not self:
            return None
        scheme, _, name = self.password.partition(":")
        secret = self.environ.get(name, "") if scheme == "env" else ""
        if self.password and not secret:
            raise ProxyUnusable(reason=f"the environment holds no {name}")
        choice = ProxyChoice(self.proxy, self.username, secret, self.bypass)
        return choice.upstream(self.environ)


DIRECT: Final = DefaultProxy()


def proxy_address(text: str) -> ProxyAddress:
    """Read the address of a proxy; without a scheme it is an http proxy.

    Raises:
        ValueError: with the reason; a user or a password is refused.
    """
    if "@" in text:
        raise ValueError(USER_IN_ADDRESS)
    return _address(_ADDRESS.fullmatch(text.strip()))


def _address(found: re.Match[str] | None) -> ProxyAddress:
    scheme = (found["scheme"] or "http").lower() if found is not None else ""
    host = addresses.host_of(found["host"]) if found is not None else None
    if found is None or scheme not in PORTS or not host:
        raise ValueError(_NO_PROXY)
    port = int(found["port"] or PORTS[scheme])
    if not 0 < port < 65_536:
        raise ValueError(_NO_PROXY)
    return ProxyAddress(scheme, host.removesuffix("."), port)


def proxy_text(given: object) -> str:
    """Read an address of a proxy, `env` or `none`, unchanged. Raises ValueError."""
    if not isinstance(given, str):
        raise ValueError(_NO_PROXY)
    text = given.strip()
    if text not in (ENV, NONE):
        proxy_address(text)
    return text


def is_proxy(text: str) -> bool:
    """Return whether `text` is an address of a proxy, `env` or `none`."""
    try:
        proxy_text(text)
    except ValueError:
        return False
    return True


def is_bypass(text: str) -> bool:
    """Return whether `text` is an exception."""
    try:
        bypass_rule(text)
    except ValueError:
        return False
    return True


def bypass_text(given: object) -> str:
    """Read an exception, unchanged. Raises ValueError."""
    if not isinstance(given, str):
        raise ValueError(_NO_BYPASS)
    bypass_rule(given.strip())
    return given.strip()


def bypass_rule(text: str) -> Bypass:
    """Read an exception: a host, `.example.com`, `host:port`, a network, or `*` for every host.

    Raises:
        ValueError: it is none of these.
    """
    if text == "*":
        return Bypass()
    if "/" in text:
        try:
            return Bypass(network=ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise ValueError(_NO_BYPASS) from None
    if ":" in text and _number(text) is not None and "[" not in text:
        text = f"[{text}]"
    found = _PLACE.fullmatch(text[1:] if text.startswith("*.") else text)
    below = found is not None and found["host"].startswith(".")
    host = addresses.host_of(found["host"].removeprefix(".")) if found is not None else None
    port = int(found["port"]) if found is not None and found["port"] else None
    if not host or (port is not None and not 0 < port < 65_536):
        raise ValueError(_NO_BYPASS)
    return Bypass(host.removesuffix("."), port, below)


def _of_environment(environ: Mapping[str, str], rules: Iterable[Bypass]) -> UpstreamProxy:
    """Return the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, with the exceptions of NO_PROXY.

    A user and a password in these variables are used.
    """
    name = next((one for one in _VARIABLES if _variable(environ, one)), None)
    if name is None:
        raise ProxyUnusable(reason="the environment sets neither HTTPS_PROXY nor HTTP_PROXY")
    found = _ADDRESS.fullmatch(_variable(environ, name))
    try:
        address = _address(found)
    except ValueError:
        raise ProxyUnusable(reason=f"{name.upper()} holds no address of a proxy") from None
    user, _, password = (found["user"] or "").partition(":") if found is not None else ("", "", "")
    passed = [*rules, *_passed_by(_variable(environ, "no_proxy"))]
    return UpstreamProxy(address, unquote(user), unquote(password), tuple(passed))


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _passed_by(no_proxy: str) -> Iterable[Bypass]:
    """Read NO_PROXY as other programs do: a name means what is below it as well."""
    for text in _words(no_proxy):
        try:
            rule = bypass_rule(text)
        except ValueError:
            continue  # other programs skip what they do not know
        yield rule._replace(below=bool(rule.host) and _number(rule.host) is None)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]
