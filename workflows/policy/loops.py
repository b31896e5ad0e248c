"""When a set of delegations is the same set again (ruling H1). How often it may happen is counted in `tree/ladder`."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from workflows.contract.models import Delegation, Ephemeral
from workflows.model.digests import Plain, digest
from workflows.model.texts import LongPrompt


class Rung(StrEnum):
    """A step of the one ladder both signals climb."""

    WARNING = "warning"
    DETECTED = "detected"


def signature(delegations: Sequence[Delegation], long_prompts: Mapping[str, LongPrompt]) -> str:
    """What makes a set the same set again; phase, timeout, retry and policies do not (ruling H1)."""
    legs = sorted(delegations, key=lambda each: each.id)
    return digest([_leg(each, long_prompts.get(each.id)) for each in legs])


def folded(text: str) -> str:
    """Digest of a text with white space folded."""
    return digest(" ".join(text.split()))


def _leg(leg: Delegation, long: LongPrompt | None) -> list[Plain]:
    prompt = long.folded if long else folded(leg.prompt)
    worker: Plain = _worker(leg.ephemeral) if leg.ephemeral else leg.agent
    return [leg.id, worker, leg.action.value, prompt, sorted(leg.deps), leg.model, leg.effort]


def _worker(worker: Ephemeral) -> list[Plain]:
    about = [worker.runtime.value, worker.template, worker.role, worker.model, worker.effort]
    return [*about, sorted(worker.capabilities)]
