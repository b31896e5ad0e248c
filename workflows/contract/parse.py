"""Parsing of raw agent output to a result or its faults: the one entry point (rulings A1 to A5)."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from workflows.contract.examples import DELEGATING, MINIMAL
from workflows.contract.faults import Fault
from workflows.contract.locate import KEY, Broken, Candidate, locate, near, slip
from workflows.contract.models import Notice, ServiceResult
from workflows.contract.validate import Validation, validate
from workflows.text.quoted_data import marks


@dataclass(frozen=True, slots=True)
class Accepted:
    """The output contains a valid result."""

    result: ServiceResult
    notices: tuple[Notice, ...] = ()
    not_kept: int = 0
    """The number of delegations in a result that had too many: the result is returned without them (ruling C1). 0 for
    all others.
    """


@dataclass(frozen=True, slots=True)
class Rejected:
    """The output contains no valid result; at least one fault says why."""

    faults: tuple[Fault, ...]


def read_result(output: str | bytes, *, prompt: str = "", after_repair: bool = False) -> Accepted | Rejected:
    """Return the last valid result of an output, or the faults of the last candidate (rulings A1, A3, A4).

    In an output that repeats its `prompt`, objects of the prompt are not candidates (ruling P6). Text that looks like
    part of the result but is not inside it is a fault once; after the repair, a notice names it.
    """
    text = output if isinstance(output, str) else output.decode("utf-8", "surrogateescape")
    located = candidates(text, prompt)
    validations = [
        Validation((Fault("", item.message),), None) if isinstance(item, Broken) else validate(item.value)
        for item in located
    ]
    for tolerant in (False, True) if after_repair else (False,):
        valid = [place for place, one in enumerate(validations) if one.result and (tolerant or not one.faults)]
        if valid and (result := (last := validations[valid[-1]]).result) is not None:
            later = validations[valid[-1] + 1 :]
            repeats = _repeats(text, prompt)
            another = later[-1].faults if later else _another(text, located[valid[-1]].end) if not repeats else ()
            lists = _lists_outside(text, located[: valid[-1] + 1], result) if not later and not repeats else ()
            if (another or lists) and not after_repair:
                return Rejected((*([_DRAFT] if another else ()), *another, *lists))
            ambiguity = _ambiguity(len(valid), len(later) or len(another))
            return Accepted(result, (*ambiguity, *_dropped_keys((*last.faults, *lists))), last.not_kept)
    return Rejected(validations[-1].faults if validations else (_missing_result(text),))


_DRAFT = Fault(
    "", "a valid result stands before another one, which has faults; the last one counts, so send one object"
)


def _another(text: str, start: int) -> tuple[Fault, ...]:
    """Return the fault of a result that follows the last valid one but is no candidate: it is not JSON, or not under
    the key.
    """
    broken = slip(text, start) or _bare(text, start)
    return (Fault("", broken),) if broken else ()


def _lists_outside(text: str, located: Sequence[Candidate | Broken], result: ServiceResult) -> tuple[Fault, ...]:
    """Return a fault for delegations or questions that stand outside the last valid result: after it, or before it if
    the result itself has none.
    """
    *drafts, valid = located
    before = _LIST_BEFORE.finditer(text, drafts[-1].end if drafts else 0, valid.start)
    where = {match[1]: "before" for match in before if not getattr(result, match[1])}
    where |= {match[1].lower(): "after" for match in _LIST_AFTER.finditer(text, valid.end)}
    sentence = "{} stand {} the result, outside of it: put them into the result"
    return tuple(Fault("", sentence.format(name, side)) for name, side in where.items())


def candidates(text: str, prompt: str = "") -> tuple[Candidate | Broken, ...]:
    """Locate the objects of an output that are neither an example nor an echo of its prompt (rulings A1, P6).

    An agent may return an object that its prompt asked for. So an object counts as an echo only if the prompt's own
    mark is in the output too.
    """
    echoes = _EXAMPLES | ({_comparable(item.value) for item in _whole(prompt)} if _repeats(text, prompt) else set())
    return tuple(item for item in locate(text) if isinstance(item, Broken) or _comparable(item.value) not in echoes)


def _repeats(text: str, prompt: str) -> bool:
    """Return whether the output contains a mark of its prompt, so that its objects may come from the prompt."""
    return not marks(text).isdisjoint(marks(prompt))


def _whole(text: str) -> Iterator[Candidate]:
    return (item for item in locate(text) if isinstance(item, Candidate))


def _comparable(value: dict[str, JsonValue]) -> str:
    """Return equal keys for equal objects; "" for an object nested too deeply, which is refused anyway."""
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        return ""


_AS_TEXT = re.compile(rf'(?:"([\w-]++)"\s*+:\s*+)?+"?+\{{(?:\\n|\s)*+\\"{KEY}')
_BARE = re.compile(r'(?:"([\w-]++)"\s*+:\s*+\[?+\s*+)?+\{\s*+"decision"\s*+:')
_LIST_BEFORE = re.compile(r'\{\s*+"(delegations|human_questions)"\s*+:\s*+\[\s*+[^\s\]]')
_LIST_AFTER = re.compile(
    r'(?i)\b(delegations|human_questions)\b["`*]*+\s*+[:=][\s*]*+(?:```\w*+\s*+)?+(?:\[\s*+[^\s\]]|-\s)'
)
_EXAMPLES = frozenset(json.dumps({KEY: example}, sort_keys=True) for example in (MINIMAL, DELEGATING))


def _ambiguity(valid: int, later: int) -> tuple[Notice, ...]:
    """Return a notice if the output had several candidates: the agent may have meant another one (ruling A1)."""
    if valid == 1 and not later:
        return ()
    message = f"the output holds {valid} valid results; the last one counts" if valid > 1 else "one result is valid"
    if later:
        message += f"; {later} later {'candidate is' if later == 1 else 'candidates are'} not valid and ignored"
    return (Notice(kind="result_ambiguous", message=message, data={"valid": valid, "later_invalid": later}),)


def _dropped_keys(faults: Sequence[Fault]) -> tuple[Notice, ...]:
    if not faults:
        return ()
    keys = [fault.path or fault.message for fault in faults]
    message = f"dropped after the repair: {', '.join(keys)}"
    return (Notice(kind="result_unknown_keys_dropped", message=message, data={"keys": keys}),)


def _missing_result(text: str) -> Fault:
    if not text.strip():
        return Fault("", "the output is empty; end with one JSON object that has the key service_result")
    if any(_whole(text)):
        again = "the output repeats its prompt and holds no result of its own"
        return Fault("", f"{again}; end with one JSON object that has the key {KEY}, filled in")
    if as_text := _AS_TEXT.search(text):
        inside = f", in {as_text[1]}" if as_text[1] else ""
        return Fault("", f"the result is a text with escaped quotes{inside}: send the JSON object itself")
    if broken := slip(text) or _bare(text):
        return Fault("", broken)
    at = text.rfind(KEY)
    occurs = f"; the text {KEY} occurs, but not as the key of a JSON object: near {near(text, at)}" if at >= 0 else ""
    return Fault("", f"the output holds no JSON object with the key {KEY}{occurs}")


def _bare(text: str, start: int = 0) -> str:
    """Explain that the last result stands under the wrong key, or under none; "" if no result does."""
    places = list(_BARE.finditer(text, start))
    if not places:
        return ""
    where = f'under "{places[-1][1]}"' if places[-1][1] else "under no key"
    return f'the result stands {where}, not in an object with the key {KEY}: send {{"{KEY}": {{...}}}}'
