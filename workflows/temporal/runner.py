"""How our workflows are run, all of them: by workers as they are, by tests in the SDK's sandbox.

With our own modules passed through, the sandbox notices what is imported on the way by mistake. That a step reads no
clock and draws no number the import rules see to, and the replayed histories prove. It stands around every activation
and, half a dozen times, around every payload: a fifth of what a worker does. So tests meet it, and workers go without.
"""

from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from workflows.temporal.delegation import Delegation
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.github_desk import GithubDesk
from workflows.temporal.notify import Notify
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring

WORKFLOWS = [DelegationTree, Delegation, Notify, PipelineRun, PipelineFiring, GithubDesk]


def runner() -> WorkflowRunner:
    """For workers that serve people."""
    return UnsandboxedWorkflowRunner()


def guarded() -> WorkflowRunner:
    """For tests: a foreign module that comes with ours by mistake is an error."""
    policy = workflow.SandboxImportNotificationPolicy
    restrictions = SandboxRestrictions.default.with_passthrough_modules("workflows")
    return SandboxedWorkflowRunner(
        restrictions=restrictions.with_import_notification_policy(
            policy.WARN_ON_DYNAMIC_IMPORT | policy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
        )
    )
