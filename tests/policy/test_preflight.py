import pytest

from tests.tree.simulator import AGENTS, delegation
from workflows.contract.models import Delegation, Ephemeral, Runtime
from workflows.model.settings import TreeSettings
from workflows.policy import preflight


def faults(*delegations: Delegation, settings: TreeSettings | None = None) -> list[str]:
    refusal = preflight.check(delegations, AGENTS, settings or TreeSettings())
    if refusal is None:
        return []
    listed = refusal.data["faults"]
    assert isinstance(listed, list)
    assert refusal.data["valid_agents"] == ["coder", "lead", "reader"]
    assert "ephemeral" in str(refusal.data["alternative"])
    return listed


@pytest.mark.ruling("C6", "spec:events.delegation_preflight_failed")
def test_a_good_set_passes() -> None:
    assert faults(delegation("a"), delegation("b", "reader", "review"), delegation("c", ephemeral=True)) == []


@pytest.mark.ruling("C6", "spec:events.delegation_preflight_failed")
def test_every_fault_of_the_set_is_in_the_one_refusal() -> None:
    lines = faults(
        delegation("a", "ghost"), delegation("b", "runtime_a"), delegation("c", "reader"), delegation("d", "shell")
    )
    assert lines == [
        'delegations[0] (id "a"): agent "ghost" is unknown or not allowed on this repository',
        (
            'delegations[1] (id "b"): "runtime_a" is the name of a runtime, not of an agent: '
            "name a registered agent, or an ephemeral worker"
        ),
        'delegations[2] (id "c"): agent "reader" lacks the capability implement',
        (
            'delegations[2] (id "c"): agent "reader" may not write: '
            "implement needs autonomy_policy workspace-write or danger-full-access"
        ),
        (
            'delegations[3] (id "d"): "shell" is the name of a runtime, not of an agent: '
            "name a registered agent, or an ephemeral worker"
        ),
    ]


@pytest.mark.ruling("C6", "spec:events.delegation_preflight_failed")
@pytest.mark.parametrize("name", ["codex", "claude", "kimi", "Claude"])
def test_the_name_of_a_program_gets_the_hint_of_a_runtimes_name(name: str) -> None:
    (fault,) = faults(delegation("a", name))
    assert fault.endswith(
        f'"{name}" is the name of a runtime, not of an agent: name a registered agent, or an ephemeral worker'
    )


@pytest.mark.ruling("C6", "spec:ephemeral.runtime")
def test_an_ephemeral_runtime_must_be_configured() -> None:
    settings = TreeSettings(configured_runtimes=("runtime_a",))
    assert faults(delegation("a", ephemeral=True), settings=settings) == [
        'delegations[0] (id "a"): runtime runtime_c is not configured here (configured: runtime_a)'
    ]


@pytest.mark.ruling("C6", "spec:validation.write_policy")
def test_an_ephemeral_worker_that_implements_must_be_allowed_to_write() -> None:
    readonly = Ephemeral(runtime=Runtime.RUNTIME_A)
    advertises = Ephemeral(runtime=Runtime.RUNTIME_A, capabilities=("implement",))
    first = delegation("a").model_copy(update={"agent": None, "ephemeral": readonly})
    second = delegation("b", action="ask").model_copy(update={"agent": None, "ephemeral": advertises})
    assert len(faults(first, second)) == 2


@pytest.mark.ruling("C6")
def test_an_ephemeral_template_must_exist() -> None:
    seeded = Ephemeral(runtime=Runtime.RUNTIME_A, template="careful")
    leg = delegation("a", action="ask").model_copy(update={"agent": None, "ephemeral": seeded})
    assert preflight.check([leg], AGENTS, TreeSettings(), ("careful", "fast")) is None
    assert faults(leg) == [
        (
            'delegations[0] (id "a"): ephemeral.template "careful" is not a registered agent with a template '
            "(there are: none)"
        )
    ]
    assert preflight.check([leg], AGENTS, TreeSettings(), ("fast",)) is not None


@pytest.mark.ruling("C6")
def test_a_set_that_could_never_settle_is_refused_whole() -> None:
    assert faults(delegation("a", deps=("b",)), delegation("b", deps=("a",))) != []
    assert faults(delegation("a"), delegation("a")) != []


@pytest.mark.ruling("C6", "O6")
def test_a_merge_names_a_leg_with_work_or_one_that_it_depends_on() -> None:
    good = delegation("fix", worktree="@merge:docs"), delegation("late", deps=("fix",), worktree="@merge:fix")
    assert preflight.check(good, AGENTS, TreeSettings(), works=("api", "docs")) is None
    assert faults(delegation("fix", worktree="@merge:docs")) == [
        (
            'delegations[0] (id "fix"): worktree "@merge:docs" names no leg of this task with work to merge; '
            "there are: none"
        )
    ]
    refusal = preflight.check(
        [delegation("fix", worktree="@merge:dcos")], AGENTS, TreeSettings(), works=("api", "docs")
    )
    assert refusal is not None
    assert refusal.message.endswith('there are: api, docs; did you mean "docs"?')
