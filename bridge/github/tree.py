"""A tree as what is told of it is made from: its rows."""

from dataclasses import dataclass

from sqlalchemy import Engine

from activities.store import events, jobs, rounds
from activities.store.github.threads import Thread
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.states import TaskState


@dataclass(frozen=True)
class Tree:
    """The rows of a tree, as what is told of it is made from them."""

    thread: Thread
    task: TaskRecord
    jobs: tuple[JobRecord, ...]
    rounds: tuple[RoundRecord, ...]
    events: tuple[EventRecord, ...]

    @property
    def seq(self) -> int:
        return max((event.seq for event in self.events), default=0)

    @property
    def over(self) -> bool:
        return self.task.state is not TaskState.OPEN


def read(store: Engine, thread: Thread) -> Tree | None:
    """The rows of a tree; None when they are not there yet."""
    root = thread.root_job_id
    task = jobs.task_of(store, root)
    if task is None:
        return None
    told = tuple(events.of_tree(store, root))
    return Tree(thread, task, tuple(jobs.tree(store, root)), tuple(rounds.of_tree(store, root)), told)
