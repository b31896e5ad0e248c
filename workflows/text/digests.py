"""The digest of a value: SHA-256 of its canonical JSON."""

import hashlib
import json
from collections.abc import Sequence

Plain = str | int | float | bool | None | Sequence["Plain"]


def digest(value: Plain) -> str:
    """Return a digest that is stable across processes and releases."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()
