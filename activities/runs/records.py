"""The records of a run, sealed: each is a line, and below it a seal that only who has the run's key can make.

Standard library only: supervisors use it too. A record holds for one kind and one run: moved elsewhere it is not
believed. Files are private to their owner; what the seal keeps out are programs of the same account without the key.
"""

import hmac
import os
from enum import StrEnum
from pathlib import Path

from activities.runs.regular_files import NotRegularError, content_of

LONGEST = 64 * 1024 * 1024
_HEX = 64


class Kind(StrEnum):
    """What is read back, by the names of the files."""

    SPEC = "spec.json"
    CLAIM = "claim"
    EXIT = "exit.json"
    STOP = "stop"


class UnbelievedError(Exception):
    """There is a record, and it is not one of the service's for this run."""


def sealed(key: bytes, run_dir: Path, kind: Kind, content: bytes) -> bytes:
    """What is written. The content is one line."""
    return content + b"\n" + _seal(key, run_dir, kind, content)


def read(key: bytes, run_dir: Path, kind: Kind) -> bytes:
    """The content of a record; FileNotFoundError when there is none, UnbelievedError when it has no good seal."""
    path = run_dir / kind.value
    try:
        content, _, seal = content_of(path, LONGEST).rpartition(b"\n")
    except NotRegularError as error:
        raise UnbelievedError(str(error)) from None
    if len(seal) != _HEX or not hmac.compare_digest(seal, _seal(key, run_dir, kind, content)):
        raise UnbelievedError(f"{path} does not carry the seal of this service and this run")
    return content


def _seal(key: bytes, run_dir: Path, kind: Kind, content: bytes) -> bytes:
    told = b"\0".join((kind.encode(), os.fsencode(run_dir.name), content))
    return hmac.digest(key, told, "sha256").hex().encode()
