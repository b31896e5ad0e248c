"""The check of a resume, common to every surface and the tree, and the answer to it (rulings F4, F5).

Nothing here changes the tree; `resume` carries out what is accepted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from workflows.contract.size_limits import fitted, short_line
from workflows.model.errors import Refusal, ResumeFault
from workflows.model.rounds import Round
from workflows.policy import answers
from workflows.policy.answers import Answers, Meant, Verb, refuse_length, refuse_verb
from workflows.policy.times import clock
from workflows.tree import round_rows
from workflows.tree.chains import Coordinator
from workflows.tree.events import ResumeRequested
from workflows.tree.state import TreeState

_DIGEST_SHOWN = 8
"""Minimum length of a digest prefix that identifies a round."""


@dataclass(frozen=True)
class Accepted:
    """A resume that was carried out: its round, and the lines recorded of it."""

    coordinator_id: str
    round: int
    verb: Verb
    recorded: list[str]


def refuse_resume(state: TreeState, request: ResumeRequested) -> Refusal | None:
    """Return why this resume is refused now, or None if it is accepted. Changes nothing."""
    found = judge(state, request)
    return found if isinstance(found, Refusal) else None


def judge(state: TreeState, request: ResumeRequested) -> tuple[Coordinator, Round, Verb] | Refusal:
    """Return the coordinator, the round and the verb; or the first refusal."""
    if request.fault:
        return Refusal(ResumeFault.UNREADABLE, request.fault)
    if request.order.job_id and request.order.job_id not in state.jobs:
        return Refusal(
            ResumeFault.UNKNOWN_JOB, f"there is no job {request.order.job_id[:80]!r} in tree {state.root_id}"
        )
    if _accepted_before(state, request.order.request_id):
        return Refusal(ResumeFault.DUPLICATE, f"request {request.order.request_id[:80]!r} has been carried out already")
    found = _addressed(state, request)
    if isinstance(found, Refusal):
        return found
    chain, current = found
    refusal = (
        _other_round(state, chain, current, request)
        or _other_verb(state, chain, current, request)
        or _not_whole(chain, current, request)
        or _no_room(state, chain, current, request)
    )
    return refusal or (chain, current, Verb(request.order.verb))


def _accepted_before(state: TreeState, request_id: str) -> bool:
    rounds = (each for rounds in state.rounds.values() for each in rounds)
    return bool(request_id) and any(fitted("request", request_id) in each.requests for each in rounds)


def _addressed(state: TreeState, request: ResumeRequested) -> tuple[Coordinator, Round] | Refusal:
    """Return the job's own chain, else the one that delegated it, else the only one that waits (ruling B1).

    A coordinator that was asked before is never passed over for another: the answer was meant for it.
    """
    meant = (request.order.job_id, state.homes.get(request.order.job_id, ""))
    asked = [each for each in meant if each in state.rounds][:1]
    waiting = [each for each in asked or state.rounds if state.open_round(each)]
    if len(waiting) > 1:
        names = ", ".join(waiting)
        return Refusal(ResumeFault.AMBIGUOUS, f"several coordinators wait for a person, name one of them: {names}")
    chain = state.coordinators.get(waiting[0]) if waiting else None
    current = state.open_round(waiting[0]) if waiting else None
    return (chain, current) if chain and current else _nothing_open(state, request, asked)


def _nothing_open(state: TreeState, request: ResumeRequested, asked: list[str]) -> Refusal:
    latest = sorted(state.rounds, key=lambda each: state.rounds[each][-1].opened_at)[-1:]
    last = asked or latest
    over = _last_words(state, last[0], request.order.round) if last else ""
    if state.closed:
        task = f"tree {state.root_id} is over: task {state.task.task_id} is {state.task.state}"
        return Refusal(ResumeFault.TREE_OVER, f"{task}; {over}" if over else task)
    if not over:
        name = request.order.job_id or state.root_id
        return Refusal(ResumeFault.NO_OPEN_ROUND, f"nobody is waited for: {name} has no open round")
    others = [record.commands[0] for record in round_rows.open_rounds(state)]
    return Refusal(ResumeFault.ROUND_OVER, f"{over}; open now: {others[0]}" if others else over)


def _last_words(state: TreeState, coordinator_id: str, number: int | None) -> str:
    """Return how, when and by whom the round was ended (ruling F4)."""
    rounds = state.rounds[coordinator_id]
    meant = rounds[number - 1] if number and 0 < number <= len(rounds) else rounds[-1]
    return f"round {meant.number} of {coordinator_id} is over: {meant.closed}"


def _other_round(state: TreeState, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Refuse a round number or digest that is not the open round's."""
    cid, number = chain.coordinator_id, request.order.round
    if number is not None and 0 < number < current.number:
        return Refusal(ResumeFault.ROUND_OVER, f"{_last_words(state, cid, number)}; open now: round {current.number}")
    if number is not None and number != current.number:
        message = f"{cid} has no round {number}: the open one is round {current.number}"
        return Refusal(ResumeFault.UNKNOWN_ROUND, message, {"round": current.number})
    seen = request.order.digest
    if seen and (len(seen) < _DIGEST_SHOWN or not current.digest.startswith(seen)):
        message = f"round {current.number} of {cid} has changed since: look again with `service job show {cid}`"
        return Refusal(ResumeFault.STALE_ROUND, message, {"round": current.number, "digest": current.digest})
    return None


