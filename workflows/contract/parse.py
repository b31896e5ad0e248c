"""Parsing of raw agent output to a result or its faults: the one entry point (rulings A1 to A5)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from workflows.contract.examples import DELEGATING, MINIMAL
from workflows.contract.faults import Fault
from workflows.contract.locate import KEY, Broken, Candidate, locate, slip
from workflows.contract.models import Notice, ServiceResult
from workflows.contract.validate import WRAPPERS, Verdict, validate
from workflows.text.fences import marks
from workflows.text.patterns import compiled


@dataclass(frozen=True, slots=True)
class Accepted:
    """The output contains a valid result."""

    result: ServiceResult
    notices: tuple[Notice, ...] = ()
    not_kept: int = 0
    """So many delegations it had, more than one may have: the result is without them (ruling C1)."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The output contains no valid result; at least one fault says why."""

    faults: tuple[Fault, ...]


def read_result(output: str | bytes, *, prompt: str = "", after_repair: bool = False) -> Accepted | Rejected:
    """Return the last valid result of an output, or the faults of the last candidate. Rulings A1, A3, A4.

    In an output that repeats its `prompt`, objects that stand in the prompt are no candidates. Ruling P6.
    """
    text = output if isinstance(output, str) else output.decode("utf-8", "surrogateescape")
    found = candidates(text, prompt)
    verdicts = [
        Verdict((Fault("", each.message),), None) if isinstance(each, Broken) else validate(each.value)
        for each in found
    ]
    for tolerant in (False, True) if after_repair else (False,):
        valid = [place for place, each in enumerate(verdicts) if each.result and (tolerant or not each.faults)]
        if valid and (result := (last := verdicts[valid[-1]]).result) is not None:
            later = len(found) - 1 - valid[-1]
            meant = (
                () if after_repair else _meant_later(text, prompt, found[valid[-1]], verdicts[-1] if later else None)
            )
            if meant:
                return Rejected(meant)
            return Accepted(result, (*_ambiguity(len(valid), later), *_dropped(last.faults)), last.not_kept)
    return Rejected(verdicts[-1].faults if verdicts else (_nothing_found(text),))


def _meant_later(text: str, prompt: str, valid: Candidate | Broken, last: Verdict | None) -> tuple[Fault, ...]:
    """Return the faults of what an output has after its last valid result, where that seems to be meant (ruling A1).

    This is another result, cut off or with faults, or delegations that stand in no result.
    """
    if last is not None:
        before = "a valid result stands before another one, which has faults; the last one counts, so send one object"
        return (Fault("", before), *last.faults)
    end = valid.end if isinstance(valid, Candidate) else len(text)
    if _DELEGATIONS.search(text, end) and marks(text).isdisjoint(marks(prompt)):
        return (Fault("delegations", "delegations stand after the result, outside of it: put them into the result"),)
    return ()


def candidates(text: str, prompt: str = "") -> tuple[Candidate | Broken, ...]:
    """Locate the objects of an output that are neither an example nor an echo of its prompt. Rulings A1, P6.

    An agent may return an object that its prompt asked for: it is an echo only beside the prompt's own mark.
    """
    repeats = not marks(text).isdisjoint(marks(prompt))
    echoes = _EXAMPLES | ({_written(each.value) for each in _whole(prompt)} if repeats else set())
    return tuple(each for each in locate(text) if isinstance(each, Broken) or _written(each.value) not in echoes)


def _whole(text: str) -> Iterator[Candidate]:
    return (each for each in locate(text) if isinstance(each, Candidate))


def _written(value: dict[str, JsonValue]) -> str:
    """Return a key that is equal for equal objects; "" for an object nested too deeply, which is refused anyway."""
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        return ""


_WRAPPED = compiled(rf'"({"|".join(WRAPPERS)})"\s*+:\s*+"\s*+\{{(?:\\n|\s)*+\\"{KEY}')
_DELEGATIONS = compiled(r'"delegations"\s*+:\s*+\[\s*+[^\s\]]')
_EXAMPLES = frozenset(json.dumps({KEY: each}, sort_keys=True) for each in (MINIMAL, DELEGATING))


def _ambiguity(valid: int, later: int) -> tuple[Notice, ...]:
    """Return a notice if the output had several candidates, so that another result could have been meant. Ruling A1."""
    if valid == 1 and not later:
        return ()
    message = f"the output holds {valid} valid results; the last one counts" if valid > 1 else "one result is valid"
    if later:
        message += f"; {later} later {'candidate is' if later == 1 else 'candidates are'} not valid and ignored"
    return (Notice(kind="result_ambiguous", message=message, data={"valid": valid, "later_invalid": later}),)


def _dropped(faults: Sequence[Fault]) -> tuple[Notice, ...]:
    if not faults:
        return ()
    keys = [fault.path or fault.message for fault in faults]
    message = f"unknown keys were dropped after the repair: {', '.join(keys)}"
    return (Notice(kind="result_unknown_keys_dropped", message=message, data={"keys": keys}),)


def _nothing_found(text: str) -> Fault:
    if not text.strip():
        return Fault("", "the output is empty; end with one JSON object that has the key service_result")
    if any(_whole(text)):
        again = "the output repeats its prompt and holds no result of its own"
        return Fault("", f"{again}; end with one JSON object that has the key {KEY}, filled in")
    wrapped = _WRAPPED.search(text)
    if wrapped:
        inside = f"the output holds the result as a text, in {wrapped[1]}"
        return Fault("", f"{inside}; end with the JSON object itself, with the key {KEY}")
    if broken := slip(text):
        return Fault("", broken)
    near = f"; the text {KEY} occurs, but not as the key of a JSON object" if KEY in text else ""
    return Fault("", f"the output holds no JSON object with the key {KEY}{near}")
