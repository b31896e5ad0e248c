"""The end of a tree: its one finalize, the close (rulings G1, G2). The kill is in `kill`."""

from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.refusals import Refusal
from workflows.model.rounds import RoundEnd
from workflows.model.rows import DISMISS, KILL
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.cut_short import CUT_SHORT, Cut, cut_by
from workflows.policy.decisions import report
from workflows.text.plurals import quantity
from workflows.tree import blocking, job_offers, pause_rounds
from workflows.tree.chains import Coordinator, Phase
from workflows.tree.commands import CloseTree
from workflows.tree.state import Finalize
from workflows.tree.step import Step

ABORTED = "escalation_aborted"
"""The kind of a finalize that a person's `abort` requests."""


def ending(step: Step) -> bool:
    """Return whether a finalize is requested: nothing new starts, and failure policies no longer apply."""
    return step.state.finalize is not None


def trip(step: Step, refusal: Refusal, job_id: str, *, unrun: bool = True) -> None:
    """Record that a bound tripped, and request the tree's finalize. Running jobs finish; no more jobs start.

    `unrun` is false if the caller knows of no planned job that did not run. In a blocked task, only the event is
    recorded: it has no continuations (ruling D4).
    """
    step.record_refusal(refusal, job_id)
    if not step.state.is_blocked:
        path = step.state.path_of(step.state.homes[job_id])
        cut = cut_by(refusal, "the lead" if path == "root" else f"the lead of {path}")
        request(step, refusal.kind, refusal.message, cut, unrun=unrun)


def request(step: Step, kind: str, reason: str, cut: Cut | None = None, *, unrun: bool = True) -> None:
    """Request the finalize, keeping the first reason (G1); close all rounds (F9), and take back all offers (B5)."""
    if step.state.finalize is None:
        words, raised = (cut.words, cut.raised) if cut else ("", "")
        step.state.finalize = Finalize(kind=kind, reason=reason, bound=words, raised=raised, unrun=unrun)
    pause_rounds.close_all(step, RoundEnd.KILLED if step.state.killed_by else RoundEnd.OVERTAKEN, reason)
    job_offers.take_back(step)
    for chain in step.state.coordinators.values():
        if chain.batch is not None:
            blocking.stop_waiting(step, chain.batch)
    if step.state.task.state is TaskState.OPEN:
        reason = f"is being ended: {step.state.finalize.reason}"
        step.task(TaskState.OPEN, reason, way_to_its_end(step), WaitsFor.RUNS)


def way_to_its_end(step: Step) -> str:
    """Return what an ending tree waits for, and the command that ends it sooner (ruling B3)."""
    return f"what runs finishes first, a last job may sum it up; to stop all of it: {KILL} {step.state.root_id} --now"


def dismiss(step: Step, reason: str) -> None:
    """Cancel a killed task without a summary, where no continuation would have followed (ruling G2)."""
    if step.state.finalize is not None:
        step.state.finalize.done = True
    step.task(TaskState.CANCELLED, reason)


def never_began(step: Step, chain: Coordinator, become: JobState, reason: str) -> None:
    """End a coordinator's job that will not run. If it is the root's first job, dismiss the task without a summary
    (G2).
    """
    step.state.held_back.pop(chain.job_id, None)
    step.change(chain.job_id, state=become, reason=reason, next="", ended_at=step.now)
    if chain.job_id == step.state.root_id:
        chain.phase = Phase.OVER
        dismiss(step, step.state.finalize.reason if step.state.finalize else reason)


def root_over(step: Step, chain: Coordinator, job_state: JobState, reason: str) -> None:
    """End the root's chain, whose outcome becomes the task's (ruling E7).

    A killed tree gets no finalize here, because no continuation would have followed (ruling G2).
    """
    finalize, last = step.state.finalize, step.state.jobs[chain.job_id]
    if finalize is not None:
        if step.state.killed_by is not None:
            dismiss(step, finalize.reason)
    elif job_state is JobState.SUCCEEDED:
        who = "the lead" if any(job.delegation_id for job in step.state.jobs.values()) else last.agent
        step.task(TaskState.DONE, _read_with(step, f"{who} {report(last.decision)}"))
    else:
        blocking.block_task(step, f"the lead's job {chain.job_id} {job_state.in_a_sentence}: {reason}", chain.job_id)


