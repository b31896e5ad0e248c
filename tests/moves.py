"""A Temporal server that records orders to move attempts, and notifications."""

from dataclasses import dataclass, field

from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from workflows.policy.moving import Move


@dataclass
class Server:
    """A Temporal server that records what it was sent."""

    moves: list[tuple[str, Move]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    full: tuple[str, ...] = ()
    """Workflows that take no more signals."""

    def get_workflow_handle(self, workflow_id: str) -> "Handle":
        return Handle(self, workflow_id)

    async def start_workflow(self, _run: object, _arg: str, *, id: str, **_: object) -> None:  # noqa: A002
        if id in self.started:
            raise WorkflowAlreadyStartedError(id, "Notify")
        self.started.append(id)


@dataclass
class Handle:
    server: Server
    workflow_id: str

    async def signal(self, name: str, order: Move, **_: object) -> None:
        assert name == "move"
        if self.workflow_id in self.server.full:
            raise RPCError("exceeded workflow execution limit for signal events", RPCStatusCode.INVALID_ARGUMENT, b"")
        self.server.moves.append((self.workflow_id, order))
