"""The list of trees: one query for a page, on each database."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.event import listen

from activities.store import attempt_rows, event_rows, job_rows, tree_list, tree_rows
from activities.store.github import facts
from activities.store.registry import host_rows
from activities.store.tree_list import ListedTree, TreeFilter
from tests.rows import ROOT, event, job, round_, task
from tests.tree.simulator import tree_input
from workflows.contract.models import Action, Decision
from workflows.model.rows import JobRecord, Records, RoundRecord, TaskRecord
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.policy.tree_states import TreeGroup, TreeState, TreeWork

NOW = 1000.0
OTHER, THIRD = "job-bbbbbbbbbbbb", "job-cccccccccccc"


def write(store: Engine, *rows: TaskRecord | JobRecord | RoundRecord) -> None:
    job_rows.write(
        store,
        Records(
            task=next(row for row in rows if isinstance(row, TaskRecord)),
            jobs=tuple(row for row in rows if isinstance(row, JobRecord)),
            rounds=tuple(row for row in rows if isinstance(row, RoundRecord)),
        ),
    )


def find(store: Engine, **wanted: object) -> list[ListedTree]:
    return tree_list.find(store, TreeFilter(**wanted), NOW)  # type: ignore[arg-type]


def roots(store: Engine, **wanted: object) -> list[str]:
    return [tree.root.job_id for tree in find(store, **wanted)]


def test_a_tree_is_listed_with_its_sums_its_last_words_and_its_open_round(store: Engine) -> None:
    used: dict[str, Any] = {"usage": Usage(input_tokens=10, output_tokens=2), "cost_usd": 0.5}
    asked: dict[str, Any] = {
        "state": JobState.BLOCKED,
        "decision": Decision.BLOCKED,
        "summary": "which?",
        "ended_at": 5.0,
    }
    leg: dict[str, Any] = {"state": JobState.SUCCEEDED, "summary": "did it", "ended_at": 9.0, "price_assumed": True}
    over = round_(round_id=f"{ROOT}-r1", opened_at=1.0, end="answered", closed_at=2.0)
    still = round_(round_id=f"{ROOT}-r2", number=2, opened_at=3.0)
    write(
        store,
        task(state=TaskState.AWAITING_HUMAN),
        job(**used, **asked),
        job(f"{ROOT}.1", **used, **leg),
        job(f"{ROOT}.2", **used),
        over,
        still,
    )
    [tree] = find(store)
    assert (tree.jobs, tree.ended, tree.running) == (3, 2, 1)
    assert (tree.tokens, tree.cost_usd, tree.price_assumed) == (36, 1.5, True)
    assert (tree.root.job_id, tree.task.state, tree.last_words) == (ROOT, TaskState.AWAITING_HUMAN, "did it")
    assert tree.waiting == still


def test_a_tree_names_its_host_and_the_runtime_that_a_job_of_it_waits_for(store: Engine) -> None:
    rows = Records(task=task(), jobs=(job(), job(f"{ROOT}.1", state=JobState.QUEUED, reason="waits for a place")))
    tree_rows.begin(store, tree_input(root_job_id=ROOT), "web-1", rows)
    host_rows.see(store, "web-1", slots=1, started_at=1.0, held="its disk is full")
    limit = {"runtime": "claude_code", "kind": "rate_limit", "message": "limit", "at": 1.0}
    for number, until in enumerate((NOW - 1, NOW + 60), 1):
        attempt_rows.defer(store, attempt_rows.Deferral(job_id=ROOT, attempt=1, number=number, until=until, **limit))  # type: ignore[arg-type]
    [tree] = find(store)
    assert tree.host
    assert (tree.host.name, tree.host.held, tree.queued) == ("web-1", "its disk is full", "waits for a place")
    assert (tree.put_off, tree.put_off_until) == ("claude_code", NOW + 60)
    [later] = tree_list.find(store, TreeFilter(), NOW + 61)
    assert (later.put_off, later.put_off_until) == ("", None), "the wait is over"


def test_filters_look_at_the_tree_and_at_each_of_its_jobs(store: Engine) -> None:
    write(
        store, task(opened_at=1.0, title="Raise the 100% limit"), job(pull_request=7), job(f"{ROOT}.1", agent="mason")
    )
    blocked = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY}
    write(store, task(OTHER, opened_at=2.0, repo="acme/other", **blocked), job(OTHER, issue=7))
    write(store, task(THIRD, opened_at=3.0), job(THIRD, state=JobState.QUEUED))
    assert roots(store) == [THIRD, OTHER, ROOT]
    for wanted, expected in (
        ({"repo": "acme/other"}, [OTHER]),
        ({"agent": "mason"}, [ROOT]),
        ({"text": "100%"}, [ROOT]),
        ({"text": "MASON"}, [ROOT]),
        ({"text": "nobody"}, []),
        ({"text": "limit raise"}, [ROOT]),
        ({"text": "mason limit"}, [ROOT]),
        ({"text": "raise nobody"}, []),
        ({"text": " "}, [THIRD, OTHER, ROOT]),
        ({"pull_request": 7}, [ROOT]),
        ({"issue": 7}, [OTHER]),
        ({"state": TreeState.RUNNING}, [ROOT]),
        ({"state": TreeState.QUEUED}, [THIRD]),
        ({"state": TreeState.BLOCKED}, [OTHER]),
        ({"state": TreeState.FAILED}, []),
        ({"state": TreeState.RUNNING, "agent": "scout", "repo": "acme/shop", "text": "raise"}, [ROOT]),
    ):
        assert roots(store, **wanted) == expected, wanted


def test_pages_follow_one_another_and_take_one_query_each(store: Engine) -> None:
    ids = [f"job-{number:012d}" for number in range(7)]
    for place, root in enumerate(ids):
        last = {"delegation_id": None, "continuation": Continuation.NORMAL}
        write(store, task(root, opened_at=float(place // 2)), job(root), job(f"{root}.1", **last))
    asked: list[str] = []
    listen(store, "before_cursor_execute", lambda _c, _k, text, *_: asked.append(text))
    seen: list[str] = []
    before = None
    while page := find(store, limit=3, before=before):
        seen += [tree.root.job_id for tree in page]
        before = (page[-1].task.opened_at, seen[-1])
    assert seen == sorted(ids, reverse=True)
    assert len([text for text in asked if text.startswith(("SELECT", "WITH"))]) == 4


def test_work_is_ready_until_somebody_merges_or_drops_it_after_the_end(store: Engine) -> None:
    done: dict[str, Any] = {"state": TaskState.DONE, "ended_at": 5.0}
    wrote: dict[str, Any] = {"action": Action.IMPLEMENT, "state": JobState.SUCCEEDED, "head_sha": "a" * 40}
    ids = [f"job-{number:012d}" for number in range(6)]
    for root, more, leg, kinds in (
        (ids[0], {}, wrote, ()),
        (ids[1], {}, wrote, (("branch_merged", 6.0), ("branch_dropped", 7.0))),
        (ids[2], {}, wrote, (("branch_dropped", 6.0),)),
        (ids[3], {}, wrote, (("branch_merged", 4.0), ("branch_revised", 6.0))),
        (ids[4], {}, wrote | {"head_sha": None}, ()),
        (ids[5], {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY}, wrote, ()),
    ):
        write(store, task(root, **(done | more)), job(root, **leg))
        event_rows.tell(store, [event(n, root, kind=kind, at=at) for n, (kind, at) in enumerate(kinds)])
    works = {tree.root.job_id: tree.work for tree in find(store)}
    ready, merged, dropped, none = TreeWork.READY, TreeWork.MERGED, TreeWork.DROPPED, TreeWork.NONE
    assert [works[root] for root in ids] == [ready, merged, dropped, ready, none, none]
    assert roots(store, state=TreeGroup.READY) == [ids[3], ids[0]]
    assert roots(store, state=TreeGroup.ENDED) == [ids[4], ids[2], ids[1]]
    assert roots(store, state=TreeGroup.NEEDS_YOU) == [ids[5]]
    assert roots(store, state=TreeState.DONE) == ids[4::-1]


def test_each_tree_is_in_one_group(store: Engine) -> None:
    every = [(state, waits_for) for state in TaskState for waits_for in WaitsFor]
    for number, (state, waits_for) in enumerate(every):
        root, ended = f"job-{number:012d}", 5.0 if state.is_closed else None
        running = JobState.RUNNING if number % 2 else JobState.SUCCEEDED
        write(store, task(root, state=state, waits_for=waits_for, ended_at=ended), job(root, state=running))
    grouped = [root for group in TreeGroup for root in roots(store, state=group)]
    assert sorted(grouped) == sorted(roots(store))
    assert len(grouped) == len(every)
    by_state = [root for state in TreeState for root in roots(store, state=state)]
    assert sorted(by_state) == sorted(grouped)


@pytest.mark.parametrize("read", [lambda store: find(store, state=TreeGroup.ENDED), facts.to_publish])
def test_what_is_read_of_many_trees_is_found_by_tree(store: Engine, read: Callable[[Engine], object]) -> None:
    """With thousands of trees an index by state or kind, tried for each of them, takes seconds."""
    if store.dialect.name != "sqlite":
        return
    asked: list[tuple[str, Any]] = []
    listen(store, "before_cursor_execute", lambda _c, _k, text, given, *_: asked.append((text, given)))
    read(store)
    query, given = asked[-1]
    with store.connect() as connection:
        plan = [str(step[3]) for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", given).all()]
    assert not [step for step in plan if "jobs_by_state" in step or "events_by_kind" in step], plan
