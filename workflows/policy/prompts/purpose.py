"""What a job is for: the goal of its tree, the work it looks at, and what its decision leads to (ruling P3)."""

from collections.abc import Iterator

from workflows.contract.fences import Fences, cut, inline
from workflows.contract.models import Action, SynthesisRule
from workflows.model.briefs import BriefLeg
from workflows.model.jobs import JobRun
from workflows.policy import bindings
from workflows.policy.prompts.place import Place
from workflows.policy.prompts.render import STARTER, leg_outcome

GOAL_LIMIT = 16_000
MOST_DIFFS = 20

_DECIDE = {
    Action.ASK: (
        "`approved` when you have answered, the answer in `summary` and `findings`; `blocked` when you can't without"
        " something from outside, named in `needs`; `skipped` when there is nothing to answer."
    ),
    Action.REVIEW: (
        "`approved` when nothing has to change before a merge; `changes_requested` when something has to, each issue"
        " in `findings` with its file, its line and why; `blocked` when you can't judge it, the reason in `needs`."
    ),
    Action.IMPLEMENT: (
        "`implemented` when the change is made; `blocked` when you can't go on without something from outside, named in"
        " `needs`; `failed` when you tried and it does not work; `skipped` when there was nothing to change."
    ),
}
_VERIFY = (
    "You are the check of this work. `approved` (or `implemented`) lets it pass; `changes_requested`, `blocked` or"
    " `failed` sends it back with your findings, for repair; `skipped` abstains. Run build and tests yourself, and"
    " decide by what you saw, not by what summaries say. If you could not run them, it is not checked: `blocked`."
)
_VOTE = "All jobs of this set vote: one that fails or decides `changes_requested` stops the task."
_QUORUM = (
    "Of this set at least {quorum} must decide `approved` or `implemented`, else the task stops; `skipped` abstains."
)


def goal_section(goal: str, instructions: str, run: JobRun, fences: Fences) -> str:
    """The goal of the tree, for a leg whose instructions don't have it; the root's own task is the goal."""
    if not goal or goal.strip() in instructions:
        return ""
    said = cut(goal.strip(), GOAL_LIMIT, f"the prompt of the job {run.root_job_id}")
    return (
        "# Goal\n\nYour job is one part of a larger task; its starter's words, so that you know what your part is for."
        f" Do your part, not the rest:\n\n{fences.block(said, STARTER)}"
    )


def looked_at(run: JobRun, place: Place | None, fences: Fences) -> str:
    """The work that a job follows on or judges, and the commands that show it."""
    if run.follows:
        title = "What you review" if run.assignment.action is Action.REVIEW else "What was done before"
        legs = "\n\n".join(leg_outcome(leg, fences) for leg in run.follows)
        merged = "Their changes are merged in your working folder. " if run.branch_deps else ""
        shown = "; ".join(_diffs(run.follows, place)) if place else ""
        how = f"{merged}The commands that show them: {shown}." if shown else merged
        return "\n\n".join(part for part in (f"# {title}", legs, how.strip()) if part)
    if run.assignment.action is Action.REVIEW and run.assignment.pull_request is not None:
        return _pull_request(run)
    return ""


def _diffs(legs: tuple[BriefLeg, ...], place: Place) -> Iterator[str]:
    base, line = place.named("base", place.base), place.named("line", place.line)
    yield f"{inline(f'git diff {base}...HEAD')} (all of the task so far)"
    for leg in [each for each in legs if each.branch][:MOST_DIFFS]:
        branch = f"leg/{leg.id}" if f"leg/{leg.id}" in place.references else leg.branch
        yield f"{inline(f'git diff {line}...{branch}')} (leg {inline(leg.id)})"


def _pull_request(run: JobRun) -> str:
    asked = run.assignment
    what = bindings.in_words(asked.pull_request, asked.issue, asked.github)
    return (
        f"# What you review\n\nThe changes of {what}: your working folder is at its head. The command that shows them:"
        " `git diff BRANCH...HEAD`, with the branch that it is to be merged into. `git branch -a` lists them;"
        " as a rule it is `origin/main` or `main`. Its title and text are not here, unless your task quotes them."
    )


def decisions(run: JobRun) -> str:
    """What each decision of a job means, and what it leads to."""
    lines = [_DECIDE[run.assignment.action]]
    if SynthesisRule.VERIFY in run.rules:
        lines.append(_VERIFY)
    if SynthesisRule.VOTE in run.rules:
        lines.append(_VOTE)
    if SynthesisRule.QUORUM in run.rules and run.quorum is not None:
        lines.append(_QUORUM.format(quorum=run.quorum))
    return "# What to decide\n\n" + "\n".join(lines)
