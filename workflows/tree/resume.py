"""A person's resume of a paused tree: its check, its effects, and the answer to the person; and rounds that expire (F3
to F5, F8).

The tree, and every interface that sends it a resume, check the resume by `judge`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from workflows.contract.size_limits import cut_to_bound
from workflows.contract.storable import short_line
from workflows.model.briefs import Answer
from workflows.model.event_kinds import Data, EventKind
from workflows.model.orders import signature
from workflows.model.refusals import Refusal, ResumeFault
from workflows.model.rounds import Reply, Round, RoundEnd, TimerPurpose, last_words
from workflows.model.states import JobState
from workflows.policy import answers, bounds
from workflows.policy.answers import ENDS, Answers, Verb, duration, refuse_length, refuse_order
from workflows.text.durations import clock, format_duration
from workflows.tree import blocking, finalize, job_end, pause_rounds
from workflows.tree.chains import Coordinator, Phase
from workflows.tree.commands import AnswerOrder
from workflows.tree.events import ResumeRequested
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step

EXPIRED = "escalation_expired"

TEXT_SHOWN = 300
"""Characters of a person's text that an event repeats."""

_DIGEST_SHOWN = 8
"""How many characters of a digest are enough to identify a round."""


@dataclass(frozen=True)
class AcceptedResume:
    """A resume that was carried out: its round, and the lines that were recorded."""

    coordinator_id: str
    round: int
    verb: Verb
    recorded: list[str]


def refuse_resume(state: TreeMemory, request: ResumeRequested) -> Refusal | None:
    """Return why this resume would be refused, or None. Changes nothing."""
    outcome = judge(state, request)
    return outcome if isinstance(outcome, Refusal) else None


def judge(state: TreeMemory, request: ResumeRequested) -> tuple[Coordinator, Round, Verb] | Refusal:
    """Return the coordinator, the round and the verb of a resume, or the first reason to refuse it."""
    if request.fault:
        return Refusal(ResumeFault.UNREADABLE, request.fault)
    if request.order.job_id and request.order.job_id not in state.jobs:
        return Refusal(
            ResumeFault.UNKNOWN_JOB, f"there is no job {request.order.job_id[:80]!r} in task {state.root_id}"
        )
    if _accepted_before(state, request.order.request_id):
        return Refusal(ResumeFault.DUPLICATE, f"request {request.order.request_id[:80]!r} has been carried out already")
    addressed = _addressed_round(state, request)
    if isinstance(addressed, Refusal):
        return addressed
    chain, current = addressed
    refusal = (
        _other_round(state, chain, current, request)
        or _other_words(state, chain, current, request)
        or _no_room(state, chain, current, request)
    )
    return refusal or (chain, current, Verb(request.order.verb))


def _accepted_before(state: TreeMemory, request_id: str) -> bool:
    known = (each for several in state.rounds.values() for each in several)
    return bool(request_id) and any(cut_to_bound("request", request_id) in each.requests for each in known)


def _addressed_round(state: TreeMemory, request: ResumeRequested) -> tuple[Coordinator, Round] | Refusal:
    """Return the round that an order means, with its coordinator: by the job's id, by that job's coordinator, or the
    only open round.

    If the order names a coordinator whose rounds are over, no other coordinator's round is taken: the answer was meant
    for that one.
    """
    meant = (request.order.job_id, state.homes.get(request.order.job_id, ""))
    asked = [each for each in meant if each in state.rounds][:1]
    waiting = [each for each in asked or state.rounds if state.open_round(each)]
    if len(waiting) > 1:
        names = ", ".join(waiting)
        return Refusal(ResumeFault.AMBIGUOUS, f"several jobs wait for a person, name one of them: {names}")
    chain = state.coordinators.get(waiting[0]) if waiting else None
    current = state.open_round(waiting[0]) if waiting else None
    return (chain, current) if chain and current else _nothing_open(state, request, asked)


