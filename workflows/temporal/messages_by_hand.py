"""Messages that people send to a workflow from the Temporal web UI or its command line: each is parsed, or refused in a
sentence.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue

from workflows.contract.faults import nearest
from workflows.contract.storable import short_line
from workflows.model.orders import BY_HAND, SOMEBODY, Cancel, Kill, ResumeOrder, signature
from workflows.model.wire import Wire
from workflows.policy.answers import ASKS_BACK, TEXT_LIMIT, Verb
from workflows.temporal.seals import Message, UnsealedError
from workflows.tree.events import KillRequested, ResumeRequested

LONGEST_WORD = 200
_SHAPE = 'send an object such as {"verb": "answer", "text": "<id>: <text>"}'
_FLAGS = ("partial", "other", "immediate")
TURNED_OFF = (
    "messages that are sent to Temporal by hand are not taken here: `[temporal].by_hand` was false when this began; "
    "in a terminal: service resume, service job kill, service pipeline cancel"
)
F = TypeVar("F", bound=Callable[..., Any])
W = TypeVar("W", bound=Wire)


class UnreadableError(Exception):
    """The message is not a valid order; the error's text gives the reason."""


def takes_anything(handler: F) -> F:
    """Pass every message to the handler unparsed.

    The SDK drops a signal whose one argument does not fit the handler's type. If there is no argument or one too many,
    it fails the workflow's task, again and again. To the SDK, this handler takes one raw argument; really it takes any
    number.
    """
    names = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), Parameter("sent", Parameter.POSITIONAL_OR_KEYWORD)]
    handler.__annotations__["sent"] = RawValue
    handler.__signature__ = Signature(names)  # type: ignore[attr-defined]
    return handler


def between_ours(kind: type[W]) -> Callable[[Callable[[Any, W], None]], Callable[[Any, W], None]]:
    """Decorate the handler of a signal that only the service's own processes send: it ignores messages without a valid
    seal or of another type.
    """

    def reads(handler: Callable[[Any, W], None]) -> Callable[[Any, W], None]:
        @takes_anything
        def receive(self: object, *sent: object) -> None:
            try:
                value = kind.model_validate(_ours(sent))
            except (UnreadableError, ValidationError) as error:
                why = str(error) if isinstance(error, UnreadableError) else f"it is not a {kind.__name__}"
                workflow.logger.warning("signal %s is ignored: %s", handler.__name__, why)
                return
            handler(self, value)

        receive.__name__, receive.__doc__ = handler.__name__, handler.__doc__
        return cast("Callable[[Any, W], None]", receive)

    return reads


def resume_request(sent: tuple[object, ...], now: float, waiting: int = 0, *, by_hand: bool = True) -> ResumeRequested:
    """Convert a resume message to its event, even if it is unreadable. A message sent by hand always has the channel
    `temporal`.
    """
    try:
        message = _check_by_hand(_only(sent, _SHAPE), by_hand=by_hand)
        order = read(message.value)
    except UnreadableError as error:
        return unreadable(now, str(error))
    if not message.ours:
        order = order.model_copy(update={"channel": BY_HAND})
    whole = order.channel in ASKS_BACK or (bool(waiting) and order.channel == BY_HAND)
    return ResumeRequested(now=now, order=order, whole=whole, waiting=waiting)


def unreadable(now: float, fault: str) -> ResumeRequested:
    """Return the event of an unreadable message, which is refused with the reason like any other order."""
    return ResumeRequested(now=now, order=ResumeOrder(verb=""), fault=fault)


def kill_request(sent: tuple[object, ...], now: float, *, by_hand: bool = True) -> KillRequested | ResumeRequested:
    """Convert a kill message to its event. The message may be empty; but a value must be valid, so that a typing
    mistake stops no agents.
    """
    try:
        order, actor = _end(sent, Kill, by_hand=by_hand)
    except UnreadableError as error:
        fault = f"the signal `kill` takes nothing, or an object with `actor` and `immediate`: {error}"
        return unreadable(now, fault)
    return KillRequested(now=now, actor=actor, immediate=order.immediate)


