"""The outline of a tree: batches under the jobs that delegated them, rounds where people were asked (ruling M3)."""

from collections.abc import Iterator

import pytest

from bridge.http.dashboard.parts.outline import (
    EARLIER,
    LARGE,
    STEPS,
    Batch,
    Chain,
    Earlier,
    JobLine,
    RoundLine,
    names,
    of_tree,
    overview,
)
from tests.bridge import seeds
from tests.bridge.http.dashboard.planted import ROOT, leg
from workflows.model.rows import JobRecord
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("M3")


def continuation(number: int, of: str = ROOT) -> JobRecord:
    return leg(number, "x", delegation_id=None, continuation="normal", parent_job_id=of)


def words(chain: Chain) -> Iterator[str | list[list[object]]]:
    for part in chain.parts:
        match part:
            case JobLine():
                yield part.name
            case RoundLine():
                yield f"round {part.asked.number}"
            case Batch():
                yield [[*words(each)] for each in part.legs]
            case Earlier():
                yield f"{part.batches} batches"


def batches(chain: Chain) -> list[Batch]:
    return [part for part in chain.parts if isinstance(part, Batch)]


def test_batches_rounds_and_continuations_are_in_order() -> None:
    jobs = [
        seeds.job(),
        leg(1, "a"),
        leg(2, "b"),
        leg(3, "deep", parent_job_id=f"{ROOT}.1"),
        continuation(4),
        leg(5, "c", parent_job_id=f"{ROOT}.4"),
    ]
    [chain] = of_tree(jobs, [seeds.round_()])
    assert [*words(chain)] == [
        "lead (plans)",
        [["a", [["deep"]]], ["b"]],
        "round 1",
        "lead: reads the results",
        [["c"]],
    ]
    assert [(each.key, each.number) for each in batches(chain)] == [("0", 1), ("4", 2)]
    assert [job.job_id for job in chain.jobs if job.delegation_id == "deep"] == [f"{ROOT}.3"]


def test_a_job_that_delegated_again_in_its_next_attempt_has_a_batch_for_each() -> None:
    [chain] = of_tree([seeds.job(attempt=2), leg(1, "a"), leg(2, "b"), leg(3, "a"), leg(4, "b")])
    assert [*words(chain)] == ["lead (plans)", [["a"], ["b"]], [["a"], ["b"]]]
    assert [each.key for each in batches(chain)] == ["0", "0-2"]


def test_a_batch_is_finished_once_its_coordinator_has_gone_on() -> None:
    jobs = [seeds.job(state=JobState.SUCCEEDED), leg(1, "a"), leg(2, "b", state=JobState.FAILED)]
    assert [each.finished for each in batches(of_tree(jobs, over=False)[0])] == [False], "somebody has to decide"
    assert [each.finished for each in batches(of_tree([*jobs, continuation(3)], over=False)[0])] == [True]
    assert [each.finished for each in batches(of_tree(jobs, over=True)[0])] == [True]
    running = [seeds.job(), leg(1, "a"), leg(2, "b", parent_job_id=f"{ROOT}.1", state=JobState.RUNNING)]
    assert [each.finished for each in batches(of_tree([*running, continuation(3)])[0])] == [False]


def test_only_large_trees_fold_and_what_is_unfolded_stays_so() -> None:
    small = [seeds.job(), *(leg(number, f"leg-{number}") for number in range(1, LARGE))]
    large = [*small, leg(LARGE, "one-more")]
    assert [each.folded for each in batches(of_tree(small)[0])] == [False]
    assert [each.folded for each in batches(of_tree(large)[0])] == [True]
    assert [each.folded for each in batches(of_tree(large, unfolded=("0",))[0])] == [False]
    assert [each.folded for each in batches(of_tree(large, unfolded=("all",))[0])] == [False]


def test_a_batch_says_how_many_ended_how_and_shows_the_worst() -> None:
    jobs = [seeds.job(), leg(1, "a"), leg(2, "b", state=JobState.FAILED), leg(3, "c")]
    [batch] = batches(of_tree(jobs)[0])
    assert (batch.says, batch.state) == ("2 done, 1 failed", JobState.FAILED)


