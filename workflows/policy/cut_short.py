"""The words for a tree that was cut short: a bound ended it before all planned jobs ran (rulings G1, K6).

By the spec, the state of its task is `done`; so every list and page uses `task_words` or `tree_state` to say that it
was cut short.
"""

from dataclasses import dataclass

from workflows.contract.size_limits import COUNTS
from workflows.model.event_kinds import EventKind
from workflows.model.refusals import Refusal
from workflows.model.rows import TaskRecord
from workflows.text.durations import format_duration
from workflows.text.plurals import quantity

CUT_SHORT = "cut short"


@dataclass(frozen=True)
class Cut:
    """The bound that ended a tree, and a setting with which the tree would have continued."""

    words: str
    """What was requested and the limit, with the setting's name."""
    raised: str = ""
    """The line to write into `config.toml` below `[orchestrate]`; empty if no setting would help."""

    def way_on(self, anew: str) -> str:
        """Return the instructions to raise the limit and start the tree again; `anew` is the command that starts it."""
        return f"write {self.raised} below [orchestrate] in config.toml; then: {anew}" if self.raised else anew


def task_words(task: TaskRecord) -> str:
    """Return the state of a task as people read it."""
    return CUT_SHORT if task.cut_short else task.state.value


def cut_by(refusal: Refusal, lead: str) -> Cut:
    """Describe the bound that ended a tree. `lead` names the coordinator whose work was cut short."""
    match refusal.kind, dict(refusal.data):
        case EventKind.DELEGATION_WIDTH_EXCEEDED, {"width": int(asked), "cap": cap}:
            raised = f"max_delegation_width = {asked}" if asked <= COUNTS["delegations"] else ""
            return Cut(f"{lead} asked for {asked} parts, the limit is {cap} (`max_delegation_width`)", raised)
        case EventKind.DELEGATION_DEPTH_EXCEEDED, {"depth": int(depth), "cap": cap}:
            words = f"{lead} asked for parts at depth {depth + 1}, the limit is {cap} (`max_delegation_depth`)"
            return Cut(words, f"max_delegation_depth = {depth + 1}")
        case EventKind.DELEGATION_BUDGET_EXCEEDED, {"new_jobs": int(new), "jobs": int(used), "cap": cap}:
            words = f"{lead} needed {quantity(new, 'more job')} after {used}, the limit is {cap}"
            return Cut(f"{words} (`max_delegation_total_jobs`)", f"max_delegation_total_jobs = {used + new}")
        case EventKind.DELEGATION_WALLTIME_EXCEEDED, {"budget": float(limit)}:
            words = f"it ran longer than {format_duration(limit)} (`max_delegation_wall_clock`)"
            return Cut(words, f'max_delegation_wall_clock = "{format_duration(2 * limit)}"')
        case EventKind.DELEGATION_COST_EXCEEDED, {"tokens": used, "budget": int(limit)}:
            words = f"it used {used} tokens, the limit is {limit} (`max_delegation_token_budget`)"
            return Cut(words, f"max_delegation_token_budget = {2 * limit}")
        case EventKind.DELEGATION_COST_USD_EXCEEDED, {"budget": float(limit)}:
            words = f"{refusal.message} (`max_delegation_cost_usd`)"
            return Cut(words, f"max_delegation_cost_usd = {2 * limit:g}")
        case EventKind.VERIFY_REPLAN_EXHAUSTED, {"attempts": int(limit)}:
            words = f"{refusal.message} (`max_verify_replan_attempts`)"
            return Cut(words, f"max_verify_replan_attempts = {limit + 1}")
        case _:
            return Cut(refusal.message)
