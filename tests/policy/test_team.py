"""The agents and runtimes in a coordinator's prompt, by the names that a delegation accepts."""

import pytest

from workflows.contract.models import AutonomyPolicy
from workflows.model.workers import Worker
from workflows.policy.prompts.team import NOBODY, Installed, render_team

BUILDER = Worker(
    name="builder",
    runtime="runtime_a",
    role="changes the code\n## and tests it",
    capabilities=("ask", "implement"),
    autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
)


@pytest.mark.ruling("P1", "P5")
def test_agents_and_runtimes_are_listed_with_what_they_can_do() -> None:
    codex = Installed("runtime_a", "codex", "gpt-5.1", AutonomyPolicy.WORKSPACE_WRITE)
    kimi = Installed("runtime_c", "kimi", "", AutonomyPolicy.DANGER_FULL_ACCESS)
    lines = render_team(
        [
            BUILDER,
            Worker(name="eye", runtime="shell", capabilities=("review",)),
            Worker(name="reader", runtime="runtime_c", capabilities=("review",)),
        ],
        [codex, kimi],
    ).splitlines()
    assert "- `builder` (runtime_a; ask, implement; workspace-write): `changes the code ## and tests it`" in lines
    assert "- `eye` (shell; review; auto)" in lines
    assert "- `reader` (runtime_c; review; auto; runs no builds or tests)" in lines
    assert "- `runtime_a` (codex, model `gpt-5.1`): `workspace-write`" in lines
    assert "- `runtime_c` (kimi): `danger-full-access`" in lines


@pytest.mark.ruling("P1")
def test_where_nobody_is_there_it_says_so() -> None:
    assert NOBODY in render_team([], [])
