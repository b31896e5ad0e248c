"""What the host that runs a shell stage is given; an agent stage is a tree and needs none of it."""

from workflows.model.texts import Text
from workflows.model.wire import Wire
from workflows.pipeline.records import StageRecord


class Script(Wire):
    """What a shell stage runs."""

    command: tuple[str, ...]
    env: dict[str, str] = {}


class StageRun(Wire):
    """One attempt of a shell stage, complete."""

    run_id: str
    job_id: str
    """`<run>.<n>`: what its rows and processes go by."""
    pipeline: str
    stage_id: str
    attempt: int
    repo: str
    script: Text
    payload: Text
    timeout_seconds: float | None = None
    base: str = ""
    pull_request: int | None = None
    issue: int | None = None
    branch_deps: tuple[str, ...] = ()
    """Branches whose work the stage must see: what the stages it needs have implemented."""
    row: StageRecord
    """As it is to be read while this attempt runs."""

    @property
    def named(self) -> str:
        """This attempt, among all of all runs."""
        return f"{self.job_id} attempt {self.attempt}"
