"""Claims compared with the diff: the spec's four rules, by example and against an independent computation."""

import posixpath
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.contract.models import Entry
from workflows.policy.observation import Grade, Observation, PathMatch, Touched, normalise, observe

pytestmark = pytest.mark.ruling("I4", "spec:result.observation")

FILES = (
    "src/a.py",
    "src/b.py",
    "docs/my notes.md",
    "Makefile",
    "lib/util.py",
    "test/util.py",
    "src/my_dir/__init__.py",
)


def graded(claim: Entry, *files: str) -> tuple[Grade, list[tuple[str, PathMatch]]]:
    claimed = observe([claim], Touched(files=files or FILES)).claims[0]
    return claimed.grade, [(binding.claimed, binding.bound) for binding in claimed.paths]


@pytest.mark.parametrize(
    ("claim", "paths"),
    [
        ("src/a.py", ["src/a.py"]),
        ("./src//a.py", ["src/a.py"]),
        ("src/x/../a.py", ["src/a.py"]),
        ("src/a.py: added a function", ["src/a.py"]),
        ("- src/a.py - added and/or removed", ["src/a.py"]),
        ("Changed `src/a.py` and src/b.py, e.g. the loop.", ["src/a.py", "src/b.py"]),
        ("fixed src/a.py:12 (see https://example.org/x/y.py).", ["src/a.py"]),
        ("**src/my_dir/__init__.py** is new", ["src/my_dir/__init__.py"]),
        ("docs/my notes.md: spelling", ["docs/my notes.md"]),
        ('rewrote "docs/my notes.md"', ["docs/my notes.md"]),
        ("Makefile", ["Makefile"]),
        ({"path": "src/a.py", "summary": "also thought of src/zzz.py"}, ["src/a.py"]),
        ({"path": " src/a.py "}, ["src/a.py"]),
        ({"summary": "src/a.py is shorter"}, ["src/a.py"]),
        ({"files": ["src/a.py", "src/b.py"]}, ["src/a.py", "src/b.py"]),
    ],
)
def test_exact_paths_are_observed(claim: Entry, paths: list[str]) -> None:
    assert graded(claim) == (Grade.OBSERVED, [(path, PathMatch.EXACT) for path in paths])


@pytest.mark.parametrize(
    ("claim", "paths"),
    [
        ("src/zzz.py: added", [("src/zzz.py", PathMatch.NONE)]),
        ("src/a.py and src/zzz.py", [("src/a.py", PathMatch.EXACT), ("src/zzz.py", PathMatch.NONE)]),
        ("A.py: case matters", [("A.py", PathMatch.NONE)]),
        ("a.py: a bare name", [("a.py", PathMatch.BASENAME)]),
        ({"path": "b.py"}, [("b.py", PathMatch.BASENAME)]),
        ("util.py: which one?", [("util.py", PathMatch.UNKNOWN)]),
        ("ghost.txt", [("ghost.txt", PathMatch.NONE)]),
        ("- `ghost.txt`", [("ghost.txt", PathMatch.NONE)]),
        ("Dockerfile", [("Dockerfile", PathMatch.NONE)]),
        (".gitignore", [(".gitignore", PathMatch.NONE)]),
        ("Refactored", []),
        ("e.g.", []),
        ("./util.py", [("util.py", PathMatch.NONE)]),
        ("other/a.py", [("other/a.py", PathMatch.NONE)]),
        ("/src/a.py", [("/src/a.py", PathMatch.NONE)]),
        ("../src/a.py", [("../src/a.py", PathMatch.NONE)]),
        ("refactored the and/or logic, e.g. loops", []),
        ("", []),
        ({"path": "src"}, [("src", PathMatch.NONE)]),
        ({"exit_code": 0, "path": 3}, []),
    ],
)
def test_everything_else_stays_reported(claim: Entry, paths: list[tuple[str, PathMatch]]) -> None:
    assert graded(claim) == (Grade.REPORTED, paths)


def test_an_exact_root_file_is_observed_beside_a_namesake() -> None:
    assert graded("readme.md", "readme.md", "docs/readme.md") == (Grade.OBSERVED, [("readme.md", PathMatch.EXACT)])


