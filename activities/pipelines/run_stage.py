"""The activity that runs one attempt of a shell stage to its recorded outcome, once however often it is called."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakValueDictionary

from temporalio import activity

from activities.agents.environment import ALLOWED
from activities.git import worktrees
from activities.git.merge import merge
from activities.heartbeat import Heartbeat, beating
from activities.jobs.context import Context
from activities.jobs.places import Need, Places
from activities.jobs.run_job import Over, Playable, from_begin_to_end
from activities.jobs.workspace import conflict
from activities.runs import run as runs
from activities.runs.output import last_lines, last_words
from activities.runs.run import Claim, Progress, RunEnd, RunRequest
from activities.runs.supervisor import EndKind
from activities.store import claims, pipeline_runs, repos
from activities.store import runs as stored_runs
from activities.store.claims import Offered
from activities.store.runs import Run
from workflows.contract import durations
from workflows.contract.redact import redact
from workflows.contract.strings import storable, storable_model
from workflows.errors import NotFoundError, ServiceError
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.pipeline.stage_run import Script, StageRun
from workflows.tree.jobs import Text

SUMMARY_LIMIT = 500
OUTPUT_LIMIT = 12_000


@dataclass(frozen=True)
class Place:
    """The worktree of a stage; no run ever happens outside one."""

    repo: Path
    path: Path


@dataclass
class StageAttempt:
    """One attempt in flight."""

    context: Context
    run: StageRun
    row: Run
    place: Place
    on_progress: Callable[[Progress], None]
    finishing: bool = False

    async def play(self) -> StageOutcome:
        """The command, what became of it, its record."""
        request = await asyncio.to_thread(self._request)
        end = await runs.run(request, self.on_progress)
        self.finishing = True
        return await asyncio.to_thread(self._finish, end)

    async def stop(self) -> None:
        """End the command; `play` goes on to record what it left."""
        await runs.stop(Path(self.row.run_dir), self.context.settings.worker.stop_grace)

    def called_off(self, ended: StageOutcome) -> StageOutcome:
        """It has ended as it has."""
        return ended

    def _request(self) -> RunRequest:
        script = Script.model_validate_json(self.context.artifacts.read(self.run.script))
        return RunRequest(
            run_dir=Path(self.row.run_dir),
            argv=script.command,
            cwd=self.place.path,
            env=environment(self.context, self.run, script, payload_of(self.context, self.run.payload)),
            timeout_seconds=self.run.timeout_seconds,
            grace_seconds=self.context.settings.worker.stop_grace,
        )

    def _finish(self, end: RunEnd) -> StageOutcome:
        outcome = storable_model(judge(end, self.run.timeout_seconds))
        output = {
            "output": storable(last_lines(end.stdout, OUTPUT_LIMIT)),
            "stderr": storable(last_lines(end.stderr, OUTPUT_LIMIT)),
            "end": end.kind.value,
        }
        pipeline_runs.stage_ends(self.context.store, self.run.row, outcome)
        stored_runs.record(self.context.store, self.row, outcome.model_dump(mode="json"), {}, output)
        worktrees.dispose(self.place.repo, self.place.path)
        return outcome


class Stages:
    """The activity, bound to its host; it shares the places of the host with the agents (ruling C8)."""

    def __init__(self, context: Context, places: Places) -> None:
        self._context = context
        self._places = places
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()

    @activity.defn(name="run_stage")
    async def run_stage(self, run: StageRun) -> StageOutcome:
        """Start, or re-attach to, one attempt of a stage; a recorded outcome is returned as it is."""
        beat = Heartbeat()
        async with self._locks.setdefault((run.job_id, run.attempt), asyncio.Lock()), beating(beat):
            known = await asyncio.to_thread(stored_runs.get, self._context.store, run.job_id, run.attempt)
            if known and known.outcome:
                return StageOutcome.model_validate(known.outcome)
            runs_already = known is not None and Claim.read(Path(known.run_dir)) is not None
            async with self._places.taken(Need(run.run_id, run.repo, "shell"), runs_already=runs_already):
                beat.begun()
                return await from_begin_to_end(lambda: self._begin(run, beat))

    def _begin(self, run: StageRun, beat: Heartbeat) -> Playable[StageOutcome]:
        """Its claim first: what was stopped before leaves no trace (ruling B5)."""
        run_dir = self._context.home.runs / f"{run.job_id}.{run.attempt}"
        offered = Offered(run.job_id, run.attempt)
        row = claims.begin(self._context.store, offered, host=self._context.host, run_dir=str(run_dir))
        if row is None:
            return Over(StageOutcome(state=StageState.CANCELLED, reason="stopped before it began"))
        pipeline_runs.stage_begins(self._context.store, run.row)
        try:
            return StageAttempt(self._context, run, row, self._prepare(run, row), beat.see)
        except ServiceError as fault:
            return Over(self._refuse(run, row, fault))

    def _prepare(self, run: StageRun, row: Run) -> Place:
        """A worktree at the run's commit, with the work of the stages it needs merged in; recorded first."""
        repo = self._checkout(run)
        path = self._path(run)
        base = row.base_sha or worktrees.commit_of(repo, run.base or "HEAD")
        stored_runs.place(self._context.store, row, worktree=str(path), branch=None, base_sha=base)
        if not Claim.read(Path(row.run_dir)):
            merge(replace(worktrees.add_detached(repo, path, base), base=base), run.branch_deps)
        return Place(repo, path)

    def _refuse(self, run: StageRun, row: Run, fault: ServiceError) -> StageOutcome:
        """The stage cannot be started: that is its outcome, with the way out."""
        with contextlib.suppress(ServiceError, OSError):
            worktrees.dispose(self._checkout(run), self._path(run))
        merged = conflict(fault)
        reason = merged or (f"{fault.message} (try: {fault.hint})" if fault.hint else fault.message)
        state = StageState.BLOCKED if merged else StageState.FAILED
        outcome = StageOutcome(state=state, reason=storable(redact(reason)))
        facts = {"error": storable(fault.message)}
        stored_runs.record(self._context.store, row, outcome.model_dump(mode="json"), {}, facts)
        return outcome

    def _path(self, run: StageRun) -> Path:
        return worktrees.place(
            self._context.home.worktrees, f"{run.repo.replace('/', '--')}/{run.job_id}-{run.attempt}"
        )

    def _checkout(self, run: StageRun) -> Path:
        repo = repos.get(self._context.store, run.repo)
        if repo is None:
            raise NotFoundError(f"the repository {run.repo} is not registered", f"service repo add {run.repo} PATH")
        return Path(repo.path)


