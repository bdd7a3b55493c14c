"""User and password as separate arguments, for kinds that open one site with a login."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.kinds.arguments import MAX_TEXT_CHARS, Argument, FormField, Maybe, Table, optional, text
from engine.model.addresses import Credentials, address_of, credentials_of
from engine.model.errors import Problem
from engine.secrets.given_secrets import Hidden, of_address, of_credentials


class SecretText:
    """Reader of a text that is used unchanged, surrounding blanks included."""

    def __call__(self, given: object) -> str:
        if not isinstance(given, str) or not given:
            raise ValueError("must be a text that is not empty")
        if len(given) > MAX_TEXT_CHARS:
            raise ValueError(f"must not be longer than {MAX_TEXT_CHARS:,} characters")
        return given


PASSWORD_HINT: Final = 'Not kept. Or where it is: {"secret": "env:NAME"}'
CREDENTIALS: Final[Table] = {
    "username": Argument(
        "username",
        optional(text),
        FormField("User", editor="line"),
        help="User name for HTTP authentication of the site.",
    ),
    "password": Argument(
        "password",
        Maybe(SecretText()),
        FormField("Password", editor="line", hint=PASSWORD_HINT),
        help="env:NAME, the variable that holds the password; never the password itself.",
    ),
}


def credential_problems(fields: Mapping[str, Any], typed: str | None) -> list[Problem]:
    """Return the problems of `fields` with respect to the typed address."""
    asked = [name for name in CREDENTIALS if fields.get(name) is not None]
    if asked and not typed:
        return [Problem(name, "not_together", "needs url") for name in asked]
    if asked and credentials_of(typed or "") is not None:
        why = "does not go with a user or password in the address"
        return [Problem(name, "not_together", why) for name in asked]
    if asked == ["password"]:
        return [Problem("password", "not_together", "needs username")]
    return []


def credentials_from(
    fields: dict[str, Any], typed: str
) -> tuple[Credentials | None, tuple[Hidden, ...]]:
    """Remove the credentials from `fields`; return them and all secrets."""
    username, password = fields.pop("username", None), fields.pop("password", None)
    address = address_of(typed)
    if username is None or address is None:
        return credentials_of(typed), tuple(of_address(typed))
    given = Credentials(address.origin, username, password or "")
    return given, (*of_address(typed), *of_credentials(given))
