"""The check of a registered agent's rights: actions and repositories."""

import pytest

from activities.store.registry.agent_rows import Agent
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.errors import RefusedError
from workflows.model.workers import Worker


def agent(policy: AutonomyPolicy = AutonomyPolicy.READ_ONLY, *able: Action) -> Agent:
    worker = Worker(name="scout", runtime="shell", capabilities=able or (Action.ASK,), autonomy_policy=policy)
    return Agent(worker, ("acme/shop",), 1.0)


@pytest.mark.parametrize(
    ("one", "action", "repo", "why", "hint"),
    [
        (agent(), "ask", "acme/other", "scout is not allowed on acme/other", "service agent allow scout acme/other"),
        (agent(), "review", "acme/shop", "scout only plans: choose ask", "service agent show scout"),
        (
            agent(AutonomyPolicy.READ_ONLY, Action.IMPLEMENT),
            "implement",
            "acme/shop",
            "scout has no write policy",
            "service agent show scout",
        ),
    ],
)
def test_a_forbidden_action_is_refused_with_the_command_to_type(
    one: Agent, action: str, repo: str, why: str, hint: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        one.check(action, repo)
    assert (refused.value.message, refused.value.hint) == (why, hint)


def test_what_it_may_passes() -> None:
    agent().check("ask", "acme/shop")
    agent(AutonomyPolicy.WORKSPACE_WRITE, Action.IMPLEMENT).check(Action.IMPLEMENT, "acme/shop")
