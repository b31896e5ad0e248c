"""The diff of a job: of its commits, of its worktree while it runs, or of the discarded changes of a read-only job.
Also the diff of all work of a tree.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from activities.git import git_branches
from activities.git.command import printable
from activities.git.git_branches import FileChange, changes_of, patch
from activities.git.merges.task_line import draw
from activities.git.work_folder import worktrees
from activities.git.work_folder.worktree_changes import capture_diff
from activities.host.helper_process import apart
from activities.redaction.redact import redact_text
from activities.store import attempt_rows
from bridge.operations.branches import branches, merge_offer
from bridge.operations.jobs import jobs
from bridge.operations.jobs.hosts import OtherHost
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.states import JobState

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", '"': b'"', "\\": b"\\"}


class LineKind(StrEnum):
    """The kind of a line."""

    HUNK = "hunk"
    SAME = "same"
    ADD = "add"
    CUT = "cut"
    REMARK = "remark"
    """Git's remark that the line before it has no newline at its end."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff without its sign, with its numbers in the old and in the new file."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None

    @property
    def place(self) -> str:
        """Return the line's number in the new file, as `n12`, or in the old one where it was removed, as `o12`."""
        if self.new is not None:
            return f"n{self.new}"
        return "" if self.old is None else f"o{self.old}"


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file of a diff. Its lines are parsed when they are needed, since a diff may be large."""

    path: str
    text: str
    """The file's part of the diff, without the first line."""
    added: int = 0
    removed: int = 0
    remarks: tuple[str, ...] = ()
    """Changes of the file besides its lines: `new`, `deleted`, `renamed from …`, `mode … → …`, `binary`."""


Pair = tuple[DiffLine | None, DiffLine | None]
"""The old and the new line of a row, side by side."""


DIFF_SECONDS = 30.0
"""Seconds that reading the worktree of a running job may take."""

JSON_LIMIT = 1_000_000


@dataclass(frozen=True)
class JobDiff:
    """The source of a diff: two commits of a repository, or a stored text."""

    job_id: str
    source: str
    """`commits`, `worktree` (the job still runs), `discarded` (changes of a read-only job), or `tree` (all work of a
    tree that merges cleanly, against the tree's base).
    """
    repo: Path | None = None
    base: str = ""
    head: str = ""
    text: str = ""
    left_out: tuple[str, ...] = ()
    """Legs of the tree that the diff leaves out because they conflict with it."""

    @property
    def files(self) -> tuple[FileChange, ...]:
        """Return the changes by file."""
        return git_branches.changes(self.repo, self.base, self.head) if self.repo else changes_of(self.text)

    def pieces(self, *, binary: bool = False) -> Iterator[bytes]:
        """Yield the diff piece by piece, however large it is."""
        if self.repo is None:
            return iter([self.text.encode()])
        return patch(self.repo, self.base, self.head, binary=binary)


def of_job(service: Service, job_id: str) -> JobDiff:
    """Return the job's diff against the commit it started from."""
    job = jobs.get(service, job_id)
    runs = attempt_rows.of_job(service.store, job_id)
    if job.state in {JobState.QUEUED, JobState.RUNNING}:
        if runs and runs[-1].host != service.settings.host:
            there = OtherHost(service, runs[-1].host, f"{job_id} runs", f"service job diff {job_id}")
            return JobDiff(job_id, "worktree", text=there.text(f"jobs/{job_id}/worktree"))
        worktree = worktrees.find(Path(runs[-1].worktree)) if runs and runs[-1].worktree else None
        if worktree is None:
            raise NotFoundError(f"{job_id} is {job.state} and has no worktree here", f"service job show {job_id}")
        diff = apart(DIFF_SECONDS, capture_diff, worktree)
        return JobDiff(job_id, "worktree", text=redact_text(diff.text) + ("\n[cut here]\n" if diff.cut else ""))
    if job.head_sha and job.branch:
        repo, head = branches.with_work(service, job), job.head_sha
        run = next((run for run in reversed(runs) if run.branch == job.branch), None)
        base = ((run.diagnostics or {}).get("start_sha") or run.base_sha) if run else None
        if base is None or git_branches.commit(repo, head) is None or git_branches.commit(repo, base) is None:
            raise NotFoundError(
                f"the commits of {job_id} are no longer in {printable(str(repo))}: {job.branch} was at {head}",
                f"service job branches {job_id}",
            )
        return JobDiff(job_id, "commits", repo, base, head)
    kept = next((run for run in reversed(runs) if (run.diagnostics or {}).get("discarded_diff")), None)
    text = (kept.diagnostics or {})["discarded_diff"] if kept else ""
    return JobDiff(job_id, "discarded", text=text)


def of_tree(service: Service, job_id: str) -> JobDiff:
    """Return the diff of a tree: all legs that merge cleanly, against the commit that the tree started from."""
    root = jobs.get(service, job_id).root_job_id
    tree = branches.of_tree(service, root, typed=f"service job diff {job_id} --tree")
    if tree.problem:
        raise NotFoundError(f"the repository cannot be read: {tree.problem}", tree.way_on)
    if not tree.base:
        raise RefusedError(f"{root} has no base yet: no job of it has begun", f"service job branches {root}")
    line = draw(Path(tree.path), tree.base, tree.head or tree.base, merge_offer.parts_of(service, tree))
    left_out = tuple(each.leg for each in line.left_out)
    return JobDiff(root, "tree", Path(tree.path), tree.base, line.commit, left_out=left_out)


