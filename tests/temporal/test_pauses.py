"""Orders to a tree: by update and signal, at once, too late, wrongly, without a worker (rulings F1 to F9)."""

import asyncio
import time
from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, Line, an_input, ended, name_of, script, serving, start
from tests.temporal.orders import kill
from tests.temporal.people import asking, details, human, listed, order, over, refusal, say, send, waits
from tests.tree.simulator import World, delegation
from tests.waiting import soon, until
from workflows.model.event_kinds import TELLS_PEOPLE
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.states import JobState, TaskState
from workflows.temporal import search
from workflows.temporal.messages import TreeStart
from workflows.temporal.notify import Notify
from workflows.tree.events import TreeTakenUp

TWO = (delegation("a"), delegation("b", deps=("a",)))


async def messages(tree: Handle) -> int:
    """Count people's messages in a tree's history: signals and accepted updates."""
    events = (await tree.fetch_history()).events
    updates = [event for event in events if event.HasField("workflow_execution_update_accepted_event_attributes")]
    signals = [event.workflow_execution_signaled_event_attributes.signal_name for event in events]
    return len(updates) + signals.count("resume")


@pytest.mark.ruling("F1", "F2", "F4", "B3", "spec:states.human_questions", "spec:states.resume_answer")
@pytest.mark.parametrize("by", ["update", "signal"])
async def test_an_answer_goes_on(client: Client, queue: str, by: str) -> None:
    host = Host(asking({"root": TWO}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        shown = await waits(host)
        assert (Books(host.written).task_state, host.names) == (TaskState.AWAITING_HUMAN, ["root"])
        answer = order(tree.id, "answer", "q-root: blue")
        if by == "update":
            assert (await say(tree, answer)).startswith("answer is accepted\n  q-root: blue\nround 1 of ")
        else:
            await send(tree, answer)
        closed, books = await over(tree, host)
    brief = host.run("answered").brief
    assert brief is not None
    assert [(each.id, each.text) for each in brief.answers] == [("q-root", "blue")]
    assert [leg.id for each in brief.refused for leg in each.delegations] == ["a", "b"]
    assert (books.rounds[shown.round_id].end, closed.task_state) == (RoundEnd.ANSWERED, TaskState.DONE)


@pytest.mark.ruling("F4", "spec:states.wrong_verb")
async def test_what_does_not_fit_is_refused_and_leaves_no_trace(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        shown = await waits(host)
        kind, why = await refusal(tree, order(tree.id, "retry"))
        assert kind == "wrong_verb"
        assert "it takes `answer`, `extend`, not `retry`" in why
        assert (await refusal(tree, order(tree.id, "answer", " ")))[0] == "empty_answer"
        assert (await refusal(tree, order(tree.id, "answer", "x", round=7)))[0] == "unknown_round"
        assert (await refusal(tree, order("job-x", "answer", "x")))[0] == "unknown_job"
        assert await messages(tree) == 0
        assert Books(host.written).open() == [shown]
        await send(tree, order(tree.id, "retry"))
        await host.until(lambda: "resume_refused" in Books(host.written).kinds())
        assert Books(host.written).open() == [shown]
        await say(tree, order(tree.id, "answer", "x"))
        await over(tree, host)


@pytest.mark.ruling("F5.whole")
@pytest.mark.parametrize("channel", ["cli", "comment"])
async def test_the_tree_refuses_an_answer_that_is_not_whole(client: Client, queue: str, channel: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        green = order(tree.id, "answer", f"q-root: green {'x' * 300}", channel=channel, other=False)
        kind, why = await refusal(tree, green)
        assert kind == "not_whole"
        assert "a long text is not one of the choices of `q-root`" in why
        assert await messages(tree) == 0
        await say(tree, order(tree.id, "answer", "q-root: blue", channel=channel))
        await over(tree, host)


@pytest.mark.ruling("F4")
async def test_who_comes_late_is_told_who_answered_and_how(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"), held={"answered"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await say(tree, order(tree.id, "answer", "x"))
        kind, why = await refusal(tree, order(tree.id, "answer", "y", actor="bob"))
        assert kind == "round_over"
        assert f"round 1 of {tree.id} is over: answered by ann, in the terminal at " in why
        host.release("answered")
        await over(tree, host)


@pytest.mark.ruling("F4")
async def test_of_two_at_the_same_instant_one_is_taken_and_the_other_told(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        both = [order(tree.id, "answer", who, actor=who) for who in ("ann", "bob")]
        heard = await asyncio.gather(*(say(tree, each) for each in both), return_exceptions=True)
        _, books = await over(tree, host)
    assert len([each for each in heard if isinstance(each, str)]) == 1
    [refused] = [each for each in heard if isinstance(each, Exception)]
    winner = both[1 - heard.index(refused)].actor
    assert f"answered by {winner}, in the terminal" in str(refused.__cause__)
    assert books.kinds().count("resume_accepted") == 1


@pytest.mark.ruling("F4")
async def test_one_request_by_two_ways_acts_once(client: Client, queue: str) -> None:
    host = Host(asking({}, "root", "answered"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        answer = order(tree.id, "answer", "x")
        await asyncio.gather(send(tree, answer), say(tree, answer), return_exceptions=True)
        await waits(host, number=2)
        await send(tree, answer)
        kind, _ = await refusal(tree, answer)
        assert kind == "duplicate"
        assert len(Books(host.written).open()) == 1, "the second round is not answered by an echo"
        await say(tree, order(tree.id, "answer", "y"))
        _, books = await over(tree, host)
    assert books.kinds().count("resume_accepted") == 2
    assert "resume_refused" not in books.kinds()


@pytest.mark.ruling("F4", "engine:restores")
async def test_what_is_said_while_nobody_works_is_heard_later(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"), held={"answered"})
    async with serving(client, queue, host):
        tree = await start(client, queue, task_timeout=timedelta(seconds=1))
        await waits(host)
    await send(tree, order(tree.id, "answer", "x"))
    await send(tree, order(tree.id, "answer", "y", actor="bob"))
    late = asyncio.create_task(refusal(tree, order(tree.id, "answer", "z", actor="eve")))
    await asyncio.sleep(0.1)
    async with serving(client, queue, host):
        kind, _ = await soon(late)
        host.release("answered")
        _, books = await over(tree, host)
    assert kind == "round_over"
    assert host.names == ["root", "answered"]
    assert [each.said for each in books.rounds.values()] == ["x"]


@pytest.mark.ruling("F1", "F2")
async def test_a_child_s_questions_join_its_coordinator_s_round(client: Client, queue: str) -> None:
    legs = (delegation("a"), delegation("b"), delegation("c", deps=("a",)))
    host = Host(asking({"root": legs}, "a", "b"), held={"b"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        first = await waits(host)
        host.release("b")
        await host.until(lambda: "round_joined" in Books(host.written).kinds())
        [joined] = Books(host.written).open()
        assert [each.id for each in joined.questions] == ["q-a", "q-b"]
        assert joined.digest != first.digest
        assert (await refusal(tree, order(tree.id, "answer", "x", digest=first.digest)))[0] == "stale_round"
        assert "c" not in host.names
        await say(tree, order(host.run("a").job_id, "answer", "q-a: red\nq-b: blue", digest=joined.digest))
        await over(tree, host)
    assert host.names[-2:] == ["c", "answered"]


@pytest.mark.ruling("F1", "F2", "F8")
async def test_a_nested_coordinator_pauses_while_the_root_waits(client: Client, queue: str) -> None:
    legs = (delegation("deep", agent="lead"), delegation("after", deps=("deep",)))
    host = Host(asking({"root": legs, "deep": (delegation("inner"),)}, "inner"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        shown = await waits(host)
        assert shown.coordinator_id == host.run("deep").job_id
        await listed(client, queue, {tree.id: "ask"})
        await say(tree, order(tree.id, "answer", "red"))
        closed, _ = await over(tree, host)
    assert host.names == ["root", "deep", "inner", "answered", "after", "normal"]
    assert closed.task_state is TaskState.DONE


FAILS: dict[str, Line | list[Line]] = {
    "root": (human("a"), delegation("b"), delegation("c", deps=("a",))),
    "a": ["failed", "failed", "approved"],
}


@pytest.mark.ruling("D7", "F3", "spec:states.escalate_human", "spec:states.resume_retry", "spec:states.resume_continue")
async def test_a_failure_is_retried_fails_again_and_is_approved(client: Client, queue: str) -> None:
    host = Host(script(FAILS))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        first = await waits(host)
        assert (first.kind, [each.leg for each in first.failing]) == (RoundKind.FAILURE, ["a"])
        await say(tree, order(tree.id, "retry", "use the other compiler"))
        await waits(host, number=2)
        assert (await refusal(tree, order(tree.id, "continue", round=1)))[0] == "round_over"
        await say(tree, order(tree.id, "continue", round=2))
        closed, books = await over(tree, host)
    assert host.run("a", attempt=2).guidance == ("use the other compiler",)
    brief = host.run("normal").brief
    assert brief is not None
    assert brief.approved
    assert [each.end for each in books.rounds.values()] == [RoundEnd.RETRIED, RoundEnd.CONTINUED]
    assert (books.named("c").state, closed.task_state) == (JobState.SKIPPED, TaskState.DONE)


@pytest.mark.ruling("D7", "F3", "spec:states.resume_abort")
async def test_abort_finalizes(client: Client, queue: str) -> None:
    host = Host(script(FAILS))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await listed(client, queue, {tree.id: "failure"})
        await say(tree, order(tree.id, "abort"))
        closed, books = await over(tree, host)
    assert host.names[-1] == "finalize"
    assert [each.end for each in books.rounds.values()] == [RoundEnd.ABORTED]
    assert "was aborted by ann, in the terminal" in closed.reason


@pytest.mark.ruling("F9")
@pytest.mark.parametrize("immediate", [False, True])
async def test_kill_of_a_paused_tree_finalizes_at_once(client: Client, queue: str, immediate: bool) -> None:
    host = Host(script(FAILS))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await kill(tree, immediate=immediate)
        closed, books = await over(tree, host)
    assert host.names[-1] == "finalize"
    assert [each.end for each in books.rounds.values()] == [RoundEnd.KILLED]
    assert closed.task_state is TaskState.CANCELLED


@pytest.mark.ruling("F8", "engine:restores")
async def test_a_worker_that_is_replaced_in_a_pause_repeats_nothing(client: Client, queue: str) -> None:
    legs = (delegation("a"), delegation("b"), delegation("c", deps=("a", "b")))
    host = Host(asking({"root": legs}, "a"))
    async with serving(client, queue, host, max_cached_workflows=0):
        tree = await start(client, queue, task_timeout=timedelta(seconds=1))
        shown = await waits(host)
        await host.until(lambda: "b" in host.ended)
    async with serving(client, queue, host, max_cached_workflows=0):
        await send(tree, order(tree.id, "extend", "1h"))
        await host.until(lambda: "round_extended" in Books(host.written).kinds())
    assert len(host.runs) == 3
    async with serving(client, queue, host, max_cached_workflows=0):
        assert Books(host.written).open()[0].expires_at == pytest.approx(shown.expires_at + 3600)
        await say(tree, order(tree.id, "answer", "x"))
        _, books = await over(tree, host)
        history = await tree.fetch_history()
        await host.until(lambda: len(host.notified) == 1)
    assert sorted(host.names) == ["a", "answered", "b", "c", "root"]
    begun = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in history.events
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    notified = [f"notify-{each.event_id}" for each in books.events.values() if each.kind in TELLS_PEOPLE]
    assert [each for each in begun if each.startswith("notify-")] == notified
    assert len(notified) == 1


@pytest.mark.ruling("F8")
async def test_what_has_been_told_already_is_no_reason_to_stop(client: Client, queue: str) -> None:
    """Simulates a tree that was reset, or opened again from an older state."""
    host = Host(asking({}, "root"))
    first = an_input()
    async with serving(client, queue, host):
        event_id = f"{first.root_job_id}-e5"  # the tree started, its root was queued, began and ended, and then it asks
        await client.execute_workflow(
            Notify.run,
            event_id,
            id=f"notify-{event_id}",
            task_queue=queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        )
        tree = await start(client, queue, first)
        await waits(host)
        await say(tree, order(tree.id, "answer", "x"))
        await over(tree, host)
        events = (await client.get_workflow_handle(f"notify-{event_id}").fetch_history()).events
    assert host.notified == [event_id], "once"
    scheduled = [event.activity_task_scheduled_event_attributes for event in events]
    (tries,) = [each for each in scheduled if each.activity_id]
    assert tries.heartbeat_timeout.ToTimedelta() <= timedelta(seconds=30), "a host that dies with it is missed soon"


@pytest.mark.ruling("B3")
async def test_the_web_ui_lists_the_paused_trees_and_says_what_they_wait_for(client: Client, queue: str) -> None:
    host = Host(script({}), held={"normal"})

    async with serving(client, queue, host):
        host.answer = asking({"root": TWO}, "root")
        asks = await start(client, queue)
        shown = await waits(host)
        host.answer = script(FAILS)
        fails = await start(client, queue)
        await waits(host, rounds=2)
        host.answer = script({"root": TWO})
        busy = await start(client, queue)
        await host.until_running("normal")
        await listed(client, queue, {asks.id: "ask", fails.id: "failure"})
        text = await details(asks)
        assert "q-root: which? (red / blue)" in text
        assert f'service resume {asks.id} answer "q-root: <text>"' in text
        assert "waits for a person until" in text
        await say(asks, order(asks.id, "answer", "red", digest=shown.digest))
        await say(fails, order(fails.id, "abort"))
        host.release("normal")
        await asyncio.gather(*(ended(tree) for tree in (asks, fails, busy)))
        await listed(client, queue, {})
        assert (await asks.describe()).typed_search_attributes.get(search.ATTENTION) is None
    assert {name_of(run) for run in host.runs} >= {"answered", "finalize", "normal"}


@pytest.mark.ruling("F8", "engine:outside")
async def test_a_tree_that_is_taken_up_late_waits_for_people_as_long_as_it_had_left(client: Client, queue: str) -> None:
    host, lost_at = Host(asking({}, "root")), time.time() - timedelta(days=3).total_seconds()
    world = World(an_input().model_copy(update={"created_at": lost_at})).begin()
    world.coordinator("approved", human_questions=({"id": "q-root", "prompt": "which?"},))
    order = TreeTakenUp(now=time.time(), actor="ann", why="terminated by hand", since=world.state.now)
    lost = TreeStart(input=world.state.input, host=queue, state=world.state, taken_up=order)
    async with serving(client, queue, host):
        tree = await start(client, queue, lost)
        await host.until(lambda: "tree_taken_up" in Books(host.written).kinds())
        started: list[timedelta] = []

        async def has_begun_one() -> bool:
            events = (await tree.fetch_history()).events
            timers = [
                event.timer_started_event_attributes
                for event in events
                if event.HasField("timer_started_event_attributes")
            ]
            started[:] = [event.start_to_fire_timeout.ToTimedelta() for event in timers]
            return bool(started)

        await until(has_begun_one)
        await kill(tree)
    assert min(started) > timedelta(hours=11), "half of a day, and nothing sooner"
