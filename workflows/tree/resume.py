"""Effects of a resume, and of rounds that expire (rulings F3, F4, F8).

The module `resume_verdict` decides whether a resume is taken.
"""

from typing import assert_never

from workflows.contract.size_limits import fitted, short_line
from workflows.model.briefs import Answer
from workflows.model.errors import Refusal, ResumeFault
from workflows.model.event_kinds import EventKind
from workflows.model.event_payloads import Data
from workflows.model.orders import signed
from workflows.model.rounds import Reply, Round, RoundEnd, Stage
from workflows.model.states import JobState
from workflows.policy import answers, bounds
from workflows.policy.answers import Verb, duration
from workflows.policy.times import clock
from workflows.text.durations import format_duration
from workflows.tree import finalize, job_end, resume_verdict, round_rows, rounds
from workflows.tree.chains import Coordinator, Phase
from workflows.tree.commands import AnswerOrder
from workflows.tree.events import ResumeRequested
from workflows.tree.resume_verdict import Accepted
from workflows.tree.step import Step

EXPIRED = "escalation_expired"
_ENDS = {
    Verb.ANSWER: RoundEnd.ANSWERED,
    Verb.RETRY: RoundEnd.RETRIED,
    Verb.CONTINUE: RoundEnd.CONTINUED,
    Verb.ABORT: RoundEnd.ABORTED,
}


def resume(step: Step, request: ResumeRequested) -> Refusal | Accepted:
    """Carry out a resume if it is the first accepted; otherwise return the refusal, without changes (ruling F4)."""
    found = resume_verdict.judge(step.state, request)
    who: Data = {"actor": short_line(request.order.actor), "channel": short_line(request.order.channel)}
    if isinstance(found, Refusal):
        _refused(step, request, found, who)
        return found
    chain, current, verb = found
    request_id = fitted("request", request.order.request_id)
    current.requests = [*current.requests, request_id][-50:] if request_id else current.requests
    text = answers.clean(request.order.text).strip()
    step.state.last_refusal = ""
    recorded = _accepted(step, chain, current, verb, text, who | {"request": request_id})
    carry_out(step, chain, current, verb, f"by {_signed(who)}", text)
    return Accepted(chain.coordinator_id, current.number, verb, recorded)


def _signed(who: Data) -> str:
    return signed(str(who["actor"]), str(who["channel"]))


def answer(step: Step, waiting: int, verdict: Refusal | Accepted) -> AnswerOrder:
    """Return the answer for the waiting call, once all effects of its order are applied."""
    told = resume_verdict.told(step.state, verdict)
    return (
        AnswerOrder(waiting=waiting, refusal=told)
        if isinstance(told, Refusal)
        else AnswerOrder(waiting=waiting, text=told)
    )


def _accepted(step: Step, chain: Coordinator, current: Round, verb: Verb, text: str, who: Data) -> list[str]:
    """Record an event that repeats the recorded answers, so that a typing mistake is seen (ruling F5)."""
    ids = [each.id for each in chain.asking]
    said = answers.parse(text, ids) if verb is Verb.ANSWER else answers.Answers()
    lines = resume_verdict.recorded(chain, verb, text, said)
    message = f"{_signed(who)}: {verb} on round {current.number} of {chain.coordinator_id}"
    data: Data = {**who, "verb": verb.value, "round": current.number, "digest": current.digest, "recorded": lines}
    data["unanswered"] = [each for each in ids if verb is Verb.ANSWER and each not in said.by_id]
    data["unmatched"] = list(said.unmatched)
    step.event(EventKind.RESUME_ACCEPTED, chain.coordinator_id, "; ".join([message, *lines]), data)
    return lines


def _refused(step: Step, request: ResumeRequested, refusal: Refusal, who: Data) -> None:
    """Record the refusal, except for a duplicate of a request carried out before."""
    if refusal.kind != ResumeFault.DUPLICATE:
        step.state.last_refusal = f"{_signed(who)}, {clock(step.now)}: {refusal.message}"
        job_id = request.order.job_id if request.order.job_id in step.state.jobs else step.state.root_id
        why: Data = {
            "why": str(refusal.kind),
            "verb": short_line(request.order.verb, 40),
            "round": request.order.round,
        }
        step.event(EventKind.RESUME_REFUSED, job_id, refusal.message, {**who, **why})
    if refusal.kind == ResumeFault.NO_ROOM:
        over = round_rows.no_room(step.state, Verb(request.order.verb))
        if over is not None:
            step.refused(over, step.state.root_id)


