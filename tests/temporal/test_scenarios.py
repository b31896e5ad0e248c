"""Whole trees through Temporal: fan-outs, depth, budgets, retries, policies, verdicts, loops."""

import pytest
from temporalio.client import Client
from temporalio.testing import TimeSkipper

from tests.temporal.books import Books
from tests.temporal.host import Host, Line, an_input, ended, name_of, play, script, serving, start
from tests.tree.simulator import AGENTS, delegation, outcome
from workflows.contract.models import Delegation
from workflows.model.briefs import Correction
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState


def legs(count: int, start_at: int = 0) -> tuple[Delegation, ...]:
    return tuple(delegation(f"l{n}") for n in range(start_at, start_at + count))


async def watch(
    client: Client, queue: str, lines: dict[str, Line | list[Line]], bounds: Bounds | None = None
) -> tuple[Host, Books]:
    """Play a script to its end and check the books."""
    limits = bounds or Bounds()
    host = Host(script(lines))
    await play(client, queue, host, an_input(bounds=limits))
    books = Books(host.written)
    books.check(host.runs, limits)
    return host, books


@pytest.mark.ruling("spec:limits.width")
async def test_sixteen_legs_go_out_at_once(client: Client, queue: str) -> None:
    host, books = await watch(client, queue, {"root": legs(16)})
    assert sorted(host.names[1:17]) == sorted(f"l{n}" for n in range(16))
    assert host.names[17:] == ["normal"]
    assert books.states() == {JobState.SUCCEEDED: 18}


def nested(levels: int) -> Host:
    """Return a host with a chain of coordinators: every leg down to the given depth delegates one more."""

    def answer(run: JobRun) -> JobOutcome:
        deeper = run.continuation == "none" and run.delegation_depth < levels
        more = (delegation(f"d{run.delegation_depth + 1}"),) if deeper else ()
        return outcome(run, "approved", *more, agents=AGENTS)

    return Host(answer)


@pytest.mark.ruling("C2", "spec:limits.depth")
async def test_eight_levels_of_coordinators(client: Client, queue: str) -> None:
    host = nested(8)
    closed = await play(client, queue, host)
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert host.names == ["root", *(f"d{n}" for n in range(1, 9)), *["normal"] * 8]
    assert (closed.task_state, closed.jobs) == (TaskState.DONE, 17)
    assert "delegation_depth_exceeded" not in books.kinds()


def batches(*sizes: int) -> dict[str, Line | list[Line]]:
    """Return a script in which the root and its continuations delegate so many legs each, and then nothing more."""
    sets = [legs(size, 100 * n) for n, size in enumerate(sizes)]
    return {"root": sets[0], "normal": [*sets[1:], "approved"]}


@pytest.mark.ruling("C3", "spec:limits.job_budget")
@pytest.mark.long
async def test_exactly_sixty_four_jobs_are_admitted(client: Client, queue: str) -> None:
    host, books = await watch(client, queue, batches(15, 15, 15, 15))
    assert books.states() == {JobState.SUCCEEDED: 65}
    assert len(host.runs) == 65, "the root is not counted"
    assert "delegation_budget_exceeded" not in books.kinds()
    assert books.kinds().count("delegation_budget_warning") == 1


@pytest.mark.ruling("C3", "G1", "spec:limits.job_budget")
@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        pytest.param((15, 15, 15, 15, 1), 66, id="a leg too many"),
        pytest.param((16, 16, 16, 14), 53, id="a set too wide for what is left"),
        pytest.param((15, 15, 15, 16), 66, id="no job left for the continuation"),
    ],
)
@pytest.mark.long
async def test_the_sixty_fifth_job_is_refused_and_the_tree_finalized(
    client: Client, queue: str, sizes: tuple[int, ...], runs: int
) -> None:
    host, books = await watch(client, queue, batches(*sizes))
    assert books.kinds().count("delegation_budget_exceeded") == 1
    assert (host.names[-1], len(host.runs)) == ("finalize", runs)


@pytest.mark.long
@pytest.mark.ruling("D3")
async def test_retries_pause_longer_each_time(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a", retry=3),), "a": ["failed", None, "failed", "approved"]}))
    skipping = TimeSkipper(client).client
    async with serving(client, queue, host):
        tree = await start(skipping, queue)
        closed = await ended(tree)
        timers = [
            event.timer_started_event_attributes.start_to_fire_timeout.ToSeconds()
            for event in (await tree.fetch_history()).events
            if event.HasField("timer_started_event_attributes")
        ]
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert closed.task_state is TaskState.DONE
    assert timers == [5, 10, 20]
    assert [run.attempt for run in host.runs if name_of(run) == "a"] == [1, 2, 3, 4]
    assert len({run.job_id for run in host.runs if name_of(run) == "a"}) == 1


@pytest.mark.ruling("D5")
async def test_a_failing_leg_that_may_fail_skips_what_needs_it_and_its_coordinator_goes_on(
    client: Client, queue: str
) -> None:
    bad = delegation("bad", failure_policy="continue")
    lines: dict[str, Line | list[Line]] = {"root": (delegation("good"), bad, delegation("after", deps=("bad",)))}
    host, books = await watch(client, queue, lines | {"bad": "failed"})
    assert {leg: books.named(leg).state for leg in ("good", "after")} == {"good": "succeeded", "after": "skipped"}
    assert books.task_state is TaskState.DONE
    assert sorted(host.names) == ["bad", "good", "normal", "root"]


def verifying(*verdicts: str) -> dict[str, Line | list[Line]]:
    first = (delegation("build"), delegation("check", action="review", synthesis_rule="verify", deps=("build",)))
    again = [
        (delegation("build", action="ask", model=f"m{n}"), delegation("check", synthesis_rule="verify", model=f"m{n}"))
        for n in range(3)
    ]
    return {"root": first, "check": list(verdicts), "replan": list(again)}


@pytest.mark.ruling("E4", "E5")
async def test_a_failed_verdict_is_replanned_until_it_passes(client: Client, queue: str) -> None:
    host, books = await watch(client, queue, verifying("changes_requested", "approved"))
    assert [name for name in host.names if name not in {"build", "check"}] == ["root", "replan", "normal"]
    assert books.task_state is TaskState.DONE
    brief = host.run("replan").brief
    assert brief is not None
    assert (brief.attempt, brief.attempts) == (1, 2)


@pytest.mark.ruling("C6")
async def test_a_set_that_cannot_be_routed_comes_back_whole(client: Client, queue: str) -> None:
    bad = (delegation("a"), delegation("b", agent="ghost"))
    host, books = await watch(client, queue, {"root": bad, "corrective": legs(1)})
    assert host.names == ["root", "corrective", "l0", "normal"]
    brief = host.run("corrective").brief
    assert brief is not None
    assert (brief.correction, [leg.id for each in brief.refused for leg in each.delegations]) == (
        Correction.PREFLIGHT,
        ["a", "b"],
    )
    assert brief.valid_agents == ("coder", "lead", "reader")
    assert books.kinds().count("delegation_preflight_failed") == 1


@pytest.mark.ruling("A11", "D2")
async def test_a_crash_of_the_root_blocks_the_task_and_says_how_to_go_on(client: Client, queue: str) -> None:
    host, books = await watch(client, queue, {"root": None})
    assert books.task_state is TaskState.BLOCKED
    assert books.task.next == f"service job retry {host.runs[0].job_id}"
    # If a task is repeated because a signal came, its local activities run again.
    assert {state.root_id for state in host.kept} == {host.runs[0].job_id}
