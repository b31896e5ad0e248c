"""The file of the tokens with a name and a scope, for programs and for people other than the operator (ruling N5).

Only their digests are stored, and only the owner can read the file: a token is shown once, when it is made. Hosts
that share a store keep them in the store instead (`bridge.operations.access.tokens`).
"""

import re
import secrets
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from activities.runs.regular_files import write_private
from activities.settings.home import Home
from bridge.machine.locks import FileLock
from bridge.machine.token_scopes import TokenScope
from bridge.machine.watched_file import WatchedFile
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError, with_nearest

BYTES = 32
LONGEST_NAME = 40
LOCK_SECONDS = 10.0
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
RESERVED = frozenset({"bridge", "cli", "comment", "dashboard", "mcp", "operator", "service", "temporal", "webhook"})
"""Names that records use for other actors."""


class NamedToken(BaseModel):
    """A stored token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    scope: TokenScope
    digest: str
    made_at: float


class _TokensFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[NamedToken, ...] = ()


class NamedTokens:
    """The tokens in force now; changes by other processes are seen at once."""

    def __init__(self, home: Home) -> None:
        self._file = WatchedFile(home.bridge_tokens, _by_digest)

    def find(self, shown: bytes) -> NamedToken | None:
        """Return the token that was shown, if it exists. It is looked up by digest, so the time taken reveals
        nothing.
        """
        return (self._file.value() or {}).get(sha256(shown).hexdigest())


def new_token(name: str, scope: str) -> tuple[NamedToken, str]:
    """Return a new token, and the secret that its holder sends, which is not stored."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or name in RESERVED:
        what = "is taken by the service itself" if name in RESERVED else "is not a valid token name"
        raise UsageError(f"{name[:100]!r} {what}", "small letters, digits, `.`, `_`, `-`: service bridge token add ci")
    if scope not in list(TokenScope):
        error = UsageError(
            f"{scope!r} is not a scope; use one of {', '.join(TokenScope)}", f"--scope {TokenScope.READ}"
        )
        raise with_nearest(error, scope, TokenScope)
    secret = secrets.token_urlsafe(BYTES)
    digest = sha256(secret.encode()).hexdigest()
    return NamedToken(name=name, scope=TokenScope(scope), digest=digest, made_at=time.time()), secret


def add(home: Home, name: str, scope: str) -> str:
    """Create a token and return it. The returned secret is not stored."""
    token, secret = new_token(name, scope)
    with _Changing(home) as changing:
        if any(other.name == name for other in changing.tokens):
            raise duplicate(name)
        changing.write((*changing.tokens, token))
    return secret


def remove(home: Home, name: str) -> None:
    """Revoke a token; a running bridge refuses it at once."""
    with _Changing(home) as changing:
        left = tuple(token for token in changing.tokens if token.name != name)
        if len(left) == len(changing.tokens):
            raise missing(name, (token.name for token in changing.tokens))
        changing.write(left)


def duplicate(name: str) -> RefusedError:
    """Return the refusal of a second token of one name."""
    return RefusedError(f"there is a token {name} already", f"service bridge token remove {name}")


def missing(name: str, known: Iterable[str]) -> ServiceError:
    """Return the error about a token that does not exist, with the known name that was probably meant."""
    return with_nearest(NotFoundError(f"there is no token {name[:100]}", "service bridge token list"), name, known)


def every(home: Home) -> tuple[NamedToken, ...]:
    """Return all tokens, sorted by name."""
    return tuple(sorted(_read(home.bridge_tokens), key=lambda token: token.name))


class _Changing:
    """A context in which the tokens file is locked against other writers."""

    def __init__(self, home: Home) -> None:
        self._path = home.ensure().bridge_tokens

    def __enter__(self) -> "_Changing":
        lock = FileLock.take(self._path.with_name(f"{self._path.name}.lock"), wait=LOCK_SECONDS)
        if lock is None:
            raise RefusedError("somebody else changes the tokens right now", "service bridge token list")
        self._lock, self.tokens = lock, _read(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def write(self, tokens: Iterable[NamedToken]) -> None:
        write_private(self._path, _TokensFile(tokens=tuple(tokens)).model_dump_json(indent=1) + "\n")


def _read(path: Path) -> tuple[NamedToken, ...]:
    try:
        return _TokensFile.model_validate_json(path.read_bytes()).tokens
    except FileNotFoundError:
        return ()
    except ValidationError:
        raise RefusedError(f"{path} cannot be read", f"mv {path} {path}.strange; service bridge token list") from None


def _by_digest(content: bytes) -> dict[str, NamedToken]:
    """Index the tokens by digest. An unreadable file grants no access."""
    try:
        return {token.digest: token for token in _TokensFile.model_validate_json(content).tokens}
    except ValidationError:
        return {}
