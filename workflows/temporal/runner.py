"""All workflows and their runner: without the SDK's sandbox, which takes a fifth of a worker's time.

Import rules ensure that no step reads a clock or draws a random number. Replays of recorded histories prove it, one of
them in the sandbox.
"""

from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner

from workflows.temporal.delegation import DelegatedAttempt
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.github_desk import GithubDesk
from workflows.temporal.notify import Notify
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring

WORKFLOWS = [DelegationTree, DelegatedAttempt, Notify, PipelineRun, PipelineFiring, GithubDesk]


def runner() -> WorkflowRunner:
    """Return a runner that executes workflows in the worker's own modules."""
    return UnsandboxedWorkflowRunner()
