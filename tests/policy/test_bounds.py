import pytest

from workflows.model.settings import Bounds
from workflows.model.spend import Ledger
from workflows.policy import bounds

CAPS = Bounds(max_delegation_token_budget=1000, max_delegation_cost_usd=2.0)


def ledger(jobs: int = 0, elapsed: float = 0, tokens: int = 0, cost: float = 0) -> Ledger:
    return Ledger(jobs=jobs, elapsed_seconds=elapsed, tokens=tokens, cost_usd=cost)


def kind(used: Ledger, *, depth: int = 0, width: int = 1, new_jobs: int = 1, caps: Bounds = CAPS) -> str | None:
    refusal = bounds.admit(caps, used, depth=depth, width=width, new_jobs=new_jobs)
    return refusal.kind if refusal else None


@pytest.mark.ruling("C2", "spec:limits.depth")
@pytest.mark.parametrize(
    ("depth", "refused"), [(7, None), (8, "delegation_depth_exceeded"), (9, "delegation_depth_exceeded")]
)
def test_a_job_at_the_depth_cap_may_not_delegate(depth: int, refused: str | None) -> None:
    assert kind(ledger(), depth=depth) == refused


@pytest.mark.ruling("C3", "spec:limits.job_budget")
@pytest.mark.parametrize(
    ("used", "new", "refused"), [(60, 4, None), (60, 5, "delegation_budget_exceeded"), (0, 64, None)]
)
def test_exactly_the_job_budget_is_admitted(used: int, new: int, refused: str | None) -> None:
    assert kind(ledger(jobs=used), new_jobs=new) == refused


@pytest.mark.ruling("spec:events.job_budget_message")
def test_the_job_budget_message_has_the_form_the_spec_gives() -> None:
    refusal = bounds.admit(CAPS, ledger(jobs=60), depth=0, width=5, new_jobs=5)
    assert refusal is not None
    assert refusal.message == "delegation batch of 5 new job(s) would exceed the per-root job budget of 64"


@pytest.mark.ruling("spec:limits.width", "spec:events.delegation_width_exceeded")
@pytest.mark.parametrize(("width", "refused"), [(16, None), (17, "delegation_width_exceeded")])
def test_width(width: int, refused: str | None) -> None:
    assert kind(ledger(), width=width) == refused


@pytest.mark.ruling("C4", "spec:limits.wall_clock", "spec:events.delegation_walltime_exceeded")
@pytest.mark.parametrize(("elapsed", "refused"), [(7200, None), (7200.5, "delegation_walltime_exceeded")])
def test_wall_clock_trips_beyond_the_budget(elapsed: float, refused: str | None) -> None:
    assert kind(ledger(elapsed=elapsed)) == refused


@pytest.mark.ruling("C4", "spec:limits.tokens", "spec:events.delegation_cost_exceeded")
@pytest.mark.parametrize(("tokens", "refused"), [(999, None), (1000, "delegation_cost_exceeded")])
def test_tokens_trip_at_the_budget(tokens: int, refused: str | None) -> None:
    assert kind(ledger(tokens=tokens)) == refused


@pytest.mark.ruling("C4", "spec:limits.dollars", "spec:events.delegation_cost_usd_exceeded")
@pytest.mark.parametrize(("cost", "refused"), [(1.99, None), (2.0, "delegation_cost_usd_exceeded")])
def test_dollars_trip_at_the_budget(cost: float, refused: str | None) -> None:
    assert kind(ledger(cost=cost)) == refused


@pytest.mark.ruling("C4", "spec:limits.tokens", "spec:limits.dollars")
def test_zero_is_unlimited() -> None:
    assert kind(ledger(tokens=10**12, cost=10.0**9), caps=Bounds()) is None


@pytest.mark.ruling("C1")
def test_the_first_bound_in_the_order_of_the_ruling_decides() -> None:
    worst = ledger(jobs=64, elapsed=10_000, tokens=5000, cost=9)
    assert kind(worst, depth=9, width=17) == "delegation_width_exceeded"
    assert kind(worst, depth=9) == "delegation_depth_exceeded"
    assert kind(worst) == "delegation_budget_exceeded"
    assert kind(ledger(elapsed=10_000, tokens=5000, cost=9)) == "delegation_walltime_exceeded"
    assert kind(ledger(tokens=5000, cost=9)) == "delegation_cost_exceeded"
    assert kind(ledger(cost=9)) == "delegation_cost_usd_exceeded"


@pytest.mark.ruling("C4")
def test_budgets_are_near_at_four_fifths_and_unlimited_ones_never() -> None:
    assert [name for name, _, _ in bounds.near(CAPS, ledger(jobs=51, tokens=799, cost=1.6))] == ["cost_usd"]
    assert [name for name, _, _ in bounds.near(Bounds(), ledger(jobs=52, elapsed=5760, tokens=10**9))] == [
        "jobs",
        "wall_clock",
    ]
