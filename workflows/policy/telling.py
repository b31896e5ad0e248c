"""Which events people are told about, wherever they are (ruling F8)."""

TELLS_PEOPLE = frozenset(
    {"round_opened", "round_joined", "round_reminder", "round_expired", "task_blocked", "tree_lost"}
)
