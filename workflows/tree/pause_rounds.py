"""Rounds: opening, joining, extending and closing them, reminders, and their rows (rulings B3, F1, F2, F6, F8).

While a round is open, nothing starts in the whole tree. Running jobs may end, but their effects wait until the last
round closes.
"""

from collections.abc import Mapping, Sequence

from workflows.contract.models import HumanQuestion
from workflows.model.briefs import Answer
from workflows.model.event_kinds import Data, EventKind
from workflows.model.refusals import Refusal
from workflows.model.rounds import Asked, Reply, Round, RoundEnd, RoundKind, TimerPurpose
from workflows.model.rows import FailingRecord, QuestionRecord, RoundRecord
from workflows.model.states import TaskState, WaitsFor
from workflows.policy import bounds, state_limits
from workflows.policy.answers import TAKES, Verb, commands
from workflows.text.digests import digest
from workflows.text.durations import clock, format_duration
from workflows.text.plurals import quantity
from workflows.tree import job_offers
from workflows.tree.chains import Coordinator, Phase
from workflows.tree.commands import CancelTimer, StartTimer
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step

STAGES = {TimerPurpose.HALF: 0.5, TimerPurpose.NINETY: 0.9, TimerPurpose.END: 1.0}
"""When a round's timers fire, as fractions of its time (ruling F8)."""

_DUE = {TimerPurpose.HALF: "first reminder", TimerPurpose.NINETY: "last reminder", TimerPurpose.END: "nobody answered"}
"""What happens when a round's timer fires, as the web UI shows it."""

COMMAND_LIMIT = 500
"""Maximum length of a command in a job's or task's row; only the round's row has the whole command."""

REASON_LIMIT = 300

_RUNS = {Verb.RETRY: "a retry", Verb.CONTINUE: "a continue", Verb.ANSWER: "an answer"}
"""The verbs that run one more job, with their names in refusals."""


def ask(step: Step, chain: Coordinator, job_id: str, questions: tuple[HumanQuestion, ...], leg: str = "") -> None:
    """Add questions of a coordinator or one of its legs to the open ones; in an ending tree, ignore them (ruling
    F2).
    """
    if not questions:
        return
    state = step.state
    data: Data = {"questions": [each.id for each in questions]}
    if state.finalize is not None:
        step.event(EventKind.HUMAN_QUESTIONS_IGNORED, job_id, "the task is ending: its questions are ignored", data)
        return
    answered = {each.id for each in (chain.reply.answers if chain.reply else ())}
    for question in questions:
        taken = answered | {each.id for each in chain.asking}
        all_open = [each for other in state.coordinators.values() for each in other.asking]
        new = Asked(id=question.id, question=question, job_id=job_id, leg=leg)
        asked = state_limits.waiting_question(new, chain.asking, taken, all_open)
        chain.asking += [asked] if asked else []
    if state.is_blocked or (leg and chain.batch is not None and chain.batch.stopped):
        message = f"asked when the task is open again: {quantity(len(questions), 'question')}"
        step.event(EventKind.HUMAN_QUESTIONS_DEFERRED, job_id, message, data)
    elif leg:
        refresh(step, chain)


def refresh(step: Step, chain: Coordinator) -> None:
    """Open a round for the chain's open questions and failures, or add them to its open round. Do nothing in a blocked
    tree.
    """
    if step.state.finalize is not None or step.state.is_blocked or chain.phase not in {Phase.WAITING, Phase.HELD}:
        return
    if chain.phase is Phase.WAITING and (chain.batch is None or chain.batch.stopped):
        return
    current = step.state.open_round(chain.coordinator_id)
    if current is not None:
        now = digest_of(chain, current.kind, current.number)
        if now != current.digest:
            current.digest = now
            _say(step, chain, current, EventKind.ROUND_JOINED, f"more has joined: {about(chain, current)}")
    elif chain.asking:
        _open(step, chain, RoundKind.ASK)
    elif chain.escalated_legs:
        _open(step, chain, RoundKind.FAILURE)


