"""Whether a resume is taken, without taking it: the same verdict for every surface and for the tree (ruling F4)."""

from workflows.policy import bounds, whole_answers
from workflows.policy.bounds import Refusal
from workflows.policy.verbs import No, Verb, refuse_verb
from workflows.policy.whole_answers import Meant
from workflows.tree import round_view
from workflows.tree.events import ResumeRequested
from workflows.tree.pauses import Round
from workflows.tree.state import Coordinator, TreeState

_DIGEST_SHOWN = 8
"""So much of a digest has to be named at least for it to count."""


def refuse_resume(state: TreeState, request: ResumeRequested) -> Refusal | None:
    """Why this resume is refused now; None when it is taken. Changes nothing."""
    found = judge(state, request)
    return found if isinstance(found, Refusal) else None


def judge(state: TreeState, request: ResumeRequested) -> tuple[Coordinator, Round, Verb] | Refusal:
    """The coordinator, the round and the verb; or the first thing that speaks against it."""
    if request.fault:
        return Refusal(No.UNREADABLE, request.fault)
    if request.job_id and request.job_id not in state.jobs:
        return Refusal(No.UNKNOWN_JOB, f"there is no job {request.job_id[:80]!r} in tree {state.root_id}")
    if _accepted_before(state, request.request_id):
        return Refusal(No.DUPLICATE, f"request {request.request_id[:80]!r} has been carried out already")
    found = _addressed(state, request)
    if isinstance(found, Refusal):
        return found
    chain, current = found
    refusal = (
        _other_round(state, chain, current, request)
        or refuse_verb(request.verb, request.text, current.kind, _ids(chain), _named(chain, current))
        or _not_whole(chain, current, request)
        or _no_room(state, chain, current, request.verb)
    )
    return refusal or (chain, current, Verb(request.verb))


def _accepted_before(state: TreeState, request_id: str) -> bool:
    rounds = (each for rounds in state.rounds.values() for each in rounds)
    return bool(request_id) and any(request_id in each.requests for each in rounds)


def _addressed(state: TreeState, request: ResumeRequested) -> tuple[Coordinator, Round] | Refusal:
    """The job's own chain, else the one that delegated it; else the only one that waits (ruling B1).

    A coordinator that has been asked before is never passed over for another: the answer was meant for it.
    """
    meant = (request.job_id, state.homes.get(request.job_id, ""))
    asked = [each for each in meant if each in state.rounds][:1]
    waiting = [each for each in asked or state.rounds if state.open_round(each)]
    if len(waiting) > 1:
        names = ", ".join(waiting)
        return Refusal(No.AMBIGUOUS, f"several coordinators wait for a person, name one of them: {names}")
    chain = state.coordinators.get(waiting[0]) if waiting else None
    current = state.open_round(waiting[0]) if waiting else None
    return (chain, current) if chain and current else _nothing_open(state, request, asked)


def _nothing_open(state: TreeState, request: ResumeRequested, asked: list[str]) -> Refusal:
    last = asked or _latest(state)
    over = _last_words(state, last[0], request.round) if last else ""
    if state.closed:
        task = f"tree {state.root_id} is over: task {state.task.task_id} is {state.task.state}"
        return Refusal(No.TREE_OVER, f"{task}; {over}" if over else task)
    if not over:
        name = request.job_id or state.root_id
        return Refusal(No.NO_OPEN_ROUND, f"nobody is waited for: {name} has no open round")
    others = [record.commands[0] for record in round_view.open_rounds(state)]
    return Refusal(No.ROUND_OVER, f"{over}; open now: {others[0]}" if others else over)


def _latest(state: TreeState) -> list[str]:
    """The coordinator whose round was the last to open."""
    return sorted(state.rounds, key=lambda each: state.rounds[each][-1].opened_at)[-1:]


def _last_words(state: TreeState, coordinator_id: str, number: int | None) -> str:
    """Who ended the round that is meant, how and when (ruling F4)."""
    rounds = state.rounds[coordinator_id]
    meant = rounds[number - 1] if number and 0 < number <= len(rounds) else rounds[-1]
    return f"round {meant.number} of {coordinator_id} is over: {meant.closed}"


def _other_round(state: TreeState, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """The number and the digest a person saw must still be those of the open round."""
    cid, number = chain.coordinator_id, request.round
    if number is not None and 0 < number < current.number:
        return Refusal(No.ROUND_OVER, f"{_last_words(state, cid, number)}; open now: round {current.number}")
    if number is not None and number != current.number:
        message = f"{cid} has no round {number}: the open one is round {current.number}"
        return Refusal(No.UNKNOWN_ROUND, message, {"round": current.number})
    seen = request.digest
    if seen and (len(seen) < _DIGEST_SHOWN or not current.digest.startswith(seen)):
        message = f"round {current.number} of {cid} has changed since: look again with `service job show {cid}`"
        return Refusal(No.STALE_ROUND, message, {"round": current.number, "digest": current.digest})
    return None


def _not_whole(chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """An answer of which a part would be lost, where somebody is shown that (ruling F5)."""
    if request.verb != Verb.ANSWER or not request.whole:
        return None
    asks = {each.id: each.question.choices for each in chain.asking}
    meant = Meant(partial=request.partial, other=request.other)
    return whole_answers.refuse(request.text, asks, meant, chain.coordinator_id, _named(chain, current))


def _no_room(state: TreeState, chain: Coordinator, current: Round, verb: str) -> Refusal | None:
    """A retry that could run nothing at all changes nothing (ruling C3)."""
    limits = state.input.settings.bounds
    if verb != Verb.RETRY or bounds.jobs(limits, state.ledger(), 1, "") is None:
        return None
    cap = limits.max_delegation_total_jobs
    message = f"a retry would exceed the per-root job budget of {cap}: {_named(chain, current)} can still be aborted"
    return Refusal(No.NO_ROOM, message, {"cap": cap})


def _ids(chain: Coordinator) -> list[str]:
    return [each.id for each in chain.asking]


def _named(chain: Coordinator, current: Round) -> str:
    return f"round {current.number} of {chain.coordinator_id}"
