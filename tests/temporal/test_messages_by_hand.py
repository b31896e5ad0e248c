"""Messages from the Temporal web UI or its command line: accepted, or refused in a sentence (rulings F4 to F6)."""

import json
import re
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, serving, start
from tests.temporal.people import asking, details, failed_tasks, over, shows, waits
from tests.temporal.server import speaking
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.contract.models import HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import EventRecord
from workflows.temporal.delegation_tree import DelegationTree

pytestmark = pytest.mark.ruling("F6.by_hand")
BROKEN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"verb": "answer", '))
FOREIGN = RawValue(Payload(metadata={"encoding": b"json/protobuf", "messageType": b"no.Such"}, data=b"{}"))
GARBAGE: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "one value is taken, not 0"),
    "two values": ([{"verb": "answer"}, {"verb": "retry"}], "one value is taken, not 2"),
    "a text": (["abort"], "a text is not an order: send an object such as"),
    "a list": ([["answer"]], "a list is not an order"),
    "null": ([None], "a null is not an order"),
    "no verb": ([{"text": "q-root: red"}], "`verb` is missing: it is one of answer, retry, continue, abort, extend"),
    "a number for a text": ([{"verb": "answer", "text": 5}], "`text` must be a text, not a number"),
    "a text for a number": ([{"verb": "answer", "round": "1"}], "`round` must be a whole number, not a text"),
    "an unknown key": ([{"verb": "answer", "txt": "red"}], "unknown key `txt`, did you mean `text`?"),
    "a word without end": ([{"verb": "answer" * 99}], "`verb` has 594 characters: 200 at most"),
    "no JSON": ([BROKEN], "what was sent cannot be read as JSON"),
    "another encoding": ([FOREIGN], "what was sent cannot be read as JSON"),
}


async def typed(client: Client, queue: str) -> Handle:
    """Start a tree, and return a handle without the key, as for messages sent by hand."""
    tree = await start(client, queue)
    return speaking(client).get_workflow_handle_for(DelegationTree.run, tree.id)