def _nothing_open(state: TreeMemory, request: ResumeRequested, asked: list[str]) -> Refusal:
    latest = sorted(state.rounds, key=lambda asker: state.rounds[asker][-1].opened_at)[-1:]
    over, number = "", request.order.round or 0
    for coordinator_id in asked or latest:
        own = state.rounds[coordinator_id]
        meant = own[number - 1] if 0 < number <= len(own) else own[-1]
        over = last_words(coordinator_id, meant.number, meant.closed)
    if state.closed:
        task = f"tree {state.root_id} is over: task {state.task.task_id} is {state.task.state}"
        return Refusal(ResumeFault.TREE_OVER, f"{task}; {over}" if over else task)
    if not over:
        name = request.order.job_id or state.root_id
        return Refusal(ResumeFault.NO_OPEN_ROUND, f"{name} does not wait for a person: it has no open round")
    others = [record.commands[0] for record in pause_rounds.open_rounds(state)]
    return Refusal(ResumeFault.ROUND_OVER, f"{over}; open now: {others[0]}" if others else over)


def _other_round(state: TreeMemory, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Return a refusal if the order has the number or digest of another round than the open one."""
    cid, number = chain.coordinator_id, request.order.round
    if number is not None and 0 < number < current.number:
        over = last_words(cid, number, state.rounds[cid][number - 1].closed)
        return Refusal(ResumeFault.ROUND_OVER, f"{over}; open now: round {current.number}")
    if number is not None and number != current.number:
        message = f"{cid} has no round {number}: the open one is round {current.number}"
        return Refusal(ResumeFault.UNKNOWN_ROUND, message, {"round": current.number})
    seen = request.order.digest
    if seen and (len(seen) < _DIGEST_SHOWN or not current.digest.startswith(seen)):
        message = f"round {current.number} of {cid} has changed since: look again with `service job show {cid}`"
        return Refusal(ResumeFault.STALE_ROUND, message, {"round": current.number, "digest": current.digest})
    return None


def _other_words(state: TreeMemory, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Return a refusal if the verb or text does not fit this round. `abort` is accepted where only the finalize gets an
    answer, because 0.2.0 offered it there.
    """
    order = request.order
    if order.verb == Verb.ABORT and pause_rounds.why_vain(state, current, Verb.ANSWER):
        return refuse_length(order.text)
    asks = {each.id: each.question.choices for each in chain.asking}
    cid, what = chain.coordinator_id, _round_name(chain, current)
    return refuse_order(order, current.kind, asks, cid, what, whole=request.whole)


def _no_room(state: TreeMemory, chain: Coordinator, current: Round, request: ResumeRequested) -> Refusal | None:
    """Return a refusal if the budgets leave no room for what a verb does (rulings C3, F4). An answer always has an
    effect: at least the finalize gets it.
    """
    verb = Verb(request.order.verb)
    if request.answers and verb is Verb.ANSWER:
        return None
    why = pause_rounds.why_vain(state, current, verb)
    if why is None:
        return None
    left = pause_rounds.takes(state, current)
    message = f"{why}: {_round_name(chain, current)} still takes {', '.join(left)}"
    return Refusal(ResumeFault.NO_ROOM, message, {"commands": list(answers.commands(chain.coordinator_id, left, ()))})


def _round_name(chain: Coordinator, current: Round) -> str:
    return f"round {current.number} of {chain.coordinator_id}"


def resume(step: Step, request: ResumeRequested) -> Refusal | AcceptedResume:
    """Carry out a resume if it is the first accepted one; otherwise change nothing, and return the refusal (ruling
    F4).
    """
    outcome = judge(step.state, request)
    who: Data = {"actor": short_line(request.order.actor), "channel": short_line(request.order.channel)}
    if isinstance(outcome, Refusal):
        _record_refusal(step, request, outcome, who)
        return outcome
    chain, current, verb = outcome
    request_id = cut_to_bound("request", request.order.request_id)
    current.requests = [*current.requests, request_id][-50:] if request_id else current.requests
    text = answers.clean(request.order.text).strip()
    words = answers.parse(text, [asked.id for asked in chain.asking]) if verb is Verb.ANSWER else Answers(text=text)
    step.state.last_refusal = ""
    recorded = _record_order(step, chain, current, verb, words, who | {"request": request_id})
    carry_out(step, chain, current, verb, f"by {_signature(who)}", words)
    return AcceptedResume(chain.coordinator_id, current.number, verb, recorded)


def _signature(who: Data) -> str:
    return signature(str(who["actor"]), str(who["channel"]))


def _record_order(step: Step, chain: Coordinator, current: Round, verb: Verb, words: Answers, who: Data) -> list[str]:
    """Record an event that repeats the recorded answers, so that people notice typing mistakes. Return its lines
    (ruling F5).
    """
    lines = _recorded_lines(chain, verb, words)
    message = f"{_signature(who)}: {verb} on round {current.number} of {chain.coordinator_id}"
    data: Data = {**who, "verb": verb.value, "round": current.number, "digest": current.digest, "recorded": lines}
    data["unanswered"] = [asked.id for asked in chain.asking if verb is Verb.ANSWER and asked.id not in words.by_id]
    data["unmatched"] = list(words.unmatched)
    step.event(EventKind.RESUME_ACCEPTED, chain.coordinator_id, "; ".join([message, *lines]), data)
    return lines


def _record_refusal(step: Step, request: ResumeRequested, refusal: Refusal, who: Data) -> None:
    """Record the refusal, unless the request repeats one that was carried out."""
    if refusal.kind != ResumeFault.DUPLICATE:
        step.state.last_refusal = f"{_signature(who)}, {clock(step.now)}: {refusal.message}"
        job_id = request.order.job_id if request.order.job_id in step.state.jobs else step.state.root_id
        why: Data = {
            "why": str(refusal.kind),
            "verb": short_line(request.order.verb, 40),
            "round": request.order.round,
        }
        step.event(EventKind.RESUME_REFUSED, job_id, refusal.message, {**who, **why})
    if refusal.kind == ResumeFault.NO_ROOM and not request.answers:
        over = pause_rounds.no_room(step.state, Verb(request.order.verb))
        if over is not None:
            step.record_refusal(over, step.state.root_id)


def _recorded_lines(chain: Coordinator, verb: Verb, words: Answers) -> list[str]:
    """Return the lines that an event records of a person's text."""
    if verb is Verb.ANSWER:
        return list(_answers(chain, words))
    text = words.text
    legs = ", ".join(leg.id for leg in chain.escalated_legs)
    lines = {
        Verb.RETRY: f"run again: {legs}",
        Verb.CONTINUE: f"goes on without: {legs}",
        Verb.ABORT: "the task is summed up and ends",
        Verb.EXTEND: f"longer by {short_line(text)}",
    }
    instructions = f"instructions: {short_line(text, TEXT_SHOWN)}"
    return [lines[verb], *([instructions] if text and verb is not Verb.EXTEND else [])]


def _answers(chain: Coordinator, words: Answers) -> Iterator[str]:
    for asked in chain.asking:
        text = words.by_id.get(asked.id)
        yield f"{asked.id}: {short_line(text, TEXT_SHOWN)}" if text else f"{asked.id} stays unanswered"
    for name in words.unmatched:
        yield f"no question has the id {name}: what stands beside it is taken as it is"
    if words.guidance:
        yield f"guidance to the lead: {short_line(words.guidance, TEXT_SHOWN)}"


def carry_out(step: Step, chain: Coordinator, current: Round, verb: Verb, by: str, words: Answers) -> None:
    """Apply the effects of an accepted verb."""
    if verb is Verb.EXTEND:
        pause_rounds.extend(step, chain, current, duration(words.text))
        return
    pause_rounds.close(step, chain, ENDS[verb], by, words.text, words.by_id)
    match verb:
        case Verb.ANSWER:
            _answer(chain, words)
        case Verb.RETRY:
            _retry(step, chain, current.number, by)
        case Verb.CONTINUE:
            _continue(chain, words.text)
        case Verb.ABORT:
            _guide(chain, words.text)
            _end(step, chain, finalize.ABORTED, f"round {current.number} of {chain.coordinator_id} was aborted {by}")
        case _ as never:
            assert_never(never)
    pause_rounds.refresh(step, chain)


def _answer(chain: Coordinator, words: Answers) -> None:
    """Settle the chain's questions: tell the coordinator the answers, and which are missing (ruling F5)."""
    reply = chain.reply = chain.reply or Reply()
    reply.answers += [
        Answer(id=asked.id, question=asked.question.prompt, text=words.by_id.get(asked.id), leg=asked.leg)
        for asked in chain.asking
    ]
    reply.unmatched += words.unmatched
    chain.asking = []
    _guide(chain, words.guidance)


def _guide(chain: Coordinator, text: str) -> None:
    if text:
        chain.reply = chain.reply or Reply()
        chain.reply.guidance = f"{chain.reply.guidance}\n\n{text}".strip()


def _continue(chain: Coordinator, text: str) -> None:
    """Accept the failures, so that vote and quorum do not block (ruling F3)."""
    if chain.batch is not None:
        chain.batch.approved = True
    for leg in chain.escalated_legs:
        leg.escalated = False
    _guide(chain, text)


def _retry(step: Step, chain: Coordinator, number: int, by: str) -> None:
    """Run all failed legs of the round again, as many as the job budget allows (rulings F3, C3)."""
    for leg in chain.escalated_legs:
        leg.escalated = False
        what = f"running part {leg.id} again"
        refusal = bounds.jobs(step.state.input.settings.bounds, step.state.ledger(), 1, what)
        if refusal is None:
            step.leg_again(leg, f"runs again {by}; attempt {leg.attempt} {leg.state.in_a_sentence}: {leg.reason}")
            leg.guided_by = [*leg.guided_by, number]
        else:
            step.record_refusal(refusal, leg.job_id)


def fire_timer(step: Step, key: str) -> None:
    """Send the reminder for which the timer fired, or let its round expire; ignore outdated timers (ruling F8)."""
    for coordinator_id in step.state.rounds:
        current = step.state.open_round(coordinator_id)
        if current is not None and current.timer == key:
            _due(step, step.state.coordinators[coordinator_id], current)
            return


def _due(step: Step, chain: Coordinator, current: Round) -> None:
    if current.stage is not TimerPurpose.END and step.now < current.expires_at:
        pause_rounds.remind(step, chain, current)
        return
    current.timer = None
    waited = format_duration(max(1, round(current.expires_at - current.opened_at)))
    reason = f"nobody answered round {current.number} of {chain.coordinator_id} within {waited}"
    pause_rounds.close(step, chain, RoundEnd.EXPIRED, f"after {waited}")
    data: Data = {"round": current.number, "kind": current.kind.value, "end": RoundEnd.EXPIRED.value}
    step.event(EventKind.ROUND_EXPIRED, chain.coordinator_id, reason, data)
    _end(step, chain, EXPIRED, reason)


def _end(step: Step, chain: Coordinator, kind: str, reason: str) -> None:
    """Request the tree's finalize. A blocked task has none, so end only this chain there (ruling D4)."""
    if not step.state.is_blocked:
        finalize.request(step, kind, reason)
        return
    if chain.phase is Phase.HELD:
        job_end.chain_over(step, chain, JobState.BLOCKED, reason)
    elif chain.batch is not None:
        blocking.stop_batch(step, chain, chain.batch, reason, chain.job_id)


def answer(step: Step, waiting: int, verdict: Refusal | AcceptedResume) -> AnswerOrder:
    """Return the answer to the call that waits for its order, once the order has taken full effect."""
    if isinstance(verdict, Refusal):
        return AnswerOrder(waiting=waiting, refusal=verdict)
    lines = [f"{verdict.verb} is accepted", *(f"  {each}" for each in verdict.recorded), *_stands(step.state, verdict)]
    return AnswerOrder(waiting=waiting, text="\n".join(lines))


def _stands(state: TreeMemory, verdict: AcceptedResume) -> Iterator[str]:
    """Yield sentences on the state of the ordered round and of other open rounds; if none is open, of the tree."""
    meant = state.rounds[verdict.coordinator_id][verdict.round - 1]
    until = f"round {meant.number} of {verdict.coordinator_id} waits until {clock(meant.expires_at)}"
    yield until if meant.open else last_words(verdict.coordinator_id, meant.number, meant.closed)
    waiting = [each for each in pause_rounds.open_rounds(state) if each.coordinator_id != verdict.coordinator_id]
    yield from (f"still waiting: {each.commands[0]}" for each in waiting)
    if not meant.open and not waiting:
        yield "the task is summed up" if state.finalize else "the task goes on"
