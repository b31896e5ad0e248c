"""The graph of a tree: every job once, followers further right, no overlaps (ruling M3)."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.http.dashboard.parts import dag, outline
from bridge.http.dashboard.parts.dag import HEIGHT, MARGIN, ROOM, WIDTH, Picture, box, draw
from bridge.operations.jobs.jobs import edges
from tests.bridge import seeds
from tests.bridge.http.dashboard.planted import ROOT, leg
from workflows.model.rows import JobRecord
from workflows.model.states import JobState

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


def in_columns(jobs: list[str], follows: Follows) -> Picture:
    return dag.in_columns(jobs, follows, {job: box(job) for job in jobs})


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
    check(in_columns(jobs, follows), jobs)


@given(graphs())
def test_every_line_leads_to_the_right_and_past_the_boxes(graph: tuple[list[str], Follows]) -> None:
    jobs, follows = graph
    picture = in_columns(jobs, follows)
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
    picture = in_columns([*"abcdef"], follows)
    check(picture, [*"abcdef"])
    assert all(left[0] < right[0] for edge in picture.edges for left, right in pairwise(edge.points))


def test_a_tree_without_jobs_has_an_empty_picture() -> None:
    assert draw([], []).nodes == ()


def test_a_chain_is_a_line() -> None:
    picture = in_columns([*"abc"], [("a", "b"), ("b", "c")])
    assert len({node.y for node in picture.nodes}) == 1
    assert all("C" not in edge.path for edge in picture.edges)


@st.composite
def trees(draw_: st.DrawFn) -> tuple[list[JobRecord], Follows]:
    """Generate a tree: coordinators of any level, with batches whose legs may depend on earlier ones."""
    jobs, deps = [seeds.job(state=JobState.SUCCEEDED)], dict[tuple[str, str], list[str]]()
    for number in range(1, draw_(st.integers(1, 70))):
        parent = draw_(st.sampled_from(jobs[-20:])).job_id
        if draw_(st.integers(0, 5)):
            job = leg(number, f"leg-{number}", parent_job_id=parent)
            before = [each.delegation_id or "" for each in jobs if each.parent_job_id == parent and each.delegation_id]
            if before:
                deps[parent, f"leg-{number}"] = draw_(st.lists(st.sampled_from(before), max_size=2))
        elif not any(each.parent_job_id == parent and not each.delegation_id for each in jobs):
            job = leg(number, "x", delegation_id=None, parent_job_id=parent)
        else:
            continue
        jobs.append(job)
    return jobs, [*edges(jobs, deps)]


@given(trees(), st.booleans())
def test_a_whole_tree_is_drawn_without_overlaps(tree: tuple[list[JobRecord], Follows], whole: bool) -> None:
    jobs, follows = tree
    chains = outline.of_tree(jobs, unfolded=("all",) if whole else ())
    picture = draw(chains, follows)
    boxes = [node.job_id for node in picture.nodes]
    if whole or len(jobs) <= outline.LARGE:
        assert sorted(boxes) == sorted(job.job_id for job in jobs)
    check(picture, boxes)
    for group in picture.groups:
        inside = {job.job_id for each in group.batch.legs for job in each.jobs}
        for node in picture.nodes:
            if node.job_id in inside:
                assert group.x < node.x
                assert node.x + WIDTH < group.x + group.width
                assert group.y < node.y
                assert node.y + HEIGHT < group.y + group.height
            elif not node.batch:
                apart = node.x >= group.x + group.width or node.x + WIDTH <= group.x
                assert apart or node.y >= group.y + group.height or node.y + HEIGHT <= group.y, "a foreign box"


def test_a_wide_batch_wraps_into_the_width_of_the_page() -> None:
    legs = [leg(number, f"leg-{number}") for number in range(1, 40)]
    jobs = [seeds.job(), *legs, leg(40, "x", delegation_id=None)]
    picture = draw(outline.of_tree(jobs, unfolded=("all",)), [*edges(jobs, {})])
    assert picture.width <= ROOM + 2 * MARGIN
    assert len({node.y for node in picture.nodes}) > 6
    assert {(edge.source, edge.target) for edge in picture.edges} == {(ROOT, "batch-0"), ("batch-0", f"{ROOT}.40")}


def test_a_long_course_wraps_too_and_its_lines_lead_back_to_the_left() -> None:
    jobs = [seeds.job()]
    for number in range(1, 12):
        jobs.append(leg(number, "x", delegation_id=None, parent_job_id=jobs[-1].job_id))
    picture = draw(outline.of_tree(jobs), [])
    assert picture.width <= ROOM + 2 * MARGIN
    assert len({node.y for node in picture.nodes}) == 3
    back = [edge for edge in picture.edges if len(edge.points) > 2]
    assert len(back) == 2
    assert all(0 < x < picture.width for edge in back for x, _ in edge.points)


def test_a_folded_batch_is_one_box() -> None:
    legs = [leg(number, f"leg-{number}") for number in range(1, 30)]
    jobs = [seeds.job(state=JobState.SUCCEEDED), *legs, leg(30, "x", delegation_id=None)]
    nodes = draw(outline.of_tree(jobs), [*edges(jobs, {})]).nodes
    assert [node.job_id for node in nodes] == [ROOT, "batch-0", f"{ROOT}.30"]
    [batch] = [node.batch for node in nodes if node.batch]
    assert batch.says == "29 done"
