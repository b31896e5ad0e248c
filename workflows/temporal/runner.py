"""All workflows, and how workers run them: without the SDK's sandbox, which takes a fifth of a worker's time.

The import rules see to it that no step reads a clock or draws a number; recorded histories that are replayed prove it,
one time in the sandbox.
"""

from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner

from workflows.temporal.delegation import Delegation
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.github_desk import GithubDesk
from workflows.temporal.notify import Notify
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring

WORKFLOWS = [DelegationTree, Delegation, Notify, PipelineRun, PipelineFiring, GithubDesk]


def runner() -> WorkflowRunner:
    """Run workflows in the worker's own modules."""
    return UnsandboxedWorkflowRunner()