def payload_of(context: Context, text: Text) -> dict[str, str]:
    """A run's payload, put back together."""
    return dict(json.loads(context.artifacts.read(text)))


def environment(context: Context, run: StageRun, script: Script, payload: dict[str, str]) -> dict[str, str]:
    """The whole environment of a stage: what agents get of the worker's, the stage's own, the payload (ruling K1)."""
    shell = context.settings.runtimes.get("shell")
    names = (*ALLOWED, *(shell.env if shell else ()))
    passed = {name: context.environ[name] for name in names if name in context.environ}
    told = {
        "SERVICE_RUN_ID": run.run_id,
        "SERVICE_PIPELINE": run.pipeline,
        "SERVICE_STAGE": run.stage_id,
        "SERVICE_ATTEMPT": str(run.attempt),
        "SERVICE_REPO": run.repo,
    }
    return passed | script.env | told | {f"SERVICE_PAYLOAD_{key.upper()}": text for key, text in payload.items()}


def judge(end: RunEnd, timeout_seconds: float | None) -> StageOutcome:
    """What an ended command means; its last line is what it has to say."""
    said = redact(last_words(end.stdout))[:SUMMARY_LIMIT]
    match end.kind:
        case EndKind.EXITED if end.exit_code == 0:
            return StageOutcome(state=StageState.SUCCEEDED, summary=said)
        case EndKind.EXITED:
            how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
            reason = f"the command ended with {how}"
        case EndKind.TIMED_OUT:
            reason = f"the command was stopped after its timeout of {durations.format_duration(timeout_seconds or 0)}"
        case EndKind.CANCELLED:
            return StageOutcome(state=StageState.CANCELLED, reason="stopped on order", summary=said)
        case EndKind.NOT_STARTED:
            reason = f"the command could not be started: {end.error}"
        case EndKind.UNKNOWN:
            reason = "nobody saw how the command ended (was the machine restarted?)"
    last = redact(last_words(end.stderr))[:SUMMARY_LIMIT]
    return StageOutcome(state=StageState.FAILED, reason=f"{reason}{f': {last}' if last else ''}", summary=said)
