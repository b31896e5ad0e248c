"""Seals of what a host records at an attempt's end (ruling N4): access to the database without a key is not enough to
forge them.

Each part has a separate seal, valid for one attempt, so that a reader of one part doesn't need the others.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from functools import cache

from activities.sealing.seal_key import derive

PARTS = ("outcome", "payload", "diagnostics")
"""The sealed columns of an attempt, in the order of their seals."""


def seal_parts(key: bytes, job_id: str, attempt: int, parts: Mapping[str, object]) -> str:
    """Return the seals of all parts."""
    return " ".join(_seal(key, job_id, attempt, part, parts[part]) for part in PARTS)


def holds(keys: Sequence[bytes], seals: str | None, job_id: str, attempt: int, part: str, value: object) -> bool:
    """Return whether one of these keys has sealed this part of the attempt."""
    stored = (seals or "").split(" ")
    if len(stored) != len(PARTS):
        return False
    seal = stored[PARTS.index(part)].encode()
    return any(hmac.compare_digest(seal, _seal(key, job_id, attempt, part, value).encode()) for key in keys)


def _seal(key: bytes, job_id: str, attempt: int, part: str, value: object) -> str:
    content = json.dumps([job_id, attempt, part, value], sort_keys=True, separators=(",", ":"))
    return hmac.digest(_attempts_key(key), content.encode(), "sha256").hex()


@cache
def _attempts_key(key: bytes) -> bytes:
    return derive(key, "attempt")
