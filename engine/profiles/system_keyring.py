"""Encryption with a key in the keyring of the system: one key for all profiles of a user.

`keyring` knows the Keychain, the Credential Locker and the Secret Service; a machine without any of
them, such as most servers, has no keyring, and then nothing is encrypted. A locked keyring asks its
user, so every access has a time limit and runs on a thread of its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from engine.model.errors import EngineError

T = TypeVar("T")

SERVICE: Final = "openchrome-monitor"
USER: Final = "profiles"
LIMIT_S: Final = 120.0  # a person may have to type the password of the keyring
_LEAST_PRIORITY: Final = 1  # below are the backends that keep plain text, or nothing


class KeyringFailed(EngineError):
    """The keyring of the system exists and gave no key."""

    code = "keyring_failed"
    title = "The keyring gave no key"
    sentence = "The keyring of this system ({keyring}) did not answer as expected: {reason}"
    advice_text = "Unlock the keyring and try again."


class KeyLost(EngineError):
    """The key of an encrypted profile is not in the keyring of this system."""

    code = "key_lost"
    title = "The profile cannot be decrypted"
    sentence = "The keyring of this system does not hold the key of the profile {profile}."
    advice_text = "Sign in again with `octask profile renew {profile}`."


def has_keyring() -> bool:
    """Return whether this system has a keyring; for a thread."""
    import keyring  # 0.1 s, and no other part needs it

    return float(keyring.get_keyring().priority) >= _LEAST_PRIORITY


def encrypt(data: bytes) -> str | None:
    """Encrypt `data`; None where the system has no keyring. For a thread.

    Raises:
        KeyringFailed: the keyring is locked, or does not answer.
    """
    if not has_keyring():
        return None
    from cryptography.fernet import Fernet

    key = _get()
    if key is None:
        made = Fernet.generate_key().decode("ascii")
        _set(made)
        key = _get() or made  # another process may have set one meanwhile
    return Fernet(key).encrypt(data).decode("ascii")


def decrypt(token: str, profile: str) -> bytes:
    """Decrypt what `encrypt` returned. For a thread.

    Raises:
        KeyLost: the keyring has another key, or none.
        KeyringFailed: as `encrypt`.
    """
    from cryptography.fernet import Fernet, InvalidToken

    key = _get() if has_keyring() else None
    try:
        if key is not None:
            return Fernet(key).decrypt(token)
    except (InvalidToken, ValueError) as wrong:
        raise KeyLost(profile=profile) from wrong
    raise KeyLost(profile=profile)


def _get() -> str | None:
    import keyring

    return _within_limit(lambda: keyring.get_password(SERVICE, USER))


def _set(key: str) -> None:
    import keyring

    _within_limit(lambda: keyring.set_password(SERVICE, USER, key))


def _within_limit(ask: Callable[[], T]) -> T:
    """Call `ask` on a thread that the end of the program does not wait for."""
    import keyring

    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(ask())
        except Exception as error:  # noqa: BLE001 - each backend has errors of its own
            answers.put(error)

    name = str(getattr(keyring.get_keyring(), "name", "keyring"))
    threading.Thread(target=work, name="ask the keyring", daemon=True).start()
    try:
        found = answers.get(timeout=LIMIT_S)
    except queue.Empty:
        reason = f"no answer within {LIMIT_S:.0f} s"
        raise KeyringFailed(keyring=name, reason=reason) from None
    if isinstance(found, Exception):
        reason = str(found) or type(found).__name__
        raise KeyringFailed(keyring=name, reason=reason) from found
    return found
