"""Read pages of an attempt's transcript, before or after an offset, from output of any size.

An offset counts bytes across the outputs of all programs of the attempt, in order, and is always at the beginning of a
line. Secrets are removed (ruling A12), also from cut text and across lines.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import BinaryIO

from activities.agents.entries import ARGUMENT_LIMIT, Entry, EntryKind, Read
from activities.redaction.redact import redact_begin, redact_between
from activities.runs import output_times
from activities.runs.output import LONGEST_SECRET
from activities.runs.output_times import OutputTimes
from activities.runs.regular_files import open_to_read, size_of
from activities.runs.supervised_run import Claim

CHUNK = 64 * 1024
LINE_LIMIT = 4 * 1024 * 1024
"""Maximum length of a line that is shown, in bytes; a longer one is only mentioned."""

MOST_READ = 8 * 1024 * 1024
"""Bytes of lines after which a page ends."""

MOST_PER_LINE = 100
"""The most entries taken from one line."""

NAME_LIMIT = 100
"""Characters of a tool's name or a call's id."""

BLOCK = 4096
"""Size in bytes of the blocks into which an output is divided. The plain lines that begin in one block make one entry,
wherever reading begins.
"""

_AS_BYTES = "surrogateescape"
_TERMINAL = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z^_])")
"""Terminal sequences for colours, cursor movements and titles."""


@dataclass(frozen=True)
class ProgramOutput:
    """The output of one program of an attempt."""

    file: Path
    begin: int
    """Offset of the output's first byte."""
    end: int
    closed: bool
    """True if the output can't grow any more."""
    why: str = ""
    """Why the attempt started a further program; empty for the first one."""

    @cached_property
    def times(self) -> OutputTimes:
        return output_times.read(self.file)


