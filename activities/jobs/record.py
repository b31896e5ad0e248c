"""The activity that writes a tree's rows."""

from temporalio import activity

from activities.jobs.context import Context
from activities.store import jobs, refusals, trees
from workflows.tree.records import Records
from workflows.tree.state import TreeState


class Recorder:
    """Writes what trees decide; called again, it changes nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @activity.defn(name="record")
    def record(self, records: Records) -> None:
        """Write one step of a tree."""
        refusals.written(lambda: jobs.write(self._context.store, records))

    @activity.defn(name="keep_tree")
    def keep_tree(self, state: TreeState) -> None:
        """Keep a closed tree's state."""
        refusals.written(lambda: trees.keep(self._context.store, state, self._context.host))
