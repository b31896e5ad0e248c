"""A job's purpose: the goal of its tree, and the work that it reviews (ruling P3)."""

from collections.abc import Iterator

from workflows.contract.models import Action
from workflows.model.briefs import BriefLeg
from workflows.model.jobs import JobRun
from workflows.policy.prompts.place import Place
from workflows.policy.prompts.render import STARTER, leg_outcome
from workflows.text.fences import Fences, cut, inline

GOAL_LIMIT = 16_000
MOST_DIFFS = 20


def goal_section(goal: str, instructions: str, run: JobRun, fences: Fences) -> str:
    """Return the tree's goal, for a leg whose instructions lack it; the root's own task is the goal."""
    if not goal or goal.strip() in instructions:
        return ""
    said = cut(goal.strip(), GOAL_LIMIT, f"the prompt of the job {run.root_job_id}")
    return (
        "# Goal\n\nYour job is one part of a larger task; its starter's words, so that you know what your part is for."
        f" Do your part, not the rest:\n\n{fences.block(said, STARTER)}"
    )


def looked_at(run: JobRun, place: Place | None, fences: Fences) -> str:
    """Return the work that a job builds on or reviews, and the commands that show it."""
    if not run.follows:
        return ""
    title = "What you review" if run.assignment.action is Action.REVIEW else "What was done before"
    legs = "\n\n".join(leg_outcome(leg, fences) for leg in run.follows)
    merged = "Their changes are merged in your working folder. " if run.branch_deps else ""
    shown = "; ".join(_diffs(run.follows, place)) if place else ""
    how = f"{merged}The commands that show them: {shown}." if shown else merged
    return "\n\n".join(part for part in (f"# {title}", legs, how.strip()) if part)


def _diffs(legs: tuple[BriefLeg, ...], place: Place) -> Iterator[str]:
    base, line = place.named("base", place.base), place.named("line", place.line)
    yield f"{inline(f'git diff {base}...HEAD')} (all of the task so far)"
    for leg in [each for each in legs if each.branch][:MOST_DIFFS]:
        branch = f"leg/{leg.id}" if f"leg/{leg.id}" in place.references else leg.branch
        yield f"{inline(f'git diff {line}...{branch}')} (leg {inline(leg.id)})"
