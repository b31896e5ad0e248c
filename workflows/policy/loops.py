"""Telling a tree that goes in circles from one that gets on (rulings H1 to H3)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from workflows.contract.models import Delegation, Ephemeral
from workflows.policy.digests import Plain, digest
from workflows.tree.jobs import LongPrompt
from workflows.tree.state import Coordinator, Leg

WINDOW = 8


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


def repeats(chain: Coordinator, set_signature: str) -> Rung | None:
    """A set the chain has dispatched before: a warning once, then it is a loop for good (ruling H2)."""
    if set_signature not in chain.window:
        return None
    rung = Rung.DETECTED if chain.repeat_warned or chain.rung else Rung.WARNING
    chain.repeat_warned, chain.rung = True, 1
    return rung


def dispatched(chain: Coordinator, set_signature: str) -> None:
    """Only sets that went out enter the window (ruling C6)."""
    chain.window = [*chain.window, set_signature][-WINDOW:]


def part(leg: Leg) -> str:
    """What a leg adds to its generation's digest; on another model or effort it is a new attempt (ruling H3)."""
    return digest([leg.state, leg.progress, leg.model, leg.effort])


def progressed(chain: Coordinator, legs: Sequence[str], limit: int) -> Rung | None:
    """One generation is over: the same digest again lengthens the streak, another resets streak and ladder (H3)."""
    now = digest(sorted(legs))
    same = now == chain.progress
    chain.streak = chain.streak + 1 if same else 0
    if not same and chain.progress is not None:
        chain.rung = 0
    chain.progress, chain.history = now, digest([chain.history, now])
    if chain.streak < limit:
        return None
    rung = Rung.DETECTED if chain.rung else Rung.WARNING
    chain.rung = 1
    return rung


def preflight_failed(chain: Coordinator, limit: int) -> bool:
    """Whether a coordinator that keeps naming workers it cannot have is given another try (ruling C6)."""
    chain.streak += 1
    return chain.streak <= limit
