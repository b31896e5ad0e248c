"""The activity that runs one attempt of a shell stage: its command, its outcome, its record. `host.attempt` opens,
finds and stops attempts; agent stages run as separate trees.
"""

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalio import activity

from activities.agents.adapter import Launch
from activities.agents.environment import allowed_variables
from activities.boxes.box import Box
from activities.git.merges.into_work_folder import MergeConflict, merge
from activities.git.registered_repository import readable_folders
from activities.git.work_folder import worktrees
from activities.host import boxing, checkouts
from activities.host.attempt import Attempt, StoppedError, run_attempt, with_way_out
from activities.host.boxing import Wanted
from activities.host.context import Context
from activities.host.disk_space import GIB
from activities.host.heartbeat import Heartbeat
from activities.host.helper_process import FILL_SECONDS, apart
from activities.host.slots import SlotNeed, Slots, in_turn
from activities.host.until_hub import until_hub
from activities.redaction.redact import map_texts, redact_text
from activities.runs import supervised_run
from activities.runs.output import last_line, last_lines
from activities.runs.supervised_run import Claim, Progress, RunEnd, RunRequest
from activities.runs.supervisor import EndKind
from activities.runtimes.known_runtimes import SHELL
from activities.stations.hook import reach
from activities.store import attempt_rows, run_rows
from activities.store.attempt_rows import AttemptRow, Offered
from activities.store.registry import repo_rows
from workflows.contract.storable import storable, storable_model
from workflows.model.errors import ServiceError
from workflows.model.long_texts import Text
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.pipeline.stages import Script, StageRun
from workflows.policy import binding_words
from workflows.text.durations import format_duration

SUMMARY_LIMIT = 500
OUTPUT_LIMIT = 12_000


@dataclass
class StageAttempt:
    """One attempt of a shell stage: its command in its own worktree."""

    context: Context
    run: StageRun
    finishing: bool = False
    _row: AttemptRow = field(init=False)
    _repo: Path = field(init=False)
    _box: Box | None = field(init=False)
    _on_progress: Callable[[Progress], None] = field(init=False)
    _started: "Future[Claim]" = field(default_factory=Future)

    @property
    def offered(self) -> Offered:
        return Offered(self.run.job_id, self.run.attempt)

    @property
    def need(self) -> SlotNeed:
        return SlotNeed(self.run.run_id, self.run.repo, SHELL)

    def known_outcome(self, row: AttemptRow) -> StageOutcome | None:
        """Return the recorded outcome, and remove the worktree of a command that was killed before it could."""
        if not row.outcome:
            return None
        self._remove_worktree()
        return StageOutcome.model_validate(row.outcome)

    def run_dir(self, row: AttemptRow) -> Path:
        return Path(row.run_dir)

    def taken_back(self) -> StageOutcome:
        return StageOutcome(state=StageState.CANCELLED, reason="stopped before it began")

    def begin(self, row: AttemptRow, beat: Heartbeat) -> None:
        """Record and make a worktree at the run's commit, merge the branches that the stage needs, and start the
        command.
        """
        context, run, self._row, self._on_progress = self.context, self.run, row, beat.see
        run_rows.stage_begins(context.store, run.row)
        known = repo_rows.must_get(context.store, run.repo)
        with until_hub(lambda reason, hint: self._waits(f"{reason}; {hint}")):
            repo = self._repo = checkouts.path_of(context, known)
            if Claim.read(Path(row.run_dir)) is None:
                checkouts.fetch(context, known, run.branch_deps, [run.base] if run.base else [])
        if activity.info().attempt > 1:  # it may have waited
            self._waits("")
        base = row.base_sha or worktrees.starting_commit(
            repo, run.base, context.host, f"service pipeline run {run.pipeline}"
        )
        attempt_rows.record_worktree(context.store, row, worktree=str(self._worktree), branch=None, base_sha=base)
        if not Claim.read(Path(row.run_dir)):
            worktree = apart(FILL_SECONDS, worktrees.add_detached, repo, self._worktree, base)
            if run.branch_deps:
                apart(FILL_SECONDS, merge, replace(worktree, base=base), run.branch_deps)
        script = map_texts(Script.model_validate_json(context.artifacts.read(run.script)), context.kept.show)
        launch = Launch(script.command, environment(context, run, script, payload_of(context, run.payload)))
        wanted = Wanted(SHELL, launch, script.command, self._worktree, lent=readable_folders(repo))
        self._box = boxing.box_of(context.home, context.settings, context.environ, wanted)
        try:
            self._started.set_result(supervised_run.begin(self._request(launch)))
        except BaseException as error:
            self._started.set_exception(error)

    def _waits(self, reason: str) -> None:
        run_rows.stage_waits(self.context.store, self.run.run_id, self.run.stage_id, reason)

    def refuse(self, row: AttemptRow, fault: ServiceError) -> StageOutcome:
        self._remove_worktree()
        conflict, stopped = fault.in_legs if isinstance(fault, MergeConflict) else "", isinstance(fault, StoppedError)
        outcome = StageOutcome(
            state=StageState.BLOCKED if conflict else StageState.CANCELLED if stopped else StageState.FAILED,
            reason=storable(redact_text(conflict or with_way_out(fault.message, fault.hint))),
        )
        facts = {"error": storable(fault.message)}
        attempt_rows.close(self.context.store, row, outcome, {}, facts)
        return outcome

    def _remove_worktree(self) -> None:
        """Remove the worktree if there is one, ignoring errors."""
        with contextlib.suppress(ServiceError, OSError):
            worktrees.dispose(checkouts.path_by_name(self.context, self.run.repo), self._worktree)

    @property
    def _worktree(self) -> Path:
        name = worktrees.worktree_name(self.run.repo, f"{self.run.job_id}-{self.run.attempt}")
        return worktrees.worktree_path(self.context.home.worktrees, name)

    async def play(self) -> StageOutcome:
        """Wait for the command's end, judge it, and record it."""
        claim = self._started.result()
        end = await self.context.room.follow(Path(self._row.run_dir), claim, self._worktree, self._on_progress)
        self.finishing = True
        return await in_turn(self._finish, end)

    async def stop(self) -> None:
        """End the command; `play` then records what the command left."""
        await supervised_run.stop(Path(self._row.run_dir), self.context.settings.worker.stop_grace)

    def called_off(self, ended: StageOutcome) -> StageOutcome:
        """Return the outcome unchanged."""
        return ended

    def _request(self, launch: Launch) -> RunRequest:
        env = launch.env
        if self._box is not None:
            boxing.hand_over(self._box)
            env = boxing.environment(env)
        return RunRequest(
            run_dir=Path(self._row.run_dir),
            argv=launch.argv,
            cwd=self._worktree,
            env=env,
            box=self._box,
            timeout_seconds=self.run.timeout_seconds,
            grace_seconds=self.context.settings.worker.stop_grace,
            most_bytes=self.context.settings.worker.job_disk * GIB,
        )

    def _finish(self, end: RunEnd) -> StageOutcome:
        boxing.take_back(self._worktree, kept=False)
        outcome = storable_model(judge(end, self.run.timeout_seconds))
        output = {
            "output": storable(last_lines(end.stdout, OUTPUT_LIMIT)),
            "stderr": storable(last_lines(end.stderr, OUTPUT_LIMIT)),
            "end": end.kind.value,
            "box": boxing.name_of(self._box),
        }
        run_rows.stage_ends(self.context.store, self.run.row, outcome)
        reach("stage ended", self.run.run_id)
        attempt_rows.close(self.context.store, self._row, outcome, {}, output)
        worktrees.dispose(self._repo, self._worktree, later=True)
        return outcome


