"""The sealed records of a run: a line, and below it a seal (HMAC) that only a holder of the run's key can make.

Standard library only: supervisors use it too. A record is valid for one kind and one run only. Files are private to
their owner; the seal also stops forgeries by programs of the same account, which lack the key.
"""

import hmac
import os
from enum import StrEnum
from pathlib import Path

from activities.runs.regular_files import NotRegularError, content_of

LONGEST = 64 * 1024 * 1024
_HEX = 64


class RecordKind(StrEnum):
    """The kinds of records, by their file names."""

    SPEC = "spec.json"
    CLAIM = "claim"
    EXIT = "exit.json"
    STOP = "stop"


class UnbelievedError(Exception):
    """The record's seal is invalid: the service did not write it for this run."""


def with_seal(key: bytes, run_dir: Path, kind: RecordKind, content: bytes) -> bytes:
    """Return the content, which is one line, with its seal."""
    return content + b"\n" + _seal(key, run_dir, kind, content)


def read(key: bytes, run_dir: Path, kind: RecordKind) -> bytes:
    """Read a record. Raise FileNotFoundError if it is missing, UnbelievedError if its seal is invalid."""
    path = run_dir / kind.value
    try:
        content, _, seal = content_of(path, LONGEST).rpartition(b"\n")
    except NotRegularError as error:
        raise UnbelievedError(str(error)) from None
    if len(seal) != _HEX or not hmac.compare_digest(seal, _seal(key, run_dir, kind, content)):
        raise UnbelievedError(f"{path} does not carry the seal of this service and this run")
    return content


def _seal(key: bytes, run_dir: Path, kind: RecordKind, content: bytes) -> bytes:
    message = b"\0".join((kind.encode(), os.fsencode(run_dir.name), content))
    return hmac.digest(key, message, "sha256").hex().encode()