def _other_verb(state: TreeState, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """A verb of another kind of round. Questions nobody can answer any more can be aborted."""
    order, ids = request.order, [each.id for each in chain.asking]
    if request.foreseen and order.verb == Verb.ABORT and Verb.ABORT in round_rows.takes(state, current):
        return refuse_length(order.text)
    return refuse_verb(order.verb, order.text, current.kind, ids, _named(chain, current))


def _not_whole(chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Refuse an answer of which a part would be lost, on surfaces that show refusals (ruling F5)."""
    if request.order.verb != Verb.ANSWER or not request.whole:
        return None
    asks = {each.id: each.question.choices for each in chain.asking}
    meant = Meant(partial=request.order.partial, other=request.order.other)
    return answers.refuse_incomplete(request.order.text, asks, meant, chain.coordinator_id, _named(chain, current))


def _no_room(state: TreeState, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Refuse a verb for whose effect the budgets have no room (rulings C3, F4)."""
    verb = Verb(request.order.verb)
    over, why = round_rows.no_room(state, verb), round_rows.why_vain(state, current, verb)
    earlier = over is not None and verb is not Verb.ANSWER and (request.budgets or _retry_at_the_cap(verb, over))
    if why is None or not (request.foreseen or earlier):
        return None
    message = f"{why}: {_named(chain, current)} can still be aborted"
    return Refusal(ResumeFault.NO_ROOM, message, {"cap": over.data.get("cap") if over else None})


def _retry_at_the_cap(verb: Verb, over: Refusal) -> bool:
    return verb is Verb.RETRY and "cap" in over.data


def _named(chain: Coordinator, current: Round) -> str:
    return f"round {current.number} of {chain.coordinator_id}"


TEXT_SHOWN = 300


def recorded(chain: Coordinator, verb: Verb, text: str, said: Answers) -> list[str]:
    """Return what is recorded of a person's text, a line each."""
    if verb is Verb.ANSWER:
        return list(_answers(chain, said))
    legs = ", ".join(leg.id for leg in chain.escalated)
    lines = {
        Verb.RETRY: f"run again: {legs}",
        Verb.CONTINUE: f"approved as failed: {legs}",
        Verb.ABORT: "the tree is summed up and ends",
        Verb.EXTEND: f"longer by {short_line(text)}",
    }
    words = f"instructions: {short_line(text, TEXT_SHOWN)}"
    return [lines[verb], *([words] if text and verb is not Verb.EXTEND else [])]


def _answers(chain: Coordinator, said: Answers) -> Iterator[str]:
    for each in chain.asking:
        text = said.by_id.get(each.id)
        yield f"{each.id}: {short_line(text, TEXT_SHOWN)}" if text else f"{each.id} stays unanswered"
    for name in said.unmatched:
        yield f"no question has the id {name}: what stands beside it is taken as it is"
    if said.guidance:
        yield f"guidance to the coordinator: {short_line(said.guidance, TEXT_SHOWN)}"


def told(state: TreeState, verdict: Refusal | Accepted) -> Refusal | str:
    """Return the complete answer to an order, after the step that took it."""
    if isinstance(verdict, Refusal):
        return verdict
    return "\n".join(
        [f"{verdict.verb} is accepted", *(f"  {each}" for each in verdict.recorded), *_stands(state, verdict)]
    )


def _stands(state: TreeState, verdict: Accepted) -> Iterator[str]:
    """Yield the state of the ordered round, then the rounds still open, or else the tree's state."""
    meant = state.rounds[verdict.coordinator_id][verdict.round - 1]
    which = f"round {meant.number} of {verdict.coordinator_id}"
    yield (f"{which} waits until {clock(meant.expires_at)}" if meant.open else f"{which} is over: {meant.closed}")
    waiting = [each for each in round_rows.open_rounds(state) if each.coordinator_id != verdict.coordinator_id]
    yield from (f"still waiting: {each.commands[0]}" for each in waiting)
    if not meant.open and not waiting:
        yield "the tree is summed up" if state.finalize else "the tree goes on"
