"""A diff as its page shows it: files that fit are unfolded, others are loaded when they are unfolded (ruling M3)."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

from markupsafe import Markup, escape

from bridge.http.dashboard.frame.page import PageRequest
from bridge.http.dashboard.parts.highlight import highlight
from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.branches import diffs
from bridge.operations.branches.diffs import DiffLine, FilePatch, JobDiff, LineKind
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.model.errors import ServiceError
from workflows.model.rows import JobRecord
from workflows.text.invisible import visible

DIFF_BYTES = 8_000_000
"""Bytes of a diff that are read; a command prints the whole."""
FILES = 100
"""Files on one page."""
LINES, LETTERS = 300, 20_000
"""Lines and characters that one page shows unfolded, or of one file."""
LONGEST = 2_000
"""Characters shown of a line."""
CRLF = "line ends CRLF"
UNSEEN = "has invisible characters, shown as escapes"


@dataclass(frozen=True)
class ReadDiff:
    """The files of a diff, or the reason why there are none."""

    source: str = ""
    base: str = ""
    head: str = ""
    files: tuple[FilePatch, ...] = ()
    cut: bool = False
    left_out: tuple[str, ...] = ()
    problem: str = ""

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)


@dataclass(frozen=True)
class ShownLine:
    """A line with its code as HTML."""

    kind: LineKind
    old: int | None
    new: int | None
    code: Markup
    place: str
    field: str
    """The name of the field of a comment on it; empty where none can be."""


Row = tuple[ShownLine | None, ShownLine | None]


@dataclass(frozen=True)
class ShownFile:
    """A file of a diff with as many of its lines as fit."""

    number: int
    path: str
    added: int
    removed: int
    remarks: tuple[str, ...]
    address: str
    """The page on which it is unfolded."""
    open: bool = False
    rows: tuple[Row, ...] = ()
    """Old and new line; in a unified view the second is missing."""
    before: str = ""
    """The address of the lines before those that are shown."""
    more: str = ""
    """The address of the lines after those that are shown."""


@dataclass(frozen=True)
class FilePart:
    """Some lines of a file."""

    number: int
    file: FilePatch
    start: int = 0
    lines: tuple[DiffLine, ...] = ()
    more: bool = False


_diffs = Recent[ReadDiff](seconds=10, most=8)


def of_job(service: Service, job: JobRecord) -> ReadDiff:
    """Return a job's diff, from a cache."""
    key = (str(service.home.root), job.job_id, job.state, job.attempt, job.head_sha)
    return _diffs.get(key, lambda: _read(lambda: diffs.of_job(service, job.job_id)))


def of_tree(service: Service, tree: Tree) -> ReadDiff:
    """Return the diff of all work of a tree, from a cache."""
    root, now = tree.task.root_job_id, [(job.state, job.attempt, job.head_sha) for job in tree.jobs]
    return _diffs.get((str(service.home.root), "tree", root, *now), lambda: _read(lambda: diffs.of_tree(service, root)))


def _read(ask: Callable[[], JobDiff]) -> ReadDiff:
    try:
        job_diff = ask()
        text, cut = diffs.beginning(job_diff.pieces(), DIFF_BYTES)
    except ServiceError as error:
        return ReadDiff(problem=error.message)
    return ReadDiff(job_diff.source, job_diff.base, job_diff.head, diffs.files(text), cut, job_diff.left_out)


