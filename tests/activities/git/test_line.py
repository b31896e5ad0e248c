"""The line of a chain, made of branches (rulings O2 to O4)."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from activities.git.line import LeftOut, Line, Part, draw
from activities.git.merging import Conflict, merged_tree
from tests.activities.git.conftest import commit_file, run_git

pytestmark = pytest.mark.ruling("O2", "O3", "O4")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    path.mkdir()
    run_git(path, "init", "-q", "-b", "main")
    commit_file(path, "limiter.py", "limit = 1\n")
    return path


def made(repo: Path, leg: str, name: str, text: str, onto: str = "main") -> Part:
    """A branch of a leg that wrote one file."""
    branch = f"service/job-0123456789ab.{leg}-{leg}"
    run_git(repo, "checkout", "-q", "-B", branch, onto)
    commit_file(repo, name, text)
    run_git(repo, "checkout", "-q", "main")
    return Part(leg, f"job-0123456789ab.{leg}", branch, run_git(repo, "rev-parse", branch))


def drawn(repo: Path, *parts: Part, given: tuple[Part, ...] = ()) -> Line:
    base = run_git(repo, "rev-parse", "main")
    return draw(repo, base, base, parts, given)


def files(repo: Path, commit: str) -> list[str]:
    return run_git(repo, "ls-tree", "--name-only", commit).split()


def test_it_has_the_work_of_every_part_and_is_the_same_commit_each_time(repo: Path) -> None:
    parts = [made(repo, name, f"{name}.py", name) for name in ("a", "b", "c")]
    line = drawn(repo, *parts)
    assert files(repo, line.commit) == ["a.py", "b.py", "c.py", "limiter.py"]
    assert line.merged == ("a", "b", "c")
    assert line.left_out == ()
    assert drawn(repo, *parts) == line
    assert run_git(repo, "rev-parse", "main") == line.base


def test_one_part_is_the_line_itself(repo: Path) -> None:
    part = made(repo, "a", "a.py", "a")
    assert drawn(repo, part).commit == part.commit


def test_a_conflict_is_left_out_with_its_files_and_the_others_go_on(repo: Path) -> None:
    code, docs = made(repo, "code", "limiter.py", "limit = 2\n"), made(repo, "docs", "limiter.py", "limit = 3\n")
    last = made(repo, "last", "last.py", "x")
    line = drawn(repo, code, docs, last)
    assert line.merged == ("code", "last")
    assert line.left_out == (LeftOut("docs", docs.branch, docs.commit, (code.branch,), ("limiter.py",)),)
    assert run_git(repo, "show", f"{line.commit}:limiter.py") == "limit = 2"
    assert line.names["leg/docs"] == docs.commit


def test_a_conflict_that_a_later_part_has_merged_in_is_on_the_line(repo: Path) -> None:
    code, docs = made(repo, "code", "limiter.py", "limit = 2\n"), made(repo, "docs", "limiter.py", "limit = 3\n")
    resolve = made(repo, "resolve", "note.txt", "x", onto=code.branch)
    run_git(repo, "checkout", "-q", resolve.branch)
    run_git(repo, "merge", "-q", "-X", "theirs", "--no-edit", docs.branch)
    run_git(repo, "checkout", "-q", "main")
    resolve = replace(resolve, commit=run_git(repo, "rev-parse", resolve.branch))
    line = drawn(repo, code, docs, resolve)
    assert (line.merged, line.left_out) == (("code", "docs", "resolve"), ())
    assert line.commit == resolve.commit


def test_a_part_whose_commits_are_gone_is_told(repo: Path) -> None:
    gone = Part("a", "job-0123456789ab.1", "service/gone", "0" * 39 + "1")
    line = drawn(repo, gone)
    assert (line.commit, line.merged) == (line.base, ())
    assert line.left_out == (LeftOut("a", "service/gone", gone.commit),)
    assert "leg/a" not in line.names


def test_a_leg_that_was_issued_again_is_named_by_its_last_work(repo: Path) -> None:
    first, other = made(repo, "a", "one.py", "1"), made(repo, "b", "two.py", "2")
    again = Part("a", "job-0123456789ab.9", other.branch, other.commit)
    line = drawn(repo, first, again)
    assert line.legs == {"a": other.commit}
    assert files(repo, line.commit) == ["limiter.py", "one.py", "two.py"]


def test_what_is_given_beside_the_line_has_a_name_and_is_not_on_it(repo: Path) -> None:
    part, near = made(repo, "a", "a.py", "a"), made(repo, "b", "b.py", "b")
    line = drawn(repo, part, given=(near,))
    assert (line.commit, line.names["leg/b"]) == (part.commit, near.commit)


@pytest.mark.parametrize("seed", range(12))
def test_every_part_is_on_the_line_or_conflicts_with_it(repo: Path, seed: int) -> None:
    """Generated trees of three generations that write few files, so that they often conflict."""
    chance = random.Random(seed)
    start = run_git(repo, "rev-parse", "main")
    parts, line = list[Part](), drawn(repo)
    for generation in range(3):
        begins = line.commit
        for number in range(chance.randint(1, 4)):
            leg, name = f"g{generation}n{number}", f"{chance.randint(1, 4)}.py"
            parts.append(made(repo, leg, name, f"{leg}\n", begins))
        line = draw(repo, start, start, parts)
        out = {each.leg: each for each in line.left_out}
        assert {*line.merged} | {*out} == {each.leg for each in parts}
        for part in parts:
            inside = run_git(repo, "merge-base", part.commit, line.commit) == part.commit
            assert inside == (part.leg not in out)
            if part.leg in out:
                found = merged_tree(repo, line.commit, part.commit)
                assert isinstance(found, Conflict)
                assert out[part.leg].files
