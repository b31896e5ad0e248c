"""The course of a run, by example and over generated graphs (ruling K1)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.plans import Player, agent, an_input, shell
from workflows.contract.models import Decision
from workflows.model.spend import Usage
from workflows.model.states import TaskState
from workflows.pipeline.commands import PauseStage, RecordRows, ReopenTree, RunShell, RunTree
from workflows.pipeline.definition import SUCCESS
from workflows.pipeline.events import AttentionChanged, CancelRequested, RetryDue, RunStarted, StageEnded
from workflows.pipeline.plan import Planned, RunState, StageOutcome, StageState
from workflows.pipeline.reducer import reduce
from workflows.pipeline.stages import outcome_of
from workflows.pipeline.state import new_run, restore, travelling
from workflows.pipeline.view import details
from workflows.tree.commands import CloseTree

pytestmark = pytest.mark.ruling("K1")
FAILED, BLOCKED, CANCELLED = StageState.FAILED, StageState.BLOCKED, StageState.CANCELLED
USED = Usage()


def test_stages_start_as_soon_as_their_needs_end() -> None:
    player = Player(shell("a"), shell("b"), shell("c", "a", "b"), shell("d", "a"))
    assert player.begun == [("a", 1), ("b", 1)]
    player.end("a")
    assert player.begun[2:] == [("d", 1)]
    player.end("b")
    assert player.begun[3:] == [("c", 1)]
    player.end("c")
    assert player.closed == []
    player.end("d")
    (end,) = player.closed
    assert (end.state, end.reason, end.halt_stage) == (RunState.SUCCEEDED, "", None)


@pytest.mark.ruling("O1")
def test_every_stage_begins_from_the_base_of_its_run() -> None:
    run = new_run(an_input(shell("a"), agent("b")).model_copy(update={"base": "abc123"}))
    commands = reduce(run, RunStarted(now=1000.0))
    assert [each.run.base for each in commands if isinstance(each, RunShell)] == ["abc123"]
    assert [each.tree.assignment.base for each in commands if isinstance(each, RunTree)] == ["abc123"]


def test_from_stage_to_stage_the_run_itself_writes_nothing() -> None:
    """The stages' activities write: a write by the run itself would cost as much as everything else between two
    stages.
    """
    player = Player(shell("a"), shell("b", "a"), agent("c", "b"))
    assert [type(command) for command in player.end("a")] == [RunShell]
    assert [type(command) for command in player.end("b")] == [RecordRows, RunTree]


def test_what_needs_a_failed_stage_is_skipped_and_says_why_and_the_rest_goes_on() -> None:
    player = Player(shell("a"), shell("b", "a"), shell("c", "b"), shell("d"))
    player.end("a", FAILED, reason="exit code 2")
    assert player.states == {"a": "failed", "b": "skipped", "c": "skipped", "d": "running"}
    assert (player.rows["b"].reason, player.rows["c"].reason) == (
        "it needs a, which failed",
        "it needs b, which was skipped",
    )
    assert player.closed == []
    player.end("d")
    (end,) = player.closed
    assert (end.state, end.halt_stage, end.reason) == (RunState.FAILED, "a", "stage a failed: exit code 2")


def test_the_first_stage_that_ends_badly_halts_the_run() -> None:
    player = Player(agent("a"), shell("b"))
    player.end("a", BLOCKED, reason="a leg failed")
    player.end("b", FAILED)
    (end,) = player.closed
    assert (end.state, end.halt_stage, end.reason) == (RunState.BLOCKED, "a", "stage a blocked: a leg failed")


def test_a_failure_is_tried_again_before_it_is_one() -> None:
    player = Player(shell("a", retry=2), shell("b", "a"))
    player.end("a", FAILED, reason="no luck")
    assert (player.states["a"], player.rows["a"].attempt) == ("pending", 1)
    assert player.rows["a"].reason == "no luck; attempt 2 begins after 5s"
    player.due("a")
    player.end("a", BLOCKED)
    player.due("a")
    assert player.begun == [("a", 1), ("a", 2), ("a", 3)]
    player.end("a")
    player.end("b")
    assert player.closed[0].state is RunState.SUCCEEDED


def test_pauses_between_attempts_double() -> None:
    player, seconds = Player(shell("a", retry=3)), []
    for _ in range(3):
        todo = player.feed(StageEnded(player.now, "a", player.flying.pop("a"), StageOutcome(state=FAILED)))
        seconds += [command.seconds for command in todo if isinstance(command, PauseStage)]
        player.due("a")
    assert seconds == [5.0, 10.0, 20.0]


@pytest.mark.ruling("Q5")
def test_a_stage_whose_host_is_lost_starts_again_at_once_and_keeps_its_retries() -> None:
    player = Player(shell("a", retry=1))
    player.end("a", CANCELLED, reason="its host is lost", moved=True)
    player.end("a", CANCELLED, reason="its host is lost", moved=True)
    assert player.begun == [("a", 1), ("a", 2), ("a", 3)]
    player.end("a", FAILED)
    player.due("a")
    player.end("a", FAILED)
    assert player.begun[3:] == [("a", 4)]
    assert [each.state for each in player.closed] == [RunState.FAILED]


def test_each_attempt_of_an_agent_stage_is_a_tree_of_its_own() -> None:
    player = Player(agent("a", retry=1), agent("b"))
    first = player.job_of("a")
    player.end("a", FAILED)
    player.due("a")
    assert len({first, player.job_of("a"), player.job_of("b")}) == 3
    again = Player(agent("a", retry=1), agent("b"))
    assert again.job_of("a") == first, "a workflow task that is done over names the same tree"


def test_a_stage_sees_the_work_of_all_it_needs() -> None:
    player = Player(agent("a"), agent("b", "a"), shell("c", "b"), shell("d"))
    player.end("a", branches=("service/1",))
    player.end("b", branches=("service/2",))
    shells = [stage.id for stage in player.run.input.stages if stage.id == "c"]
    assert shells == ["c"]
    assert player.run.branches_for(player.run.stages["c"]) == ("service/1", "service/2")
    assert player.run.branches_for(player.run.stages["d"]) == ()


def test_branches_travel_with_what_is_started() -> None:
    player = Player(agent("a"), shell("b", "a"), agent("c", "a"))
    outcome = StageOutcome(state=StageState.SUCCEEDED, branches=("service/1",))
    todo = player.feed(StageEnded(player.now, "a", 1, outcome))
    branches = [
        c.run.branch_deps if isinstance(c, RunShell) else c.tree.branch_deps
        for c in todo
        if isinstance(c, RunShell | RunTree)
    ]
    assert branches == [("service/1",), ("service/1",)]


def test_a_run_waits_with_the_tree_of_its_stage_and_goes_on_with_it() -> None:
    player = Player(agent("a"), shell("b"), shell("c", "b"))
    player.feed(AttentionChanged(player.now, player.job_of("a"), "ask"))
    assert player.row is not None
    assert player.row.state is RunState.AWAITING_HUMAN
    assert "stage a waits for people (ask)" in player.row.reason
    assert player.states["a"] == "running"
    player.end("b")
    assert ("c", 1) not in player.begun
    player.feed(AttentionChanged(player.now, player.job_of("a"), ""))
    assert ("c", 1) in player.begun
    assert (player.row.state, player.row.reason) == (RunState.RUNNING, "")


def test_a_tree_that_ends_waits_no_longer() -> None:
    player = Player(agent("a"), shell("b", "a"))
    player.feed(AttentionChanged(player.now, player.job_of("a"), "failure"))
    player.end("a")
    player.feed(AttentionChanged(player.now, player.job_of("a"), "failure"))
    assert player.begun == [("a", 1), ("b", 1)]
    assert player.run.state is RunState.RUNNING


def test_a_cancel_stops_what_runs_and_starts_nothing() -> None:
    player = Player(shell("a"), shell("b", retry=1), shell("c", "a"))
    player.end("b", FAILED)
    player.cancel()
    player.cancel("bob")
    assert player.stopped == ["a", "b"]
    assert player.states == {"a": "running", "b": "cancelled", "c": "cancelled"}
    player.end("a", CANCELLED)
    (end,) = player.closed
    assert (end.state, end.reason, end.halt_stage) == (RunState.CANCELLED, "cancelled by ann", "a")


def test_a_cancel_that_comes_too_late_changes_nothing() -> None:
    player = Player(shell("a"))
    player.cancel()
    player.end("a")
    assert player.closed[0].state is RunState.SUCCEEDED


def test_spend_is_summed_over_every_attempt() -> None:
    player = Player(agent("a", retry=1))
    used = Usage(input_tokens=3, output_tokens=4)
    player.end("a", FAILED, usage=used, cost_usd=0.5)
    player.due("a")
    player.end("a", usage=used, cost_usd=0.25)
    assert (player.closed[0].tokens, player.closed[0].cost_usd) == (14, 0.75)
    assert player.rows["a"].tokens == 14


def test_the_view_names_every_stage_and_cannot_be_dressed_up() -> None:
    player = Player(shell("a"), shell("b", "a"))
    player.end("a", FAILED, reason="```\n# **oh**")
    text = details(player.run)
    assert "✘ a shell: failed  ''' # oh" in text
    assert "- b shell after a: skipped  it needs a, which failed" in text
    assert text.count("```") == 2


@pytest.mark.parametrize(
    ("task", "decision", "state"),
    [
        (TaskState.DONE, Decision.APPROVED, StageState.SUCCEEDED),
        (TaskState.DONE, Decision.SKIPPED, StageState.SUCCEEDED),
        (TaskState.DONE, Decision.CHANGES_REQUESTED, FAILED),
        (TaskState.DONE, None, FAILED),
        (TaskState.BLOCKED, Decision.FAILED, FAILED),
        (TaskState.BLOCKED, Decision.BLOCKED, BLOCKED),
        (TaskState.BLOCKED, None, BLOCKED),
        (TaskState.CANCELLED, Decision.APPROVED, CANCELLED),
    ],
)
def test_a_trees_end_is_its_stages(task: TaskState, decision: Decision | None, state: StageState) -> None:
    closed = CloseTree(
        root_job_id="job-1",
        task_state=task,
        decision=decision,
        summary="s",
        reason="r",
        jobs=1,
        usage=Usage(),
        cost_usd=0,
    )
    assert outcome_of(closed, SUCCESS).state is state


def test_a_retry_inside_a_blocked_tree_moves_its_stage_and_the_run_on() -> None:
    player = Player(agent("a"), shell("b", "a"), shell("c"))
    job = player.job_of("a")
    used = Usage(input_tokens=10)
    player.end("a", BLOCKED, reason="leg x failed", usage=used, cost_usd=1.0)
    player.end("c")
    (end,) = player.closed
    assert (end.state, player.states) == (RunState.BLOCKED, {"a": "blocked", "b": "skipped", "c": "succeeded"})
    (again,) = [each for each in player.reopen("a", job) if isinstance(each, ReopenTree)]
    assert (again.stage_id, again.attempt) == ("a", 1)
    assert player.states == {"a": "running", "b": "pending", "c": "succeeded"}
    assert player.row is not None
    assert (player.row.state, player.row.finished_at, player.row.halt_stage) == (RunState.RUNNING, None, None)
    player.end("a", usage=Usage(input_tokens=15), cost_usd=1.5)
    player.end("b")
    assert player.closed[-1].state is RunState.SUCCEEDED
    assert (player.closed[-1].tokens, player.closed[-1].cost_usd) == (15, 1.5), "what a tree used counts once"


def test_a_retry_before_the_next_attempt_goes_on_in_its_place() -> None:
    player = Player(agent("a", retry=1), shell("b", "a"))
    job = player.job_of("a")
    player.end("a", BLOCKED)
    assert player.timers == {"a"}
    player.reopen("a", job)
    assert (player.timers, player.states["a"]) == (set(), "running")
    player.end("a")
    player.end("b")
    assert player.closed[0].state is RunState.SUCCEEDED
    assert player.begun == [("a", 1), ("b", 1)]


def test_a_retry_of_a_tree_that_is_no_stage_s_latest_or_of_a_cancelled_run_changes_nothing() -> None:
    player = Player(agent("a", retry=1), agent("b"))
    first = player.job_of("a")
    player.end("a", BLOCKED)
    player.due("a")
    assert player.reopen("a", first) == []
    player.feed(CancelRequested(player.now, "ann"))
    for name in ("a", "b"):
        player.end(name, CANCELLED)
    assert player.reopen("b", player.job_of("b")) == []


def test_a_run_s_memory_is_the_same_after_it_travelled() -> None:
    player = Player(agent("a", retry=1), shell("b", "a"))
    player.end("a", BLOCKED, reason="leg x failed", usage=Usage(input_tokens=10), branches=("service/1",))
    assert restore(travelling(player.run)) == player.run


@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.FAILED])
def test_a_tree_that_a_person_aborted_ends_its_stage_whatever_its_retry(decision: Decision) -> None:
    """Whoever aborts wants nothing of it tried again, and nothing after it to begin."""
    closed = CloseTree(
        root_job_id="job-1",
        task_state=TaskState.DONE if decision is Decision.APPROVED else TaskState.BLOCKED,
        decision=decision,
        summary="s",
        reason="r",
        jobs=1,
        usage=Usage(),
        cost_usd=0,
        aborted="round 1 of job-1 was aborted by ann, in the terminal",
    )
    player = Player(agent("a", retry=2), shell("deploy", "a"))
    ended = outcome_of(closed, SUCCESS)
    player.feed(StageEnded(player.now, "a", player.flying.pop("a"), ended))
    assert (player.states, player.rows["a"].reason) == ({"a": "cancelled", "deploy": "skipped"}, closed.aborted)
    assert player.closed[0].state is RunState.CANCELLED
    assert player.timers == set()


@pytest.mark.ruling("K1", "G1.cut")
def test_a_tree_that_a_bound_cut_short_fails_its_stage_which_is_not_tried_again() -> None:
    """Another attempt has the same limits, and what comes after the stage would build on a part of its work."""
    closed = CloseTree(
        root_job_id="job-1",
        task_state=TaskState.DONE,
        decision=Decision.APPROVED,
        summary="s",
        reason="cut short: the lead asked for 60 parts, the limit is 16 (`max_delegation_width`)",
        jobs=2,
        usage=Usage(),
        cost_usd=0,
        cut_short=True,
    )
    player = Player(agent("a", retry=2), shell("deploy", "a"))
    player.feed(StageEnded(player.now, "a", player.flying.pop("a"), outcome_of(closed, SUCCESS)))
    assert player.states == {"a": "failed", "deploy": "skipped"}
    assert (player.closed[0].state, player.closed[0].reason) == (RunState.FAILED, f"stage a failed: {closed.reason}")
    assert player.timers == set()


@st.composite
def graphs(draw: st.DrawFn) -> list[Planned]:
    """Generate stages in any order, their needs without a cycle."""
    count = draw(st.integers(1, 9))
    stages: list[Planned] = []
    for n in range(count):
        needs = draw(st.lists(st.sampled_from([f"s{m}" for m in range(n)]), unique=True, max_size=3)) if n else []
        name, retry = f"s{n}", draw(st.integers(0, 2))
        stages.append(shell(name, *needs, retry=retry) if draw(st.booleans()) else agent(name, *needs, retry=retry))
    return list(draw(st.permutations(stages)))


@given(graphs(), st.data())
def test_any_run_ends_once_and_each_attempt_starts_once_after_its_needs(
    stages: list[Planned], data: st.DataObject
) -> None:
    """The player asserts order, rows before commands, and that nothing starts twice, paused or cancelled."""
    player, cancelled = Player(*stages), False
    for _ in range(400):
        moves = [("end", name) for name in player.flying] + [("due", name) for name in sorted(player.timers)]
        if not moves:
            break
        move, name = data.draw(st.sampled_from(moves))
        if data.draw(st.integers(0, 30)) == 0:
            player.cancel()
            cancelled = True
        elif job := player.job_of(name):
            player.feed(AttentionChanged(player.now, job, data.draw(st.sampled_from(["", "", "ask"]))))
        if move == "due" and name in player.timers:
            player.due(name)
        elif move == "end":
            player.end(name, data.draw(st.sampled_from([StageState.SUCCEEDED] * 3 + [FAILED, BLOCKED, CANCELLED])))
    assert len(player.closed) == 1
    assert all(row.state.has_ended for row in player.rows.values())
    assert all(count == 1 for count in Counter(player.begun).values())
    assert all(attempt <= player.run.stages[name].plan.retry + 1 for name, attempt in player.begun)
    end = player.closed[0]
    everything = all(row.state is StageState.SUCCEEDED for row in player.rows.values())
    assert (end.state is RunState.SUCCEEDED) == everything
    assert cancelled or (end.halt_stage is None) == everything
    assert player.feed(RetryDue(player.now, stages[0].id)) == []
