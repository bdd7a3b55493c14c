"""The sign-in of one running task: its profile, and the newest values of its cookies.

A task opens many browser contexts, one after another; each starts from this state. Cookies that
the site replaced meanwhile are carried on, and stored in the profile at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.model import redact
from engine.model.addresses import address_of
from engine.model.errors import EngineError
from engine.profiles.profile import Profile
from engine.profiles.storage_state import (
    MAX_HIDDEN,
    State,
    hidden_values,
    host_of,
    is_cookie_of,
    is_random,
    renewed,
    set_cookie,
    tokens_in,
)
from engine.secrets.given_secrets import Hidden


class SignedOut(EngineError):
    """The site does not take the profile for signed in; the finished pages are stored."""

    code = "signed_out"
    title = "The profile is not signed in any more"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "{url} asked to sign in: the site does not take the profile {profile} for signed in. "
        "Sign in again under Tools → Profiles… or with `octask profile renew {profile}`, then "
        "resume the task."
    )


class SignIn:
    """A profile in use. Not thread-safe: it belongs to the loop of its task."""

    def __init__(self, profile: Profile, state: State) -> None:
        self.profile = profile
        self._stored = self._state = state
        self._given = hidden_values(state)
        self._learned: dict[str, Hidden] = {}  # tokens that came later, the newest last
        self._plain: dict[str, None] = {}  # values that were a part of a path
        self.on_secrets: list[Callable[[list[Hidden]], object]] = []  # called with new tokens
        self.lost = False  # the site took it for signed out

    def __repr__(self) -> str:
        return f"SignIn({self.profile.name})"  # never the cookies

    @property
    def state(self) -> State:
        """Cookies and stored data, in the form of Playwright's storage state."""
        return self._state

    @property
    def cookies(self) -> list[dict[str, Any]]:
        return list(self._state.get("cookies", ()))

    @property
    def secrets(self) -> list[Hidden]:
        """The tokens that no output may repeat."""
        return [*self._given, *self._learned.values()]

    @property
    def stored(self) -> State:
        """The state as it was read from the profile."""
        return self._stored

    @property
    def has_changed(self) -> bool:
        """Return whether the site replaced a cookie of the profile."""
        return self._state != self._stored

    def renew(self, cookies: Iterable[Mapping[str, Any]], began: State, url: str = "") -> None:
        """Take the cookies that a site replaced in a context that `began` with this state.

        The tokens among all cookies of the profile's sites are masked from now on. `url` is the
        page that the context shows.
        """
        cookies = list(cookies)
        self._state = renewed(self._state, cookies, began)
        self._mask(token for one in self.cookies for token in tokens_in(one.get("value")))
        self.learn(cookies, url)

    def hear(self, lines: Iterable[str], answered: str, url: str) -> None:
        """Learn from the Set-Cookie `lines` of an answer of `answered` to the page of `url`."""
        address = address_of(answered)
        if address is not None:
            host = host_of(address)
            self.learn([set_cookie(line, host) for line in lines], url)

    def learn(self, cookies: Iterable[Mapping[str, Any]], url: str = "") -> None:
        """Mask the tokens among new cookies of the profile's sites.

        Of the profile's own cookies each, because sites keep them in addresses, too. Of others no
        words or times, and no part of the path of the page's `url`.
        """
        page = address_of(url)
        path = "" if page is None else page.path.partition(";")[0]
        names = {one.get("name") for one in self.cookies}
        found: dict[str, None] = {}
        for cookie in cookies:
            if not is_cookie_of(cookie, self.profile.sites):
                continue
            tokens = tokens_in(cookie.get("value"))
            if cookie.get("name") not in names:
                tokens = [one for one in tokens if is_random(one)]
                self._plain.update((one, None) for one in tokens if one in path)
                tokens = [one for one in tokens if one not in self._plain]
            found.update(dict.fromkeys(tokens))
        while len(self._plain) > MAX_HIDDEN:
            del self._plain[next(iter(self._plain))]
        self._mask(found)

    def _mask(self, tokens: Iterable[str]) -> None:
        known = {one.value for one in self._given} | self._learned.keys()
        new = [one for one in dict.fromkeys(tokens) if one not in known]
        if not new:
            return
        for token in new:
            self._plain.pop(token, None)
            self._learned[token] = Hidden(token, redact.MARK)
        while len(self._learned) > MAX_HIDDEN:
            del self._learned[next(iter(self._learned))]
        hidden = [Hidden(token, redact.MARK) for token in new]
        for listener in self.on_secrets:
            listener(hidden)