@dataclass(frozen=True)
class Page:
    """Entries in order, and the offsets at which they begin and end."""

    entries: tuple[Entry, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class _Line:
    at: int
    size: int
    """Its length in bytes, without its end."""
    next: int
    """Offset of the next line."""
    text: bytes | None
    """The line's text; None if the line is longer than `LINE_LIMIT`."""
    program: ProgramOutput

    @property
    def written_at(self) -> float | None:
        return self.program.times.written_at(self.at - self.program.begin)


_WHY = {"again": "started again", "fresh": "started in a new session", "repair": "asked to correct its result"}


def programs(run_dir: Path, *, over: bool) -> tuple[ProgramOutput, ...]:
    """Return the programs that an attempt started, in order. With `over`, the attempt has ended, so no output will be
    added.
    """
    folders = (run_dir, *run_dir.parent.glob(f"{run_dir.name}.[a-z]*"))
    begun = {folder: claim for folder in folders if (claim := Claim.read(folder))}
    ordered = sorted(begun, key=lambda folder: begun[folder].at) or [run_dir]
    made, at = list[ProgramOutput](), 0
    for folder in ordered:
        file, why = (
            folder / "stdout.log",
            folder.name.removeprefix(run_dir.name).rpartition(".")[2].rstrip("0123456789"),
        )
        end = at + size_of(file)
        closed = over or folder is not ordered[-1]
        made.append(ProgramOutput(file, at, end, closed, _WHY.get(why, "started again") if made else ""))
        at = end
    return tuple(made)


def before(outputs: Sequence[ProgramOutput], read: Read, offset: int, *, limit: int, longest: int) -> Page:
    """Return about `limit` entries that end before an offset, each with at most `longest` characters."""
    end = _line_begin(outputs, offset)
    parsed = _enough(_backwards(outputs, end), read, limit)
    parsed.reverse()
    return Page(tuple(_entries(parsed, longest)), parsed[0].line.at if parsed else end, end)


def after(outputs: Sequence[ProgramOutput], read: Read, offset: int, *, limit: int, longest: int) -> Page:
    """Return about `limit` entries from an offset on, each with at most `longest` characters. Skip a last line that may
    still grow.
    """
    begin = _line_begin(outputs, offset)
    parsed = _enough(_forwards(outputs, begin), read, limit)
    return Page(tuple(_entries(parsed, longest)), begin, parsed[-1].line.next if parsed else begin)


def raw(outputs: Sequence[ProgramOutput], offset: int) -> Iterator[tuple[bytes, int]]:
    """Yield the output from an offset on, without secrets; each piece with the offset at which the next one begins.

    Skip a last line that may still grow.
    """
    at = _line_begin(outputs, offset)
    for program in outputs:
        if not program.begin <= at < program.end:
            continue
        with open_to_read(program.file) as file:
            while at < program.end:
                begin = at - program.begin
                piece = _bytes(file, begin, min(begin + CHUNK, program.end - program.begin))
                is_last = at + len(piece) >= program.end
                if not (is_last and program.closed):
                    piece = piece[: piece.rfind(b"\n") + 1] or (b"" if is_last else piece)
                if not piece:
                    return
                ahead, behind = _around(file, begin, begin + len(piece), _AS_BYTES)
                at += len(piece)
                shown = redact_between(ahead, piece.decode("utf-8", _AS_BYTES), behind)
                yield shown.encode("utf-8", _AS_BYTES), at


@dataclass(frozen=True)
class _Parsed:
    line: _Line
    entries: tuple[Entry, ...] | None
    """None if the line is plain text, not a record."""

    @property
    def block(self) -> tuple[ProgramOutput, int] | None:
        """Return the block of plain text that the line belongs to."""
        return (self.line.program, self.line.at // BLOCK) if self.entries is None else None


def _enough(lines: Iterable[_Line], read: Read, limit: int) -> list[_Parsed]:
    """Parse lines until there are enough entries. Blocks of plain text stay whole."""
    parsed, entries, seen = list[_Parsed](), 0, 0
    for line in lines:
        this = _parse(line, read)
        goes_on = bool(parsed) and this.block is not None and this.block == parsed[-1].block
        if (entries >= limit or seen >= MOST_READ) and not goes_on:
            break
        parsed.append(this)
        entries += 0 if goes_on else 1 if this.entries is None else len(this.entries)
        seen += line.size
    return parsed


def _parse(line: _Line, read: Read) -> _Parsed:
    if line.text is None:
        text = f"a line of {line.size} bytes is not shown; the raw output has it"
        return _Parsed(line, (*_beginning(line), Entry(kind=EntryKind.NOTE, text=text)))
    record = None
    if line.text.lstrip()[:1] == b"{":
        with suppress(ValueError, RecursionError):  # then it is plain text
            record = json.loads(line.text.decode("utf-8", "replace"))
    entries = read(record) if isinstance(record, dict) else None
    return _Parsed(line, None if entries is None else (*_beginning(line), *islice(entries, MOST_PER_LINE)))


def _beginning(line: _Line) -> Iterator[Entry]:
    """Yield the entry that separates a further program's output from the one before."""
    if line.at == line.program.begin and line.program.why:
        yield Entry(kind=EntryKind.NOTE, text=f"The program was {line.program.why}.")


def _entries(parsed: Iterable[_Parsed], longest: int) -> Iterator[Entry]:
    for block, group in groupby(parsed, key=lambda line: line.block):
        if block is not None:
            yield from _text_block([each.line for each in group], longest)
            continue
        for parsed_line in group:
            for entry in parsed_line.entries or ():
                yield _finish(entry, parsed_line.line, longest)


def _finish(entry: Entry, line: _Line, longest: int) -> Entry:
    """Remove secrets from an entry of a record, and cut it to `longest` characters."""
    text, left_out = _shorten(entry.text, longest)
    more = {
        "at": line.at,
        "written_at": line.written_at,
        "tool": redact_begin(entry.tool, NAME_LIMIT),
        "argument": redact_begin(entry.argument, ARGUMENT_LIMIT),
        "call": redact_begin(entry.call, NAME_LIMIT),
        "files": tuple(redact_begin(file, ARGUMENT_LIMIT) for file in entry.files),
    }
    return entry.model_copy(update={"text": text, "left_out": left_out} | more)


def _text_block(lines: Sequence[_Line], longest: int) -> Iterator[Entry]:
    """Yield the entry of a block of plain text. Remove secrets that reach into neighbouring blocks, too."""
    first, last = lines[0], lines[-1]
    yield from _beginning(first)
    with open_to_read(first.program.file) as file:
        ahead, behind = _around(file, first.at - first.program.begin, last.at + last.size - first.program.begin)
    whole = b"\n".join(line.text or b"" for line in lines).decode("utf-8", "replace")
    text, left_out = _shorten(whole, longest + BLOCK, ahead, behind)
    if text.strip():
        yield Entry(kind=EntryKind.PRINTED, at=first.at, written_at=first.written_at, text=text, left_out=left_out)


def _around(file: BinaryIO, begin: int, end: int, errors: str = "replace") -> tuple[str, str]:
    """Return the text before and after a part of a file, up to the longest length of a secret."""
    ahead, behind = _bytes(file, max(0, begin - LONGEST_SECRET), begin), _bytes(file, end, end + LONGEST_SECRET)
    return ahead.decode("utf-8", errors), behind.decode("utf-8", errors)


def _bytes(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    return file.read(end - begin)


def _shorten(text: str, longest: int, ahead: str = "", behind: str = "") -> tuple[str, int]:
    """Remove terminal sequences, secrets, and the middle of a text that is too long."""
    text = _plain(text)
    if len(text) <= longest + 2 * LONGEST_SECRET:
        text = redact_between(ahead, text, behind)
        begin, end = (text, "") if len(text) <= longest else (text[: longest // 2], text[-longest // 2 :])
    else:
        half = longest // 2
        begin = redact_between(ahead, text[:half], text[half : half + LONGEST_SECRET])
        end = redact_between(text[-half - LONGEST_SECRET : -half], text[-half:], behind)
    if not end:
        return begin, 0
    left_out = max(1, len(text) - 2 * (longest // 2))
    return f"{begin}\n[{left_out} characters left out]\n{end}", left_out


def _plain(text: str) -> str:
    """Remove terminal colours, cursor movements and titles, and overwritten parts of lines."""
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text


def _line_begin(outputs: Sequence[ProgramOutput], offset: int) -> int:
    """Return the offset of the beginning of the line around `offset`, so that no page begins or ends within a
    secret.
    """
    offset = max(0, min(offset, outputs[-1].end))
    program = next((each for each in outputs if each.begin <= offset < each.end), outputs[-1])
    if offset <= program.begin or (offset == program.end and program.closed):
        return offset
    with open_to_read(program.file) as file:
        return program.begin + next(_begins_before(file, offset - program.begin))


def _begins_before(file: BinaryIO, end: int) -> Iterator[int]:
    """Yield the positions where lines begin, last first; `end` itself may be one."""
    while end > 0:
        begin = max(0, end - CHUNK)
        file.seek(begin)
        piece = file.read(end - begin)
        newline = len(piece)
        while (newline := piece.rfind(b"\n", 0, newline)) >= 0:
            yield begin + newline + 1
        end = begin
    yield 0


def _backwards(outputs: Sequence[ProgramOutput], end: int) -> Iterator[_Line]:
    """Yield the lines before an offset, the last one first."""
    for program in reversed(outputs):
        last = behind = min(end, program.end) - program.begin
        if last <= 0:
            continue
        with open_to_read(program.file) as file:
            for begin in _begins_before(file, last):
                if begin == last:
                    continue  # nothing is behind the last line's end
                ended = 1 if behind < last or _ends_line(file, last) else 0
                yield _line(file, program, begin, behind - begin - ended, behind)
                behind = begin


def _ends_line(file: BinaryIO, end: int) -> bool:
    return _bytes(file, end - 1, end) == b"\n"


def _forwards(outputs: Sequence[ProgramOutput], offset: int) -> Iterator[_Line]:
    """Yield the lines from an offset on. A line without an end counts only if its program has ended."""
    for program in outputs:
        at = max(offset, program.begin) - program.begin
        if program.begin + at >= program.end:
            continue
        with open_to_read(program.file) as file:
            file.seek(at)
            while size := _size_of_line(file):
                ended = 1 if _ends_line(file, at + size) else 0
                if not ended and not program.closed:
                    return
                yield _line(file, program, at, size - ended, at + size)
                at += size
                file.seek(at)


def _size_of_line(file: BinaryIO) -> int:
    """Return the size of the line that begins at the file's position, including its end; 0 at the end of the file."""
    size = 0
    while piece := file.readline(CHUNK):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _line(file: BinaryIO, program: ProgramOutput, at: int, size: int, behind: int) -> _Line:
    text = _bytes(file, at, at + size) if size <= LINE_LIMIT else None
    return _Line(program.begin + at, size, program.begin + behind, text, program)