def _open(step: Step, chain: Coordinator, kind: RoundKind) -> None:
    state = step.state
    earlier = state.rounds.setdefault(chain.coordinator_id, [])
    current = Round(
        number=len(earlier) + 1,
        kind=kind,
        opened_at=step.now,
        armed_at=step.now,
        expires_at=step.now + max(0.0, state.input.settings.escalation_ttl_seconds),
        digest=digest_of(chain, kind, len(earlier) + 1),
    )
    earlier.append(current)
    state.paused_since = step.now if state.paused_since is None else state.paused_since
    job_offers.take_back(step)
    _arm(step, chain, current, TimerPurpose.HALF)
    message = f"{about(chain, current)}; waits until {clock(current.expires_at)}"
    _say(step, chain, current, EventKind.ROUND_OPENED, message)


def extend(step: Step, chain: Coordinator, current: Round, seconds: float) -> None:
    """Extend a round beyond its remaining time, and restart its reminders (ruling F4)."""
    _disarm(step, current)
    current.expires_at = max(current.expires_at, step.now) + seconds
    current.armed_at, current.extensions = step.now, current.extensions + 1
    _arm(step, chain, current, TimerPurpose.HALF)
    message = f"round {current.number} of {chain.coordinator_id} waits until {clock(current.expires_at)}"
    _say(step, chain, current, EventKind.ROUND_EXTENDED, message)


def remind(step: Step, chain: Coordinator, current: Round) -> None:
    """Send a reminder, and start the next timer (ruling F8)."""
    left = format_duration((1 - STAGES[current.stage]) * (current.expires_at - current.armed_at))
    _arm(step, chain, current, TimerPurpose.NINETY if current.stage is TimerPurpose.HALF else TimerPurpose.END)
    _say(step, chain, current, EventKind.ROUND_REMINDER, f"{left} left: {about(chain, current)}")


def _arm(step: Step, chain: Coordinator, current: Round, stage: TimerPurpose) -> None:
    """Start the round's next timer. A round has one timer at a time."""
    again = f":{current.extensions}" if current.extensions else ""
    current.timer = f"round:{chain.coordinator_id}:{current.number}:{stage}{again}"
    current.stage = stage
    step.command(_timer(step.state, chain.coordinator_id, current, current.timer, step.now))


def _timer(state: TreeMemory, coordinator_id: str, current: Round, key: str, now: float) -> StartTimer:
    at = current.armed_at + STAGES[current.stage] * (current.expires_at - current.armed_at)
    summary = f"{state.path_of(coordinator_id)} waits for a person, round {current.number}: {_DUE[current.stage]}"
    return StartTimer(key=key, seconds=max(0.0, at - now), summary=summary)


def timers(state: TreeMemory, now: float) -> tuple[StartTimer, ...]:
    """Return the timers to start when a workflow continues from a paused state."""
    rounds = ((coordinator_id, state.open_round(coordinator_id)) for coordinator_id in state.rounds)
    return tuple(
        _timer(state, coordinator_id, current, current.timer, now)
        for coordinator_id, current in rounds
        if current and current.timer
    )


def _disarm(step: Step, current: Round) -> None:
    if current.timer is not None:
        step.command(CancelTimer(key=current.timer))
        current.timer = None


def close(
    step: Step,
    chain: Coordinator,
    end: RoundEnd,
    how: str,
    text: str = "",
    answers: Mapping[str, str] | None = None,
) -> None:
    """Close the chain's open round; with the last open round of the tree, the pause ends. The caller settles the
    questions.
    """
    current = step.state.open_round(chain.coordinator_id)
    if current is None:
        return
    _disarm(step, current)
    current.end, current.text = end, text
    current.closed = f"{end} {how} at {clock(step.now)}"
    step.round(row_of(step.state, chain, current, answers or {}))
    state = step.state
    if state.paused_since is not None and not any(state.open_round(each) for each in state.rounds):
        state.exclude(state.paused_since)
        state.paused_since = None
    show(step)


