"""Open rounds as every surface shows them: questions, expiry, and the exact commands (rulings B3, F1, F6)."""

from collections.abc import Mapping, Sequence

from workflows.model.errors import Refusal
from workflows.model.rounds import Round, RoundKind
from workflows.model.rows import FailingRecord, QuestionRecord, RoundRecord
from workflows.policy import bounds
from workflows.policy.answers import TAKES, Verb, commands
from workflows.text.digests import digest
from workflows.tree.chains import Coordinator
from workflows.tree.state import TreeState

REASON_LIMIT = 300

_RUNS = {Verb.RETRY: "a retry", Verb.CONTINUE: "a continue", Verb.ANSWER: "an answer"}
"""The verbs that need a job more."""


def open_rounds(state: TreeState) -> tuple[RoundRecord, ...]:
    """Return the rows of all open rounds, the oldest first."""
    found = [(state.coordinators.get(each), state.open_round(each)) for each in state.rounds]
    open_ones = [(chain, current) for chain, current in found if chain and current]
    return tuple(record(state, *each) for each in sorted(open_ones, key=lambda each: each[1].opened_at))


def takes(state: TreeState, current: Round) -> tuple[Verb, ...]:
    """The verbs that end or extend it, the likeliest first; none that could not have its effect (rulings C3, F4)."""
    known = TAKES[current.kind]
    possible = tuple(verb for verb in known if why_vain(state, current, verb) is None)
    ends = () if Verb.ABORT in known or Verb.ANSWER in possible else (Verb.ABORT,)
    return (*ends, *possible)


def why_vain(state: TreeState, current: Round, verb: Verb) -> str | None:
    """Return why a verb could not have its effect on this round; None when it can."""
    over = no_room(state, verb)
    return over.message if over else current.vain.get(verb)


def no_room(state: TreeState, verb: Verb) -> Refusal | None:
    """The bound that keeps a verb from its effect: a retry runs a leg, the others a continuation (rulings C3, C4)."""
    limits, used = state.input.settings.bounds, state.ledger()
    if verb not in _RUNS:
        return None
    over = bounds.jobs(limits, used, 1, _RUNS[verb])
    return over or (bounds.exhausted(limits, used) if verb is Verb.RETRY else None)


def record(
    state: TreeState, chain: Coordinator, current: Round, answers: Mapping[str, str] | None = None
) -> RoundRecord:
    """Return the round's row as of now."""
    verbs = takes(state, current) if current.open else ()
    asks = current.kind is RoundKind.ASK
    ids = [each.id for each in chain.asking]
    return RoundRecord(
        round_id=f"{chain.coordinator_id}-r{current.number}",
        root_job_id=state.root_id,
        coordinator_id=chain.coordinator_id,
        job_id=chain.job_id,
        task_id=state.input.task_id,
        repo=state.input.repo,
        number=current.number,
        kind=current.kind,
        digest=current.digest,
        revision=state.revision,
        questions=_questions(chain, answers or {}) if asks else (),
        failing=() if asks else _failing(chain),
        verbs=verbs,
        commands=commands(chain.coordinator_id, verbs, ids),
        opened_at=current.opened_at,
        expires_at=current.expires_at,
        end=current.end,
        closed_at=None if current.open else state.now,
        closed=current.closed,
        said=current.text,
    )


def _questions(chain: Coordinator, answers: Mapping[str, str]) -> tuple[QuestionRecord, ...]:
    return tuple(
        QuestionRecord(
            id=each.id,
            prompt=each.question.prompt,
            choices=each.question.choices,
            job_id=each.job_id,
            leg=each.leg,
            answer=answers.get(each.id),
        )
        for each in chain.asking
    )


def _failing(chain: Coordinator) -> tuple[FailingRecord, ...]:
    return tuple(
        FailingRecord(leg=leg.id, job_id=leg.job_id, attempt=leg.attempt, state=leg.state, reason=leg.reason)
        for leg in chain.escalated
    )


def digest_of(chain: Coordinator, kind: RoundKind, number: int) -> str:
    """Return the digest of what a round asks, which changes when more joins (ruling F1)."""
    if kind is RoundKind.ASK:
        asks = [[each.id, each.leg, each.question.prompt, list(each.question.choices)] for each in chain.asking]
    else:
        asks = [[leg.id, str(leg.attempt), leg.state, leg.reason] for leg in chain.escalated]
    return digest([chain.coordinator_id, number, kind, asks])


def about(chain: Coordinator, current: Round) -> str:
    """Return one line: the round, and what it asks."""
    which = f"round {current.number} of {chain.coordinator_id}"
    if current.kind is RoundKind.ASK:
        return f"{which} asks {', '.join(each.id for each in chain.asking)}"
    return f"{which}: {', '.join(f'{leg.id} {leg.state}' for leg in chain.escalated)}; a person decides"


def reason(shown: Sequence[RoundRecord]) -> str:
    """Return why the task waits: the oldest round, and the number of others."""
    first = shown[0]
    more = f" (and {len(shown) - 1} more round(s) open)" if len(shown) > 1 else ""
    if first.kind is RoundKind.ASK:
        said = "; ".join(f"{each.id}: {each.prompt}" for each in first.questions)
    else:
        said = "; ".join(f"{each.leg} {each.state}: {each.reason}" for each in first.failing)
    return f"waits for a person{more}: {said}"[:REASON_LIMIT]
