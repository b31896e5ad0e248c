"""The prompt of a job that starts something: who you are, what to do, how to answer."""

from workflows.contract.models import Action
from workflows.tree.jobs import JobRun

_RULES = {
    Action.ASK: "Answer from what is in the working directory. Change nothing: whatever you change is thrown away.",
    Action.REVIEW: "Review what is in the working directory. Change nothing: whatever you change is thrown away.",
    Action.IMPLEMENT: (
        "Make the change in the working directory, which is a branch of your own. You need not commit: what you leave"
        " uncommitted is committed for you."
    ),
}


def render_task(run: JobRun, instructions: str, contract: str) -> str:
    """The whole prompt: role, place, task, and the contract last, where it is best remembered."""
    template = f"{run.worker.template.strip()}\n\n" if run.worker.template else ""
    role = f" Your role: {run.worker.role}." if run.worker.role else ""
    return (
        f"{template}# Job\n\nYou are `{run.worker.name}`, doing the job `{run.job_id}` ({run.action}) on the repository"
        f" `{run.repo}`.{role} The working directory is a checkout of it.\n{_RULES[run.action]}\n\n"
        f"# Task\n\n{instructions.strip()}\n\n{contract}"
    )
