"""The data converter of every client and worker: pydantic's, with a seal on all that is written, checked when read.

It seals where values become payloads, not in a codec: a codec is asked for every payload of every step of a workflow
in a visit of its own, outside the workflow, and cannot tell a message that may be unsealed from a start that may not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
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

from activities.sealing.payload_seals import Bound, PayloadSeals, is_bare
from workflows.pipeline import ids
from workflows.temporal.seals import Said, UnsealedError

PLACES = 1000
"""So many are remembered; what is at work at once has fewer."""

_FIRED = re.compile(rf"({ids.FIRING}.+)-\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""A schedule gives each workflow it starts the id it was told, and the time. What it starts them with was written for
the id alone, which no workflow of ours has: so nothing else can be read there, and this nowhere else."""


def bound_to(context: SerializationContext | None) -> Bound:
    """What a payload in this place is written for."""
    match context:
        case WorkflowSerializationContext(workflow_id=workflow_id):
            return Bound("workflow", _named(workflow_id))
        case ActivitySerializationContext(workflow_id=workflow_id, activity_type=kind):
            return Bound("activity", _named(workflow_id or ""), kind or "")
        case _:
            return Bound("text")


def _named(workflow_id: str) -> str:
    fired = _FIRED.fullmatch(workflow_id)
    return fired[1] if fired else workflow_id


class SealedPayloadConverter(PayloadConverter, WithSerializationContext):
    """For one place. `seals` are the home's."""

    seals: ClassVar[PayloadSeals]
    _values: ClassVar = PydanticPayloadConverter()

    def __init__(self, bound: Bound = Bound("text")) -> None:  # noqa: B008
        self._bound = bound

    def with_context(self, context: SerializationContext) -> Self:
        return type(self)(bound_to(context))

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return [self.seals.closed(payload, self._bound) for payload in self._values.to_payloads(values)]

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """A raw value is handed on as it is: whoever asks for one checks it when reading it."""
        return [self._value(*each) for each in zip_longest(payloads, type_hints or [])]

    def _value(self, payload: Payload, kind: type | None) -> Any:
        if kind is RawValue:
            return RawValue(payload)
        if kind is Said and is_bare(payload):
            return Said(self._values.from_payload(payload), ours=False)
        [value] = self._values.from_payloads([self.seals.opened(payload, self._bound)], [kind] if kind else None)
        return value


class SealedFailureConverter(DefaultFailureConverter):
    """A failure that one part hands on to the next is written anew for that place, with all that was its reason."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        for payload in payloads_of(failure):
            payload.CopyFrom(payload_converter.to_payloads([RawValue(payload)])[0])

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """The server says some words of its own with a cancellation; they bear no seal, and nobody needs them."""
        try:
            payload_converter.from_payloads(failure.canceled_failure_info.details.payloads)
        except UnsealedError:
            failure.canceled_failure_info.ClearField("details")
        return super().from_failure(failure, payload_converter)


class EncryptedFailureConverter(SealedFailureConverter):
    """Messages and stack traces are written as payloads, which nobody else can read."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


def payloads_of(failure: Failure) -> Iterator[Payload]:
    """What it carries that is read, and its reasons carry."""
    yield from failure.application_failure_info.details.payloads
    yield from failure.timeout_failure_info.last_heartbeat_details.payloads
    yield from failure.reset_workflow_failure_info.last_heartbeat_details.payloads
    if failure.HasField("encoded_attributes"):
        yield failure.encoded_attributes
    if failure.HasField("cause"):
        yield from payloads_of(failure.cause)


@dataclass(frozen=True)
class SealedDataConverter(DataConverter):
    """Asked for a place's converter several times for each payload of each step, it makes one once."""

    _places: dict[SerializationContext, Self] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_context(self, context: SerializationContext) -> Self:
        known = self._places.get(context)
        if known is None:
            if len(self._places) >= PLACES:
                self._places.clear()
            known = self._places[context] = super().with_context(context)
        return known


@lru_cache(maxsize=8)
def sealed(key: bytes, *, encrypt: bool = False) -> DataConverter:
    """The converter of a home: every client and every worker of it has this one."""
    kind = type("SealedPayloads", (SealedPayloadConverter,), {"seals": PayloadSeals.of(key, encrypt=encrypt)})
    failures = EncryptedFailureConverter if encrypt else SealedFailureConverter
    return SealedDataConverter(payload_converter_class=kind, failure_converter_class=failures)


def seals_of(converter: DataConverter) -> PayloadSeals | None:
    """None of a converter that seals nothing: a test's, or the replay of what was recorded without."""
    return getattr(converter.payload_converter_class, "seals", None)
