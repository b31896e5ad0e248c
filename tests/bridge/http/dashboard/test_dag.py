"""The picture of a tree: every job once, followers further right, no overlaps (ruling M3)."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.http.dashboard.parts.dag import HEIGHT, WIDTH, Picture, draw

pytestmark = pytest.mark.ruling("M3")

Follows = list[tuple[str, str]]


@st.composite
def graphs(draw_: st.DrawFn) -> tuple[list[str], Follows]:
    """Generate jobs in any order, each following some of the ones before it."""
    jobs = [f"j{number}" for number in range(draw_(st.integers(1, 64)))]
    edges = st.tuples(st.integers(0, len(jobs) - 1), st.integers(0, len(jobs) - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    chosen = draw_(st.lists(edges, max_size=150)) if len(jobs) > 1 else []
    return draw_(st.permutations(jobs)), [(jobs[source], jobs[target]) for source, target in chosen]


def check(picture: Picture, jobs: list[str]) -> None:
    assert sorted(node.job_id for node in picture.nodes) == sorted(jobs)
    for one, other in combinations(picture.nodes, 2):
        assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT, (one, other)
    for node in picture.nodes:
        assert node.x >= 0
        assert node.y >= 0
        assert node.x + WIDTH <= picture.width
        assert node.y + HEIGHT <= picture.height


@given(graphs())
def test_no_box_covers_another_and_every_job_has_one(graph: tuple[list[str], Follows]) -> None:
    jobs, follows = graph
    check(draw(jobs, follows), jobs)


@given(graphs())
def test_every_line_leads_to_the_right_and_past_the_boxes(graph: tuple[list[str], Follows]) -> None:
    jobs, follows = graph
    picture = draw(jobs, follows)
    assert {(edge.source, edge.target) for edge in picture.edges} == set(follows)
    for edge in picture.edges:
        assert all(left[0] < right[0] for left, right in pairwise(edge.points))
        for (x, y), (to_x, to_y) in pairwise(edge.points):
            beside = [node for node in picture.nodes if x <= node.x and node.x + WIDTH <= to_x]
            if beside:
                assert y == to_y, "a line bends between columns only"
            assert not any(node.y < y < node.y + HEIGHT for node in beside), "no line runs through a box"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdefx"))))
def test_a_circle_is_drawn_all_the_same(follows: Follows) -> None:
    picture = draw("abcdef", follows)  # each letter is a job
    check(picture, list("abcdef"))
    assert all(left[0] < right[0] for edge in picture.edges for left, right in pairwise(edge.points))


def test_a_tree_without_jobs_has_an_empty_picture() -> None:
    assert draw([], []).nodes == ()


def test_a_chain_is_a_line() -> None:
    picture = draw(["a", "b", "c"], [("a", "b"), ("b", "c")])
    assert len({node.y for node in picture.nodes}) == 1
    assert [edge.path[0] for edge in picture.edges] == ["M", "M"]
