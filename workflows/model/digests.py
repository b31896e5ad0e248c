"""One way to put values under a digest: canonical JSON, SHA-256."""

import hashlib
import json
from collections.abc import Sequence

Plain = str | int | float | bool | None | Sequence["Plain"]


def digest(value: Plain) -> str:
    """The same value gives the same digest, in every process and release."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()
