"""All workflows and their runner. The SDK's sandbox is not used: it takes a fifth of a worker's time.

Import rules ensure that no workflow reads a clock or draws a random number. Replays of recorded histories check it, one
of them in the sandbox.
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
    """Return a runner that executes workflows in the worker's own modules, without a sandbox."""
    return UnsandboxedWorkflowRunner()
