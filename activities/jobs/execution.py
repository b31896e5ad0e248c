"""Execution of an agent's program for a job: once, even if the worker stops meanwhile."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from activities.agents.adapter import Adapter, CannotLaunchError, Launch, ProgramCall, ProgramReport
from activities.agents.faults import Blocker, BlockerKind, ContextFull, Failed, ModelRefused, SessionLost
from activities.agents.streams import left_out
from activities.boxes.box import Box
from activities.git.work_folder import delete_later
from activities.host import boxing
from activities.host.attempt import with_way_out
from activities.host.boxing import Wanted
from activities.host.context import Context
from activities.host.disk_space import GIB
from activities.host.helper_process import FILL_SECONDS, TooMuchError, apart
from activities.host.slots import in_turn, out_of_turn
from activities.jobs.session import EarlierSession
from activities.jobs.snapshots import Snapshots
from activities.jobs.workspace import branch_name
from activities.runs import supervised_run
from activities.runs.output import read_bounded
from activities.runs.regular_files import NotRegularError
from activities.runs.run_folders import ready
from activities.runs.supervised_run import Claim, Progress, RunEnd, RunRequest
from activities.runs.supervisor import EndKind
from activities.store import usage_rows
from workflows.contract.models import Action, AutonomyPolicy
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.size_limits import too_long
from workflows.contract.storable import storable
from workflows.model.jobs import JobRun
from workflows.model.spend import Usage

READ_SECONDS = 60.0
"""Time limit for reading a program's output."""

STDERR_LIMIT = 4096
AGAIN, FRESH, REPAIR = ".again", ".fresh", ".repair"
"""Suffixes of an attempt's folders for further runs: after an unseen end, after a lost session, for a repair."""

AGAIN_REASON = "started again: its supervisor died, and nobody saw how its first run ended"


@dataclass(frozen=True)
class Executed:
    """A program that ended, and its output."""

    end: RunEnd
    report: ProgramReport
    stderr: str
    left_out: int = 0
    """Number of bytes of output that were not read."""
    result: Accepted | Rejected | None = None
    """The result in the output; None if the program failed."""
    box: str = ""
    """Name of the box that the program ran in."""


