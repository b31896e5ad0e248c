"""Read JSON records, one per line, in bounded memory, however long the stream and its lines are.

No library: existing JSON-lines readers hold a whole line in memory, and an agent's line may have any length.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from activities.runs.regular_files import NotRegularError, open_to_read, size_of
from workflows.contract.locate import KEY
from workflows.contract.parse import candidates
from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.spend import Usage

CHUNK = 256 * 1024
RECORD_LIMIT = 16 * 1024 * 1024
"""Maximum length of a record's line in bytes; longer ones are skipped."""

MOST_READ = 256 * 1024 * 1024
"""Bytes read of a file, half of them at its beginning and half at its end."""

TEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of messages kept; the oldest are dropped first."""

MODEL_LIMIT = 200
"""Maximum length of a model's name; longer values are invalid."""

Record = dict[str, Any]


def chunks(path: Path) -> Iterator[bytes]:
    """Yield a run's output in chunks; nothing if it is missing. Raise NotRegularError unless it is a regular file of
    the service's account.
    """
    try:
        file = open_to_read(path)
    except FileNotFoundError:
        return
    yield from _pieces(file)


def file_chunks(path: Path) -> Iterator[bytes]:
    """Yield a program's own file in chunks; nothing if it is missing, a link or a pipe."""
    try:
        file = open_to_read(path, ours=False)
    except (FileNotFoundError, NotRegularError):
        return
    yield from _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield chunks of the file's beginning and end, with a line end in place of an omitted middle."""
    with file:
        gap = os.fstat(file.fileno()).st_size - MOST_READ
        read = 0
        while piece := file.read(CHUNK):
            yield piece
            read += len(piece)
            if gap > 0 and read >= MOST_READ // 2:
                yield b"\n"
                file.seek(gap, os.SEEK_CUR)
                gap = 0


def left_out(path: Path) -> int:
    """Return the number of bytes of a run's output that are not read."""
    return max(0, size_of(path) - MOST_READ)


def records(pieces: Iterable[bytes]) -> Iterator[Record]:
    """Yield each line that is a JSON object; skip other lines."""
    for line in lines(pieces):
        if line.lstrip()[:1] != b"{":
            continue
        try:
            value = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield every line without its end; skip those longer than a record may be."""
    held, too_long = bytearray(), False
    for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if not too_long and len(held) + len(end) <= RECORD_LIMIT:
                yield bytes(held + end)
            held.clear()
            too_long = False
        too_long = too_long or len(held) + len(rest) > RECORD_LIMIT
        if too_long:
            held.clear()
        else:
            held += rest
    if held:
        yield bytes(held)


class Messages:
    """The latest messages of an agent, up to a number of bytes."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def add(self, message: object) -> None:
        """Add a message; ignore values that are not text."""
        if isinstance(message, str):
            self._kept.append(message)
            self._size += len(message)
            while self._size > TEXT_LIMIT and len(self._kept) > 1:
                self._size -= len(self._kept.popleft())

    def __bool__(self) -> bool:
        return bool(self._kept)

    @property
    def text(self) -> bytes:
        """Return the last message that has a result; if none has, the last message. Earlier messages are commentary."""
        last = self._kept[-1] if self._kept else ""
        message = next((each for each in reversed(self._kept) if KEY in each and candidates(each)), last)
        return message.encode("utf-8", "replace")


def count(usage: object, *keys: str) -> int:
    """Sum up a usage object's values of these keys, up to a cap. Ignore values that are not positive integers."""
    if not isinstance(usage, dict):
        return 0
    return min(MOST_TOKENS, sum(value for key in keys if type(value := usage.get(key)) is int and value > 0))


def usage_of(value: object) -> Usage:
    """Return a usage object's input and output tokens."""
    return Usage(input_tokens=count(value, "input_tokens"), output_tokens=count(value, "output_tokens"))


def model_of(value: object) -> str | None:
    """Return a valid model name, or None; a placeholder (`<synthetic>`, `__kimi_env_model__`) is invalid."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value.strip()) <= MODEL_LIMIT:
        return None
    return None if value.strip().startswith(("<", "__")) else value.strip()


def busiest(used: Mapping[str, int]) -> str | None:
    """Return the model with the most tokens, which prices all of them."""
    return max(used, key=lambda model: used[model], default=None)


def text_of(value: object, *path: str) -> str:
    """Return the text at a path of a record; empty if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