def as_json(diff: JobDiff) -> dict[str, Any]:
    """Return the JSON for `--json`: the diff, cut at a limit."""
    files = [asdict(each) | {"path": printable(each.path)} for each in diff.files]
    taken = b""
    for piece in diff.pieces():
        taken += piece
        if len(taken) > JSON_LIMIT:
            break
    return {
        "job_id": diff.job_id,
        "source": diff.source,
        "base": diff.base or None,
        "head": diff.head or None,
        "files": files,
        "diff": taken[:JSON_LIMIT].decode("utf-8", "replace"),
        "cut": len(taken) > JSON_LIMIT,
    }


def beginning(pieces: Iterable[bytes], limit: int) -> tuple[str, bool]:
    """Return the first whole lines, at most `limit` bytes, and whether more follows."""
    taken = bytearray()
    for piece in pieces:
        taken += piece
        if len(taken) > limit:
            break
    if len(taken) <= limit:
        return taken.decode("utf-8", "backslashreplace"), False
    whole = taken[:limit].rpartition(b"\n")[0] or taken[:limit]
    return whole.decode("utf-8", "backslashreplace"), True


def files(diff: str) -> tuple[FilePatch, ...]:
    """Parse the files of a diff."""
    start = "diff --git "
    _, *parts = f"\n{diff}".split(f"\n{start}")
    return tuple(_file(*part.partition("\n")[::2]) for part in parts)


def lines(file: FilePatch) -> Iterator[DiffLine]:
    """Yield the lines of a file's hunks. The counts of a hunk say where it ends, whatever its lines look like."""
    old = new = old_left = new_left = 0
    for row in file.text.split("\n"):
        sign, text = row[:1], row[1:]
        if sign == "\\" and new:
            yield DiffLine(LineKind.REMARK, text.strip())
        elif sign == "+" and new_left:
            yield DiffLine(LineKind.ADD, text, None, new)
            new, new_left = new + 1, new_left - 1
        elif sign == "-" and old_left:
            yield DiffLine(LineKind.CUT, text, old, None)
            old, old_left = old + 1, old_left - 1
        elif sign in {" ", ""} and old_left and new_left:
            yield DiffLine(LineKind.SAME, text, old, new)
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif hunk := _HUNK.fullmatch(row):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            yield DiffLine(LineKind.HUNK, row)


def find_line(file: FilePatch, number: int, *, old: bool = False) -> DiffLine | None:
    """Return the line with this number in the new or the old file; None if the diff does not show it."""
    return next((each for each in lines(file) if number == (each.old if old else each.new)), None)


def side_by_side(shown: Iterable[DiffLine]) -> Iterator[Pair]:
    """Yield rows of old and new lines; removed lines stand beside the added ones that follow them.

    A hunk's header and a remark stand on both sides.
    """
    cut: list[DiffLine] = []
    add: list[DiffLine] = []
    for line in shown:
        if line.kind is LineKind.CUT and not add:
            cut.append(line)
        elif line.kind is LineKind.ADD:
            add.append(line)
        else:
            yield from _beside(cut, add)
            cut, add = ([line], []) if line.kind is LineKind.CUT else ([], [])
            if line.kind is not LineKind.CUT:
                yield line, line
    yield from _beside(cut, add)


def _beside(cut: list[DiffLine], add: list[DiffLine]) -> Iterator[Pair]:
    for at in range(max(len(cut), len(add))):
        yield (cut[at] if at < len(cut) else None), (add[at] if at < len(add) else None)


def _file(names: str, text: str) -> FilePatch:
    text = text.removesuffix("\n")
    header, _, hunks = f"\n{text}".partition("\n@@")
    fields = dict(_fields(header))
    path = fields.get("path") or _path(names)
    signs = [row[:1] for row in hunks.split("\n")]
    return FilePatch(path, text, signs.count("+"), signs.count("-"), tuple(_remarks(fields)))


_FIELDS = {
    "new file mode ": "new",
    "deleted file mode ": "deleted",
    "old mode ": "before",
    "new mode ": "after",
    "rename from ": "renamed",
    "copy from ": "copied",
    "rename to ": "path",
    "copy to ": "path",
    "Binary files ": "binary",
    "GIT binary patch": "binary",
    "+++ b/": "path",
    '+++ "b/': "path",
}


def _fields(header: str) -> Iterator[tuple[str, str]]:
    for row in header.split("\n"):
        for start, name in _FIELDS.items():
            if row.startswith(start):
                rest = row.removeprefix("+++ ") if row.startswith("+++ ") else row.removeprefix(start)
                yield name, unquote(rest.removesuffix("\t")).removeprefix("b/" if row.startswith("+++ ") else "")


def _remarks(fields: dict[str, str]) -> Iterator[str]:
    yield from (name for name in ("new", "deleted") if name in fields)
    yield from (f"{name} from {fields[name]}" for name in ("renamed", "copied") if name in fields)
    if "before" in fields:
        yield f"mode {fields['before']} → {fields.get('after', '')}"
    if "binary" in fields:
        yield "binary"


def _path(names: str) -> str:
    """Return the path of a line `a/path b/path`, which may hold blanks; the lines below it name a renamed file."""
    return unquote(names[len(names) // 2 + 1 :]).removeprefix("b/")


def unquote(name: str) -> str:
    """Return a name without the quotes and escapes that git gives an unusual one."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    taken, at = bytearray(), 0
    inner = name[1:-1]
    for escape in _ESCAPE.finditer(inner):
        taken += inner[at : escape.start()].encode("utf-8", "surrogatepass")
        taken += bytes([int(escape[1], 8) & 255]) if escape[1].isdigit() else _ESCAPED[escape[1]]
        at = escape.end()
    taken += inner[at:].encode("utf-8", "surrogatepass")
    return taken.decode("utf-8", "backslashreplace")
