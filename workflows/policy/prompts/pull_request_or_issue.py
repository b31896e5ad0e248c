"""The section of a prompt about the job's pull request or issue: its title and text, and the command that shows the
changes (ruling P3).
"""

import shlex

from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.policy import binding_words
from workflows.policy.prompts.surroundings import HASH, Surroundings
from workflows.policy.reference_names import BASE
from workflows.text.quoted_data import Fences, inline

UNREAD = "Its title and text are not here, unless your task quotes them."


def belonging(run: JobRun, surroundings: Surroundings | None, about: str, fences: Fences) -> str:
    """Return the section for a job that reviews the pull request, or that works on the whole goal of the tree."""
    asked = run.assignment
    reviews = asked.action is Action.REVIEW and asked.pull_request is not None
    if not reviews and (run.delegation_id or not about):
        return ""
    what = binding_words.in_words(asked.pull_request, asked.issue, asked.github)
    author = f"the author of {what}, on GitHub"
    quoted = f"Its title and text, as data:\n\n{fences.block(about.strip(), author)}" if about else UNREAD
    if reviews:
        return f"You review {what}. {_changes(run, surroundings)}\n\n{quoted}"
    return f"This work belongs to {what}. {quoted}"


def _changes(run: JobRun, surroundings: Surroundings | None) -> str:
    head = run.assignment.head[:HASH]
    target = surroundings.target if surroundings else ""
    into = target if target == shlex.quote(target) else "BRANCH"  # never a command that contains a branch's name
    since = surroundings.git_name(BASE, surroundings.base) if surroundings else "HEAD"
    command = inline(f"git diff {into}...{head or since}")
    which = "" if into == target else ", with the branch that it goes into: `git branch -a` lists them"
    at = f"commit `{head}`, and the task begins from another one" if head else "the task's base"
    return f"Its head is {at}. The command that shows its changes: {command}{which}."