def test_what_was_claimed_only_and_what_nobody_claimed() -> None:
    observation = observe(["src/a.py", "gone.py: removed", "b.py"], Touched(files=FILES[:4]))
    assert observation.claimed_only == ("gone.py",)
    assert observation.unclaimed_files == ("Makefile", "docs/my notes.md")
    assert observation.touched_files == tuple(sorted(FILES[:4]))


def test_without_a_capture_nothing_is_observed_and_nothing_is_denied() -> None:
    observation = observe(["src/a.py"], None)
    assert not observation.captured
    assert observation.claims[0].grade is Grade.REPORTED
    assert observation.claims[0].paths[0].bound is PathMatch.UNKNOWN
    assert observation.claimed_only == observation.unclaimed_files == ()


def test_a_capture_with_gaps_denies_nothing() -> None:
    observation = observe(["src/a.py", "src/zzz.py", "b.py"], Touched(files=FILES, complete=False))
    assert [claim.grade for claim in observation.claims] == [Grade.OBSERVED, Grade.REPORTED, Grade.REPORTED]
    assert [claim.paths[0].bound for claim in observation.claims] == [
        PathMatch.EXACT,
        PathMatch.UNKNOWN,
        PathMatch.UNKNOWN,
    ]
    assert observation.claimed_only == ()


NAMES = st.sampled_from(["a.py", "b.py", "c.md", "deep", "x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
MESSY = st.lists(st.sampled_from([".", "..", "a.py", "b.py", "c.md", "deep", "x", ""]), min_size=1, max_size=5).map(
    "/".join
)


@given(touched=st.frozensets(PATHS, max_size=6), claimed=st.lists(PATHS | MESSY, max_size=5))
def test_against_an_independent_computation(touched: frozenset[str], claimed: list[str]) -> None:
    claimed = [path for path in claimed if path.strip()]
    observation = observe([{"path": path} for path in claimed], Touched(files=tuple(touched)))
    basenames = Counter(posixpath.basename(path) for path in touched)
    mentioned, only = set(), set()
    for path, claim in zip(claimed, observation.claims, strict=True):
        real = posixpath.normpath(path)
        exact = not path.startswith("/") and real in touched
        assert (claim.grade is Grade.OBSERVED) == exact
        if exact:
            mentioned.add(real)
        elif "/" not in path and basenames[path] == 1:
            mentioned |= {file for file in touched if posixpath.basename(file) == path}
        elif "/" in path or not basenames[path]:
            only.add(path)
    assert set(observation.unclaimed_files) == touched - mentioned
    assert len(observation.claimed_only) <= len(only)
    assert bool(observation.claimed_only) == bool(only)


@given(path=st.text(alphabet="ab/. ~:", max_size=12))
def test_normalising_is_stable_and_stays_inside(path: str) -> None:
    once = normalise(path)
    assert once is None or normalise(once) == once
    assert once is None or not {"", ".", ".."} & set(once.split("/"))


@given(
    claims=st.lists(st.text(max_size=40) | st.dictionaries(st.text(max_size=5), st.text(max_size=20)), max_size=5),
    touched=st.lists(PATHS, max_size=5),
)
def test_any_claim_at_all_can_be_observed(claims: list[Entry], touched: list[str]) -> None:
    observation = observe(claims, Touched(files=tuple(touched)))
    assert len(observation.claims) == len(claims)
    assert Observation.model_validate_json(observation.model_dump_json()) == observation
    for claim in observation.claims:
        if claim.grade is Grade.OBSERVED:
            assert {binding.file for binding in claim.paths} <= set(touched)


@pytest.mark.parametrize(
    "text", [":1" * 300_000 + "x", "`a/b.c`" * 100_000, "`" * 500_000, "a/" * 500_000, " - " * 300_000]
)
def test_hostile_claims_are_quick(text: str) -> None:
    assert observe([text, {"path": text}], Touched(files=FILES)).claims[0].grade is Grade.REPORTED
