"""Which events people are told about, wherever they are (ruling F8)."""

from workflows.model.event_kinds import EventKind

TELLS_PEOPLE = frozenset(
    {
        EventKind.ROUND_OPENED,
        EventKind.ROUND_JOINED,
        EventKind.ROUND_REMINDER,
        EventKind.ROUND_EXPIRED,
        EventKind.TASK_BLOCKED,
        EventKind.TREE_LOST,
        EventKind.RECORD_REFUSED,
    }
)
