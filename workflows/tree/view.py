"""A tree in words: what the Temporal web UI shows while it runs."""

from workflows.tree.state import TreeState


def details(state: TreeState, now: float) -> str:
    """Markdown for the workflow's current details."""
    i = state.input
    return f"**{i.title}**\n\n{i.action} by `{i.worker.name}` on `{i.repo}`"
