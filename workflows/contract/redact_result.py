"""Redaction of secrets in a result, field by field (rulings A12, N7)."""

import hashlib
from collections.abc import Callable

from workflows.contract.models import Delegation, HumanQuestion, ServiceResult
from workflows.secrets.redact import redact, redact_value

_REPORTING = ("findings", "changes_made", "tests_run", "needs")


def redact_result(result: ServiceResult, text: Callable[[str], str] = redact) -> ServiceResult:
    """Redact every string of a result, except `artifact_body` and the delegations' prompts, templates and models: other
    jobs need these unchanged.
    """
    entries = {name: tuple(redact_value(entry, text) for entry in getattr(result, name)) for name in _REPORTING}
    redacted: dict[str, object] = {
        "summary": text(result.summary),
        "human_questions": tuple(_question(question, text) for question in result.human_questions),
        "delegations": tuple(_delegation(leg, text) for leg in result.delegations),
    }
    return result.model_copy(update=entries | redacted)


def handle(name: str, text: Callable[[str], str] = redact) -> str:
    """Return an identifier unchanged, or a stable digest of it if it contains a secret."""
    return name if text(name) == name else f"redacted-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _question(question: HumanQuestion, text: Callable[[str], str]) -> HumanQuestion:
    choices = tuple(map(text, question.choices))
    return question.model_copy(
        update={"id": handle(question.id, text), "prompt": text(question.prompt), "choices": choices}
    )


def _delegation(leg: Delegation, text: Callable[[str], str]) -> Delegation:
    redacted: dict[str, object] = {"id": handle(leg.id, text), "deps": tuple(handle(dep, text) for dep in leg.deps)}
    for name in ("agent", "worktree", "fingerprint"):
        if (value := getattr(leg, name)) is not None:
            redacted[name] = handle(value, text)
    if leg.phase is not None:
        redacted["phase"] = text(leg.phase)
    redacted["artifacts"] = tuple(map(text, leg.artifacts))
    if (worker := leg.ephemeral) is not None:
        role = {"role": text(worker.role) if worker.role else worker.role}
        redacted["ephemeral"] = worker.model_copy(update=role | {"capabilities": tuple(map(text, worker.capabilities))})
    return leg.model_copy(update=redacted)
