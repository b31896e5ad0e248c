"""A merge by libgit2 equals git's; where libgit2 gives up, git decides (rulings I5, N3)."""

import os
import random
from pathlib import Path

import pytest

from activities.git.merges.commits import CommitConflict, commit_merge, merged_tree
from tests.activities.git.conftest import commit_file, run_git
from tests.depth import cases

pytestmark = pytest.mark.ruling("I5", "N3")
LINES = "".join(f"line {number}\n" for number in range(40))


def branch(repo: Path, name: str, change: object) -> str:
    """Make a branch with one commit of the function's changes."""
    run_git(repo, "checkout", "-q", "-B", name, "main")
    change(repo)  # type: ignore[operator]
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "--allow-empty", "-m", name)
    return run_git(repo, "rev-parse", "HEAD")


def gits(repo: Path, ours: str, theirs: str) -> str | set[str]:
    """Merge with git in a checkout. Return a tree, or the files in conflict."""
    run_git(repo, "checkout", "-q", "--detach", ours)
    try:
        run_git(repo, "merge", "-q", "--no-edit", theirs)
        return run_git(repo, "rev-parse", "HEAD^{tree}")
    except Exception:
        files = run_git(repo, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")
        run_git(repo, "merge", "--abort")
        return {each.removesuffix("~HEAD").removesuffix(f"~{theirs}") for each in files} - {""}


def ours(repo: Path, one: str, two: str) -> str | set[str]:
    merged = merged_tree(repo, one, two)
    return set(merged.files) if isinstance(merged, CommitConflict) else merged


def write(**files: str) -> object:
    def change(repo: Path) -> None:
        for name, content in files.items():
            place = repo / name.replace("__", "/").replace("_", ".")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode())

    return change


def rename(old: str, new: str, more: str = "") -> object:
    def change(repo: Path) -> None:
        (repo / new).parent.mkdir(parents=True, exist_ok=True)
        (repo / old).rename(repo / new)
        (repo / new).write_text((repo / new).read_text() + more)

    return change


def executable(repo: Path) -> None:
    (repo / "long.txt").chmod(0o755)


def removed(repo: Path) -> None:
    (repo / "long.txt").unlink()


def link(repo: Path) -> None:
    (repo / "long.txt").unlink()
    (repo / "long.txt").symlink_to("readme.md")


CASES = {
    "apart": (write(one_txt="1\n"), write(two_txt="2\n")),
    "one file, two places": (write(long_txt="first\n" + LINES), write(long_txt=LINES + "last\n")),
    "the same change": (write(long_txt="same\n" + LINES), write(long_txt="same\n" + LINES)),
    "a conflict": (write(long_txt="1\n" + LINES), write(long_txt="2\n" + LINES)),
    "renamed and changed": (rename("long.txt", "far/away.txt"), write(long_txt=LINES + "last\n")),
    "renamed on both sides": (rename("long.txt", "a.txt"), rename("long.txt", "b.txt")),
    "renamed alike": (rename("long.txt", "a.txt", "more\n"), rename("long.txt", "a.txt")),
    "modes": (executable, write(long_txt=LINES + "last\n")),
    "changed and removed": (write(long_txt="1\n" + LINES), removed),
    "a link and a change": (link, write(long_txt="1\n" + LINES)),
    "added twice": (write(new_txt="1\n"), write(new_txt="2\n")),
    "a file where a folder is": (write(place="x\n"), write(place__inner_txt="x\n")),
    "line ends": (write(dos_txt=LINES.replace("\n", "\r\n")), write(long_txt=LINES + "last\n")),
    "binary": (write(blob_bin="\0\1\2"), write(blob_bin="\0\3\4")),
}


@pytest.fixture
def base(repo: Path) -> str:
    (repo / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    return commit_file(repo, "long.txt", LINES)


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_git_in_a_checkout(repo: Path, base: str, name: str) -> None:
    one, two = (branch(repo, f"b{number}", change) for number, change in enumerate(CASES[name]))
    expected, merged = gits(repo, one, two), ours(repo, one, two)
    assert merged == expected


@pytest.mark.parametrize("crlf", ["true", "input"])
def test_line_ends_that_the_checkout_changes_are_no_conflict(repo: Path, base: str, crlf: str) -> None:
    run_git(repo, "config", "core.autocrlf", crlf)
    one, two = (
        branch(repo, "b1", write(long_txt="first\n" + LINES)),
        branch(repo, "b2", write(long_txt=LINES + "last\n")),
    )
    assert ours(repo, one, two) == gits(repo, one, two)


def test_a_driver_that_attributes_name_and_nobody_has_is_no_obstacle(repo: Path, base: str, tmp_path: Path) -> None:
    commit_file(repo, ".gitattributes", "* merge=evil filter=evil\n")
    one, two = (
        branch(repo, "b1", write(long_txt="first\n" + LINES)),
        branch(repo, "b2", write(long_txt=LINES + "last\n")),
    )
    conflict = branch(repo, "b3", write(long_txt="other\n" + LINES))
    run_git(repo, "config", "merge.evil.driver", f"touch {tmp_path}/ran; false")
    assert isinstance(ours(repo, one, two), str)
    assert ours(repo, one, conflict) == {"long.txt"}
    assert not (tmp_path / "ran").exists()


def test_random_changes_of_one_file_merge_as_git_merges_them(repo: Path, base: str) -> None:
    draw = random.Random(int(os.environ.get("MERGES") or 5))
    for number in range(cases(6, 60)):
        ends = []
        for side in "ab":
            rows = LINES.splitlines(keepends=True)
            for _ in range(draw.randint(1, 3)):
                rows[draw.randrange(len(rows))] = f"{side}{number}\n" * draw.randint(0, 2)
            ends.append(branch(repo, f"{side}{number}", write(long_txt="".join(rows))))
        assert ours(repo, *ends) == gits(repo, *ends)


def test_a_merge_has_the_time_of_its_later_parent_and_so_the_same_id_again(repo: Path) -> None:
    first = run_git(repo, "rev-parse", "HEAD")
    tree = run_git(repo, "rev-parse", "HEAD^{tree}")
    who = "t <t@example.invalid>"
    early, late = (
        run_git(repo, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
        for when in (1_000_000_000, 2_000_000_000)
        for text in [f"tree {tree}\nparent {first}\nauthor {who} {when} +0000\ncommitter {who} {when} +0000\n\nx\n"]
    )
    merges = {commit_merge(repo, tree, parents, "both") for parents in ((early, late), (early, late))}
    (made,) = merges
    assert run_git(repo, "log", "-1", "--format=%ct", made) == "2000000000"
    assert run_git(repo, "log", "-1", "--format=%ct", commit_merge(repo, tree, (late, early), "both")) == "2000000000"
