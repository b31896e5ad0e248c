"""The words for a tree that a bound cut short before what was planned ran (rulings G1, K6).

Its task's state is the spec's, `done`; every surface says by `task_words` or by `tree_state` that it was cut short.
"""

from dataclasses import dataclass

from workflows.contract.size_limits import COUNTS
from workflows.model.event_kinds import EventKind
from workflows.model.refusals import Refusal
from workflows.model.rows import TaskRecord
from workflows.text.durations import format_duration

CUT_SHORT = "cut short"


@dataclass(frozen=True)
class Cut:
    """The bound that ended a tree, and a value of its setting under which the tree would have continued."""

    words: str
    """What was asked for and the limit, with the setting's name."""
    raised: str = ""
    """The line of `config.toml` below `[orchestrate]`; empty if no value of a setting would help."""

    def way_on(self, anew: str) -> str:
        """Return the words that tell a person to raise the limit and start the tree anew."""
        return f"write {self.raised} below [orchestrate] in config.toml; then: {anew}" if self.raised else anew


def task_words(task: TaskRecord) -> str:
    """Return the state of a task as people read it."""
    return CUT_SHORT if task.cut_short else task.state.value


def cut_by(refusal: Refusal, lead: str) -> Cut:
    """Return the words for a bound that tripped. `lead` names the coordinator whose work it ended."""
    match refusal.kind, dict(refusal.data):
        case EventKind.DELEGATION_WIDTH_EXCEEDED, {"width": int(asked), "cap": cap}:
            raised = f"max_delegation_width = {asked}" if asked <= COUNTS["delegations"] else ""
            return Cut(f"{lead} asked for {asked} parts, the limit is {cap} (`max_delegation_width`)", raised)
        case EventKind.DELEGATION_DEPTH_EXCEEDED, {"depth": int(depth), "cap": cap}:
            words = f"{lead} asked for parts at depth {depth + 1}, the limit is {cap} (`max_delegation_depth`)"
            return Cut(words, f"max_delegation_depth = {depth + 1}")
        case EventKind.DELEGATION_BUDGET_EXCEEDED, {"new_jobs": int(new), "jobs": int(used), "cap": cap}:
            words = f"{lead} needed {new} more job(s) after {used}, the limit is {cap} (`max_delegation_total_jobs`)"
            return Cut(words, f"max_delegation_total_jobs = {used + new}")
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
