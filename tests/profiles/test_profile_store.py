"""Profiles on disk: private, encrypted where the system has a keyring, and never half written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from engine.ledger.record_store import RecordNotFound, RecordUnreadable
from engine.model.errors import LedgerWriteFailed
from engine.model.records import Unreadable
from engine.profiles import system_keyring
from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileEmpty, ProfileStore, ProfileTooLarge
from engine.profiles.system_keyring import KeyLost, KeyringFailed
from tests.support.written_files import contents

TOKEN = "s1abcdef0123456789"
STATE: dict[str, Any] = {
    "cookies": [{"name": "sid", "value": TOKEN, "domain": "shop.example", "path": "/"}],
    "origins": [],
}


class MemoryKeyring(KeyringBackend):
    """The keyring of a system, which is the outermost wire here."""

    # The library has properties of the class here, which its own backends replace by values, too.
    priority = 9  # type: ignore[assignment]
    name = "Memory"  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("it is locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def no_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    from keyring.backends.fail import Keyring

    keyring.set_keyring(Keyring())  # type: ignore[no-untyped-call] # the library has no type here
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before, made = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def shop(**more: Any) -> Profile:
    given = {"name": "shop", "url": "https://shop.example/", "sites": ("shop.example",)}
    return Profile(**{**given, "created_at": 1, "signed_in_at": 1, **more})


def test_without_a_keyring_only_the_user_can_read_the_files(home: Path, no_keyring: None) -> None:
    store = ProfileStore(home)
    assert store.save(shop(), STATE).encrypted is False
    assert store.state("shop") == STATE
    assert store.read("shop") == shop()
    if os.name == "posix":
        for place in (home / "profiles").rglob("*"):
            assert not stat.S_IMODE(place.stat().st_mode) & 0o077, place
        assert not stat.S_IMODE((home / "profiles").stat().st_mode) & 0o077


def test_with_a_keyring_no_file_holds_a_cookie(home: Path, memory: MemoryKeyring) -> None:
    store = ProfileStore(home)
    assert store.save(shop(), STATE).encrypted is True
    files = contents(home).values()
    assert not any(TOKEN.encode() in data for data in files)
    assert ProfileStore(home).state("shop") == STATE
    store.renew("shop", [{**STATE["cookies"][0], "value": "other"}], STATE)
    assert store.state("shop")["cookies"][0]["value"] == "other"
    assert len(memory.kept) == 1


def test_a_lost_key_and_a_locked_keyring_are_told_apart(home: Path, memory: MemoryKeyring) -> None:
    store = ProfileStore(home)
    store.save(shop(), STATE)
    memory.locked = True
    with pytest.raises(KeyringFailed, match="it is locked"):
        store.state("shop")
    memory.locked = False
    memory.kept.clear()
    with pytest.raises(KeyLost, match="shop"):
        store.state("shop")
    store.save(shop(), STATE)  # a new sign-in makes a new key
    assert store.state("shop") == STATE


def test_a_keyring_that_does_not_answer_is_given_up(
    home: Path, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    asked = threading.Event()
    monkeypatch.setattr(system_keyring, "LIMIT_S", 0.05)
    monkeypatch.setattr(memory, "get_password", lambda *_: asked.wait(20))
    with pytest.raises(KeyringFailed, match="no answer"):
        ProfileStore(home).save(shop(), STATE)
    asked.set()
    assert not ProfileStore(home).has("shop")


def test_an_empty_or_huge_state_leaves_the_earlier_profile(home: Path, no_keyring: None) -> None:
    store = ProfileStore(home)
    store.save(shop(), STATE)
    with pytest.raises(ProfileEmpty):
        store.save(shop(), {"cookies": [], "origins": []})
    huge = {**STATE["cookies"][0], "value": "x" * (32 * 1024 * 1024)}
    with pytest.raises(ProfileTooLarge):
        store.save(shop(), {"cookies": [huge], "origins": []})
    assert store.state("shop") == STATE


def test_profiles_are_listed_changed_and_removed(home: Path, no_keyring: None) -> None:
    store = ProfileStore(home)
    assert store.all() == []
    store.save(shop(), STATE)
    store.save(shop(name="bank"), STATE)
    store.note_check(shop(), 7, signed_in=False)
    (home / "profiles" / "bad.json").write_text("{")
    bad, bank, found = store.all()
    assert isinstance(bad, Unreadable)
    assert isinstance(bank, Profile)
    assert isinstance(found, Profile)
    assert (found.checked_at, found.signed_in) == (7, False)
    store.remove("shop")
    assert not (home / "profiles" / "states" / "shop.json").exists()
    with pytest.raises(RecordNotFound):
        store.read("shop")
    with pytest.raises(RecordUnreadable):
        store.read("bad")


def damaged(facts: Path) -> None:
    facts.write_text("{")


def moved_away(facts: Path) -> None:
    facts.rename(facts.parent.parent / "away.json")


def linked(facts: Path) -> None:
    moved_away(facts)
    facts.symlink_to(facts.parent.parent / "away.json")


@pytest.mark.parametrize("happens", [damaged, moved_away, linked])
def test_the_cookies_of_a_profile_that_cannot_be_read_can_be_removed(
    home: Path, no_keyring: None, happens: Callable[[Path], None]
) -> None:
    store = ProfileStore(home)
    store.save(shop(), STATE)
    half = home / "profiles" / "states" / ".shop.json.tmp"
    half.write_text(TOKEN)  # as a killed writer leaves it
    happens(home / "profiles" / "shop.json")
    store.remove("shop")
    left = contents(home / "profiles")
    assert not [file for file in left if TOKEN.encode() in left[file]]
    assert store.all() == []
    with pytest.raises(RecordNotFound):
        store.remove("shop")


def test_cookies_that_cannot_be_removed_are_not_called_removed(
    home: Path, no_keyring: None
) -> None:
    store = ProfileStore(home)
    store.save(shop(), STATE)
    state = home / "profiles" / "states" / "shop.json"
    state.unlink()
    state.mkdir()  # what nobody may unlink, not even root
    with pytest.raises(LedgerWriteFailed):
        store.remove("shop")
    assert store.has("shop")


def test_a_task_that_began_before_a_new_sign_in_changes_nothing_of_it(
    home: Path, no_keyring: None
) -> None:
    store = ProfileStore(home)
    store.save(shop(), STATE)
    new = {**STATE, "cookies": [{**STATE["cookies"][0], "value": "new"}]}
    store.save(shop(signed_in_at=2), new)
    store.renew("shop", [{**STATE["cookies"][0], "value": "old, rotated"}], STATE)
    assert store.state("shop") == new
    found = store.note_check(shop(), 9, signed_in=False)
    assert (found.checked_at, found.signed_in) == (None, None)


def test_two_tasks_renew_different_cookies_of_one_profile(home: Path, no_keyring: None) -> None:
    store = ProfileStore(home)
    first = STATE["cookies"][0]
    state = {**STATE, "cookies": [first, {**first, "name": "other"}]}
    store.save(shop(), state)
    store.renew("shop", [{**first, "value": "1"}, {**first, "name": "other"}], state)
    store.renew("shop", [first, {**first, "name": "other", "value": "2"}], state)
    assert [one["value"] for one in store.state("shop")["cookies"]] == ["1", "2"]
