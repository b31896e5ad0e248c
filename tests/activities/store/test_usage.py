"""The usage of jobs, summed by the database."""

from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.event import listen

from activities.store import job_rows, usage_rows
from activities.store.usage_rows import DAY_SECONDS, of_turn
from tests.bridge import seeds
from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.rows import Records
from workflows.model.spend import Usage

pytestmark = pytest.mark.ruling("M4")
DAY = 20_000
MIDNIGHT = float(DAY * DAY_SECONDS)


def write(store: Engine, number: int, **fields: Any) -> None:
    used = {"usage": Usage(input_tokens=10, output_tokens=1), "cost_usd": 0.5, "queued_at": MIDNIGHT}
    job_rows.write(store, Records(jobs=(seeds.job(f"{seeds.ROOT}.{number}", **used | fields),)))


def test_a_job_counts_for_the_day_it_ended_else_for_the_day_it_began(store: Engine) -> None:
    write(store, 1, ended_at=MIDNIGHT + DAY_SECONDS - 0.001)
    write(store, 2, started_at=MIDNIGHT, ended_at=MIDNIGHT + DAY_SECONDS)
    write(store, 3, started_at=MIDNIGHT + DAY_SECONDS * 2.5)
    write(store, 4)
    assert {(each.day, each.jobs) for each in usage_rows.since(store, DAY)} == {(DAY, 2), (DAY + 1, 1), (DAY + 2, 1)}


def test_usage_before_the_first_day_does_not_count(store: Engine) -> None:
    write(store, 1, ended_at=MIDNIGHT - 0.001)
    write(store, 2, ended_at=MIDNIGHT)
    assert [each.jobs for each in usage_rows.since(store, DAY)] == [1]


def test_jobs_that_agree_are_one_sum_and_a_guess_among_them_marks_it(store: Engine) -> None:
    write(store, 1, model="m", price_assumed=True)
    write(store, 2, model="m")
    write(store, 3, model=None, agent="other")
    sums = {each.model: each for each in usage_rows.since(store, DAY)}
    assert sums["m"] == usage_rows.Spent(
        DAY, "scout", "acme/shop", "m", 2, 20, 2, 1.0, price_assumed=True, requests=None
    )
    assert (sums[""].agent, sums[""].jobs, sums[""].price_assumed) == ("other", 1, False)


@pytest.mark.ruling("S6")
def test_requests_are_summed_of_the_jobs_whose_programs_say_them(store: Engine) -> None:
    for number, requests in enumerate((3, None, 4)):
        used = Usage(input_tokens=10, requests=requests)
        write(store, number, usage=used, agent="claude-dev")
        row = job_rows.get(store, f"{seeds.ROOT}.{number}")
        assert row is not None
        assert row.usage == used
    write(store, 9)
    assert {spent.agent: spent.requests for spent in usage_rows.since(store, DAY)} == {"claude-dev": 7, "scout": None}


@pytest.mark.ruling("K5", "S6")
def test_usage_is_summed_from_one_index(store: Engine) -> None:
    if store.dialect.name != "sqlite":  # PostgreSQL's plan depends on its statistics
        return
    asked: list[tuple[str, Any]] = []
    listen(store, "before_cursor_execute", lambda _c, _k, text, given, *_: asked.append((text, given)))
    usage_rows.since(store, DAY)
    query, given = asked[-1]
    with store.connect() as connection:
        plan = [str(step[3]) for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", given).all()]
    assert "SCAN jobs USING COVERING INDEX jobs_by_spender" in plan


def test_repairs_count_for_the_day_on_which_the_agent_was_asked(store: Engine) -> None:
    write(store, 1, model="m", ended_at=MIDNIGHT + 1)
    events = [
        seeds.event(number, f"{seeds.ROOT}.1", kind=kind, at=MIDNIGHT + seconds)
        for number, (kind, seconds) in enumerate(
            (("result_repaired", 1), ("result_repaired", 2), ("result_repaired", -1), ("result_ambiguous", 1))
        )
    ]
    job_rows.write(store, Records(events=tuple(events)))
    assert usage_rows.repairs(store, DAY) == [usage_rows.Repairs(DAY, "scout", "acme/shop", "m", 2)]


def test_however_much_jobs_claim_to_have_used_it_can_be_added_up(store: Engine) -> None:
    most = Usage(input_tokens=MOST_TOKENS, output_tokens=MOST_TOKENS)
    rows = [seeds.job(f"{seeds.ROOT}.{number}", usage=most, queued_at=MIDNIGHT) for number in range(1, 10_001)]
    job_rows.write(store, Records(jobs=tuple(rows)))
    [total] = usage_rows.since(store, DAY)
    assert total.input_tokens == 10_000 * MOST_TOKENS


pytestmark = pytest.mark.ruling("spec:limits.token_capture")


def used(store: Engine, turn: str, total: int, *, fresh: bool = False, session: str = "s") -> int:
    usage = of_turn(store, "runtime_a", session, turn, Usage(input_tokens=total, output_tokens=total), fresh=fresh)
    assert usage.input_tokens == usage.output_tokens
    return usage.input_tokens


def test_a_fresh_session_counts_whole_and_its_repair_only_what_it_added(store: Engine) -> None:
    assert used(store, "job.1", 1000, fresh=True) == 1000
    assert used(store, "job.1.repair", 2500) == 1500


def test_told_again_a_turn_used_the_same(store: Engine) -> None:
    for _ in range(2):
        assert used(store, "job.1", 1000, fresh=True) == 1000
    for _ in range(2):
        assert used(store, "job.1.repair", 2500) == 1500


def test_a_session_with_an_unknown_past_counts_nothing_at_first(store: Engine) -> None:
    for _ in range(2):
        assert used(store, "job.1", 90_000) == 0
    assert used(store, "job.2", 91_000) == 1000


def test_a_counter_that_goes_backwards_counts_nothing_and_goes_on_from_there(store: Engine) -> None:
    assert used(store, "job.1", 5000, fresh=True) == 5000
    assert used(store, "job.2", 700) == 0
    assert used(store, "job.3", 900) == 200


def test_sessions_do_not_mix(store: Engine) -> None:
    assert used(store, "job.1", 1000, fresh=True) == 1000
    assert used(store, "job.2", 400, fresh=True, session="t") == 400
    assert used(store, "job.1.repair", 1100) == 100