@dataclass
class Execution:
    """The programs of an attempt, one after another: the first, then its repair or a further try.

    Methods that aren't coroutines block on files.
    """

    context: Context
    adapter: Adapter
    run: JobRun
    """The run as the program sees it, with secrets in its command."""
    cwd: Path
    run_dir: Path
    on_progress: Callable[[Progress], None]
    snapshots: Snapshots
    resumes: EarlierSession = field(default_factory=EarlierSession)
    lent: tuple[Path, ...] = ()
    """Folders that the work folder's repository reads; the box permits that."""
    earlier: tuple[Path, ...] = ()
    """Folders of this attempt's deferred tries."""
    _prompts: list[str] = field(default_factory=list)
    """All prompts of the attempt's programs, to find echoes of them in their output."""
    _suffix: str = ""
    _call: ProgramCall = field(init=False)
    _claim: Claim | CannotLaunchError = field(init=False)
    """The claim of the last program, or the reason why it can't be started."""
    _box: Box | None = None

    def start(self, prompt: str) -> None:
        """Start the first program, unless it is running already."""
        self._begin("", prompt, self.resumes.session if self.resumes.folder else None)

    def repair(self, prompt: str, session: str | None) -> None:
        """Start a program in the session of the first, with the faults of its result (ruling A5)."""
        self._begin(REPAIR, prompt, session)

    async def to_its_end(self) -> Executed:
        """Wait for the program's end, and read its output. If a further run may succeed, run it again."""
        while True:
            async with self.snapshots.every_minute():
                end = await self._end()
            if (executed := await in_turn(self._read_or_begin_again, end)) is not None:
                return executed
            await self.snapshots.save()

    def _read_or_begin_again(self, end: RunEnd) -> Executed | None:
        """Read the output of an ended program; return None if it was started again.

        A lost session is replaced by a new one, since the prompt is complete. If the end of a run was not seen, a job
        that only reads runs once more, and reports that; a job that writes doesn't.
        """
        executed, prompt = self._read(end), self._call.prompt.decode()
        if self._suffix == "" and isinstance(executed.report.fault, SessionLost):
            self._begin(FRESH, prompt, None)
            return None
        unseen = self._suffix in ("", FRESH) and end.kind is EndKind.UNKNOWN
        if unseen and self.run.assignment.action is not Action.IMPLEMENT:
            self.context.reports.held_up(self.run, AGAIN_REASON, "")
            self._begin(AGAIN, prompt, None)
            return None
        return executed

    async def stop(self) -> None:
        """Stop all running programs of this attempt."""
        for run_dir in _runs_of(self.run_dir):
            await supervised_run.stop(run_dir, self.context.settings.worker.stop_grace)

    def _dir(self, suffix: str) -> Path:
        return self.run_dir.with_name(self.run_dir.name + suffix)

    def _time_left(self) -> float | None:
        """Return the rest of the attempt's timeout after its ended runs. Waits between runs don't count."""
        limit = self.run.assignment.timeout_seconds
        if limit is None:
            return None
        folders = (folder for try_dir in (*self.earlier, self.run_dir) for folder in _runs_of(try_dir))
        ends = map(supervised_run.read_end, folders)
        took = (end.ended_at - end.started_at for end in ends if end and end.started_at and end.ended_at)
        return max(0.0, limit - sum(took))

    def _program_folder(self) -> Path:
        """Return the program's own folder for this session. It is named after the work folder, by which programs know a
        session.

        Legs that share a work folder don't share this folder.
        """
        run = self.run
        name = f"{run.job_id}-{run.attempt}" if run.shared_worktree else self.cwd.name
        return self.context.home.programs / run.root_job_id / run.assignment.worker.runtime / name

    def _begin(self, suffix: str, prompt: str, session: str | None) -> None:
        self._prompts.append(prompt)
        call = ProgramCall(self.run, prompt.encode(), session, self._dir(suffix), self.cwd, self._program_folder())
        self._suffix, self._call, self._box = suffix, call, None
        try:
            launch, self._box = self._launch(call)
        except CannotLaunchError as refused:
            self._claim = refused
            return
        request = RunRequest(
            run_dir=call.run_dir,
            argv=launch.argv,
            prompt=launch.stdin,
            cwd=self.cwd,
            env=launch.env,
            timeout_seconds=self._time_left(),
            grace_seconds=self.context.settings.worker.stop_grace,
            box=self._box,
            most_bytes=self.context.settings.worker.job_disk * GIB,
        )
        self._claim = supervised_run.begin(request)

    async def _end(self) -> RunEnd:
        """Wait for the program's end; stop it if it keeps retrying a rejected login, which may take minutes."""
        call, claim = self._call, self._claim
        if isinstance(claim, CannotLaunchError):
            return RunEnd(EndKind.NOT_STARTED, call.run_dir, error=claim.message)
        ending: list[asyncio.Task[RunEnd]] = []
        looked = 0

        def see(progress: Progress) -> None:
            nonlocal looked
            self.on_progress(progress)
            self.adapter.follow_login(call)
            if progress.stdout_bytes != looked and not ending:
                looked = progress.stdout_bytes
                if self.adapter.tries_in_vain(call.run_dir / "stdout.log"):
                    stopping = supervised_run.stop(call.run_dir, self.context.settings.worker.stop_grace)
                    ending.append(asyncio.create_task(stopping))

        try:
            return await self.context.room.follow(call.run_dir, claim, self.cwd, see)
        finally:
            await asyncio.gather(*ending, return_exceptions=True)

    def _launch(self, call: ProgramCall) -> tuple[Launch, Box | None]:
        """Return the launch and the box, and give the agent's account access to the work folder."""
        ready(call.run_dir)
        call = replace(call, runs=Claim.read(call.run_dir) is not None)
        if not call.runs:
            self.adapter.require()
            with out_of_turn():  # the operator's program may take a minute
                self.adapter.renew_login()
        launch = self.adapter.launch(call)
        worker = call.run.assignment.worker
        section = self.context.settings.runtime(worker.runtime)
        command = worker.command or section.command or launch.argv[:1]
        writes = worker.autonomy_policy is not AutonomyPolicy.READ_ONLY
        wanted = Wanted(worker.runtime, launch, (*command, *section.arguments), self.cwd, writes, self.lent)
        box = boxing.box_of(self.context.home, self.context.settings, self.context.environ, wanted)
        if box is None:
            return launch, None
        try:
            apart(FILL_SECONDS, boxing.hand_over, box, launch.settings)
        except TooMuchError as fault:
            raise CannotLaunchError(f"the work folder cannot be handed to the agent: {fault.message}") from None
        return replace(launch, env=boxing.environment(launch.env)), box

    def _read(self, end: RunEnd) -> Executed:
        """Read the output of the program that has ended."""
        call, box = self._call, self._box
        if isinstance(self._claim, CannotLaunchError):
            fault = Blocker(BlockerKind.PROGRAM, self._claim.message, hint=self._claim.hint)
            return Executed(end, ProgramReport(b"", Usage(), fault=fault), "")
        reader = partial(read_result, prompt="\n".join(self._prompts), after_repair=self._suffix == REPAIR)
        kept = branch_name(self.run) is not None
        try:
            executed = apart(READ_SECONDS, _read_apart, self.adapter, call, end, kept=kept, reader=reader)
        except TooMuchError as error:
            executed = Executed(end, _unread(f"what the agent left cannot be read: {error.message}"), "")
        report = executed.report
        if isinstance(report.fault, Failed):
            runtime = self.run.assignment.worker.runtime
            why = f"; {end.ran_out}" if end.ran_out else boxing.may_be_why(box, runtime, executed.stderr)
            message = self._in_words(report.fault) + why
            report = replace(report, fault=replace(report.fault, message=message))
        self._throw_away(call.run_dir / "tmp")
        if rest := self.adapter.only_sessions(call):
            self._throw_away(rest)
        return replace(executed, report=replace(report, usage=self._own_usage(call, report)), box=boxing.name_of(box))

    def _in_words(self, fault: Failed) -> str:
        """Return a failure's message, with advice if the model was refused or the context is too long."""
        asked = self.run.assignment
        runtime = asked.worker.runtime
        match fault:
            case ModelRefused():
                model = f"the model {asked.model}" if asked.model else "its default model"
                taken = ", ".join(usage_rows.recent_models(self.context.store, runtime)) or "none"
                advice = "name one of those, or leave `model` out"
                return f"{runtime} refuses {model} ({fault.message}); it took lately: {taken}; {advice}"
            case ContextFull():
                message = f"the work does not fit into the model's context ({fault.message})"
                agent = asked.worker.name if not asked.worker.ephemeral else "NAME"
                command = f'service agent {asked.action} {agent} "A SMALLER PART" --repo {self.run.repo} --model MODEL'
                return with_way_out(f"{message}: give it a smaller part, or a model with a larger context", command)
            case _:
                return fault.message

    def _throw_away(self, path: Path) -> None:
        """Delete a program's temporary files, however many."""
        with contextlib.suppress(OSError):
            if path.is_dir():
                delete_later.in_background(delete_later.put_away(self.context.home.root / delete_later.FOLDER, path))

    def _own_usage(self, call: ProgramCall, report: ProgramReport) -> Usage:
        """Return the tokens of this run alone, even if its program reports those of the whole session."""
        if not report.cumulative or not report.session or too_long("session", storable(report.session)):
            return report.usage
        fresh = call.session is None
        runtime, turn = self.run.assignment.worker.runtime, call.run_dir.name
        session = storable(report.session)
        return usage_rows.of_turn(self.context.store, runtime, session, turn, report.usage, fresh=fresh)


