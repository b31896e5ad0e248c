"""The activity that writes a tree's rows."""

from temporalio import activity

from activities.jobs.context import Context
from activities.store import jobs
from workflows.tree.records import Records


class Recorder:
    """Writes what trees decide; called again, it changes nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @activity.defn(name="record")
    def record(self, records: Records) -> None:
        """Write one step of a tree."""
        jobs.write(self._context.store, records)
