"""Reading what a run printed, in bounded memory however much it is."""

import os
from dataclasses import dataclass
from pathlib import Path

from activities.redaction.redacted import redacted
from activities.runs.regular_files import NotRegularError, opened

LAST_WORDS_WINDOW = 16_384
"""Long enough that a private key, of which each line looks harmless, is seen from its beginning."""

LAST_WORDS_LIMIT = 200
LONGEST_SECRET = 4096


@dataclass(frozen=True)
class Excerpt:
    """The beginning and the end of a file, and how long the whole of it is."""

    head: bytes
    tail: bytes
    size: int

    @property
    def omitted(self) -> int:
        """How many bytes in the middle are left out."""
        return self.size - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        """For people: says where something is left out, and survives what is not UTF-8."""
        gap = f"\n[{self.omitted} bytes left out]\n".encode() if self.omitted else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


def read_bounded(path: Path, head: int, tail: int) -> Excerpt:
    """At most `head` bytes from the start and `tail` from the end; empty when there is no such file.

    NotRegularError when it is something else than a file of ours: a link is not followed, a pipe not waited for.
    """
    try:
        file = opened(path)
    except FileNotFoundError:
        return Excerpt(b"", b"", 0)
    with file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(min(head, size))
        file.seek(max(len(first), size - tail))
        return Excerpt(first, file.read(max(0, min(tail, size - len(first)))), size)


def last_lines(path: Path, limit: int) -> str:
    """The last lines, `limit` letters at most and without secrets, not even the rest of one that began before them."""
    end = _end(path, 2 * limit + LONGEST_SECRET)
    text = redacted(end.tail.decode("utf-8", "replace"))
    if end.omitted:
        text = text[LONGEST_SECRET:]
    elif len(text) <= limit:
        return text
    shown = text[-limit:]
    shown = shown.partition("\n")[2] or shown
    return f"[{end.size - len(shown.encode())} bytes left out]\n{shown}"


def _end(path: Path, tail: int) -> Excerpt:
    """For people: a sentence in place of what is not read."""
    try:
        return read_bounded(path, 0, tail)
    except NotRegularError as error:
        said = f"[{error}]".encode()
        return Excerpt(b"", said, len(said))


def last_words(path: Path) -> str:
    """The last line that says something, cut to a line's length and without secrets (ruling A12)."""
    end = _end(path, LAST_WORDS_WINDOW)
    lines = redacted(end.tail.decode("utf-8", "replace")).split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "")
    if end.omitted and said is lines[0]:  # its beginning, which may be that of a secret, was not seen
        return said[LONGEST_SECRET:][-LAST_WORDS_LIMIT:].strip()
    return said.strip()[:LAST_WORDS_LIMIT]
