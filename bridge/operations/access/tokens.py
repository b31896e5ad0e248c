"""Named tokens: stored in a file of the home, or for several hosts in their shared store (rulings N5, Q10)."""

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from activities.store.registry import token_rows
from activities.store.registry.token_rows import StoredToken
from bridge.machine import tokens_file
from bridge.machine.tokens_file import LONGEST_NAME, NamedToken, NamedTokens
from bridge.operations.service import Service
from workflows.model.errors import UnreachableError

log = logging.getLogger("service")

FRESH_SECONDS, STALE_SECONDS = 2.0, 5.0
"""Age at which a bridge reads the tokens again in the background, and age at which it waits for that."""

WAIT_SECONDS = 3.0


class Tokens(Protocol):
    """The named tokens in force."""

    def find(self, shown: bytes) -> NamedToken | None: ...


def lookup(service: Service) -> Tokens:
    """Return the object with which a running bridge looks up tokens."""
    if not service.settings.store.url:
        return NamedTokens(service.home)
    _take_over(service)
    return StoredTokens(service)


def add(service: Service, name: str, scope: str) -> str:
    """Create a token and return it. The returned secret is not stored."""
    if not service.settings.store.url:
        return tokens_file.add(service.home, name, scope)
    _take_over(service)
    made, secret = tokens_file.new_token(name, scope)
    if not token_rows.add(service.store, _row(made)):
        raise tokens_file.duplicate(name)
    return secret


def remove(service: Service, name: str) -> None:
    """Revoke a token: a single host refuses it at once, several hosts do within seconds."""
    if not service.settings.store.url:
        return tokens_file.remove(service.home, name)
    _take_over(service)
    if not token_rows.remove(service.store, name):
        raise tokens_file.missing(name, (each.name for each in token_rows.every(service.store)))
    return None


def every(service: Service) -> tuple[NamedToken, ...]:
    """Return all tokens, sorted by name."""
    if not service.settings.store.url:
        return tokens_file.every(service.home)
    _take_over(service)
    return tuple(map(_token, token_rows.every(service.store)))


class StoredTokens:
    """The tokens in the store, read again every few seconds while they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service, self._reader = service, ThreadPoolExecutor(1, thread_name_prefix="tokens")
        self._reading: Future[None] | None = None
        self._by_digest: dict[str, NamedToken] = {}
        self._read_at = -STALE_SECONDS

    def find(self, shown: bytes) -> NamedToken | None:
        """Return the token that was shown, if it exists; looked up by digest, so the time taken reveals nothing."""
        age = time.monotonic() - self._read_at
        if age > FRESH_SECONDS and (self._reading is None or self._reading.done()):
            self._reading = self._reader.submit(self._read)
        if age > STALE_SECONDS and self._reading:
            self._wait(self._reading)
        return self._by_digest.get(sha256(shown).hexdigest())

    def _read(self) -> None:
        at = time.monotonic()
        self._by_digest = {each.digest: _token(each) for each in token_rows.every(self._service.store)}
        self._read_at = at

    def _wait(self, reading: "Future[None]") -> None:
        try:
            reading.result(WAIT_SECONDS)
        except (SQLAlchemyError, TimeoutError):
            raise UnreachableError("the tokens cannot be read from the store now", "service doctor") from None


def _take_over(service: Service) -> None:
    """Move the tokens of this home's file into the store, once. A name that is taken gets this host's name appended, or
    if that is taken too, the beginning of the token's digest.
    """
    of_home = tokens_file.every(service.home.ensure())
    if not of_home:
        return
    for token in of_home:
        begins = token.name[: LONGEST_NAME // 2]
        names = (token.name, f"{begins}-{service.settings.host.lower()}"[:LONGEST_NAME], f"{begins}-{token.digest[:8]}")
        rows = (_row(token.model_copy(update={"name": name})) for name in names)
        added = next((row.name for row in rows if token_rows.add(service.store, row)), token.name)  # else it is there
        if added != token.name:
            log.warning("the token %s of this host is %s now: another host has one of that name", token.name, added)
    service.home.bridge_tokens.unlink(missing_ok=True)


def _row(token: NamedToken) -> StoredToken:
    return StoredToken(**token.model_dump(mode="json"))


def _token(row: StoredToken) -> NamedToken:
    return NamedToken.model_validate(asdict(row))
