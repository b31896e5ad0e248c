"""A run's output, read in bounded memory whatever its size."""

import os
from dataclasses import dataclass
from pathlib import Path

from activities.redaction.redact import redact_text
from activities.runs.regular_files import NotRegularError, open_to_read

LAST_WORDS_WINDOW = 16_384
"""Characters searched for secrets: enough to contain a whole private key, whose single lines look harmless."""

LAST_WORDS_LIMIT = 200
LONGEST_SECRET = 4096


@dataclass(frozen=True)
class Excerpt:
    """The beginning and the end of a file, and its whole size."""

    head: bytes
    tail: bytes
    size: int

    @property
    def omitted(self) -> int:
        """Return the number of bytes left out in the middle."""
        return self.size - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        """Return text for people that marks the gap, and replaces bytes that are not UTF-8."""
        gap = f"\n[{self.omitted} bytes left out]\n".encode() if self.omitted else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


def read_bounded(path: Path, head: int, tail: int) -> Excerpt:
    """Read at most `head` bytes from the start and `tail` from the end; empty if the file is missing.

    Raise NotRegularError if it is not a regular file of this account: a link is not followed, a pipe does not block.
    """
    try:
        file = open_to_read(path)
    except FileNotFoundError:
        return Excerpt(b"", b"", 0)
    with file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(min(head, size))
        file.seek(max(len(first), size - tail))
        return Excerpt(first, file.read(max(0, min(tail, size - len(first)))), size)


def last_lines(path: Path, limit: int) -> str:
    """Return the last lines, at most `limit` characters. Secrets are removed, even one that begins before these
    lines.
    """
    end = _end(path, 2 * limit + LONGEST_SECRET)
    text = redact_text(end.tail.decode("utf-8", "replace"))
    if end.omitted:
        text = text[LONGEST_SECRET:]
    elif len(text) <= limit:
        return text
    shown = text[-limit:]
    shown = shown.partition("\n")[2] or shown
    return f"[{end.size - len(shown.encode())} bytes left out]\n{shown}"


def _end(path: Path, tail: int) -> Excerpt:
    """Read the end of a file; return a sentence for people if it can't be read."""
    try:
        return read_bounded(path, 0, tail)
    except NotRegularError as error:
        sentence = f"[{error}]".encode()
        return Excerpt(b"", sentence, len(sentence))


def last_line(path: Path) -> str:
    """Return the last line that is not blank, cut to a line's length and without secrets (ruling A12)."""
    end = _end(path, LAST_WORDS_WINDOW)
    lines = redact_text(end.tail.decode("utf-8", "replace")).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    if end.omitted and last is lines[0]:  # its beginning was not read, and may be that of a secret
        return last[LONGEST_SECRET:][-LAST_WORDS_LIMIT:].strip()
    return last.strip()[:LAST_WORDS_LIMIT]