async def test_what_only_our_own_parts_send_hangs_nothing_when_somebody_else_does(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        for name in ("report", "outcome", "look_again"):
            for what, _ in GARBAGE.values():
                await tree.signal(name, args=what)
        await tree.signal("resume", {"verb": "answer", "text": "blue"})
        await over(tree, host)
        assert await failed_tasks(tree) == 0


def refused(host: Host) -> list[EventRecord]:
    return [each for each in Books(host.written).events.values() if each.kind == "resume_refused"]


def heard(host: Host, count: int) -> bool:
    return len(refused(host)) == count


async def test_whatever_is_sent_becomes_an_event_and_a_sentence(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        shown = await waits(host)
        for number, (what, why) in enumerate(GARBAGE.values(), 1):
            await tree.signal("resume", args=what)
            await shows(tree, why.replace("`", "'"))
            assert "Refused: somebody, in Temporal, " in await details(tree)
            await until(partial(heard, host, number))
            refusals = refused(host)
            assert why in refusals[-1].message
            assert (refusals[-1].data["why"], refusals[-1].data["channel"]) == ("unreadable", "temporal")
        assert await failed_tasks(tree) == 0
        assert Books(host.written).open() == [shown]
        await tree.signal("resume", {"verb": "answer", "text": "blue"})
        await over(tree, host)


async def test_an_update_that_is_no_order_is_refused_in_the_same_words(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        for kind, (what, why) in GARBAGE.items():
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await tree.execute_update("resume", args=what)
            assert isinstance(caught.value.cause, ApplicationError), kind
            assert why in caught.value.cause.message
            assert caught.value.cause.type == "unreadable", kind
        await tree.execute_update("resume", {"verb": "answer", "text": "blue"})
        await over(tree, host)


async def test_what_the_details_show_can_be_pasted(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        [pasted] = re.findall(r"```json\n(.*?)```", await shows(tree, "json"), re.DOTALL)
        assert max(len(line) for line in pasted.splitlines()) < 60
        order = json.loads(pasted)
        assert order == {"verb": "answer", "text": ["q-root: <red | blue>"]}
        await tree.signal("resume", order | {"text": ["q-root: red"]})
        _, books = await over(tree, host)
        assert "Refused" not in await details(tree)
    assert [each.questions[0].answer for each in books.rounds.values()] == ["red"]
    heard = next(each for each in books.events.values() if each.kind == "resume_accepted")
    assert heard.message.endswith("; q-root: red")


async def test_of_several_open_rounds_one_must_be_named(client: Client, queue: str) -> None:
    legs = (delegation("p", agent="lead"), delegation("q", agent="lead"))
    host = Host(asking({"root": legs, "p": (delegation("x"),), "q": (delegation("y"),)}, "p", "q"), held={"p", "q"})
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await host.until(lambda: {"p", "q"} <= set(host.names))  # a question takes back what has not begun
        host.held.clear()
        await waits(host, rounds=2)
        names = [each.coordinator_id for each in Books(host.written).open()]
        await tree.signal("resume", {"verb": "answer", "text": "red"})
        await host.until(lambda: "resume_refused" in Books(host.written).kinds())
        refused = next(each for each in Books(host.written).events.values() if each.kind == "resume_refused")
        assert refused.data["why"] == "ambiguous"
        assert all(name in refused.message for name in names)
        pasted = re.findall(r"```json\n(.*?)```", await shows(tree, "Refused"), re.DOTALL)
        assert [json.loads(each)["job_id"] for each in pasted] == names
        text: str = await tree.execute_update(
            "resume", {"verb": "answer", "text": "red", "job_id": names[0]}, result_type=str
        )
        assert f"\nstill waiting: service resume {names[1]} answer" in text
        await tree.signal("resume", {"verb": "answer", "text": "blue"})
        await soon(tree.result())


async def test_an_update_is_whole_or_refused_and_a_signal_is_read_as_far_as_it_goes(client: Client, queue: str) -> None:
    answer = asking({}, "root")

    def ask(run: JobRun) -> JobOutcome:
        outcome = answer(run)
        second = (HumanQuestion(id="limit", prompt="how many?"),)
        more = {"human_questions": (*outcome.human_questions, *second)} if run.parent_job_id is None else {}
        return outcome.model_copy(update=more)

    host = Host(ask)
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await tree.execute_update("resume", {"verb": "answer", "text": "q-rot: red\nlimits: 5"})
        cause = caught.value.cause
        assert isinstance(cause, ApplicationError)
        assert cause.type == "not_whole"
        assert "did you mean `q-root`?" in cause.message
        assert cause.details[0]["commands"] == [f"service resume {tree.id} answer 'q-root: red' 'limit: 5'"]
        await tree.signal("resume", {"verb": "answer", "text": "q-rot: red\nlimit: 5"})
        _, books = await over(tree, host)
    heard = next(each for each in books.events.values() if each.kind == "resume_accepted")
    assert (heard.data["unanswered"], heard.data["unmatched"]) == (["q-root"], ["q-rot"])
    assert "q-root stays unanswered; limit: 5" in heard.message
    assert "no question has the id q-rot" in heard.message
    assert "guidance to the lead: q-rot: red" in heard.message


@pytest.mark.ruling("G2")
@pytest.mark.parametrize("what", [[], [None], [{}], [{"immediate": True}]])
async def test_a_kill_needs_no_words(client: Client, queue: str, what: list[Any]) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        await tree.signal("kill", args=what)
        _, books = await over(tree, host)
        assert await failed_tasks(tree) == 0
    assert books.task.reason == "killed by somebody, in Temporal"


@pytest.mark.ruling("G2")
async def test_a_kill_that_cannot_be_read_stops_nothing(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    kills: tuple[list[Any], ...] = (["now"], [{"immediate": "no"}], [{"now": True}], [{}, {}], [BROKEN])
    takes = "the signal `kill` takes nothing, or an object with `actor` and `immediate`"
    async with serving(client, queue, host):
        tree = await typed(client, queue)
        await waits(host)
        for number, what in enumerate(kills, 1):
            await tree.signal("kill", args=what)
            await host.until(partial(heard, host, number))
            assert takes in refused(host)[-1].message, what
        await shows(tree, takes.replace("`", "'"))
        assert await failed_tasks(tree) == 0
        await tree.signal("resume", {"verb": "answer", "text": "blue"})
        await over(tree, host)
