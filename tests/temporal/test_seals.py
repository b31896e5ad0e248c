"""Everything the service writes to Temporal is sealed, and people can still read it and send messages by hand (N1)."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from activities import ended_outside
from activities.sealing.converter import sealing_converter
from bridge.daemon.server import find_program
from tests.keys import KEY
from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, an_input, ended, script, serving, start
from tests.temporal.people import asking, failed_tasks, over, shows, waits
from tests.temporal.server import histories, speaking
from tests.temporal.strangers import payloads_in
from tests.tree.simulator import delegation
from workflows.model.settings import TreeSettings
from workflows.temporal.delegation_tree import DelegationTree

pytestmark = pytest.mark.ruling("N1")

ENCRYPTED = sealing_converter(KEY, encrypt=True)
LEGS = (delegation("a"), delegation("b", deps=("a",)))


def written(history: WorkflowHistory) -> Iterator[tuple[str, Payload]]:
    """Yield the payloads of workers and clients; a marker's field that names its local activity is the SDK's own."""
    for event in history.events:
        kept = HistoryEvent()
        kept.CopyFrom(event)
        for name in [name for name in kept.marker_recorded_event_attributes.details if name != "result"]:
            del kept.marker_recorded_event_attributes.details[name]
        for payload in payloads_in(kept):
            yield str(event.event_type), payload


async def a_rich_life(client: Client, queue: str) -> None:
    """Play a pause, messages by signal and update, some refused, children that end well and not, a query, a kill."""
    host = Host(asking({"root": LEGS, "b": None}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await tree.signal("resume", {"verb": "no such"})
        with pytest.raises(WorkflowUpdateFailedError):
            await tree.execute_update("retry", {"actor": "ann", "job_id": "nobody"})
        await tree.query(DelegationTree.state)
        await tree.execute_update("resume", {"verb": "answer", "text": "red"})
        await ended(tree)
        killed = await start(client, queue)
        await killed.signal("kill", {"immediate": True})
        await ended(killed)


async def test_everything_in_the_histories_bears_a_seal(client: Client, queue: str) -> None:
    await a_rich_life(client, queue)
    seen, bare, size, without = 0, [], 0, 0
    async for history in histories(client, [queue]):
        bare += [kind for kind, payload in written(history) if "seal" not in payload.metadata]
        for event in history.events:
            size += event.ByteSize()
            for payload in payloads_in(event):
                seen += 1
                payload.metadata.pop("seal", None)
            without += event.ByteSize()
    assert seen > 50
    assert not bare
    assert size / without < 1.10, "a seal is short"


async def test_with_encryption_nothing_can_be_read_and_everything_works(client: Client, queue: str) -> None:
    """Begun with seals alone, continued with encryption: earlier payloads stay readable."""
    hidden = speaking(client, ENCRYPTED)
    host = Host(asking({"root": LEGS}, "root"))
    async with serving(client, queue, host):
        mixed = await start(client, queue)
        await waits(host)
    async with serving(hidden, queue, host):
        await mixed.execute_update("resume", {"verb": "answer", "text": "red"})
        assert (await ended(mixed)).decision == "approved"
        whole = await start(hidden, queue, an_input(prompt={"inline": "a word nobody guesses"}))
        assert (await ended(whole)).decision == "approved"
        failing = Host(script({"root": None}))
    async with serving(hidden, queue, failing):
        failed = await start(hidden, queue)
        assert (await ended(failed)).task_state == "blocked"
    end = await ended_outside.ending_of(hidden, failed.id)
    assert end is not None
    assert "Encoded failure" not in end.why
    for tree in (whole, failed):
        history = await tree.fetch_history()
        assert {payload.metadata["encoding"] for _, payload in written(history)} == {b"binary/encrypted"}
        assert "a word nobody guesses" not in history.to_json()
        assert history.events[-1].workflow_execution_failed_event_attributes.failure.message in ("", "Encoded failure")


async def typed(client: Client, queue: str, *, by_hand: bool) -> Handle:
    settings = TreeSettings(by_hand=by_hand)
    tree = await start(client, queue, an_input().model_copy(update={"settings": settings}))
    return speaking(client).get_workflow_handle_for(DelegationTree.run, tree.id)


async def test_what_is_typed_by_hand_is_heard_and_can_claim_nothing(client: Client, queue: str) -> None:
    """The sender claims that the message came from the command line, and from the operator."""
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue, by_hand=True)
        await waits(host)
        await tree.signal("resume", {"verb": "answer", "text": "blue", "channel": "cli", "actor": "boss"})
        _, books = await over(tree, host)
    [heard] = [each for each in books.events.values() if each.kind == "resume_accepted"]
    assert heard.data["channel"] == "temporal"
    [answered] = books.rounds.values()
    assert answered.questions[0].answer == "blue"
    assert "boss, in Temporal" in heard.message


async def test_what_the_service_sends_keeps_its_channel(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await tree.signal("resume", {"verb": "answer", "text": "blue", "channel": "cli", "actor": "ann"})
        _, books = await over(tree, host)
    assert [each.data["channel"] for each in books.events.values() if each.kind == "resume_accepted"] == ["cli"]


async def test_where_it_is_turned_off_nobody_answers_by_hand(client: Client, queue: str) -> None:
    """An agent that reaches the server cannot answer its own question; a person with the service's commands can."""
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await typed(client, queue, by_hand=False)
        await waits(host)
        for name, values in (
            ("resume", [{"verb": "answer", "text": "blue"}]),
            ("kill", []),
            ("kill", [{"actor": "me"}]),
        ):
            await tree.signal(name, args=values)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await tree.execute_update("resume", {"verb": "answer", "text": "blue"})
        assert isinstance(caught.value.cause, ApplicationError)
        assert "[temporal].by_hand" in caught.value.cause.message
        assert "service resume" in await shows(tree, "[temporal].by_hand")

        def refused() -> list[str]:
            return [each.message for each in Books(host.written).events.values() if each.kind == "resume_refused"]

        await host.until(lambda: len(refused()) == 3)
        assert await failed_tasks(tree) == 0
        ours: Handle = client.get_workflow_handle_for(DelegationTree.run, tree.id)
        await ours.execute_update("resume", {"verb": "answer", "text": "red", "channel": "cli"})
        _, books = await over(ours, host)
    assert [each.questions[0].answer for each in books.rounds.values()] == ["red"]


async def temporal(client: Client, *words: str) -> str:
    """Run Temporal's own program as people type it, without our key."""
    where = ("--address", client.service_client.config.target_host, "--namespace", client.namespace)
    plain = ("--disable-config-file", "--disable-config-env")
    command = [str(find_program()), *words, *where, *plain]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_tree_is_read_and_answered_with_temporals_own_program(client: Client, queue: str) -> None:
    host = Host(asking({}, "root"))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        assert "waits for a person" in await temporal(client, "workflow", "metadata", "-w", tree.id)
        message = json.dumps({"verb": "answer", "text": "blue"})
        await temporal(client, "workflow", "signal", "-w", tree.id, "--name", "resume", "--input", message)
        _, books = await over(tree, host)
    assert [each.questions[0].answer for each in books.rounds.values()] == ["blue"]
    shown = json.loads(await temporal(client, "workflow", "show", "-w", tree.id, "--output", "json"))
    first = shown["events"][0]["workflowExecutionStartedEventAttributes"]["input"]
    assert json.loads(_data(first["payloads"][0]))["input"]["root_job_id"] == tree.id


def _data(payload: dict[str, Any]) -> bytes:
    import base64

    return base64.b64decode(payload["data"])