def with_secrets(context: Context, run: JobRun) -> JobRun:
    """Return a run with stored secrets put back into its command. Raise ServiceError if another host keeps one."""
    worker = run.assignment.worker
    worker = worker.model_copy(update={"command": tuple(map(context.kept.show, worker.command))})
    return run.model_copy(update={"assignment": run.assignment.model_copy(update={"worker": worker})})


def _runs_of(run_dir: Path) -> list[Path]:
    """Return the folders of all program runs that one try may have had."""
    return [run_dir.with_name(run_dir.name + suffix) for suffix in ("", FRESH, AGAIN, REPAIR)]


def _read_apart(
    adapter: Adapter, call: ProgramCall, end: RunEnd, *, kept: bool, reader: Callable[[bytes], Accepted | Rejected]
) -> Executed:
    """Read the output in a separate process: an agent's files may be of any size and shape."""
    boxing.take_back(call.cwd, kept=kept)
    try:
        stderr = read_bounded(end.stderr, 0, STDERR_LIMIT).text
        report = adapter.read(call, end)
    except NotRegularError as error:
        return Executed(end, _unread(f"what the agent printed is lost: {error}"), "")
    spoke = end.kind is EndKind.EXITED and report.fault is None
    result = reader(report.text) if spoke else None
    return Executed(end, report, stderr, left_out(end.stdout), result)


def _unread(why: str) -> ProgramReport:
    return ProgramReport(b"", Usage(), fault=Failed(why))