class Stages:
    """The activity, bound to its host; it shares the slots of the host with the agents (ruling C8)."""

    def __init__(self, context: Context, slots: Slots) -> None:
        self._context = context
        self._slots = slots

    @activity.defn(name="run_stage")
    async def run_stage(self, run: StageRun) -> StageOutcome:
        """Run one attempt of a shell stage."""
        attempt: Attempt[StageOutcome] = StageAttempt(self._context, run)
        outcome = await run_attempt(self._context, self._slots, attempt)
        return outcome.model_copy(update={"of": run.attempt_name})


def payload_of(context: Context, text: Text) -> dict[str, str]:
    """Return a run's whole payload, with stored secrets put back into it."""
    return map_texts(dict(json.loads(context.artifacts.read(text))), context.kept.show)


def environment(context: Context, run: StageRun, script: Script, payload: dict[str, str]) -> dict[str, str]:
    """Build the whole environment of a stage: the variables that agents get, the stage's own, and the payload (ruling
    K1).
    """
    shell = context.settings.runtimes.get(SHELL)
    seen = allowed_variables(shell.env if shell else (), context.environ)
    own = {
        "SERVICE_RUN_ID": run.run_id,
        "SERVICE_PIPELINE": run.pipeline,
        "SERVICE_STAGE": run.stage_id,
        "SERVICE_ATTEMPT": str(run.attempt),
        "SERVICE_REPO": run.repo,
        **binding_words.variables(run.pull_request, run.issue),
    }
    return seen | script.env | own | {f"SERVICE_PAYLOAD_{key.upper()}": text for key, text in payload.items()}


def judge(end: RunEnd, timeout_seconds: float | None) -> StageOutcome:
    """Judge an ended command; its last line of output is the summary."""
    summary = redact_text(last_line(end.stdout))[:SUMMARY_LIMIT]
    match end.kind:
        case EndKind.EXITED if end.exit_code == 0:
            return StageOutcome(state=StageState.SUCCEEDED, summary=summary)
        case EndKind.EXITED:
            how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
            reason = f"the command ended with {how}"
        case EndKind.TIMED_OUT:
            reason = f"the command was stopped after its timeout of {format_duration(timeout_seconds or 0)}"
        case EndKind.CANCELLED if end.error:
            reason = end.error
        case EndKind.CANCELLED:
            return StageOutcome(state=StageState.CANCELLED, reason="stopped on order", summary=summary)
        case EndKind.NOT_STARTED:
            reason = f"the command could not be started: {end.error}"
        case EndKind.UNKNOWN:
            reason = f"nobody saw how the command ended ({end.problem or 'was the machine restarted?'})"
    last = redact_text(last_line(end.stderr))[:SUMMARY_LIMIT]
    why = f"{f': {last}' if last else ''}{f'; {end.ran_out}' if end.ran_out else ''}"
    return StageOutcome(state=StageState.FAILED, reason=f"{reason}{why}", summary=summary)