def _read_with(step: Step, reason: str) -> str:
    """Append the tree's caveat, if any, to the reason of a successful end."""
    caveat = step.state.input.caveat
    return f"{reason}; {caveat}" if caveat else reason


def record_ignored(step: Step, outcome: JobOutcome) -> None:
    """Record that the delegations and questions of the finalize are ignored (ruling G1)."""
    if outcome.delegation_count:
        ids = [each.id for each in outcome.delegations]
        message = f"the finalize continuation may not delegate: {quantity(len(ids), 'delegation')} ignored"
        step.event(EventKind.DELEGATION_FINALIZED, outcome.job_id, message, {"delegations": ids})
    if outcome.human_questions:
        message = "the finalize continuation asked people, which is ignored"
        asked = [each.id for each in outcome.human_questions]
        step.event(EventKind.HUMAN_QUESTIONS_IGNORED, outcome.job_id, message, {"questions": asked})


def end_finalize(step: Step, job_state: JobState, reason: str) -> None:
    """End the tree with its finalize continuation, whose decision is the outcome (ruling G1)."""
    finalize = step.state.finalize
    if finalize is None:
        return
    finalize.done = True
    if step.state.killed_by is not None:
        step.task(TaskState.CANCELLED, finalize.reason)
    elif job_state is JobState.SUCCEEDED and finalize.bound and finalize.unrun:
        reason = f"{CUT_SHORT}: {finalize.bound}"
        way_on = Cut(finalize.bound, finalize.raised).way_on(step.state.input.anew)
        step.task(TaskState.DONE, _read_with(step, reason), way_on, WaitsFor.START)
        step.event(EventKind.TREE_CUT_SHORT, step.state.root_id, reason, {"cause": finalize.kind, "reason": reason})
    elif job_state is JobState.SUCCEEDED:
        step.task(TaskState.DONE, _read_with(step, f"finalized: {finalize.reason}"))
    else:
        text = f"finalized ({finalize.reason}); the finalize job {job_state.in_a_sentence}: {reason}"
        way_out = f"a finalized task takes no retry; to start it anew: {step.state.input.anew}; "
        way_out += f"to be reminded of it no more: {DISMISS} {step.state.root_id}"
        step.task(TaskState.BLOCKED, text, way_out, WaitsFor.DISMISS)
        step.event(EventKind.TASK_BLOCKED, finalize.job_id or step.state.root_id, text, {"retry": ""})


def close(step: Step) -> None:
    """Close the tree. If it is blocked, an operator can re-open it from this state (ruling D4)."""
    state = step.state
    finalize = state.finalize
    last = state.jobs[finalize.job_id if finalize and finalize.job_id else state.root.job_id]
    state.closed, state.closed_at = True, state.now
    message = f"the task {'was' if state.task.cut_short else f'is {state.task.state}:'} {state.task.reason}"
    data: Data = {
        "state": state.task.state.value,
        "jobs": len(state.jobs),
        "tokens": state.usage.total,
        "cost_usd": state.cost_usd,
        "cost_assumed": state.price_assumed,
        "elapsed": state.elapsed_seconds(state.now),
    }
    step.event(EventKind.TREE_ENDED, state.root_id, message, data)
    step.command(
        CloseTree(
            root_job_id=state.root_id,
            task_state=state.task.state,
            decision=last.decision,
            summary=last.summary,
            reason=state.task.reason,
            jobs=len(state.jobs),
            usage=state.usage,
            cost_usd=state.cost_usd,
            price_assumed=state.price_assumed,
            aborted=finalize.reason if finalize and finalize.kind == ABORTED else "",
            cut_short=state.task.cut_short,
            # A job that needed others' work has it on its own branch too.
            branches=tuple(branch for job in state.jobs.values() for branch in job.work),
        )
    )
