"""Random legs that write random files: the checkout stays as it was, no commit is lost, nothing is left behind."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.git.command import all_printable
from activities.git.merges.into_work_folder import MergeConflict, merge
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import touched_files
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached, dispose
from tests.activities.git.conftest import ENV, make_repository, run_git
from tests.depth import cases
from workflows.policy.observation import Grade, PathMatch, observe

pytestmark = pytest.mark.ruling("I1", "I2", "I4")
EXAMPLES = int(os.environ.get("GIT_HISTORIES") or cases(4, 8))

NAMES = (
    "a.py",
    "src/a.py",
    "src/b c.py",
    'quo"te',
    "new\nline",
    "caf\udce9",
    "debug.log",
    "build/out",
    "A.PY",
    "-x",
    ":(top)",
)
Write = tuple[str, str, str]


@st.composite
def writes(draw: st.DrawFn) -> Write:
    kind = draw(st.sampled_from(["write", "write", "delete", "rename", "link", "commit", "stage", "rules"]))
    return kind, draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))


@dataclass(frozen=True)
class Leg:
    """The actions of one leg."""

    writes: tuple[Write, ...]
    reads: bool


legs = st.builds(Leg, st.lists(writes(), max_size=6).map(tuple), st.booleans())


def play(where: Path, write: Write) -> None:
    kind, name, other = write
    file = where / name
    match kind:
        case "write":
            file.parent.mkdir(exist_ok=True)
            end = "\r\n" if len(other) % 2 else "\n"
            file.write_bytes(f"{name!r} {other!r}{end}".encode() * 5)
        case "delete":
            file.unlink(missing_ok=True)
        case "rename" if os.path.lexists(file):
            (where / other).parent.mkdir(exist_ok=True)
            file.rename(where / other)
        case "link" if not os.path.lexists(file):
            file.parent.mkdir(exist_ok=True)
            file.symlink_to(other)
        case "rules" if not (where / name).parent.is_symlink():
            folder = where / name.rpartition("/")[0]
            folder.mkdir(exist_ok=True)
            rules = {"a": "*.py\n!a.py\n", "s": "/a.py\n*.PY\nsrc/*\n", "d": "!debug.log\n"}
            (folder / ".gitignore").write_text(rules.get(other[0], "-x\n:(top)\nbuild\n!build/out\n"))
            (folder / ".gitattributes").write_text("*.py text eol=crlf\nA.PY -text\n[attr]x -diff\nout text=auto\n")
        case "commit" | "stage":
            run_git(where, "add", "-A")
            if kind == "commit":
                run_git(where, "commit", "-q", "--allow-empty", "-m", "by the agent")
        case _:
            pass


def plumbing(worktree: Worktree) -> tuple[set[bytes], str]:
    """Return the differences from the base by a tree that git itself writes of all files, and that tree."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**ENV, "GIT_INDEX_FILE": f"{folder}/index"}

        def raw(*arguments: str) -> bytes:
            return subprocess.run(
                ["git", "-C", str(worktree.path), *arguments], env=env, check=True, capture_output=True
            ).stdout

        def between(one: str, other: str) -> set[bytes]:
            return set(raw("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other).split(b"\0")) - {b""}

        shutil.copy2(worktree.path / ".git/index", f"{folder}/index")
        raw("add", "-A")
        tree = raw("write-tree").decode().strip()
        return between(worktree.base, "HEAD") | between("HEAD", tree), tree


def state(repo: Path) -> tuple[object, ...]:
    files = {path: path.lstat().st_mtime_ns for path in repo.rglob("*") if ".git" not in path.parts}
    return (
        run_git(repo, "rev-parse", "HEAD"),
        (repo / ".git/index").read_bytes(),
        (repo / ".git/HEAD").read_text(),
        files,
    )


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES <= 8)
@given(st.lists(legs, min_size=1, max_size=4), st.sampled_from(["false", "true", "input"]))
def test_random_histories(batch: list[Leg], crlf: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        check(folder, batch, crlf)
    finally:
        shutil.rmtree(folder)


def check(folder: Path, batch: list[Leg], crlf: str) -> None:
    repo = make_repository(folder / "repo", **{"src/a.py": "a\n" * 9, ".gitignore": "*.log\nbuild/\n"})
    run_git(repo, "config", "core.autocrlf", crlf)
    trees = folder / "trees"
    before = state(repo)
    kept: dict[str, str] = {}
    own: list[str] = []
    for number, leg in enumerate(batch):
        path, branch = trees / f"w{number}", f"service/job-{number}-leg"
        worktree = add_detached(repo, path, "main") if leg.reads else add_branch(repo, path, branch, "main")
        for write in leg.writes:
            play(path, write)
        seen = touched_files(worktree)
        differs, tree = plumbing(worktree)
        assert seen.files == all_printable(os.fsdecode(name) for name in differs)
        binds_as_told(seen.files)
        if not leg.reads:
            own += run_git(path, "rev-list", "HEAD").splitlines()
            kept[branch] = commit_all(worktree, f"job-{number}", "work") or worktree.base
            assert run_git(repo, "rev-parse", f"{branch}^{{tree}}") == tree
            assert set(touched_files(worktree).files) <= set(seen.files), "what was committed is what was seen"
        dispose(repo, path)
    together(repo, trees, list(kept))
    assert state(repo) == before
    assert {branch: run_git(repo, "rev-parse", branch) for branch in kept} == kept
    assert set(own) <= set(run_git(repo, "rev-list", "--all").splitlines())
    assert os.listdir(trees) == []
    assert os.listdir(folder / "checkouts") == []
    assert not list((repo / ".git").glob("**/*.lock"))


def binds_as_told(files: tuple[str, ...]) -> None:
    """Check that bare names bind only if unique, and that only an exact path is observed."""
    from workflows.policy.observation import Touched

    observation = observe([{"path": name} for name in ("a.py", "src/a.py")], Touched(files=files))
    for claim, name in zip(observation.claims, ("a.py", "src/a.py"), strict=True):
        assert (claim.grade is Grade.OBSERVED) == (name in files)
        assert claim.grade in (Grade.OBSERVED, Grade.REPORTED)
    if "a.py" not in files:
        bare = observation.claims[0].paths[0]
        alike = [name for name in files if name.rpartition("/")[2] == "a.py"]
        assert (bare.bound is PathMatch.BASENAME) == (len(alike) == 1)


def together(repo: Path, trees: Path, branches: list[str]) -> None:
    """Check that a dependent sees all branches, or gets a conflict with the files."""
    worktree = add_detached(repo, trees / "merged", "main")
    try:
        merged = merge(worktree, branches)
        for branch in branches:
            run_git(repo, "merge-base", "--is-ancestor", branch, merged.base)
    except MergeConflict:
        assert run_git(worktree.path, "status", "--porcelain") == ""
    dispose(repo, worktree.path)
