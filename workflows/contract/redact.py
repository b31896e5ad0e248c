"""Taking secrets out of text before it is stored, shown or cut (rulings A12, N7).

Found by their form, by their name, or by their place, in the text as it is and in the text as it is meant: without
what is not seen, with its escapes decoded, its broken lines joined, its base64 read. What is replaced is what stands
in the original; everything else stays as it is.

No library: this replaces what it finds in any text, in linear time, as it is meant, and leaves harmless words as they
are. Hosts add the tokens that a detector from a registry knows (`activities/redaction/detected.py`).
"""

import hashlib
import re
from collections.abc import Callable, Iterator

from pydantic import JsonValue

from workflows.contract.models import Delegation, HumanQuestion, ServiceResult
from workflows.contract.secret_commands import commands
from workflows.contract.secret_forms import tokens
from workflows.contract.secret_keys import keys
from workflows.contract.secret_names import is_secret, named
from workflows.contract.secret_places import places
from workflows.contract.secret_spans import Finder, Span, merged, replaced
from workflows.contract.secret_tables import columns, mnemonics
from workflows.contract.secret_views import decoded_runs, joined, meant, unquoted

MARK = "[redacted]"
_SHORTEST = 6
_LAYERS = 5
_DONE = re.compile(r"\[redacted\]|redacted-[0-9a-f]{20}")
"""What stands in a secret's place already."""

_TIMES = 6
"""A text may be gone over so often until nothing more is found in it."""


def redact(text: str, also: Finder | None = None, by: Callable[[str], str] | None = None) -> str:
    """The text with every secret replaced; redacting twice changes nothing more. Rulings A12 and N7.

    `also` finds what this process knows to be secret; `by` says what stands in a secret's place, `[redacted]` if left
    out.
    """
    for _ in range(_TIMES):
        if not (spans := secrets_in(text, also)):
            break
        changed = replaced(text, spans, by or _mark)
        if changed == text:
            break
        text = changed
    return text


def secrets_in(text: str, also: Finder | None = None) -> list[Span]:
    """Where secrets stand, in order, without overlaps."""
    if len(text) < _SHORTEST:
        return []
    return [(start, end) for start, end in merged(_found(text, also, _LAYERS)) if not _DONE.fullmatch(text, start, end)]


def redact_value(value: JsonValue, text: Callable[[str], str] = redact) -> JsonValue:
    """The same for every string of a JSON value; a string under a secret's name goes whole."""
    match value:
        case str():
            return text(value)
        case list() | tuple():
            return [redact_value(item, text) for item in value]
        case dict():
            return {text(name): _member(name, item, text) for name, item in value.items()}
        case _:
            return value


def redact_result(result: ServiceResult, text: Callable[[str], str] = redact) -> ServiceResult:
    """The result with every string in it redacted, but for what drives the work: `artifact_body`, and the delegations'
    prompts, templates and models."""
    entries = {name: tuple(redact_value(entry, text) for entry in getattr(result, name)) for name in _REPORTING}
    said: dict[str, object] = {
        "summary": text(result.summary),
        "human_questions": tuple(_question(each, text) for each in result.human_questions),
        "delegations": tuple(_delegation(each, text) for each in result.delegations),
    }
    return result.model_copy(update=entries | said)


_REPORTING = ("findings", "changes_made", "tests_run", "needs")


def handle(name: str, text: Callable[[str], str] = redact) -> str:
    """A name by which things are told apart: one that holds a secret becomes another, the same each time."""
    return name if text(name) == name else f"redacted-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _question(question: HumanQuestion, text: Callable[[str], str]) -> HumanQuestion:
    choices = tuple(map(text, question.choices))
    return question.model_copy(
        update={"id": handle(question.id, text), "prompt": text(question.prompt), "choices": choices}
    )


def _delegation(leg: Delegation, text: Callable[[str], str]) -> Delegation:
    said: dict[str, object] = {"id": handle(leg.id, text), "deps": tuple(handle(each, text) for each in leg.deps)}
    for name in ("agent", "worktree", "fingerprint"):
        if (value := getattr(leg, name)) is not None:
            said[name] = handle(value, text)
    if leg.phase is not None:
        said["phase"] = text(leg.phase)
    said["artifacts"] = tuple(map(text, leg.artifacts))
    if (worker := leg.ephemeral) is not None:
        role = {"role": text(worker.role) if worker.role else worker.role}
        said["ephemeral"] = worker.model_copy(update=role | {"capabilities": tuple(map(text, worker.capabilities))})
    return leg.model_copy(update=said)


def _member(name: str, value: JsonValue, text: Callable[[str], str]) -> JsonValue:
    return MARK if isinstance(value, str) and is_secret(name, value) else redact_value(value, text)


def _mark(_secret: str) -> str:
    return MARK


def _found(text: str, also: Finder | None, layers: int) -> Iterator[Span]:
    yield from tokens(text)
    yield from keys(text)
    yield from places(text)
    yield from commands(text)
    yield from columns(text)
    yield from mnemonics(text)
    yield from named(text)
    if also is not None:
        yield from also(text)
    yield from joined(text, lambda whole, begins: [*tokens(whole, begins), *(also(whole) if also else ())])
    if layers > 0:
        yield from decoded_runs(text, lambda said: _found(said, also, min(layers - 1, 2)))
        for under in (meant(text), unquoted(text)):
            if under is not None:
                yield from map(under.back, _found(under.text, also, layers - 1))
