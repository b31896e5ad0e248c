"""Recorded output of the real programs, and adapters that read it."""

from collections.abc import Iterable
from pathlib import Path

from activities.agents.adapter import Adapter, ProgramCall, ProgramReport
from activities.agents.registry import adapters_of
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.runtimes.known_runtimes import BY_ACP, DRIVEN
from activities.settings.model import Settings
from tests.assigned import changed
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker

STREAMS = Path(__file__).parent / "streams"
RUNTIMES = {program.name: runtime for runtime, program in DRIVEN.items()} | {name: name for name in BY_ACP}


def adapter(program: str, environ: dict[str, str] | None = None, **section: object) -> Adapter:
    """Return the program's adapter, with these settings of its runtime."""
    settings = Settings.model_validate({"runtimes": {RUNTIMES[program]: section}})
    return adapters_of(settings, {"PATH": "/usr/bin:/bin"} | (environ or {}))[RUNTIMES[program]]


def a_run(program: str, policy: AutonomyPolicy = AutonomyPolicy.READ_ONLY, **fields: object) -> JobRun:
    """Return a job for the program's runtime."""
    run = JobRun(
        job_id="job-0123456789ab.2",
        root_job_id="job-0123456789ab",
        task_id="task-1",
        repo="acme/shop",
        assignment=Assignment(
            worker=Worker(name="scout", runtime=RUNTIMES[program], autonomy_policy=policy),
            action=Action.REVIEW,
            prompt=Text(inline="x"),
        ),
    )
    return changed(run, **fields)


def a_call(folder: Path, run: JobRun, session: str | None = None, prompt: bytes = b"Do it.") -> ProgramCall:
    """Return a call of the run's program, below this folder."""
    return ProgramCall(run, prompt, session, folder / "runs" / "job-0123456789ab.2.1", folder / "tree", folder / "home")


def recorded(program: str, case: str) -> tuple[bytes, bytes]:
    """Return the program's output on its two streams."""
    files = (STREAMS / program / f"{case}.{stream}" for stream in ("stdout", "stderr"))
    out, err = (file.read_bytes() if file.exists() else b"" for file in files)
    return out, err


def read(
    folder: Path,
    program: str,
    output: tuple[bytes, bytes],
    code: int = 0,
    kind: EndKind = EndKind.EXITED,
    signal: int | None = None,
    **environ: str,
) -> ProgramReport:
    """Read output with the program's adapter."""
    call = a_call(folder, a_run(program))
    call.run_dir.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("stdout.log", "stderr.log"), output, strict=True):
        (call.run_dir / name).write_bytes(text)
    return adapter(program, environ).read(
        call, RunEnd(kind, call.run_dir, exit_code=None if signal else code, signal=signal, started_at=0.0)
    )


def pieces(text: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Cut a text into pieces of these sizes, repeatedly."""
    cut: list[bytes] = []
    at = 0
    sizes = list(sizes) or [1]
    while at < len(text):
        size = sizes[len(cut) % len(sizes)]
        cut.append(text[at : at + size])
        at += size
    return cut
