"""How workers and replayers run our workflows: all of them, in the sandbox, with our own modules passed through.

The sandbox builds every module it does not pass through anew for each workflow: some milliseconds and some megabytes
for every tree. What it would guard against here, the import rules forbid and the replayed histories prove.
"""

from temporalio import workflow
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from workflows.temporal.delegation import Delegation
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.github_desk import GithubDesk
from workflows.temporal.notify import Notify
from workflows.temporal.pipeline_run import PipelineRun
from workflows.temporal.pipeline_schedule import PipelineFiring

WORKFLOWS = [DelegationTree, Delegation, Notify, PipelineRun, PipelineFiring, GithubDesk]


def runner() -> WorkflowRunner:
    """Our modules are passed through; a foreign one that comes with them by mistake is an error."""
    policy = workflow.SandboxImportNotificationPolicy
    restrictions = SandboxRestrictions.default.with_passthrough_modules("workflows")
    return SandboxedWorkflowRunner(
        restrictions=restrictions.with_import_notification_policy(
            policy.WARN_ON_DYNAMIC_IMPORT | policy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
        )
    )
