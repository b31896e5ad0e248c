"""The data converter of every client and worker: pydantic's, with a seal on all payloads, checked when read.

It seals where values become payloads, not in a codec: Temporal calls a codec for every payload in a separate pass
outside the workflow, where a message, which may be unsealed, looks like a start, which may not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Self

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverter,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from activities.sealing.payload_seals import Binding, PayloadSeals, is_bare
from workflows.model import ids
from workflows.temporal.seals import Message, UnsealedError

PLACES = 1000
"""Size of the cache of places; fewer are in use at once."""

_FIRED = re.compile(rf"({ids.FIRING}.+)-\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""The id of a workflow that a schedule started: the schedule's workflow id plus a time. Its input was sealed for the id
without the time, which no workflow has. So only workflows of that schedule can read it, and no other input.
"""


def binding_of(context: SerializationContext | None) -> Binding:
    """Return the place that a payload in this context is sealed for."""
    match context:
        case WorkflowSerializationContext(workflow_id=workflow_id):
            return Binding("workflow", _sealed_id(workflow_id))
        case ActivitySerializationContext(workflow_id=workflow_id, activity_type=kind):
            return Binding("activity", _sealed_id(workflow_id or ""), kind or "")
        case _:
            return Binding("text")


def _sealed_id(workflow_id: str) -> str:
    fired = _FIRED.fullmatch(workflow_id)
    return fired[1] if fired else workflow_id


class SealedPayloadConverter(PayloadConverter, WithSerializationContext):
    """A payload converter that seals for one place, with the home's `seals`."""

    seals: ClassVar[PayloadSeals]
    _values: ClassVar = PydanticPayloadConverter()

    def __init__(self, binding: Binding = Binding("text")) -> None:  # noqa: B008
        self._binding = binding

    def with_context(self, context: SerializationContext) -> Self:
        return type(self)(binding_of(context))

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return [self.seals.seal(payload, self._binding) for payload in self._values.to_payloads(values)]

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Convert payloads. A raw value is passed on as it is; its reader checks it."""
        return [self._value(*pair) for pair in zip_longest(payloads, type_hints or [])]

    def _value(self, payload: Payload, kind: type | None) -> Any:
        if kind is RawValue:
            return RawValue(payload)
        if kind is Message and is_bare(payload):
            return Message(self._values.from_payload(payload), ours=False)
        [value] = self._values.from_payloads([self.seals.unseal(payload, self._binding)], [kind] if kind else None)
        return value


class SealedFailureConverter(DefaultFailureConverter):
    """A failure converter. It seals a failure that is passed on to another place again, with all its causes."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        for payload in payloads_of(failure):
            payload.CopyFrom(payload_converter.to_payloads([RawValue(payload)])[0])

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """Read a failure. Drop the unsealed details that the server itself adds to a cancellation."""
        try:
            payload_converter.from_payloads(failure.canceled_failure_info.details.payloads)
        except UnsealedError:
            failure.canceled_failure_info.ClearField("details")
        return super().from_failure(failure, payload_converter)


class EncryptedFailureConverter(SealedFailureConverter):
    """A failure converter that writes messages and stack traces as encrypted payloads."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


def payloads_of(failure: Failure) -> Iterator[Payload]:
    """Yield all payloads of a failure and its causes that are read."""
    yield from failure.application_failure_info.details.payloads
    yield from failure.timeout_failure_info.last_heartbeat_details.payloads
    yield from failure.reset_workflow_failure_info.last_heartbeat_details.payloads
    if failure.HasField("encoded_attributes"):
        yield failure.encoded_attributes
    if failure.HasField("cause"):
        yield from payloads_of(failure.cause)


@dataclass(frozen=True)
class SealedDataConverter(DataConverter):
    """A data converter that caches the converter of each place: each step asks several times for each payload."""

    _places: dict[SerializationContext, Self] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_context(self, context: SerializationContext) -> Self:
        known = self._places.get(context)
        if known is None:
            if len(self._places) >= PLACES:
                self._places.clear()
            known = self._places[context] = super().with_context(context)
        return known


@lru_cache(maxsize=8)
def sealing_converter(key: bytes | Path, *, encrypt: bool = False) -> DataConverter:
    """Return the data converter for all clients and workers. Given a home's path, it uses the home's current keys;
    given a key, only that.
    """
    seals = (
        PayloadSeals.of(key, encrypt=encrypt) if isinstance(key, bytes) else PayloadSeals.of_home(key, encrypt=encrypt)
    )
    kind = type("SealedPayloads", (SealedPayloadConverter,), {"seals": seals})
    failures = EncryptedFailureConverter if encrypt else SealedFailureConverter
    return SealedDataConverter(payload_converter_class=kind, failure_converter_class=failures)


def seals_of(converter: DataConverter) -> PayloadSeals | None:
    """Return a converter's seals; None if it seals nothing, as in tests and in replays of unsealed histories."""
    return getattr(converter.payload_converter_class, "seals", None)
