"""Worktrees of a repository with 20 000 files, ours compared with a plain `git worktree add` and `remove` loop.

Run it on an idle machine: `python tests/benchmarks/bench_worktrees.py`. Ours and git's alternate, one worktree at a
time; a figure is the median of the rounds' ratios. The target is at most 1.2 for sequential worktrees.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import look, touched_files
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached, dispose

FILES = int(os.environ.get("BENCH_FILES", "20000"))
LEGS = int(os.environ.get("BENCH_LEGS", "16"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@x")


def plain(where: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(where), *IDENTITY, *arguments], check=True, capture_output=True)


def make(repo: Path) -> None:
    for number in range(FILES):
        file = repo / f"d{number % 50}" / f"e{number % 20}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 40)
    plain(repo, "init", "-q", "-b", "main")
    plain(repo, "add", "-A")
    plain(repo, "commit", "-q", "-m", "start")


def keep(ours: Worktree) -> None:
    seen = look(ours)
    touched_files(ours, seen=seen)
    commit_all(ours, "job", "x", seen)


def seconds_of(work: Callable[[], object]) -> float:
    os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Legs:
    """The work of git alone and ours, on one repository."""

    def __init__(self, root: Path) -> None:
        self.repo, self.trees = root / "repo", root / "trees"
        self.places = [self.trees / f"w{number}" for number in range(LEGS)]
        self.trees.mkdir()
        make(self.repo)

    def in_turns(self) -> tuple[list[float], list[float]]:
        """Alternate git's worktrees and ours; return the seconds of set-up and of disposal, git's and ours."""
        adding, removing = [0.0, 0.0], [0.0, 0.0]
        theirs = [self.trees / f"git{number}" for number in range(LEGS)]
        for one, other in zip(theirs, self.places, strict=True):
            adding[0] += seconds_of(partial(plain, self.repo, "worktree", "add", "-q", "--detach", str(one), "main"))
            adding[1] += seconds_of(partial(add_detached, self.repo, other, "main"))
        for one, other in zip(theirs, self.places, strict=True):
            removing[0] += seconds_of(partial(plain, self.repo, "worktree", "remove", "--force", str(one)))
            removing[1] += seconds_of(partial(dispose, self.repo, other))
        return adding, removing

    def at_once(self, parallel: int) -> tuple[float, float]:
        with ThreadPoolExecutor(parallel) as pool:
            adding = seconds_of(lambda: list(pool.map(lambda path: add_detached(self.repo, path, "main"), self.places)))
            removing = seconds_of(lambda: list(pool.map(lambda path: dispose(self.repo, path), self.places)))
        return adding, removing

    def rounds(self) -> None:
        took: dict[str, list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            adding, removing = self.in_turns()
            took.setdefault("one by one", []).append((adding[1] / adding[0], removing[1] / removing[0]))
            for parallel in (4, 16):
                ours = self.at_once(parallel)
                took.setdefault(f"{parallel} at once", []).append((ours[0] / adding[0], ours[1] / removing[0]))
        for mode, ratios in took.items():
            up, down = (statistics.median(each) for each in zip(*ratios, strict=True))
            print(f"{mode:12} set-up {up:5.2f} x   disposal {down:5.2f} x   of git one by one")

    def compare_commits(self) -> None:
        """Compare observing and committing one changed file with `git status` and `git commit` of an equal change."""
        ours = add_branch(self.repo, self.trees / "ours", "ours", "main")
        plain(self.repo, "worktree", "add", "-q", "-b", "gits", str(self.trees / "gits"), "main")
        took: dict[str, list[float]] = {"ours": [], "git": []}
        for number in range(2 * ROUNDS + 1):
            for path in (ours.path, self.trees / "gits"):
                (path / "new.txt").write_text(str(number))
            took["ours"].append(seconds_of(lambda: keep(ours)))
            took["git"].append(seconds_of(lambda number=number: self._gits_way(number)))  # type: ignore[misc]
        ratio = statistics.median(took["ours"]) / statistics.median(took["git"])
        print(f"{'observing':12} and committing {ratio:5.2f} x   of git status, add, commit")

    def _gits_way(self, number: int) -> None:
        where = self.trees / "gits"
        plain(where, "status", "--porcelain")
        plain(where, "add", "-A")
        plain(where, "commit", "-q", "-m", str(number))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        legs = Legs(Path(folder))
        legs.rounds()
        legs.compare_commits()


if __name__ == "__main__":
    main()