class DiffView:
    """One page of a diff: the query parameters `from`, `file`, `line`, `comment` and `view` choose its files, its first
    line and its layout.
    """

    def __init__(self, diff: ReadDiff, asked: PageRequest, commented: Collection[str] = ()) -> None:
        """`commented` are the fields of comments that are open, whose files are unfolded."""
        self.diff, self._asked = diff, asked
        self.split = asked.query.get("view") == "split"
        self._commented = {line_of(field)[0] for field in commented}
        self._target = _target(asked)
        target = next((at for at, file in enumerate(diff.files, 1) if file.path == self._target[0]), 0)
        self.only = self._number("file", len(diff.files)) or target
        first = self._number("from", len(diff.files)) or self.only or 1
        self.first = (first - 1) // FILES * FILES

    @property
    def pages(self) -> tuple[tuple[str, str, bool], ...]:
        """Return a link to each page of files, if there are several: its words, address, and whether it is this one."""
        count = len(self.diff.files)
        starts = range(0, count, FILES) if count > FILES else ()
        return tuple(
            (f"{at + 1} to {min(at + FILES, count)}", self._at({"from": at + 1}), at == self.first) for at in starts
        )

    def address(self, *, split: bool) -> str:
        """Return the address of this page in the unified or the other view."""
        kept = {name: self._asked.query[name] for name in ("file", "from", "line") if name in self._asked.query}
        return self._at(kept, split=split)

    def _at(self, means: Mapping[str, object], *, split: bool | None = None) -> str:
        view = {"view": "split"} if (self.split if split is None else split) else {}
        query = urlencode({name: value for name, value in (view | dict(means)).items() if value})
        return f"{self._asked.path}{'?' if query else ''}{query}"

    def files(self) -> tuple[ShownFile, ...]:
        """Return the files of this page."""
        parts = tuple(self._parts())
        coded = _colour(parts)
        return tuple(self._show(part, code) for part, code in zip(parts, coded, strict=True))

    def _parts(self) -> Iterator[FilePart]:
        lines, letters = LINES, LETTERS
        here = enumerate(self.diff.files[self.first : self.first + FILES], self.first + 1)
        for number, file in here:
            kept = file.path in self._commented or f"unfolded-{number}" in self._asked.typed
            wanted = number == self.only or (lines > 0 and kept)
            fits = not self.only and len(file.text) <= letters and file.text.count("\n") <= lines
            alone = not self.only and lines == LINES and number == self.first + 1
            if not (wanted or fits or alone):
                yield FilePart(number, file)
                continue
            part = _part(number, file, self._start(file) if number == self.only else 0)
            lines -= len(part.lines)
            letters -= sum(len(line.text) for line in part.lines)
            yield part

    def _start(self, file: FilePatch) -> int:
        """Return the first line to show: the one in the address, or that of the part with the line to comment on."""
        path, line, old = self._target
        if path == file.path and "line" not in self._asked.query:
            numbers = (
                at
                for at, candidate in enumerate(diffs.lines(file))
                if line == (candidate.old if old else candidate.new)
            )
            return next(numbers, 0) // LINES * LINES
        return self._number("line", file.text.count("\n") + 1)

    def _show(self, part: FilePart, code: "_Code") -> ShownFile:
        file, size = part.file, len(part.lines)
        if self.split:
            pairs = diffs.side_by_side(part.lines)
            rows = tuple((code.show(old, part), code.show(new, part)) for old, new in pairs)
        else:
            rows = tuple((code.show(line, part), None) for line in part.lines)
        far = part.start - LINES
        return ShownFile(
            part.number,
            file.path,
            file.added,
            file.removed,
            (*file.remarks, *code.remarks),
            self._at({"file": part.number}),
            open=bool(size) or part.number == self.only,
            rows=rows,
            before=self._at({"file": part.number, "line": max(0, far)}) if part.start else "",
            more=self._at({"file": part.number, "line": part.start + size}) if part.more else "",
        )

    def _number(self, name: str, most: int) -> int:
        """Return a number of the address that is in range; others count as missing."""
        text = self._asked.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= most else 0


_FIELD = re.compile(r"c:([no])(\d{1,9}):(.+)", re.DOTALL)
_PLACE = re.compile(r"(\d{1,9})([no]\d{1,9})")
_ADDRESS = re.compile(r"(.+?):(old:|new:)?(\d{1,9})", re.DOTALL)


def field_of(path: str, place: str) -> str:
    """Return the name of a comment's field. It names the line itself, so that it means no other one in a newer diff."""
    return f"c:{place}:{path}"


def is_comment(field: str) -> bool:
    return _FIELD.fullmatch(field) is not None


def line_of(field: str) -> tuple[str, int, bool]:
    """Return the line that a comment's field names: path, number, and whether it is one of the old file."""
    match = _FIELD.fullmatch(field)
    assert match is not None
    return match[3], int(match[2]), match[1] == "o"


def comments_in(diff: ReadDiff, asked: PageRequest) -> dict[str, str]:
    """Return the comments that are open, with what is typed in them, by field.

    The address opens one (`?comment=PATH:LINE`), as the button of a line does.
    """
    comments = {name: text for name, text in asked.typed.items() if is_comment(name)}
    if field := opened_field(diff, asked):
        comments.setdefault(field, "")
    comments.pop(asked.typed.get("close", ""), None)
    return comments