def test_a_leg_runs_while_its_own_batch_or_a_person_is_waited_for() -> None:
    below = leg(2, "deep", parent_job_id=f"{ROOT}.1", state=JobState.RUNNING)
    [batch] = batches(of_tree([seeds.job(), leg(1, "a"), below], over=False)[0])
    assert batch.says == "1 running"
    asked = seeds.round_(job_id=f"{ROOT}.1")
    [batch] = batches(of_tree([seeds.job(), leg(1, "a")], [asked], over=False)[0])
    assert batch.says == "1 running"
    assert not batch.finished


def test_a_batch_took_from_its_dispatch_to_its_last_end() -> None:
    below = leg(3, "deep", parent_job_id=f"{ROOT}.1", queued_at=15.0, ended_at=40.0, cost_usd=0.5)
    jobs = [
        seeds.job(),
        leg(1, "a", queued_at=10.0, ended_at=12.0, cost_usd=1.0),
        leg(2, "b", queued_at=10.0, ended_at=20.0),
        below,
    ]
    [batch] = batches(of_tree(jobs)[0])
    assert (batch.seconds, batch.cost_usd) == (30.0, 1.5)
    running = below.model_copy(update={"ended_at": None})
    assert batches(of_tree([*jobs[:3], running])[0])[0].seconds is None


def test_rows_whose_parent_is_missing_are_shown_and_so_are_their_rounds() -> None:
    chains = of_tree([seeds.job(), leg(2, "b", parent_job_id=f"{ROOT}.1")], [seeds.round_(job_id=f"{ROOT}.9")])
    assert [[*words(each)] for each in chains] == [["scout", "round 1"], ["b"]]


def test_the_parts_of_a_part_name_it_and_so_does_the_job_that_brings_them_together() -> None:
    jobs = [
        seeds.job(),
        leg(1, "api"),
        leg(2, "x", parent_job_id=f"{ROOT}.1"),
        leg(3, "y", parent_job_id=f"{ROOT}.1"),
        continuation(4, f"{ROOT}.1"),
    ]
    chains = of_tree(jobs)
    [batch] = batches(chains[0])
    [below] = batches(batch.legs[0])
    assert (batch.title, below.title) == ("Batch 1", "2 parts of api")
    assert [*names(chains).values()] == ["lead (plans)", "api", "x", "y", "api: reads the results"]


def test_of_a_large_tree_that_runs_only_the_lead_s_own_parts_are_unfolded() -> None:
    jobs = [seeds.job(), leg(1, "api")]
    jobs += [leg(number, f"leg-{number}", parent_job_id=f"{ROOT}.1", state=JobState.RUNNING) for number in range(2, 25)]
    for deep in (True, False):
        [batch] = batches(of_tree(jobs, over=False, deep=deep)[0])
        [below] = batches(batch.legs[0])
        assert (batch.folded, below.folded) == (False, not deep)


def test_the_overview_of_a_huge_tree_is_its_last_steps_and_shows_the_jobs_of_a_batch_on_demand() -> None:
    jobs, above = [seeds.job()], ROOT
    for batch in range(30):
        parts = [leg(batch * 5 + number, f"leg-{batch}-{number}", parent_job_id=above) for number in range(1, 5)]
        jobs += [*parts, continuation(batch * 5 + 5, above)]
        above = jobs[-1].job_id
    [chain] = overview(jobs, (), over=False, unfolded=())
    first, earlier, *last = chain.parts
    assert (first.kind, earlier.kind, len(last)) == ("job", "earlier", STEPS)
    assert isinstance(earlier, Earlier)
    assert (earlier.batches, earlier.says) == (20, "100 done")
    assert [*chain.jobs] == jobs
    assert all(batch.on_demand for batch in batches(chain)), "also one that runs"
    [whole] = overview(jobs, (), over=False, unfolded=(EARLIER, "0"))
    assert [batch.on_demand for batch in batches(whole)] == [False] + [True] * 29
