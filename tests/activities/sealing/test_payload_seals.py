"""Attacks on seals, and the places of payloads."""

from itertools import combinations

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    SerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError, CancelledError

from activities.sealing.converter import binding_of, sealing_converter, seals_of
from activities.sealing.payload_seals import Binding, PayloadSeals
from tests.keys import KEY
from workflows.model.orders import ResumeOrder
from workflows.temporal.seals import Message, UnsealedError

pytestmark = pytest.mark.ruling("N1")

PLACES = (
    Binding("text"),
    Binding("workflow", "job-1"),
    Binding("workflow", "job-10"),
    Binding("activity", "job-1", "run_job"),
    Binding("activity", "job-1", "run_jo"),
    Binding("activity", "job-1"),
    Binding("activity", "job-1run", "_job"),
    Binding("activity", "", "run_job"),
)


def some(data: bytes = b'{"a": 1}', encoding: bytes = b"json/plain", **more: bytes) -> Payload:
    return Payload(metadata={"encoding": encoding} | more, data=data)


@pytest.mark.parametrize("encrypt", [False, True])
def test_what_is_written_for_one_place_is_read_there_and_nowhere_else(encrypt: bool) -> None:
    seals = PayloadSeals.of(KEY, encrypt=encrypt)
    for place, other in combinations(PLACES, 2):
        closed = seals.seal(some(), place)
        assert seals.unseal(closed, place).data == some().data
        with pytest.raises(UnsealedError):
            seals.unseal(closed, other)
        with pytest.raises(UnsealedError):
            seals.unseal(seals.seal(closed, other), place)
        assert seals.unseal(seals.seal(closed, other), other).data == some().data


@pytest.mark.parametrize("encrypt", [False, True])
def test_nothing_of_it_can_be_changed(encrypt: bool) -> None:
    seals, place = PayloadSeals.of(KEY, encrypt=encrypt), Binding("workflow", "job-1")
    closed = seals.seal(some(messageType=b"x"), place)
    changes: list[Payload] = []
    for number in range(len(closed.data)):
        changed = Payload.FromString(closed.SerializeToString())
        changed.data = closed.data[:number] + bytes([closed.data[number] ^ 1]) + closed.data[number + 1 :]
        changes.append(changed)
    for name in closed.metadata:
        changed = Payload.FromString(closed.SerializeToString())
        changed.metadata[name] = closed.metadata[name] + b"x"
        changes.append(changed)
        if name == "key":
            continue  # without its name every key of the home is tried
        without = Payload.FromString(closed.SerializeToString())
        del without.metadata[name]
        changes.append(without)
    for change in changes:
        with pytest.raises(UnsealedError):
            seals.unseal(change, place)


def test_what_belongs_together_is_told_apart() -> None:
    """A byte moved from one part to the next makes another message."""
    seals, place = PayloadSeals.of(KEY, encrypt=False), Binding("workflow", "job-1")
    one, other = seals.seal(some(b"bc", b"a"), place), seals.seal(some(b"c", b"ab"), place)
    assert one.metadata["seal"] != other.metadata["seal"]


def test_another_home_reads_nothing_and_either_kind_is_read_at_home() -> None:
    place = Binding("workflow", "job-1")
    homes = [PayloadSeals.of(KEY, encrypt=encrypt) for encrypt in (False, True)]
    stranger = PayloadSeals.of(bytes(32), encrypt=True)
    for mine in homes:
        closed = mine.seal(some(), place)
        assert {changed.unseal(closed, place).data for changed in homes} == {some().data}
        with pytest.raises(UnsealedError):
            stranger.unseal(closed, place)


def test_a_seal_is_short_and_the_data_stays_what_it_is() -> None:
    closed = PayloadSeals.of(KEY, encrypt=False).seal(some(), Binding("workflow", "job-1"))
    assert closed.data == some().data
    assert closed.metadata["encoding"] == b"json/plain"
    assert closed.ByteSize() - some().ByteSize() <= 40


