"""Validation of a run's payload (spec: Pipeline run payload; Limits). An invalid payload is refused, never
truncated.
"""

import json
import re
from collections.abc import Iterator, Mapping

from workflows.contract.faults import first, quote
from workflows.contract.strict_reader import kind
from workflows.model.errors import UsageError

MOST_ENTRIES = 32
KEY_BYTES = 64
VALUE_BYTES = 32 * 1024
TOTAL_BYTES = 48 * 1024

_KEY = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


class PayloadError(UsageError):
    """A payload breaks a rule; the message lists every fault, one per line."""

    code = "payload_invalid"


def check_payload(value: object) -> dict[str, str]:
    """Return the payload in canonical order, or raise with every rule it breaks."""
    if not isinstance(value, Mapping):
        raise PayloadError(f"payload must be an object of strings, not {kind(value)}")  # type: ignore[arg-type]
    faults = list(_faults(value))
    if faults:
        raise PayloadError("\n".join(first(faults)))
    return {key: value[key] for key in sorted(value)}


def canonical_payload(payload: Mapping[str, str]) -> str:
    """Serialise a payload: equal payloads give equal texts."""
    return json.dumps(dict(payload), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _faults(payload: Mapping[object, object]) -> Iterator[str]:
    if len(payload) > MOST_ENTRIES:
        yield f"payload has {len(payload)} entries; at most {MOST_ENTRIES} are allowed"
    total = 0
    for key, text in payload.items():
        size = _size(key)
        if not isinstance(key, str) or not _KEY.fullmatch(key) or size > KEY_BYTES:
            yield f"payload key {quote(str(key), 64)} must be 1 to {KEY_BYTES} bytes matching ^[a-z][a-z0-9_]*$"
        yield from _value_faults(str(key), text)
        total += size + _size(text)
    if total > TOTAL_BYTES:
        yield f"payload has {total:,} bytes of keys and values; at most {TOTAL_BYTES:,} are allowed"


def _value_faults(key: str, text: object) -> Iterator[str]:
    name = f"payload.{quote(key, 64)[1:-1]}"
    if not isinstance(text, str):
        yield f"{name} must be a string, not {kind(text)}"  # type: ignore[arg-type]
        return
    if "\x00" in text:
        yield f"{name} contains U+0000"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        yield f"{name} is not valid UTF-8: it contains a lone surrogate"
    if (size := _size(text)) > VALUE_BYTES:
        yield f"{name} has {size:,} bytes; at most {VALUE_BYTES:,} are allowed"


def _size(text: object) -> int:
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