def overtake(step: Step, chain: Coordinator, why: str) -> None:
    """Close the round of a blocked batch. It opens again when an operator re-opens the batch (ruling D4)."""
    if step.state.open_round(chain.coordinator_id) is not None:
        close(step, chain, RoundEnd.OVERTAKEN, f"by a block: {why}")
        _record_end(step, chain, why)


def close_all(step: Step, end: RoundEnd, why: str) -> None:
    """Close all rounds of an ending tree, and record their questions as unanswered (rulings F9, G1)."""
    for chain in step.state.coordinators.values():
        if step.state.open_round(chain.coordinator_id) is not None:
            close(step, chain, end, f"by the end of the task: {why}")
            _record_end(step, chain, why)
        if chain.asking:
            chain.reply = chain.reply or Reply()
            unanswered = (Answer(id=each.id, question=each.question.prompt, leg=each.leg) for each in chain.asking)
            chain.reply.answers += unanswered
        chain.asking = []


def _record_end(step: Step, chain: Coordinator, why: str) -> None:
    last = step.state.rounds[chain.coordinator_id][-1]
    data: Data = {"round": last.number, "kind": last.kind.value, "end": str(last.end)}
    step.event(EventKind.ROUND_CLOSED, chain.coordinator_id, f"round {last.number} is over: {why}", data)


def _say(step: Step, chain: Coordinator, current: Round, kind: EventKind, message: str) -> None:
    """Record an event, update the round's row, and every row that names the next command."""
    row = row_of(step.state, chain, current)
    data: Data = {
        "round": current.number,
        "kind": current.kind.value,
        "digest": current.digest,
        "asks": [each.id for each in row.questions] or [each.leg for each in row.failing],
        "commands": list(row.commands),
        "expires_at": current.expires_at,
        "handle": step.state.input.settings.escalation_handle,
    }
    step.event(kind, chain.coordinator_id, message, data)
    _show_row(step, current, row)


def _show_row(step: Step, current: Round, row: RoundRecord) -> None:
    current.shown = list(row.verbs)
    step.round(row)
    show(step)


def show_verbs(step: Step) -> None:
    """Update the verbs that open rounds offer, in case the job budget was used up since."""
    for chain in step.state.coordinators.values():
        current = step.state.open_round(chain.coordinator_id)
        if current is not None and current.shown != list(takes(step.state, current)):
            _show_row(step, current, row_of(step.state, chain, current))


def show(step: Step) -> None:
    """Show the pause: set the task to waiting while a round is open, and write the command that ends it into every
    waiting row (B3).
    """
    state, task = step.state, step.state.task
    shown = open_rounds(state)
    if shown and not task.state.is_closed:
        words = reason(shown), _command(shown[0])
        if (task.state, task.reason, task.next) != (TaskState.AWAITING_HUMAN, *words):
            step.task(TaskState.AWAITING_HUMAN, *words, WaitsFor.RESUME)
    elif not shown and task.state is TaskState.AWAITING_HUMAN:
        step.task(TaskState.OPEN, "goes on")
    wanted = dict.fromkeys(_waiting(step), _command(shown[0])) if shown else {}
    wanted |= {each.job_id: _command(record) for record in shown for each in record.failing}
    wanted |= {each.job_id: _command(record) for record in shown for each in record.questions}
    wanted |= {record.job_id: _command(record) for record in shown}
    for job_id, job in state.jobs.items():
        if job_id in wanted and (job.next, job.waits_for) != (wanted[job_id], WaitsFor.RESUME):
            step.change(job_id, next=wanted[job_id], waits_for=WaitsFor.RESUME)
        elif job_id not in wanted and job.waits_for is WaitsFor.RESUME:
            step.change(job_id, next=state.first.get(job_id, ""))


def _command(record: RoundRecord) -> str:
    """Return the command that ends the pause; if that is too long, the command that asks the questions one by one."""
    first = record.commands[0]
    return first if len(first) <= COMMAND_LIMIT else f"service resume {record.coordinator_id}"


