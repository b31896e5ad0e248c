"""Redaction of secrets in text before it is stored, shown or cut (rulings A12, N7).

Secrets are found by form, name or place, in the raw text and in its decoded views: without invisible characters, with
escapes decoded, broken lines joined, and base64 decoded. The matching part of the original is replaced; everything else
stays unchanged.

Without a library: this replaces findings in any text and its views, in linear time, and leaves harmless words alone.
Hosts add tokens known to a detector from a registry (`activities/redaction/detected.py`).
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
"""The marks that replace secrets."""

_TIMES = 6
"""The most passes over a text, until nothing more is found in it."""


def redact(text: str, also: Finder | None = None, by: Callable[[str], str] | None = None) -> str:
    """Replace every secret in the text; redacting twice changes nothing more. Rulings A12 and N7.

    `also` finds secrets known to this process; `by` returns a secret's replacement, `[redacted]` if left out.
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
    """Return the spans of secrets, in order, without overlaps."""
    if len(text) < _SHORTEST:
        return []
    return [(start, end) for start, end in merged(_found(text, also, _LAYERS)) if not _DONE.fullmatch(text, start, end)]


def redact_value(value: JsonValue, text: Callable[[str], str] = redact) -> JsonValue:
    """Redact every string of a JSON value; a string under a secret's name is replaced as a whole."""
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
    """Redact every string of a result, except those the work needs: `artifact_body`, and the delegations' prompts,
    templates and models.
    """
    entries = {name: tuple(redact_value(entry, text) for entry in getattr(result, name)) for name in _REPORTING}
    said: dict[str, object] = {
        "summary": text(result.summary),
        "human_questions": tuple(_question(each, text) for each in result.human_questions),
        "delegations": tuple(_delegation(each, text) for each in result.delegations),
    }
    return result.model_copy(update=entries | said)


_REPORTING = ("findings", "changes_made", "tests_run", "needs")


def handle(name: str, text: Callable[[str], str] = redact) -> str:
    """Return an identifier; one that holds a secret becomes a stable digest."""
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
