"""How workers and replayers run our workflows: all of them, in the sandbox, with the pure core passed through."""

from temporalio import workflow
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from workflows.delegation import Delegation
from workflows.delegation_tree import DelegationTree
from workflows.notify import Notify

WORKFLOWS = [DelegationTree, Delegation, Notify]

_PURE = (
    "workflows.contract",
    "workflows.policy",
    "workflows.tree",
    "workflows.errors",
    "workflows.calls",
    "workflows.search",
)


def runner() -> WorkflowRunner:
    """Forgetting to pass one of our modules through is an error, not five megabytes for every tree."""
    policy = workflow.SandboxImportNotificationPolicy
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_PURE)
    return SandboxedWorkflowRunner(
        restrictions=restrictions.with_import_notification_policy(
            policy.WARN_ON_DYNAMIC_IMPORT | policy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
        )
    )
