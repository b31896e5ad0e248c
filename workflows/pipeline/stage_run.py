"""The input of a shell stage's host; an agent stage is a tree and needs none of it."""

from workflows.model.texts import Text
from workflows.model.wire import Wire
from workflows.pipeline.records import StageRecord


class Script(Wire):
    """The command and environment of a shell stage."""

    command: tuple[str, ...]
    env: dict[str, str] = {}


class StageRun(Wire):
    """One attempt of a shell stage, complete."""

    run_id: str
    job_id: str
    """`<run>.<n>`: the id of its rows and processes."""
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
    """Branches whose work the stage must see: those implemented by the stages it needs."""
    row: StageRecord
    """Its row while this attempt runs."""

    @property
    def named(self) -> str:
        """This attempt's name, unique among all runs."""
        return f"{self.job_id} attempt {self.attempt}"
