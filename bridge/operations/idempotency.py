"""Idempotent calls: a repeated key with equal arguments returns what the first call has started (ruling J9)."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from activities.store import idempotency_rows
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, UsageError

Answer = dict[str, Any]
Act = Callable[[str | None], Awaitable[Answer]]
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_LOCKS: "WeakValueDictionary[str, _KeyLock]" = WeakValueDictionary()
_GUARD = Lock()


class KeyReusedError(RefusedError):
    """The key was used for a call with other arguments."""

    code = "idempotency_key_reused"


class _KeyLock:
    """A lock per key: calls with one key run one after another."""

    def __init__(self) -> None:
        self.lock = Lock()


async def once(
    service: Service, key: str | None, words: str, new_id: Callable[[], str], act: Act, *, owner: str = ""
) -> Answer:
    """Run `act`; with a key, run it once, under an id that is stored with the key. Each owner's keys are separate; the
    operator is the owner "".

    The id is reserved first, and `act` starts its work under that id. So if a call dies, its repetition completes it
    and starts nothing twice.
    """
    if key is None:
        return await act(None)
    if not _KEY.fullmatch(key):
        raise UsageError("Idempotency-Key must be 1 to 200 visible ASCII characters")
    if owner:
        key = f"{owner} {key}"  # no key holds a space
    with _GUARD:
        key_lock = _LOCKS.setdefault(key, _KeyLock())
    await asyncio.to_thread(key_lock.lock.acquire)
    try:
        return await _once(service, key, hashlib.sha256(words.encode()).hexdigest(), new_id, act)
    finally:
        key_lock.lock.release()


async def _once(service: Service, key: str, digest: str, new_id: Callable[[], str], act: Act) -> Answer:
    kept = idempotency_rows.reserve(service.store, key, digest, new_id())
    if kept.digest != digest:
        raise KeyReusedError("this Idempotency-Key was sent with another call; use a new key for a new call")
    if kept.answer is not None:
        return kept.answer
    try:
        answer = await act(kept.subject)
    except (UsageError, RefusedError, NotFoundError):
        idempotency_rows.release(service.store, key)
        raise
    idempotency_rows.settle(service.store, key, answer)
    return answer
