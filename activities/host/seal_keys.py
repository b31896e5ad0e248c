"""This home's seal keys follow those of the fleet: it takes new ones, seals with the right one, drops removed ones."""

import logging
from pathlib import Path

from sqlalchemy import Engine

from activities.sealing import seal_key
from activities.sealing.payload_seals import decrypted, encrypted
from activities.store import attempts
from activities.store.registry import seal_keys
from activities.store.registry.seal_keys import KnownKey

log = logging.getLogger(__name__)


def follow(home: Path, store: Engine) -> None:
    """Add, switch to, and remove keys as the store says. A home can unwrap a key if it has the key that wraps it."""
    keys, mine = seal_keys.every(store), by_fingerprint(home)
    for key in keys:
        if key.removed_at and key.fingerprint in mine and mine[key.fingerprint] != seal_key.read(home):
            seal_key.remove(home, mine.pop(key.fingerprint))
        elif key.wrapped and key.fingerprint not in mine and (new := _unwrapped(key, mine)):
            seal_key.add(home, new)
            mine[key.fingerprint] = new
            log.info("received the next seal key, %s", key.fingerprint[: seal_key.SHOWN])
    sealing = seal_keys.sealing(keys)
    if sealing and sealing.fingerprint in mine and mine[sealing.fingerprint] != seal_key.read(home):
        seal_key.rotate(home, mine[sealing.fingerprint])
        log.info("seals with the key %s from now on", sealing.fingerprint[: seal_key.SHOWN])


def offer(home: Path, store: Engine) -> None:
    """Make the next key and send it to all hosts, unless one is on its way."""
    present, new = seal_key.ensure(home), seal_key.new()
    name = seal_key.fingerprint(new)
    wrapped = encrypted(_wrapping(present), new, name.encode()).hex()
    seal_keys.offer(store, name, wrapped, seal_key.fingerprint(present))
    follow(home, store)


def renew(home: Path, store: Engine) -> None:
    """Replace all keys by a new one. What they had sealed of ended attempts stays readable."""
    former = seal_key.every(home)
    seal_key.renew(home)
    attempts.seal_again(store, former)


def by_fingerprint(home: Path) -> dict[str, bytes]:
    """Return this home's keys by their fingerprints, the one that seals first."""
    return {seal_key.fingerprint(key): key for key in seal_key.every(home)}


def _unwrapped(key: KnownKey, mine: dict[str, bytes]) -> bytes | None:
    if key.under not in mine:
        return None
    unwrapped = decrypted(_wrapping(mine[key.under]), bytes.fromhex(key.wrapped), key.fingerprint.encode())
    return unwrapped if unwrapped and seal_key.fingerprint(unwrapped) == key.fingerprint else None


def _wrapping(key: bytes) -> bytes:
    return seal_key.derived(key, "next seal key")
