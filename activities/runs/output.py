"""Reading what a run printed, in bounded memory however much it is."""

import os
from dataclasses import dataclass
from pathlib import Path

LAST_LINE_WINDOW = 8192


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
    """At most `head` bytes from the start and `tail` from the end; empty when there is no such file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Excerpt(b"", b"", 0)
    with file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(min(head, size))
        file.seek(max(len(first), size - tail))
        return Excerpt(first, file.read(max(0, min(tail, size - len(first)))), size)


def tail_line(path: Path) -> str:
    """The last line that says something, or the end of it when it is longer than the window."""
    lines = read_bounded(path, 0, LAST_LINE_WINDOW).tail.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
