"""What makes a coordinator wait for people: questions, failures, and results that come in meanwhile (F2, F3, F8).

The pauses themselves are opened and closed in `rounds`.
"""

from workflows.contract.models import HumanQuestion
from workflows.contract.strings import fitted, size
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.payload import Data
from workflows.model.rounds import Asked
from workflows.tree import held_sets, rounds
from workflows.tree.chains import Coordinator, Leg, Phase
from workflows.tree.step import Step

PROMPT_LIMIT = 2_000
MOST_CHOICES = 20
ASKED_BYTES = 64 * 1024
"""What the open questions of a whole tree may take of its memory; what is asked beyond that is shown cut (B6)."""
SHORT_LIMIT = 200
_NOT_KEPT = frozenset({"notices", "findings", "touched_files", "human_questions", "conflict", "first"})


def ask(step: Step, chain: Coordinator, job_id: str, questions: tuple[HumanQuestion, ...], leg: str = "") -> None:
    """A coordinator or one of its legs asks people; in a tree that ends nobody is asked any more (ruling F2)."""
    if not questions:
        return
    data: Data = {"questions": [each.id for each in questions]}
    if step.state.finalize is not None:
        step.event(EventKind.HUMAN_QUESTIONS_IGNORED, job_id, "the tree is ending: its questions are ignored", data)
        return
    for question in questions:
        _add(step, chain, job_id, question, leg)
    if step.state.blocked or (leg and chain.batch is not None and chain.batch.stopped):
        message = f"{len(questions)} question(s) wait until what is blocked is opened again"
        step.event(EventKind.HUMAN_QUESTIONS_DEFERRED, job_id, message, data)
    elif leg:
        rounds.refresh(step, chain)


def waits(chain: Coordinator, leg: Leg) -> bool:
    """People have not answered yet what the leg asked."""
    return any(each.leg == leg.id for each in chain.asking)


def _fitting(step: Step, question: HumanQuestion) -> HumanQuestion:
    """The question, shortened when the tree already asks very much; whole it stands in its job's result."""
    asked = [each.question for chain in step.state.coordinators.values() for each in chain.asking]
    if size([each.model_dump() for each in (*asked, question)]) <= ASKED_BYTES:
        return question
    short = f"{fitted('reason', question.prompt)[:SHORT_LIMIT]} [cut: the whole question is in the job's result]"
    return question.model_copy(update={"prompt": short, "choices": ()})


def _add(step: Step, chain: Coordinator, job_id: str, question: HumanQuestion, leg: str) -> None:
    """The same question of the same leg is asked once; one whose id is taken is asked as `<leg>.<id>`."""
    choices = tuple(_cut(each) for each in question.choices[:MOST_CHOICES])
    prompt = _cut(question.prompt) + _more(question.choices[MOST_CHOICES:])
    shown = question.model_copy(update={"prompt": prompt, "choices": choices})
    fitting = _fitting(step, shown)
    if any(each.leg == leg and each.question in (shown, fitting) for each in chain.asking):
        return
    taken = {each.id for each in chain.asking} | {each.id for each in (chain.reply.answers if chain.reply else ())}
    names = [question.id, f"{leg}.{question.id}"] if leg else [question.id]
    names += [f"{names[-1]}.{n}" for n in range(2, len(taken) + 3)]
    name = next(each for each in names if each not in taken)
    chain.asking.append(Asked(id=name, question=fitting, job_id=job_id, leg=leg))


def _more(choices: tuple[str, ...]) -> str:
    """Choices beyond what a round lists are told, as far as there is room; an answer need not be one of them."""
    return _cut(f"\n[and {len(choices)} more choices: {'; '.join(choices)}]") if choices else ""


def _cut(text: str) -> str:
    return text if len(text) <= PROMPT_LIMIT else f"{text[:PROMPT_LIMIT]} [cut: {len(text):,} characters in all]"


def failed(step: Step, chain: Coordinator, leg: Leg) -> None:
    """A leg with policy escalate_human failed for good: a person decides (ruling F3)."""
    leg.escalated = True
    rounds.refresh(step, chain)


def hold(step: Step, chain: Coordinator, outcome: JobOutcome) -> bool:
    """Keep a result back while its coordinator asks, or its delegations while the tree starts nothing (F2, F8, D4)."""
    asks = any(not each.leg for each in chain.asking)
    waits = step.state.paused or step.state.blocked
    if step.state.finalize is not None or not (asks or (waits and outcome.delegations)):
        return False
    said = {"summary": fitted("summary", outcome.summary), "reason": fitted("summary", outcome.reason)}
    outcome = held_sets.kept(step, chain, outcome.model_copy(update=said))
    dropped = _NOT_KEPT | {"agents"} if asks else _NOT_KEPT
    chain.phase, chain.held = Phase.HELD, JobOutcome.model_validate(outcome.model_dump(exclude=set(dropped)))
    rounds.refresh(step, chain)
    rounds.show(step)
    return True
