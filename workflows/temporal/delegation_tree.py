"""The workflow of a delegation tree: feeds events to the reducer and carries out its commands."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, TerminatedError
from temporalio.workflow import ChildWorkflowHandle

with workflow.unsafe.imports_passed_through():
    from workflows.model.jobs import JobOutcome, JobRun
    from workflows.model.orders import Kill, Retry
    from workflows.model.refusals import Refusal, ResumeFault
    from workflows.model.rows import Records, merge_records
    from workflows.model.states import JobState
    from workflows.policy.answers import SHOWS_REFUSALS
    from workflows.policy.moving import Move
    from workflows.policy.storable_rows import reduce_row
    from workflows.temporal import attempts, calls, close_status, search, writes
    from workflows.temporal.calls import OfferClaim
    from workflows.temporal.children import Child
    from workflows.temporal.delegation import DelegatedAttempt
    from workflows.temporal.event_loop import Loop, shield_from_cancel
    from workflows.temporal.messages import Attention, DelegationInput, HostReport, Outcome, TreeStart
    from workflows.temporal.messages_by_hand import between_ours, kill_request, resume_request, takes_anything
    from workflows.temporal.moving import Moves
    from workflows.temporal.notify import tell_people
    from workflows.text.markdown import summary_line
    from workflows.tree.commands import (
        AnswerOrder,
        CancelJob,
        CancelTimer,
        CloseTree,
        Command,
        Record,
        RunChild,
        RunCoordinator,
        StartTimer,
        TakeBack,
    )
    from workflows.tree.details import details, whole
    from workflows.tree.events import (
        Event,
        JobBegun,
        JobEnded,
        JobHeldUp,
        KillRequested,
        RecordRefused,
        ResumeRequested,
        RetryRequested,
        TimerFired,
        TreeStarted,
    )
    from workflows.tree.pause_rounds import open_rounds, timers
    from workflows.tree.reducer import new_tree, reduce
    from workflows.tree.reopen import refuse_retry
    from workflows.tree.resume import refuse_resume
    from workflows.tree.state import TreeMemory


TOLD_BY_WHOM = "terminated-legs-say-by-whom"
JUDGED = ("room-for-all-verbs", "verbs-are-tried-on-a-copy")
"""Patches that histories of 0.2.0 may carry."""
BACK_FIRST = "offers-are-taken-back-before-rows"
"""A patch: trees of earlier releases wrote the rows of a pause before they took offers back, and must do so in a
replay.
"""
ANSWERS = "answers-are-always-taken"
"""A patch: trees of earlier releases refused answers if the job budget was used up, and must do so in a replay."""


@workflow.defn
class DelegationTree:
    """One tree. The root job and every continuation run in this workflow, delegations in child workflows."""

    @workflow.init
    def __init__(self, start: TreeStart) -> None:
        self._start = start
        self._state = start.state or new_tree(start.input)
        self._by_hand = self._state.input.settings.by_hand
        self._loop = Loop[Event, Command](lambda event: reduce(self._state, event))
        self._calls = 0
        self._waiting: set[int] = set()
        self._answers: dict[int, AnswerOrder] = {}
        self._attention = ""
        self._told_parent = self._waits_for()
        self._look_again = False
        self._tells = start.tells
        self._outcomes: dict[str, Outcome] = {}
        self._closed: CloseTree | None = None
        self._moves = Moves()
        if start.state is None:
            self._loop.inbox.append(TreeStarted(now=workflow.time()))
        for order in (start.retry, start.taken_up):
            if order is not None:
                self._loop.inbox.append(order)

    @workflow.run
    async def run(self, start: TreeStart) -> CloseTree:
        # The outage does not count as a pause: taking the tree up shifts its rounds by it (`reopen.take_up`).
        now = start.taken_up.since if start.taken_up else workflow.time()
        waiting = timers(self._state, now) if start.state else ()
        life = self._live([*start.coordinators, *start.children, *waiting])
        closed = await shield_from_cancel(life, lambda: self.kill(Kill(actor="temporal", immediate=True)))
        return await close_status.close(closed, closed.task_state, closed.reason, tells=self._tells)

    @workflow.signal(description="graceful end of the tree; immediate also stops running agents")
    @takes_anything
    def kill(self, *sent: object) -> None:
        self._order(kill_request(sent, workflow.time(), by_hand=self._by_hand))

    @workflow.signal(description="end a pause: answer, retry, continue, abort, extend")
    @takes_anything
    def resume(self, *sent: object) -> None:
        self._order(self._patched_order(resume_request(sent, workflow.time(), by_hand=self._by_hand)))

    @workflow.signal(description="what a host tells of this tree's jobs: begun, held up")
    @between_ours(HostReport)
    def report(self, sent: HostReport) -> None:
        """Apply a host's report without an activity, unlike an order: a report starts nothing, and affects the numbers
        of its own jobs' events only.
        """
        now = workflow.time()
        for begun in sent.begun:
            self._loop.inbox.append(JobBegun(now=now, job_id=begun.job_id, offer=begun.offer, at=begun.at))
        for held in sent.held_up:
            self._loop.inbox.append(JobHeldUp(now=now, **dict(held)))

    @workflow.signal(description="what a delegation that was cancelled or taken up has left")
    @between_ours(Outcome)
    def outcome(self, sent: Outcome) -> None:
        self._outcomes[sent.workflow_id] = sent

    @workflow.signal(description="a coordinator's host is lost or drained: offer its job elsewhere")
    @between_ours(Move)
    def move(self, order: Move) -> None:
        self._moves.order(order)

    @workflow.signal(description="write every row again: the store has those of a course that was given up")
    @takes_anything
    def look_again(self, *_: object) -> None:
        self._look_again = True
        self._loop.inbox.append(TimerFired(now=workflow.time(), key=""))

    @workflow.signal(description="its pipeline run was reset: tell the new run how this waits and ends")
    @takes_anything
    def take_up(self, *_: object) -> None:
        self._tells, self._told_parent = True, ""
        self._loop.inbox.append(TimerFired(now=workflow.time(), key=""))

    @workflow.query(description="all the tree knows; also of a workflow that was ended from outside")
    def state(self) -> TreeMemory:
        return self._state

    @workflow.update(name="resume", description="end a pause, and learn at once what became of it")
    @takes_anything
    async def resume_now(self, *sent: object) -> str:
        """Apply an order and return its result. Concurrent orders may all pass the validator; the reducer then decides
        on each.
        """
        self._calls += 1
        order = resume_request(sent, workflow.time(), waiting=self._calls, by_hand=self._by_hand)
        self._waiting.add(order.waiting)
        self._order(self._patched_order(order), by_update=True)
        await workflow.wait_condition(lambda: order.waiting in self._answers)
        self._waiting.discard(order.waiting)
        answer = self._answers.pop(order.waiting)
        if answer.refusal is not None:
            raise _update_error(answer.refusal)
        return answer.text

    @resume_now.validator
    @takes_anything
    def _may_resume(self, *sent: object) -> None:
        order = resume_request(sent, workflow.time(), waiting=1, by_hand=self._by_hand)
        entire = order.whole or order.order.channel in SHOWS_REFUSALS
        refusal = refuse_resume(self._state, order.model_copy(update={"answers": True, "whole": entire}))
        if refusal and refusal.kind not in {ResumeFault.DUPLICATE, ResumeFault.NO_ROOM}:  # these the reducer tells of
            raise _update_error(refusal)

    @workflow.update(description="run a failed job again")
    def retry(self, order: Retry) -> None:
        self._order(RetryRequested(now=workflow.time(), actor=order.actor, job_id=order.job_id), by_update=True)

    @retry.validator
    def _may_retry(self, order: Retry) -> None:
        if why_not := refuse_retry(self._state, order.job_id):
            raise ApplicationError(why_not, type="Refused", non_retryable=True)

    async def _live(self, todo: list[Command]) -> CloseTree:
        """Run until the tree is closed. An order that arrives while it closes is still reduced, and may reopen the
        tree.
        """
        for command in todo:
            self._begin(command)
        await self._loop.live(self._carry_out, lambda: self._loop.idle and self._state.closed)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._closed is None:
            raise ApplicationError("the order that re-opens the tree was refused", type="Refused", non_retryable=True)
        state = search.STATE.value_set(self._closed.task_state.value)
        workflow.upsert_search_attributes([state, search.ATTENTION.value_unset()])
        return self._closed

    def _patched_order(self, order: ResumeRequested) -> ResumeRequested:
        for patch in JUDGED:
            workflow.deprecate_patch(patch)
        return order.model_copy(update={"answers": workflow.patched(ANSWERS)})

    def _order(self, order: KillRequested | RetryRequested | ResumeRequested, *, by_update: bool = False) -> None:
        match order:
            case KillRequested():
                asks = "end the tree"
            case RetryRequested(job_id=job_id):
                asks = f"run {job_id} again"
            case ResumeRequested(order=resume):
                asks = resume.verb
        self._loop.order(order, summary_line(f"order of {order.actor}: {asks}"), by_update=by_update)

    async def _carry_out(self, todo: list[Command]) -> None:
        """Carry out commands in three steps. First take offers back, so that nothing begins once a pause, a block or an
        end is shown (ruling F8). Then write the rows, so that a running job can be looked up. Then begin the other
        commands.
        """
        claims = await self._take_back([command for command in todo if isinstance(command, TakeBack)])
        rows = merge_records([command.records for command in todo if isinstance(command, Record)])
        if rows or self._look_again:
            todo = [*todo, *await self._write(rows or Records())]
        self._closed = next((command for command in reversed(todo) if isinstance(command, CloseTree)), self._closed)
        if self._state.closed and self._state.is_blocked:
            await writes.keep(self._state)
        await self._tell_parent()
        self._show()  # before continue-as-new: the next run does not know what this one showed
        if self._should_continue_as_new(todo):
            self._continue_as_new(todo)
        for command in todo:
            if isinstance(command, TakeBack) and claims is not None:
                self._apply_claim(command, claims.get(command.offer))
            else:
                self._begin(command)

    async def _take_back(self, commands: list[TakeBack]) -> dict[int, OfferClaim] | None:
        """Take offers back. Return their claims by number, except those for which the store failed permanently."""
        if not commands or not workflow.patched(BACK_FIRST):
            return None
        offers = [_offer_of(command) for command in commands]
        answers = await asyncio.gather(*map(attempts.take_back, offers), return_exceptions=True)
        return {
            offer.offer: claim for offer, claim in zip(offers, answers, strict=True) if isinstance(claim, OfferClaim)
        }

    async def _write(self, rows: Records) -> list[Command]:
        """Write rows. If the store rejects them permanently, write them shortened; if it rejects even those, fail the
        workflow (B6).

        If the tree was reset, so that the stored rows are newer than its state, write all its rows.
        """
        written, more = await writes.write(rows), list[Command]()
        if written.refused:
            ids = tuple(job.job_id for job in rows.jobs)
            more = reduce(self._state, RecordRefused(now=workflow.time(), why=written.refused, job_ids=ids))
            shortened = [command.records for command in more if isinstance(command, Record)]
            rows = merge_records([reduce_row(rows), *shortened]) or Records()
            written = await writes.write(rows)
        if written.refused:
            raise writes.never("the rows of this tree", written.refused)
        if written.anew or self._look_again:
            self._look_again = False
            await writes.write(whole(self._state))
        await tell_people(rows, written.event_shift)
        return [command for command in more if not isinstance(command, Record)]

    def _show(self) -> None:
        """Update the tree's details in Temporal's web UI. Search attributes change only when a pause begins or ends."""
        workflow.set_current_details(details(self._state))
        attention = self._waits_for()
        if attention != self._attention:
            self._attention = attention
            state = self._state.task.state.value if attention else JobState.RUNNING.value
            waits = search.ATTENTION.value_set(attention) if attention else search.ATTENTION.value_unset()
            workflow.upsert_search_attributes([waits, search.STATE.value_set(state)])

    async def _tell_parent(self) -> None:
        """Signal the pipeline's run when its stage's tree begins or stops waiting for people."""
        parent, attention = workflow.info().parent, self._waits_for()
        if parent is None or attention == self._told_parent:
            return
        self._told_parent = attention
        run = workflow.get_external_workflow_handle(parent.workflow_id)
        with suppress(ApplicationError):  # it may have ended before
            await run.signal("attention", Attention(job_id=self._state.root_id, waits_for=attention))

    def _waits_for(self) -> str:
        return " and ".join(sorted({row.kind.value for row in open_rounds(self._state)}))

    def _begin(self, command: Command) -> None:
        spawn = self._loop.spawn
        match command:
            case RunCoordinator(run=run, summary=summary):
                placed = self._start.placed or bool(run.moved_from)
                work = attempts.run_job(run, self._start.host, summary, self._moves, placed=placed)
                spawn(run.job_id, work, lambda task: self._report_end(run, task))
            case RunChild(run=run, summary=summary):
                spawn(run.job_id, self._delegate(run, summary), lambda task: self._report_end(run, task))
            case StartTimer(key=key, seconds=seconds, summary=summary):
                pause = workflow.sleep(timedelta(seconds=seconds), summary=summary)
                spawn(key, pause, lambda task: self._report_timer(key, task))
            case TakeBack(job_id=job_id):
                spawn(
                    f"take back {job_id}",
                    attempts.take_back(_offer_of(command)),
                    lambda task: self._apply_claim(
                        command, None if task.cancelled() or task.exception() else task.result()
                    ),
                )
            case CancelJob(job_id=key) | CancelTimer(key=key):
                self._loop.stop(key)
            case AnswerOrder(waiting=waiting):
                self._answers[waiting] = command
            case Record() | CloseTree():
                pass

    def _should_continue_as_new(self, todo: list[Command]) -> bool:
        """Return whether to continue as new: only if nothing runs or waits, since children end with their parent's
        run.
        """
        if self._state.closed or self._waiting or not self._loop.idle:
            return False
        if any(isinstance(command, StartTimer | CancelJob | TakeBack) for command in todo):
            return False
        info, limit = workflow.info(), self._start.history_limit
        return info.is_continue_as_new_suggested() or (limit is not None and info.get_current_history_length() >= limit)

    def _continue_as_new(self, todo: list[Command]) -> None:
        workflow.continue_as_new(
            self._start.model_copy(
                update={
                    "state": self._state,
                    "retry": None,
                    "tells": self._tells,
                    "coordinators": tuple(command for command in todo if isinstance(command, RunCoordinator)),
                    "children": tuple(command for command in todo if isinstance(command, RunChild)),
                }
            )
        )

    async def _delegate(self, run: JobRun, summary: str) -> JobOutcome:
        placed = self._start.placed or bool(run.moved_from)

        def begin() -> Awaitable[ChildWorkflowHandle[DelegatedAttempt, JobOutcome]]:
            return workflow.start_child_workflow(
                DelegatedAttempt.run,
                DelegationInput(run=run, host=self._start.host, placed=placed, summary=summary),
                id=run.job_id,
                task_timeout=calls.TASK_TIMEOUT,
                static_summary=summary,
                static_details=(
                    f"In a terminal: `service job show {run.job_id}`\n\n"
                    f"Its tree: `service job tree {run.root_job_id} --watch`"
                ),
                search_attributes=search.attributes(run, JobState.RUNNING.value),
            )

        def fits(outcome: JobOutcome) -> bool:
            return outcome.attempt == run.attempt

        child = Child(run.job_id, JobOutcome, begin, self._outcomes, fits)
        try:
            return attempts.of_this_attempt(await child.run(), run)
        except ChildWorkflowError as error:
            if not isinstance(error.cause, TerminatedError):
                raise
            workflow.deprecate_patch(TOLD_BY_WHOM)
            reason = await calls.termination_reason(run.job_id, error.run_id)
            if not reason:
                raise
            return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.FAILED, reason=reason)

    def _report_end(self, run: JobRun, task: asyncio.Task[JobOutcome]) -> None:
        if lost := close_status.end_without_outcome(task):
            state = JobState.CANCELLED if lost.cancelled else JobState.FAILED
            outcome = JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=lost.reason)
        else:
            outcome = task.result()
        self._loop.add(JobEnded(now=workflow.time(), outcome=outcome))

    def _apply_claim(self, command: TakeBack, claim: OfferClaim | None) -> None:
        """Apply the claim of a take-back. If no host has begun the offer, end the wait for it; otherwise report that
        the job has begun.

        Do nothing without a claim, or with a late one: the job may run under this offer or a later one (ruling F3).
        """
        job_id, offer = command.job_id, self._state.offers.get(command.job_id)
        if claim is None or offer is None or offer.number != command.offer:
            return
        if claim.begun_at is None:
            self._loop.stop(job_id)
        else:
            begun = JobBegun(now=workflow.time(), job_id=job_id, offer=command.offer, at=claim.begun_at)
            self._loop.inbox.append(begun)

    def _report_timer(self, key: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._loop.add(TimerFired(now=workflow.time(), key=key))


def _offer_of(command: TakeBack) -> calls.OfferKey:
    return calls.OfferKey(job_id=command.job_id, attempt=command.attempt, offer=command.offer)


def _update_error(refusal: Refusal) -> ApplicationError:
    """Convert a refusal to the error of an update, with what to type instead."""
    return ApplicationError(refusal.message, refusal.data, type=refusal.kind, non_retryable=True)
