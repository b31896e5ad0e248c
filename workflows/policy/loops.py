"""Loop detection in a coordinator's chain: two signals, which climb one ladder of two rungs (H1 to H3)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

from workflows.contract.models import Delegation, Entry, ServiceResult
from workflows.model.long_texts import LongPrompt
from workflows.model.wire import Wire
from workflows.text.digests import Plain, digest

WINDOW = 8


class Rung(StrEnum):
    """A rung of the ladder: first a warning, then a detected loop."""

    WARNING = "warning"
    DETECTED = "detected"


def signature(delegations: Sequence[Delegation], long_prompts: Mapping[str, LongPrompt]) -> str:
    """Return the signature of a set of delegations; phase, timeout, retry and policies are not part of it (ruling
    H1).
    """
    legs: list[Plain] = []
    for leg in sorted(delegations, key=lambda delegation: delegation.id):
        long = long_prompts.get(leg.id)
        prompt = long.folded if long else folded_digest(leg.prompt)
        worker: Plain = leg.agent
        if (own := leg.ephemeral) is not None:
            worker = [own.runtime.value, own.template, own.role, own.model, own.effort, sorted(own.capabilities)]
        legs.append([leg.id, worker, leg.action.value, prompt, sorted(leg.deps), leg.model, leg.effort])
    return digest(legs)


def folded_digest(text: str) -> str:
    """Return the digest of a text with white space folded."""
    return digest(" ".join(text.split()))


def side_effects(
    result: ServiceResult, *, pull_request: int | None, head_sha: str | None, artifact_digest: str | None
) -> str:
    """Return a digest of a job's verifiable side effects: it stays equal while jobs do no new work.

    `pull_request` is one that the job itself opened. A job that begins from the line and changes nothing makes no
    commit.
    """
    done = [sorted(map(_entry, entries)) for entries in (result.changes_made, result.tests_run)]
    return digest([result.decision.value, *done, pull_request, head_sha, artifact_digest])


def _entry(entry: Entry) -> str:
    if isinstance(entry, str):
        return " ".join(entry.split())
    return digest([[key, str(value)] for key, value in sorted(entry.items())])


class Ladder(Wire):
    """The loop detection state of a chain: its dispatched sets, its progress and its warnings. Methods return a new
    ladder.
    """

    window: tuple[str, ...] = ()
    """Signatures of the last dispatched sets (ruling H1)."""
    repeat_warned: bool = False
    rung: int = 0
    streak: int = 0
    """Number of successive generations, or undispatchable sets, without progress."""
    progress: str | None = None
    """Digest of the last generation (ruling H3)."""
    history: str = ""
    """Digest of all generations: what the chain contributes to its parent's progress."""

    def check_set(self, signature: str) -> "Climbed":
        """Climb a rung if an equal set was dispatched before (ruling H2)."""
        if signature not in self.window:
            return Climbed(self, None)
        rung = Rung.DETECTED if self.repeat_warned or self.rung else Rung.WARNING
        return Climbed(self.model_copy(update={"repeat_warned": True, "rung": 1}), rung)

    def add_set(self, signature: str) -> Self:
        """Add a dispatched set to the window; undispatched sets are not added (ruling C6)."""
        return self.model_copy(update={"window": (*self.window, signature)[-WINDOW:]})

    def count_unroutable_set(self) -> Self:
        """Count a set that names unavailable workers like a generation without progress (ruling C6)."""
        return self.model_copy(update={"streak": self.streak + 1})

    def generation_over(self, legs: Sequence[str], limit: int) -> "Climbed":
        """Record a generation's digest. An equal digest lengthens the streak; a different one resets streak and ladder
        (ruling H3).
        """
        now = digest(sorted(legs))
        same = now == self.progress
        streak = self.streak + 1 if same else 0
        before = self.rung if same or self.progress is None else 0
        over = {"streak": streak, "progress": now, "history": digest([self.history, now])}
        if streak < limit:
            return Climbed(self.model_copy(update=over | {"rung": before}), None)
        return Climbed(self.model_copy(update=over | {"rung": 1}), Rung.DETECTED if before else Rung.WARNING)


class Climbed(NamedTuple):
    """The ladder after a step, and the rung it reached, if any."""

    ladder: Ladder
    rung: Rung | None
