"""The commands whose output is paged if it is taller than the terminal."""

import sys
from collections.abc import Callable
from typing import Any

PAGED = {
    *("agent list", "agent show", "attention", "config show", "daemon install", "doctor"),
    *("github comment-preview", "github status"),
    *("job branches", "job events", "job list", "job prompt", "job reviews", "job show", "job tree"),
    *("memory list", "memory recall", "memory show", "pipeline list", "pipeline runs", "pipeline show"),
    *("repo list", "repo sweep", "result render", "result schema", "runtime check", "runtime list", "spend"),
}
_LASTING = ("watch", "follow", "web")
"""Options whose output is shown as it comes."""


def paged(path: str, carry_out: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the command so that its output is kept until its end."""
    if path not in PAGED:
        return carry_out

    def kept(**values: Any) -> Any:
        from cli.drawing.screens import can_move
        from cli.output import in_pages

        if any(values.get(each) for each in _LASTING) or not can_move(sys.stdout):
            return carry_out(**values)
        with in_pages():
            return carry_out(**values)

    return kept
