"""Reading a stream of JSON records, one per line, in bounded memory however long the stream or a line of it is.

No library: readers of JSON lines keep a line whole before they look at it, and one of an agent may be of any length.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from activities.runs.regular_files import NotRegularError, opened, size_of
from workflows.contract.locate import KEY
from workflows.contract.parse import candidates
from workflows.contract.strings import MOST_TOKENS
from workflows.model.spend import Usage

CHUNK = 256 * 1024
RECORD_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest line that is read as a record; a longer one is passed over."""

MOST_READ = 256 * 1024 * 1024
"""Bytes of a file that are read, half of them at its beginning and half at its end."""

TEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of messages that are kept; the oldest go first."""

MODEL_LIMIT = 200
"""Characters of a model's name; what is longer is no name."""

Record = dict[str, Any]


def chunks(path: Path) -> Iterator[bytes]:
    """What a run printed, piece by piece; nothing when there is no file. NotRegularError when it is none of ours."""
    try:
        file = opened(path)
    except FileNotFoundError:
        return
    yield from _pieces(file)


def kept(path: Path) -> Iterator[bytes]:
    """A file that a program keeps for itself, in the same way; nothing when it is a link or a pipe."""
    try:
        file = opened(path, ours=False)
    except (FileNotFoundError, NotRegularError):
        return
    yield from _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The omitted middle is replaced by the end of a line."""
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
    """Count the bytes of a run's output that are not read."""
    return max(0, size_of(path) - MOST_READ)


def records(pieces: Iterable[bytes]) -> Iterator[Record]:
    """Every JSON object that has a line to itself; whatever else there is is noise."""
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
    """Every line without its end; one longer than a record may be is passed over."""
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
    """What an agent said, the last so many bytes of it."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def add(self, message: object) -> None:
        """The next message; anything but text is none."""
        if isinstance(message, str):
            self._kept.append(message)
            self._size += len(message)
            while self._size > TEXT_LIMIT and len(self._kept) > 1:
                self._size -= len(self._kept.popleft())

    def __bool__(self) -> bool:
        return bool(self._kept)

    @property
    def text(self) -> bytes:
        """The last message that holds a result, else the last: what went before it is commentary."""
        last = self._kept[-1] if self._kept else ""
        said = next((each for each in reversed(self._kept) if KEY in each and candidates(each)), last)
        return said.encode("utf-8", "replace")


def count(usage: object, *keys: str) -> int:
    """The sum of what a usage object has under these keys; only whole, positive numbers count, to what is stored."""
    if not isinstance(usage, dict):
        return 0
    return min(MOST_TOKENS, sum(value for key in keys if type(value := usage.get(key)) is int and value > 0))


def usage_of(value: object) -> Usage:
    """A usage object's input and output tokens."""
    return Usage(input_tokens=count(value, "input_tokens"), output_tokens=count(value, "output_tokens"))


def model_of(value: object) -> str | None:
    """A model's name as a program says it; a stand-in (`<synthetic>`, `__kimi_env_model__`) is none."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value.strip()) <= MODEL_LIMIT:
        return None
    return None if value.strip().startswith(("<", "__")) else value.strip()


def busiest(used: Mapping[str, int]) -> str | None:
    """Of several models the one that used most tokens; what is spent is priced as if all of it were that one's."""
    return max(used, key=lambda model: used[model], default=None)


def text_of(value: object, *path: str) -> str:
    """The text at a path of a record; empty when there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