def opened_field(diff: ReadDiff, asked: PageRequest) -> str:
    """Return the field of the comment that is being opened; empty if none is."""
    if place := _PLACE.fullmatch(asked.typed.get("open", "")):
        number = int(place[1])
        return field_of(diff.files[number - 1].path, place[2]) if 0 < number <= len(diff.files) else ""
    path, line, old = _target(asked)
    return field_of(path, f"{'o' if old else 'n'}{line}") if path and not asked.typed else ""


def _target(asked: PageRequest) -> tuple[str, int, bool]:
    """Return the line that the address names for a comment; an empty path if it names none."""
    match = _ADDRESS.fullmatch(asked.query.get("comment", ""))
    return (match[1], int(match[3]), match[2] == "old:") if match else ("", 0, False)


def elsewhere(comments: Mapping[str, str], files: Sequence[ShownFile]) -> dict[str, tuple[str, int, bool]]:
    """Return the lines of comments on lines that the page does not show, by field."""
    shown = {line.field for file in files for row in file.rows for line in row if line}
    return {field: line_of(field) for field in comments if field not in shown}


def _part(number: int, file: FilePatch, start: int) -> FilePart:
    taken, letters = list[DiffLine](), 0
    rest = islice(diffs.lines(file), start, None)
    for line in rest:
        letters += min(len(line.text), LONGEST)
        if len(taken) == LINES or (taken and letters > LETTERS):
            return FilePart(number, file, start, tuple(taken), more=True)
        taken.append(line)
    return FilePart(number, file, start, tuple(taken))


@dataclass(frozen=True)
class _Code:
    """The coloured lines of a part, by line."""

    html: Mapping[int, str]
    """By the identity of the line: two may be equal."""
    remarks: tuple[str, ...]
    ends: bool
    """True if ends of lines are shown, because not all are alike."""

    def show(self, line: DiffLine | None, part: FilePart) -> ShownLine | None:
        if line is None:
            return None
        end = Markup("<span class=d>\\r</span>") if self.ends and line.text.endswith("\r") else Markup()
        code = Markup(self.html[id(line)]) + end  # noqa: S704 escaped where it was coloured
        field = field_of(part.file.path, line.place) if line.place else ""
        return ShownLine(line.kind, line.old, line.new, code, f"{part.number}{line.place}", field)


def _colour(parts: Sequence[FilePart]) -> list[_Code]:
    """Colour the parts: of each hunk the old and the new text, so that what spans several lines is coloured right."""
    sides = [[*_sides(part)] for part in parts]
    texts = [["\n".join(map(_text, side)) for side in of] for of in sides]
    asked = [(part.file.path, of) for part, of in zip(parts, texts, strict=True)]
    coloured = highlight(asked) if any(texts) else [() for _ in asked]
    return [_code(part, of, coded) for part, of, coded in zip(parts, sides, coloured, strict=True)]


def _sides(part: FilePart) -> Iterator[list[DiffLine]]:
    """Yield the old and the new lines of each hunk; the new ones last, since they say how a line of both looks."""
    hunk: list[DiffLine] = []
    for line in (*part.lines, None):
        if line is None or line.kind is LineKind.HUNK:
            for other in (LineKind.ADD, LineKind.CUT):
                if side := [row for row in hunk if row.kind in {LineKind.SAME, LineKind.CUT, LineKind.ADD} - {other}]:
                    yield side
            hunk = []
        else:
            hunk.append(line)


def _code(part: FilePart, sides: Sequence[Sequence[DiffLine]], coded: Sequence[Sequence[str]]) -> _Code:
    html = {id(line): str(escape(_text(line))) for line in part.lines}
    for side, code in zip(sides, coded, strict=True):
        if len(side) == len(code):
            html |= {id(line): text for line, text in zip(side, code, strict=True)}
    numbered = [line for line in part.lines if line.place]
    returns = [line.text.endswith("\r") for line in numbered]
    remarks = [CRLF] if returns and all(returns) else []
    if any(_text(line) != _bare(line) for line in numbered):
        remarks.append(UNSEEN)
    return _Code(html, tuple(remarks), ends=not all(returns))


def _bare(line: DiffLine) -> str:
    bare = line.text.removesuffix("\r")
    return bare if len(bare) <= LONGEST else f"{bare[:LONGEST]} …"


def _text(line: DiffLine) -> str:
    """Return a line's text with invisible characters shown, cut where it is longer than a screen has room for."""
    return visible(_bare(line))
