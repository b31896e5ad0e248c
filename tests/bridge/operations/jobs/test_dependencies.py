"""The edges of a tree's graph (ruling M3)."""

import pytest

from activities.settings.home import Home
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.planted import ROOT, hands_out, leg, result
from workflows.model.rows import JobRecord
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("M3")


def continuation(number: int, of: str) -> JobRecord:
    return leg(number, "x", delegation_id=None, parent_job_id=of, continuation="normal")


def test_legs_after_what_they_depend_on_and_the_continuation_after_the_last(home: Home) -> None:
    service = Service(home)
    legs = [leg(1, "a"), leg(2, "b"), leg(3, "c"), continuation(4, ROOT)]
    hands_out(service, ROOT, {"a": [], "b": ["a"], "c": []})
    seeds.write(service, seeds.task(), seeds.job(state=JobState.SUCCEEDED), *legs)
    edges = jobs.edges_of_tree(service, jobs.tree(service, ROOT))
    names = {ROOT: "root", **{f"{ROOT}.{number}": name for number, name in enumerate("abc", 1)}, f"{ROOT}.4": "then"}
    assert {(names[one], names[other]) for one, other in edges} == {
        ("root", "a"),
        ("a", "b"),
        ("root", "c"),
        ("b", "then"),
        ("c", "then"),
    }


def test_a_leg_that_delegated_has_ended_with_its_last_continuation(home: Home) -> None:
    root, a, b = seeds.job(), leg(1, "a"), leg(4, "b")
    below, after, end = leg(2, "deep", parent_job_id=a.job_id), continuation(3, a.job_id), continuation(5, ROOT)
    edges = set(jobs.edges([root, a, below, after, b, end], {(ROOT, "b"): ["a"]}))
    ids = {each.job_id: name for each, name in zip([root, a, below, after, b, end], "rdxybe", strict=True)}
    assert {ids[one] + ids[other] for one, other in edges} == {"rd", "dx", "xy", "yb", "be"}


def test_a_continuation_without_legs_follows_from_the_job_it_continues(home: Home) -> None:
    after = continuation(1, ROOT)
    assert list(jobs.edges([seeds.job(), after], {})) == [(ROOT, after.job_id)]


def test_what_the_last_attempt_handed_out_counts(home: Home) -> None:
    service = Service(home)
    hands_out(service, ROOT, {"a": [], "b": []})
    again = {"delegations": [{"id": "a"}, {"id": "b", "deps": ["a"]}]}
    result(service, ROOT, again, attempt=2)
    seeds.write(service, seeds.task(), seeds.job(), leg(1, "a"), leg(2, "b"))
    edges = jobs.edges_of_tree(service, jobs.tree(service, ROOT))
    assert set(edges) == {(ROOT, f"{ROOT}.1"), (f"{ROOT}.1", f"{ROOT}.2")}


def test_rows_that_fit_nothing_are_no_trouble(home: Home) -> None:
    """Such rows are dependencies of a missing leg, a missing parent, a cycle of continuations."""
    one, other = continuation(1, f"{ROOT}.2"), continuation(2, f"{ROOT}.1")
    stray = leg(3, "a", parent_job_id=f"{ROOT}.9")
    edges = list(jobs.edges([seeds.job(), one, other, stray], {(f"{ROOT}.9", "a"): ["nobody"]}))
    assert (f"{ROOT}.9", stray.job_id) in edges