def carry_out(step: Step, chain: Coordinator, current: Round, verb: Verb, by: str, text: str) -> None:
    """What was taken takes its effect."""
    match verb:
        case Verb.EXTEND:
            rounds.extend(step, chain, current, duration(text))
            return
        case Verb.ANSWER:
            _answer(step, chain, by, text)
        case Verb.RETRY:
            _close(step, chain, verb, by, text)
            _retry(step, chain, current.number, by)
        case Verb.CONTINUE:
            _close(step, chain, verb, by, text)
            _continue(chain, text)
        case Verb.ABORT:
            _close(step, chain, verb, by, text)
            _guide(chain, text)
            _end(step, chain, finalize.ABORTED, f"round {current.number} of {chain.coordinator_id} was aborted {by}")
        case _ as never:
            assert_never(never)
    rounds.refresh(step, chain)


def _close(step: Step, chain: Coordinator, verb: Verb, by: str, text: str) -> None:
    rounds.close(step, chain, _ENDS[verb], by, text)


def _answer(step: Step, chain: Coordinator, by: str, text: str) -> None:
    """Settle the chain's questions: the coordinator gets the answers, and which are missing (ruling F5)."""
    said = answers.parse(text, [each.id for each in chain.asking])
    rounds.close(step, chain, RoundEnd.ANSWERED, by, text, said.by_id)
    reply = chain.reply = chain.reply or Reply()
    reply.answers += [
        Answer(id=each.id, question=each.question.prompt, text=said.by_id.get(each.id), leg=each.leg)
        for each in chain.asking
    ]
    reply.unmatched += said.unmatched
    chain.asking = []
    _guide(chain, said.guidance)


def _guide(chain: Coordinator, text: str) -> None:
    if text:
        chain.reply = chain.reply or Reply()
        chain.reply.guidance = f"{chain.reply.guidance}\n\n{text}".strip()


def _continue(chain: Coordinator, text: str) -> None:
    """Accept the failures: vote and quorum no longer block (ruling F3)."""
    if chain.batch is not None:
        chain.batch.approved = True
    for leg in chain.escalated:
        leg.escalated = False
    _guide(chain, text)


def _retry(step: Step, chain: Coordinator, number: int, by: str) -> None:
    """Run every failed leg of the round again, as far as the job budget allows (rulings F3, C3)."""
    for leg in chain.escalated:
        leg.escalated = False
        what = f"running leg {leg.id} again"
        refusal = bounds.jobs(step.state.input.settings.bounds, step.state.ledger(), 1, what)
        if refusal is None:
            step.leg_again(leg, f"runs again {by}; attempt {leg.attempt} ended {leg.state}: {leg.reason}")
            leg.guided_by = [*leg.guided_by, number]
        else:
            step.refused(refusal, leg.job_id)


def timer_fired(step: Step, key: str) -> None:
    """Send the reminder or expire the round of this timer; ignore stale timers (ruling F8)."""
    for coordinator_id in step.state.rounds:
        current = step.state.open_round(coordinator_id)
        if current is not None and current.timer == key:
            _due(step, step.state.coordinators[coordinator_id], current)
            return


def _due(step: Step, chain: Coordinator, current: Round) -> None:
    if current.stage is not Stage.END and step.now < current.expires_at:
        rounds.remind(step, chain, current)
        return
    current.timer = None
    waited = format_duration(max(1, round(current.expires_at - current.opened_at)))
    reason = f"nobody answered round {current.number} of {chain.coordinator_id} within {waited}"
    rounds.close(step, chain, RoundEnd.EXPIRED, f"after {waited}")
    data: Data = {"round": current.number, "kind": current.kind.value, "end": RoundEnd.EXPIRED.value}
    step.event(EventKind.ROUND_EXPIRED, chain.coordinator_id, reason, data)
    _end(step, chain, EXPIRED, reason)


def _end(step: Step, chain: Coordinator, kind: str, reason: str) -> None:
    """Request the tree's finalize; in a blocked task, which has none, end only this chain (ruling D4)."""
    if not step.state.blocked:
        finalize.request(step, kind, reason)
        return
    if chain.phase is Phase.HELD:
        job_end.chain_over(step, chain, JobState.BLOCKED, reason)
    elif chain.batch is not None:
        job_end.stop_batch(step, chain, chain.batch, reason, chain.job_id)
