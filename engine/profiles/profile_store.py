"""Profiles on disk: `HOME/profiles/NAME.json`, and their states in `HOME/profiles/states`.

Both folders are 0700 and the files 0600. A state is encrypted where the system has a keyring. The
state is written before the facts about it, so that a crash between the two leaves a usable profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.ledger.files import MIB
from engine.ledger.record_store import RecordNotFound, RecordStore, RecordUnreadable
from engine.model.errors import EngineError, LedgerReadOnly, LedgerUnusable, LedgerWriteFailed
from engine.model.records import PROFILES_FOLDER, Unreadable
from engine.profiles import system_keyring
from engine.profiles.profile import NAME, Profile
from engine.profiles.storage_state import State, has_nothing, renewed, unchanged_since

STATES: Final = "states"
NOUN: Final = "profile"
MAX_STATE: Final = 32 * MIB  # as for a session snapshot
_CAP: Final = 64 * MIB  # of the file, which has the state in Base64


class ProfileEmpty(EngineError):
    """A sign-in left neither a cookie nor stored data of its sites."""

    code = "profile_empty"
    title = "There is nothing to keep"
    sentence = "The sites {sites} left no cookie and no stored data: nobody is signed in there."
    advice_text = "Sign in before the window is closed, or name the right site."


class ProfileTooLarge(EngineError):
    """The stored data of the sites exceed the limit."""

    code = "profile_too_large"
    title = "The profile is too large"
    sentence = "Cookies and stored data of the profile {profile} are larger than 32 MiB."
    advice_text = "Name the sites that it is for (--site); the data of others are left out."


class ProfilesNotWritable(EngineError):
    """The folder of the profiles cannot be written; nothing was begun."""

    code = "profiles_not_writable"
    title = "Profiles cannot be stored here"
    sentence = "The folder of the profiles cannot be written: {path}."
    advice_text = "Make it writable for your user, or use another home (--home, OPENCHROME_HOME)."


class ProfileStore:
    """Profiles of one home. Thread-safe; every call may wait for a lock, a disk or the keyring.

    Calls with a name may raise NotAnId, RecordNotFound and RecordUnreadable, those that write also
    LockTimeout, LedgerReadOnly and LedgerWriteFailed.
    """

    def __init__(self, home: Path) -> None:
        self._records = RecordStore(home / PROFILES_FOLDER, NOUN, NAME)
        self._states = RecordStore(home / PROFILES_FOLDER / STATES, NOUN, NAME, _CAP)

    def all(self) -> list[Profile | Unreadable]:
        """Return all profiles by name, and those that cannot be read."""
        found: list[Profile | Unreadable] = []
        for name in self._records.ids():
            try:
                found.append(self.read(name))
            except RecordNotFound:
                continue  # removed since
            except RecordUnreadable as error:
                found.append(Unreadable(name, str(error), str(error.fields["path"])))
        return found

    def has(self, name: str) -> bool:
        """Return whether there is such a profile, readable or not."""
        return self._records.has(name)

    def require_writable(self, name: str) -> None:
        """Check that a profile could be stored, before a person signs in for it.

        Raises:
            ProfilesNotWritable: it could not.
        """
        try:
            with self._states.hold(name, make=True) as folder:
                writable = folder.is_writable()
        except (LedgerReadOnly, LedgerWriteFailed, LedgerUnusable):
            writable = False
        if not writable:
            raise ProfilesNotWritable(path=str(self._records.folder))

    def read(self, name: str) -> Profile:
        """Read what is known of a profile."""
        return self._decoded(name, self._records.read(name))

    def state(self, name: str) -> State:
        """Read the cookies and stored data, decrypted.

        Raises:
            KeyLost, KeyringFailed: they are encrypted, and the keyring does not give their key.
        """
        raw = self._states.read(name)
        token = raw.get("encrypted")
        if isinstance(token, str):
            try:
                found = msgspec.json.decode(system_keyring.decrypt(token, name))
            except msgspec.MsgspecError as error:
                raise self._unreadable(name, str(error), self._states.folder) from error
        else:
            found = raw.get("state")
        if not isinstance(found, dict):
            raise self._unreadable(name, "it holds no state", self._states.folder)
        return found

    def save(self, profile: Profile, state: State) -> Profile:
        """Write a profile with its state, over an older one of this name.

        Raises:
            ProfileEmpty, ProfileTooLarge: nothing was written.
            KeyringFailed: the keyring exists and gives no key; nothing was written.
        """
        if has_nothing(state):
            raise ProfileEmpty(sites=", ".join(profile.sites))
        encrypted = self._put_state(profile.name, state)
        kept = msgspec.structs.replace(profile, encrypted=encrypted)
        raw = msgspec.to_builtins(kept)
        with self._records.hold(profile.name, make=True) as folder:
            self._records.put(folder, profile.name, raw, durable=True)
        return kept

    def renew(self, name: str, cookies: list[dict[str, Any]], began: State) -> None:
        """Store the cookies that a task, which `began` with this state, has renewed.

        A cookie that a later sign-in or another task has replaced since stays as it is.
        """
        while True:
            raw = self._states.read(name)
            before = self.state(name)
            current = unchanged_since(before, began)
            fresh = {id(one) for one in current["cookies"]}
            newest = iter(renewed(current, cookies, began)["cookies"])
            merged = [next(newest) if id(one) in fresh else one for one in before["cookies"]]
            if merged == before["cookies"]:
                return
            _, data = self._encoded(name, {**before, "cookies": merged})
            with self._states.hold(name) as folder:
                if self._states.read_in(folder, name) == raw:
                    self._states.put(folder, name, data, durable=True)
                    return

    def change(self, name: str, change: Callable[[Profile], Profile]) -> Profile:
        """Replace what is known of a profile by what `change` makes of it."""

        def rewrite(raw: dict[str, Any]) -> None:
            raw.update(msgspec.to_builtins(change(self._decoded(name, raw))))

        return self._decoded(name, self._records.change(name, rewrite))

    def note_check(self, checked: Profile, now_ms: int, *, signed_in: bool) -> Profile:
        """Record whether the site takes a profile for signed in; not of one renewed since."""

        def note(one: Profile) -> Profile:
            if one.signed_in_at != checked.signed_in_at:
                return one
            return msgspec.structs.replace(one, checked_at=now_ms, signed_in=signed_in)

        return self.change(checked.name, note)

    def remove(self, name: str) -> None:
        """Delete a profile, its state first; also one that cannot be read.

        Cookies whose profile is damaged or was moved away would otherwise stay for ever.
        """
        if not self._records.has(name) and not self._states.has(name):
            raise self._records.missing(name)
        self._states.remove(name)
        self._records.remove(name)

    def _put_state(self, name: str, state: State) -> bool:
        token, raw = self._encoded(name, state)
        with self._states.hold(name, make=True) as folder:
            self._states.put(folder, name, raw, durable=True)
        return token is not None

    def _encoded(self, name: str, state: State) -> tuple[str | None, dict[str, Any]]:
        """Return the encrypted state, None without a keyring, and the record of its file."""
        data = msgspec.json.encode(state)
        if len(data) > MAX_STATE:
            raise ProfileTooLarge(profile=name)
        token = system_keyring.encrypt(data)
        return token, {"state": state} if token is None else {"encrypted": token}

    def _decoded(self, name: str, raw: Mapping[str, Any]) -> Profile:
        try:
            return msgspec.convert({**raw, "name": name}, Profile)
        except msgspec.ValidationError as error:
            raise self._unreadable(name, str(error), self._records.folder) from error

    def _unreadable(self, name: str, reason: str, folder: Path) -> RecordUnreadable:
        path = str(folder / f"{name}.json")
        return RecordUnreadable(noun=NOUN, id=name, reason=reason, path=path)