@pytest.mark.parametrize(
    ("context", "place"),
    [
        (WorkflowSerializationContext("n", "job-1"), Binding("workflow", "job-1")),
        (WorkflowSerializationContext("n", "firing-p"), Binding("workflow", "firing-p")),
        (WorkflowSerializationContext("n", "firing-p-2026-11-20T20:55:37Z"), Binding("workflow", "firing-p")),
        (
            WorkflowSerializationContext("n", "job-1-2026-11-20T20:55:37Z"),
            Binding("workflow", "job-1-2026-11-20T20:55:37Z"),
        ),
        (WorkflowSerializationContext("n", "firing-p-x"), Binding("workflow", "firing-p-x")),
        (
            ActivitySerializationContext("n", "1", "run_job", "q", "job-1", "t", False),
            Binding("activity", "job-1", "run_job"),
        ),
        (ActivitySerializationContext("n", "1", "run_job", "q", None, None, False), Binding("activity", "", "run_job")),
        (None, Binding("text")),
    ],
)
def test_a_place_is_a_workflow_or_an_activity_of_one(context: SerializationContext | None, place: Binding) -> None:
    """A schedule's workflow is named after it and the time; no other name is read like that."""
    assert binding_of(context) == place


def converter(encrypt: bool = False) -> DataConverter:
    return sealing_converter(KEY, encrypt=encrypt).with_context(WorkflowSerializationContext("n", "job-1"))


def test_a_message_without_a_seal_is_told_apart_and_one_with_a_wrong_seal_refused() -> None:
    reads, order = converter().payload_converter, ResumeOrder(verb="answer")
    [ours] = reads.to_payloads([order])
    assert reads.from_payload(ours, Message).ours
    assert reads.from_payload(ours, ResumeOrder) == order
    plain = Payload(metadata={"encoding": b"json/plain"}, data=ours.data)
    assert reads.from_payload(plain, Message) == Message(order.model_dump(mode="json"), ours=False)
    for kind in (ResumeOrder, None):
        with pytest.raises(UnsealedError):
            reads.from_payloads([plain], [kind] if kind else None)
    plain.metadata["seal"] = ours.metadata["seal"][:-1]
    with pytest.raises(UnsealedError):
        reads.from_payload(plain, Message)
    assert reads.from_payload(plain, RawValue).payload == plain


@pytest.mark.parametrize("encrypt", [False, True])
async def test_a_failure_that_is_handed_on_is_read_in_the_next_place(encrypt: bool) -> None:
    """An activity's failure becomes the cause of its workflow's, and the details of both are read there."""
    from temporalio.api.failure.v1 import Failure

    activity = ActivitySerializationContext("n", "1", "run_job", "q", "job-1", "t", False)
    first, then = sealing_converter(KEY, encrypt=encrypt).with_context(activity), converter(encrypt)
    failure, handed = Failure(), Failure()
    await first.encode_failure(ApplicationError("the inner reason", {"why": "x"}, type="Inner"), failure)
    inner = await first.decode_failure(failure)
    outer = ApplicationError("failed", {"all": 1}, type="Outer")
    outer.__cause__ = inner
    await then.encode_failure(outer, handed)
    read = await then.decode_failure(handed)
    assert isinstance(read, ApplicationError)
    assert isinstance(read.cause, ApplicationError)
    assert (read.message, read.details, read.cause.message, read.cause.details) == (
        "failed",
        ({"all": 1},),
        "the inner reason",
        ({"why": "x"},),
    )
    assert ("the inner reason" in str(handed)) is not encrypt


async def test_words_of_the_server_in_a_cancellation_are_left_aside() -> None:
    from temporalio.api.failure.v1 import Failure

    failure = Failure(message="cancelled")
    failure.canceled_failure_info.details.payloads.add(metadata={"encoding": b"json/plain"}, data=b'"NOT_STARTED"')
    read = await converter().decode_failure(failure)
    assert isinstance(read, CancelledError)
    assert read.details == ()


def test_a_home_has_one_converter() -> None:
    assert sealing_converter(KEY) is sealing_converter(KEY)
    seals = seals_of(sealing_converter(KEY))
    assert seals is not None
    assert not seals.encrypt
    assert seals_of(DataConverter.default) is None
