"""Secrets that jobs need: stored and sent texts have a placeholder; the secrets are in files of the service home.

Equal secrets have equal placeholders, so texts can still be compared. A placeholder reveals nothing: it is an HMAC with
a key derived from the one in the service home.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from activities.redaction.redact import is_known_clean, without_secrets
from activities.sealing import seal_key

_WORD = re.compile(r"redacted-([0-9a-f]{20})")
_MARK = "[redacted]"
PURPOSE = "kept secrets"

_LONG = 16_384
_HIDDEN: deque[bytes] = deque(maxlen=64)
"""Digests of long texts without secrets, so that a text that is checked at several places is searched once."""


class SecretRecord(Protocol):
    """The record of which host keeps which secret, where several hosts share a store."""

    def add(self, names: Iterable[str]) -> None:
        """Record that this host keeps the secrets with these placeholders' names."""

    def refuse(self, name: str) -> None:
        """Raise ServiceError if another host keeps this secret."""


@dataclass(frozen=True)
class KeptSecrets:
    """The kept secrets of one service home, in a folder."""

    home: Path
    hosts: SecretRecord | None = None

    def hide(self, text: str) -> str:
        """Replace each secret in a text by a placeholder, and store the secret."""
        if is_known_clean(text):
            return text
        if len(text) <= _LONG:
            return without_secrets(text, self._keep)
        if hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() in _HIDDEN:
            return text
        hidden = without_secrets(text, self._keep)
        _HIDDEN.append(hashlib.sha256(hidden.encode("utf-8", "surrogatepass")).digest())
        return hidden

    def show(self, text: str) -> str:
        """Put stored secrets back in place of their placeholders; unknown placeholders stay. Raise ServiceError if
        another host keeps the secret (ruling Q2).
        """
        return _WORD.sub(self._secret_of, text) if "redacted-" in text else text

    def _keep(self, secret: str) -> str:
        if secret == _MARK or _WORD.fullmatch(secret):
            return secret
        name = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:20]
        path = self.folder / name
        if not path.exists():
            if self.hosts:
                self.hosts.add([name])
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_private(path, secret)
        return f"redacted-{name}"

    def _secret_of(self, word: re.Match[str]) -> str:
        try:
            return (self.folder / word[1]).read_bytes().decode("utf-8", "surrogatepass")
        except OSError:
            if self.hosts:
                self.hosts.refuse(word[1])
            return word[0]

    @property
    def folder(self) -> Path:
        """Return the folder with a private file for each secret."""
        return self.home / "kept-secrets"

    @cached_property
    def _key(self) -> bytes:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return seal_key.derive(seal_key.ensure(self.home), PURPOSE)


def without_words(text: str) -> str:
    """Remove placeholders from text of agents, strangers and callers of the bridge, so that no secret is put back for
    them.

    Lists and comments show placeholders: otherwise anybody who copies one could have its secret given to an agent.
    """
    return _WORD.sub(_MARK, text) if "redacted-" in text else text


def _write_private(path: Path, secret: str) -> None:
    """Write a private file atomically."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret.encode("utf-8", "surrogatepass"))
    draft.replace(path)
