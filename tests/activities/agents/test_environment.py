"""The environment of an agent's program: an allow-list, and the job's own variables."""

from activities.agents.environment import environment
from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
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