def _waiting(step: Step) -> list[str]:
    """Return the jobs that the pause delays. Legs that wait for a retry are left out: their rows say when it is due."""
    legs = (leg for leg in step.state.legs() if leg.is_unstarted and leg.timer is None)
    held = (chain.job_id for chain in step.state.coordinators.values() if chain.phase is Phase.HELD)
    return [*(leg.job_id for leg in legs), *held]


def open_rounds(state: TreeMemory) -> tuple[RoundRecord, ...]:
    """Return the rows of all open rounds, the oldest first."""
    chains = [(state.coordinators.get(asker), state.open_round(asker)) for asker in state.rounds]
    waiting = [(chain, current) for chain, current in chains if chain and current]
    return tuple(row_of(state, *pair) for pair in sorted(waiting, key=lambda pair: pair[1].opened_at))


def takes(state: TreeMemory, current: Round) -> tuple[Verb, ...]:
    """Return the verbs that a round accepts, the likeliest first, without those that could not do what they say
    (rulings C3, F4). An answer always can: at least the finalize gets it.
    """
    known = TAKES[current.kind]
    return tuple(verb for verb in known if verb is Verb.ANSWER or why_vain(state, current, verb) is None)


def why_vain(state: TreeMemory, current: Round, verb: Verb) -> str | None:
    """Return why a verb could not do in this round what it says, or None."""
    over = no_room(state, verb)
    return over.message if over else current.vain.get(verb)


def no_room(state: TreeMemory, verb: Verb) -> Refusal | None:
    """Return a refusal if the budgets leave no room for a verb: a retry runs a leg, the others a continuation (rulings
    C3, C4).
    """
    limits, used = state.input.settings.bounds, state.ledger()
    if verb not in _RUNS:
        return None
    over = bounds.jobs(limits, used, 1, _RUNS[verb])
    return over or (bounds.exhausted_budget(limits, used) if verb is Verb.RETRY else None)


def row_of(
    state: TreeMemory, chain: Coordinator, current: Round, answers: Mapping[str, str] | None = None
) -> RoundRecord:
    """Return the row of a round as of this step."""
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
            id=asked.id,
            prompt=asked.question.prompt,
            choices=asked.question.choices,
            job_id=asked.job_id,
            leg=asked.leg,
            answer=answers.get(asked.id),
        )
        for asked in chain.asking
    )


def _failing(chain: Coordinator) -> tuple[FailingRecord, ...]:
    return tuple(
        FailingRecord(leg=leg.id, job_id=leg.job_id, attempt=leg.attempt, state=leg.state, reason=leg.reason)
        for leg in chain.escalated_legs
    )


def digest_of(chain: Coordinator, kind: RoundKind, number: int) -> str:
    """Return the digest of what a round asks. It changes when questions or failures are added (ruling F1)."""
    if kind is RoundKind.ASK:
        asks = [[each.id, each.leg, each.question.prompt, list(each.question.choices)] for each in chain.asking]
    else:
        asks = [[leg.id, str(leg.attempt), leg.state, leg.reason] for leg in chain.escalated_legs]
    return digest([chain.coordinator_id, number, kind, asks])


def about(chain: Coordinator, current: Round) -> str:
    """Return one line that names the round and says what it asks."""
    which = f"round {current.number} of {chain.coordinator_id}"
    if current.kind is RoundKind.ASK:
        return f"{which} asks {', '.join(each.id for each in chain.asking)}"
    return f"{which}: {', '.join(f'{leg.id} {leg.state}' for leg in chain.escalated_legs)}; a person decides"


def reason(shown: Sequence[RoundRecord]) -> str:
    """Return why the task waits: the oldest round, and how many others are open."""
    first = shown[0]
    more = f" (and {quantity(len(shown) - 1, 'more round')} open)" if len(shown) > 1 else ""
    if first.kind is RoundKind.ASK:
        asks = "; ".join(f"{each.id}: {each.prompt}" for each in first.questions)
    else:
        asks = "; ".join(f"{each.leg} {each.state}: {each.reason}" for each in first.failing)
    return f"waits for a person{more}: {asks}"[:REASON_LIMIT]
