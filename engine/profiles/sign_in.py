"""The sign-in of one running task: its profile, and the newest values of its cookies.

A task opens many browser contexts, one after another; each starts from this state. Cookies that
the site replaced meanwhile are carried on, and stored in the profile at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.model.errors import EngineError
from engine.profiles.profile import Profile, State, hidden_values, renewed
from engine.secrets.given_secrets import Hidden


class SignedOut(EngineError):
    """The site does not take the profile for signed in; the finished pages are stored."""

    code = "signed_out"
    title = "The profile is not signed in any more"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "{url} asked to sign in: the site does not take the profile {profile} for signed in. "
        "Sign in again with `octask profile renew {profile}`, then resume the task."
    )


class SignIn:
    """A profile in use. Not thread-safe: it belongs to the loop of its task."""

    def __init__(self, profile: Profile, state: State) -> None:
        self.profile = profile
        self._stored = self._state = state
        self.secrets: list[Hidden] = hidden_values(state)
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
    def stored(self) -> State:
        """The state as it was read from the profile."""
        return self._stored

    @property
    def has_changed(self) -> bool:
        """Return whether the site replaced a cookie of the profile."""
        return self._state != self._stored

    def renew(self, cookies: Iterable[Mapping[str, Any]], began: State) -> None:
        """Take the cookies that a site replaced in a context that `began` with this state."""
        after = renewed(self._state, cookies, began)
        if after == self._state:
            return
        self._state = after
        known = {one.value for one in self.secrets}
        new = [one for one in hidden_values(after) if one.value not in known]
        self.secrets += new
        for listener in self.on_secrets if new else ():
            listener(new)