def cancel_read(sent: tuple[object, ...], run_id: str, *, by_hand: bool = True) -> str:
    """Return who cancels this pipeline run. Like a kill, the message may be empty."""
    try:
        order, actor = _end(sent, Cancel, by_hand=by_hand)
    except UnreadableError as error:
        takes = "the signal `cancel` takes nothing, or an object with `run_id` and `actor`"
        raise UnreadableError(f"{takes}: {error}") from error
    if order.run_id and order.run_id != run_id:
        raise UnreadableError(f"the signal `cancel` was meant for {short_line(order.run_id)}, and this is {run_id}")
    return actor


E = TypeVar("E", Kill, Cancel)


def _end(sent: tuple[object, ...], kind: type[E], *, by_hand: bool) -> tuple[E, str]:
    """Parse a kill or cancel message, and return it with its actor. It is empty, or an object with known keys only.

    The service's own processes always send a value. For a message sent by hand, the recorded actor includes the
    channel.
    """
    message = _check_by_hand(_only(sent) if sent else Message(None, ours=False), by_hand=by_hand)
    order = _end_read(message.value, kind)
    actor = order.actor or SOMEBODY
    return order, actor if message.ours else signature(actor, BY_HAND)


def _end_read(value: object, kind: type[W]) -> W:
    if value is None:
        return kind()
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise UnreadableError(f"a {_kind(value)} was sent")
    if unknown := [str(name) for name in value if name not in kind.model_fields]:
        raise UnreadableError(f"unknown key `{short_line(unknown[0])}`")
    return kind.model_validate(
        {name: _check_type(name, member) for name, member in value.items() if member is not None}
    )


def _check_by_hand(message: Message, *, by_hand: bool) -> Message:
    if not message.ours and not by_hand:
        raise UnreadableError(TURNED_OFF)
    return message


def _ours(sent: tuple[object, ...]) -> object:
    """Return the only value of a message, which this service must have sealed."""
    message = _only(sent)
    if not message.ours:
        raise UnreadableError("it has no seal of this service")
    return message.value


def _only(sent: tuple[object, ...], shape: str = "") -> Message:
    """Return the only value of a message."""
    hint = f": {shape}" if shape else ""
    if len(sent) != 1:
        raise UnreadableError(f"one value is taken, not {len(sent)}{hint}")
    if not isinstance(sent[0], RawValue):
        return Message(sent[0])
    try:
        value = workflow.payload_converter().from_payload(sent[0].payload, Message)
    except UnsealedError as error:
        raise UnreadableError(error.message) from error
    except Exception as error:  # a converter may raise anything for bytes that somebody typed
        raise UnreadableError(f"what was sent cannot be read as JSON{hint}") from error
    return value if isinstance(value, Message) else Message(value)


def read(value: object) -> ResumeOrder:
    """Parse a resume order. Types are strict, except that `text` may be a list of lines, which is easier to type in
    JSON.
    """
    if not isinstance(value, Mapping):
        raise UnreadableError(f"a {_kind(value)} is not an order: {_SHAPE}")
    known = list(ResumeOrder.model_fields)
    for name in value:
        if name not in known:
            near = nearest(str(name), known)
            raise UnreadableError(
                f"unknown key `{short_line(str(name))}`"
                + (f", did you mean `{near}`?" if near else f": {', '.join(known)}")
            )
    if not value.get("verb"):
        raise UnreadableError(f"`verb` is missing: it is one of {', '.join(Verb)}; {_SHAPE}")
    return ResumeOrder.model_validate(
        {name: _check_type(name, member) for name, member in value.items() if member is not None}
    )


def _check_type(name: str, value: object) -> object:
    if name == "text" and isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    wanted: type = int if name == "round" else bool if name in _FLAGS else str
    if type(value) is not wanted:
        raise UnreadableError(f"`{name}` must be {_KINDS[wanted]}, not a {_kind(value)}")
    if isinstance(value, str) and len(value) > (limit := TEXT_LIMIT if name == "text" else LONGEST_WORD):
        raise UnreadableError(f"`{name}` has {len(value):,} characters: {limit:,} at most")
    return value


_KINDS: dict[type, str] = {int: "a whole number", bool: "true or false", str: "a text"}


def _kind(value: object) -> str:
    names = {str: "text", bool: "truth value", int: "number", float: "number", list: "list", type(None): "null"}
    return names.get(type(value), "object" if isinstance(value, Mapping) else "value of another kind")
