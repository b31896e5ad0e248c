"""The shell runtime: an allow-list for the environment, usage lines, bounded reading."""

from pathlib import Path

from activities.agents import shell
from activities.agents.adapter import ProgramCall, environment
from activities.agents.shell import Shell
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.spend import Usage
from workflows.model.states import Continuation
from workflows.model.workers import Assignment, Worker

RUN = JobRun(
    job_id="job-0123456789ab.2",
    root_job_id="job-0123456789ab",
    parent_job_id="job-0123456789ab",
    delegation_id="leg",
    delegation_depth=1,
    task_id="task-1",
    repo="acme/shop",
    assignment=Assignment(
        worker=Worker(name="scout", runtime="shell", command=("cat",)),
        action=Action.REVIEW,
        prompt=Text(inline="x"),
        model="m",
        phase="gate",
    ),
    attempt=2,
    continuation=Continuation.REPLAN,
)

ORDER = ProgramCall(RUN, b"", None, Path("run"), Path("cwd"), Path("home"))


def ended(stdout: Path, code: int = 0) -> RunEnd:
    """Return the end of a run with this output."""
    stdout.rename(stdout.with_name("stdout.log"))
    return RunEnd(EndKind.EXITED, stdout.parent, exit_code=code)


def test_the_environment_is_an_allow_list_and_the_job() -> None:
    worker = {"PATH": "/bin", "HOME": "/h", "AWS_SECRET_ACCESS_KEY": "s", "SERVICE_HOME": "/s", "MY_KEY": "k"}
    assert environment(RUN, ["MY_KEY", "ABSENT"], worker) == {
        "PATH": "/bin",
        "HOME": "/h",
        "MY_KEY": "k",
        "SERVICE_JOB_ID": "job-0123456789ab.2",
        "SERVICE_ROOT_JOB_ID": "job-0123456789ab",
        "SERVICE_PARENT_JOB_ID": "job-0123456789ab",
        "SERVICE_DELEGATION_ID": "leg",
        "SERVICE_DELEGATION_DEPTH": "1",
        "SERVICE_TASK_ID": "task-1",
        "SERVICE_AGENT": "scout",
        "SERVICE_ACTION": "review",
        "SERVICE_MODEL": "m",
        "SERVICE_EFFORT": "",
        "SERVICE_PHASE": "gate",
        "SERVICE_ATTEMPT": "2",
        "SERVICE_CONTINUATION": "replan",
        "SERVICE_PULL_REQUEST": "",
        "SERVICE_ISSUE": "",
    }


def test_usage_lines_are_summed_and_everything_else_is_text(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(
        b'{"type":"usage","input_tokens":10,"output_tokens":2}\nwords {"type":"usage","input_tokens":99}\n'
        b'{"type":"usage","input_tokens":5}\n{"type":"usage","input_tokens":-5}\n{"type":"usage","input_tokens":true}\n'
        b'{"type":"usage"\n[1]\n\xff\xfe\n' + b"x" * 9000 + b'{"type":"usage","input_tokens":7}\n'
    )
    report = Shell((), {}).read(ORDER, ended(out))
    assert report.usage == Usage(input_tokens=15, output_tokens=2)
    assert report.text == (tmp_path / "stdout.log").read_bytes()


def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        file.write(b'{"type":"usage","input_tokens":1}\n')
        file.truncate(shell.TEXT_LIMIT * 3)
        file.seek(0, 2)
        file.write(b"\nthe end")
    report = Shell((), {}).read(ORDER, ended(out))
    assert report.usage == Usage(input_tokens=1)
    assert len(report.text) == shell.TEXT_LIMIT
    assert report.text.endswith(b"the end")
