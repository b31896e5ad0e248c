"""Secrets that work needs: what is stored and sent holds a word in their place, and they are in files of the home.

The same secret has the same word, so what is compared stays comparable. A word tells nothing: it is made with a key
that is derived from the one in the service home.
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from activities.redaction import detected
from activities.redaction.redacted import is_known_clean
from activities.sealing import seal_key

_WORD = re.compile(r"redacted-([0-9a-f]{20})")
_MARK = "[redacted]"
PURPOSE = "kept secrets"

_LONG = 16_384
_HIDDEN: deque[bytes] = deque(maxlen=64)
"""Digests of long texts in which nothing is left: a text passes several borders, and a long one takes its time."""


@dataclass(frozen=True)
class KeptSecrets:
    """The folder of one service home."""

    home: Path

    def hide(self, text: str) -> str:
        """The text with a word in the place of each secret, which is kept."""
        from workflows.contract.redact import redact

        if is_known_clean(text):
            return text
        if len(text) <= _LONG:
            return redact(text, detected.find, self._keep)
        if hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() in _HIDDEN:
            return text
        hidden = redact(text, detected.find, self._keep)
        _HIDDEN.append(hashlib.sha256(hidden.encode("utf-8", "surrogatepass")).digest())
        return hidden

    def show(self, text: str) -> str:
        """The text as it was written; a secret that is not kept here stays a word."""
        return _WORD.sub(self._kept, text) if "redacted-" in text else text

    def _keep(self, secret: str) -> str:
        if secret == _MARK or _WORD.fullmatch(secret):
            return secret
        name = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:20]
        path = self.folder / name
        if not path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_private(path, secret)
        return f"redacted-{name}"

    def _kept(self, word: re.Match[str]) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / word[1]).read_bytes().decode("utf-8", "surrogatepass")
        return word[0]

    @property
    def folder(self) -> Path:
        """A file each, its owner's alone."""
        return self.home / "kept-secrets"

    @cached_property
    def _key(self) -> bytes:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return seal_key.derived(seal_key.ensure(self.home), PURPOSE)


def without_words(text: str) -> str:
    """What an agent, a stranger or a caller of the bridge says, without such words: they would be put back for others.

    Lists and comments show these words, so whoever reads one could have an agent be given what it stands for.
    """
    return _WORD.sub(_MARK, text) if "redacted-" in text else text


def _write_private(path: Path, secret: str) -> None:
    """All of it or nothing, its owner's alone."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret.encode("utf-8", "surrogatepass"))
    draft.replace(path)
