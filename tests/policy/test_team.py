"""The agents and runtimes in a coordinator's prompt, by the names that a delegation accepts."""

import pytest

from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.briefs import BudgetLine
from workflows.model.workers import Worker
from workflows.policy.prompts.team import NOBODY, READS_ONLY, Installed, render_team

BUILDER = Worker(
    name="builder",
    runtime="runtime_a",
    role="changes the code\n## and tests it",
    capabilities=("ask", "implement"),
    autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
)


@pytest.mark.ruling("P1", "P5")
def test_agents_and_runtimes_are_listed_with_what_they_can_do() -> None:
    codex = Installed("runtime_a", "codex", "gpt-5.1", AutonomyPolicy.WORKSPACE_WRITE, {"cheap": "gpt-5.1-mini"})
    kimi = Installed("runtime_c", "kimi", "", AutonomyPolicy.DANGER_FULL_ACCESS)
    lines = render_team(
        [
            BUILDER,
            Worker(name="eye", runtime="shell", capabilities=("review",)),
            Worker(name="reader", runtime="runtime_c", capabilities=("review",)),
        ],
        [codex, kimi],
        Action.ASK,
    ).splitlines()
    assert "- `builder` (runtime_a; ask, implement; runs builds and tests): `changes the code ## and tests it`" in lines
    assert "- `eye` (shell; review; runs builds and tests)" in lines
    assert "- `reader` (runtime_c; review; runs no builds or tests)" in lines
    assert "- `runtime_a` (codex, model `gpt-5.1`): `workspace-write`; models: cheap `gpt-5.1-mini`" in lines
    assert "- `runtime_c` (kimi): `danger-full-access`" in lines


@pytest.mark.ruling("N5", "P1")
def test_a_tree_that_only_reads_says_so_before_anybody_tries() -> None:
    assert READS_ONLY in render_team([BUILDER], [], Action.ASK, read_only=True)
    assert READS_ONLY not in render_team([BUILDER], [], Action.ASK)
    assert READS_ONLY not in render_team([], [], Action.ASK, read_only=True), "there is nobody to ask"


@pytest.mark.ruling("P1")
def test_where_nobody_is_there_it_says_so() -> None:
    assert NOBODY in render_team([], [], Action.ASK)


@pytest.mark.ruling("P1", "C1")
def test_a_coordinator_is_told_its_own_tree_s_limits() -> None:
    line = BudgetLine(
        jobs=4,
        jobs_cap=20,
        depth=1,
        depth_cap=3,
        elapsed_seconds=0,
        wall_clock_seconds=60,
        tokens=0,
        token_budget=0,
        cost_usd=0,
        cost_budget_usd=0,
        width=5,
    )
    text = render_team([BUILDER], [], Action.ASK, line)
    assert "5 delegations in one result, 16 more jobs in all, 2 more levels of delegation" in text


@pytest.mark.ruling("P1", "I2")
def test_a_reader_is_told_that_changes_need_a_leg_and_a_writer_is_not() -> None:
    needs = "a goal that changes files needs a leg with `implement`"
    assert needs in render_team([BUILDER], [], Action.ASK)
    assert needs in render_team([BUILDER], [], Action.REVIEW)
    assert needs not in render_team([BUILDER], [], Action.IMPLEMENT)
    assert "do yourself what you can do well" not in render_team([BUILDER], [], Action.ASK)


@pytest.mark.ruling("P1", "spec:delegation.tiers")
def test_the_tiers_are_told_with_names_or_not_at_all() -> None:
    known = Installed("runtime_a", "codex", "", AutonomyPolicy.WORKSPACE_WRITE, {"deep": "big"})
    unknown = Installed("runtime_c", "kimi", "", AutonomyPolicy.DANGER_FULL_ACCESS)
    text = render_team([], [known, unknown], Action.ASK)
    assert "models: deep `big`" in text
    assert "once more with a deep one" in text
    assert "cheap: a small, fast model" in text
    alone = render_team([], [unknown], Action.ASK)
    assert "Leave `model` out" in alone
    assert "cheap" not in alone


@pytest.mark.ruling("P1", "E4")
def test_a_job_whose_own_decision_counts_is_not_told_that_approved_will_do() -> None:
    assert "`approved` will do" in render_team([BUILDER], [], Action.REVIEW)
    assert "`approved` will do" not in render_team([BUILDER], [], Action.REVIEW, judged=True)
