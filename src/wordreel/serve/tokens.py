"""Logging in: the access token, printed once and stored only as a salted hash, and sessions."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, WordreelError

SETTING = "serve.token"
N, R, P = 2**14, 8, 1  # scrypt: 16 MiB and some tens of milliseconds
COOKIE = "wordreel"
SESSION_SECONDS = 30 * 86400.0


def new_token() -> str:
    """Return 256 random bits that can be typed."""
    return secrets.token_urlsafe(32)


def hash_token(token: str, salt: bytes | None = None) -> str:
    """Return `scrypt$salt$hash`, both in hex."""
    salt = salt or secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_scrypt(token, salt).hex()}"


def _scrypt(token: str, salt: bytes) -> bytes:
    return hashlib.scrypt(token.encode("utf-8", "replace"), salt=salt, n=N, r=R, p=P)


class TokenVerifier:
    """Compares tokens with a stored hash, in constant time.

    A verified token is cached as a fast hash under a key that lives only in this process, so that scripts
    which send it with every request do not pay for scrypt every time.
    """

    def __init__(self, token_hash: str) -> None:
        try:
            kind, salt, digest = token_hash.strip().split("$")
            self._salt, self._digest = bytes.fromhex(salt), bytes.fromhex(digest)
        except ValueError:
            kind = ""
        if kind != "scrypt":
            raise WordreelError(
                "the stored token cannot be read", NextStep("create a new one", command="serve --new-token")
            )
        self._key = secrets.token_bytes(32)
        self._cached: bytes | None = None
        self._lock = threading.Lock()

    def is_cached(self, token: str) -> bool:
        """Return whether it is the token that was verified before; this costs next to nothing."""
        return self._cached is not None and hmac.compare_digest(self._fast(token), self._cached)

    def verify(self, token: str) -> bool:
        """Return whether it is the token."""
        if self.is_cached(token):
            return True
        with self._lock:  # one at a time: guessing must not take all the memory
            if not hmac.compare_digest(_scrypt(token, self._salt), self._digest):
                return False
            self._cached = self._fast(token)
            return True

    def _fast(self, token: str) -> bytes:
        return hmac.digest(self._key, token.encode("utf-8", "replace"), "sha256")


def load_token_hash(store: LibraryStore, file: Path | None) -> str | None:
    """Return the hash of the token; None where there is none. A token file that is named must exist."""
    if file is None:
        return store.setting(SETTING)
    try:
        token_hash = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise WordreelError(f"the token file {file} cannot be read: {error}", _new_token(file)) from error
    if not token_hash:
        raise WordreelError(f"the token file {file} is empty", _new_token(file))
    return token_hash


def _new_token(file: Path) -> NextStep:
    return NextStep("create a token", command=f"serve --new-token --token-file {file}")


def save_token_hash(store: LibraryStore, file: Path | None, token_hash: str) -> None:
    """Store the hash of a new token; the previous token is no longer valid."""
    if file is None:
        store.set_setting(SETTING, token_hash)
        return
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(token_hash + "\n")
    except OSError as error:
        raise WordreelError(f"the token file {file} cannot be written: {error.strerror}") from error


def remove_token_hash(store: LibraryStore, file: Path | None) -> bool:
    """Forget the token; returns whether there was one."""
    if file is None:
        existed = store.setting(SETTING) is not None
        store.remove_setting(SETTING)
        return existed
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise WordreelError(f"the token file {file} cannot be removed: {error.strerror}") from error
    return True


class Sessions:
    """Login sessions by the hash of their cookie: one empty file each, which the server's processes share.

    A restart logs everybody out.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now
        folder.mkdir(mode=0o700, exist_ok=True)

    def open(self) -> str:
        """Return the cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        self._file(cookie).touch()
        return cookie

    def valid(self, cookie: str) -> bool:
        """Return whether a session is open. The time that looking up a hash takes tells nothing."""
        try:
            opened = self._file(cookie).stat().st_mtime
        except FileNotFoundError:
            return False
        return self._now() - opened < SESSION_SECONDS

    def close(self, cookie: str) -> None:
        """End the session of a cookie."""
        self._file(cookie).unlink(missing_ok=True)

    def _file(self, cookie: str) -> Path:
        return self._folder / hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
