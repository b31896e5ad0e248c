"""The line of a chain, made of branches (rulings O2 to O4)."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from activities.git.merges.commits import CommitConflict, merged_tree
from activities.git.merges.task_line import LeftOutBranch, LinePart, TaskLine, draw
from tests.activities.git.conftest import commit_file, make_repository, repository_of, run_git
from tests.depth import cases

pytestmark = pytest.mark.ruling("O2", "O3", "O4")

REFS = "refs/heads/service"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository_of(tmp_path / "shop", {"limiter.py": "limit = 1\n"})


def made(repo: Path, leg: str, name: str, text: str, onto: str = "main") -> LinePart:
    """Make the branch of a leg that wrote one file."""
    branch = f"service/job-0123456789ab.{leg}-{leg}"
    run_git(repo, "checkout", "-q", "-B", branch, onto)
    commit_file(repo, name, text)
    run_git(repo, "checkout", "-q", "main")
    return LinePart(leg, f"job-0123456789ab.{leg}", branch, run_git(repo, "rev-parse", branch))


def drawn(repo: Path, *parts: LinePart, given: tuple[LinePart, ...] = ()) -> TaskLine:
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
    assert line.left_out == (LeftOutBranch("docs", docs.branch, docs.commit, (code.branch,), ("limiter.py",)),)
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
    gone = LinePart("a", "job-0123456789ab.1", "service/gone", "0" * 39 + "1")
    line = drawn(repo, gone)
    assert (line.commit, line.merged) == (line.base, ())
    assert line.left_out == (LeftOutBranch("a", "service/gone", gone.commit),)
    assert "leg/a" not in line.names


def test_a_leg_that_was_issued_again_is_named_by_its_last_work(repo: Path) -> None:
    first, other = made(repo, "a", "one.py", "1"), made(repo, "b", "two.py", "2")
    again = LinePart("a", "job-0123456789ab.9", other.branch, other.commit)
    line = drawn(repo, first, again)
    assert line.legs == {"a": other.commit}
    assert files(repo, line.commit) == ["limiter.py", "one.py", "two.py"]


def test_what_is_given_beside_the_line_has_a_name_and_is_not_on_it(repo: Path) -> None:
    part, near = made(repo, "a", "a.py", "a"), made(repo, "b", "b.py", "b")
    line = drawn(repo, part, given=(near,))
    assert (line.commit, line.names["leg/b"]) == (part.commit, near.commit)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that many trees share: they see nothing of each other."""
    return make_repository(tmp_path_factory.mktemp("grown") / "shop", **{"1.py": "start\n", "2.py": "start\n"})


def generation(repo: Path, prefix: str, begins: str, chance: random.Random) -> list[LinePart]:
    """Legs of a generation, written without a checkout: each changes or deletes one file or two of four."""
    legs = [f"{prefix}n{number}" for number in range(chance.randint(1, 4))]
    stream = ""
    for leg in legs:
        parent = f"from {begins}\n"
        for name in chance.sample(("1.py", "2.py", "3.py", "4.py"), chance.randint(1, 2)):
            change = f"D {name}" if chance.random() < 0.2 else f"M 644 inline {name}\ndata {len(leg) + 1}\n{leg}\n"
            stream += f"commit {REFS}/{leg}\ncommitter ann <ann@x> 0 +0000\ndata 1\nx\n{parent}{change}\n"
            parent = ""  # its commit before
    run_git(repo, "fast-import", "--quiet", stdin=stream)
    commits = run_git(repo, "rev-parse", *(f"service/{leg}" for leg in legs)).split()
    return [LinePart(leg, f"job-{leg}", f"service/{leg}", commit) for leg, commit in zip(legs, commits, strict=True)]


@pytest.mark.parametrize("seed", range(cases(15, 50)))
def test_every_part_is_on_the_line_or_conflicts_with_it(grown: Path, seed: int) -> None:
    """Generated trees of three generations that write few files, so that they often conflict."""
    chance, start = random.Random(seed), run_git(grown, "rev-parse", "main")
    parts, line = list[LinePart](), draw(grown, start, start, ())
    for number in range(3):
        parts += generation(grown, f"s{seed}g{number}", line.commit, chance)
        before, line = line, draw(grown, start, start, parts)
        out = {each.leg: each for each in line.left_out}
        assert [*line.merged] == [each.leg for each in parts if each.leg not in out]
        assert {*before.merged} <= {*line.merged}, "what was on the line stays on it"
        assert line.legs == {each.leg: each.commit for each in parts}, "each has its name, on the line or not"
        inside = run_git(
            grown, "for-each-ref", f"--merged={line.commit}", "--format=%(refname:lstrip=2)", f"{REFS}/s{seed}g*"
        )
        assert {*inside.split()} == {each.branch for each in parts if each.leg not in out}
    for index, part in enumerate(parts):
        if part.leg in out:
            before = draw(grown, start, start, parts[:index])
            merged = merged_tree(grown, before.commit, part.commit)
            assert isinstance(merged, CommitConflict)
            assert out[part.leg].files == merged.files
            assert {*out[part.leg].against} <= {each.branch for each in parts[:index]}
