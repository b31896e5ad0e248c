"""Ordering the publication of a tree's work as a pull request, and its progress (ruling L9)."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from activities.git import git_branches
from activities.host import checkouts
from activities.settings import ready
from activities.store.github import account, facts
from activities.store.github.facts import FactRow
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.branches import branches, merge_offer
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.merge_offer import refuse_foreign
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.facts import OUR_BRANCHES, FactKind, Publication, publish_id
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.policy import binding_words
from workflows.text.durations import clock


@dataclass(frozen=True)
class NamedCommit:
    """A commit, and the branch name it gets on GitHub."""

    branch: str
    commit: str


class NothingToPublishError(RefusedError):
    """No job of the tree has committed anything."""


WAIT_SECONDS = 60.0
ACCOUNT_SECONDS = 2 * 3600.0
"""Seconds for which an account that GitHub accepted counts as available; it is checked once an hour."""
_BRANCH = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock$|[/.]$))[!-~]{1,200}")
_NEVER = re.compile(r"[\s~^:?*\[\\]")
_STATES = {
    "draft": "a draft until the task is done",
    "closed": "it was closed with exactly this work: nothing was done",
    "merged": "it is merged already, with exactly this work: nothing was done",
}


class PublishAnswer(BaseModel):
    """The state of a publication. A repeated call returns the current state."""

    model_config = ConfigDict(frozen=True)

    job_id: str
    root_job_id: str
    github: str = Field(description="The repository on GitHub, OWNER/NAME.")
    branch: str
    state: str = Field(description="push: to be pushed; open: its pull request is to be opened; done; failed.")
    commit: str = Field(description="The commit pushed last; empty before the first push.")
    url: str = Field(description="The pull request's URL, once it exists.")
    says: str = Field(description="A sentence on its state: what it waits for, or why it failed.")

    @property
    def over(self) -> bool:
        """Return whether the publication has ended."""
        return self.state in {facts.DONE, facts.FAILED}


def publish(service: Service, job_id: str, *, actor: str, base: str | None = None) -> PublishAnswer:
    """Order the publication of a tree's or a leg's work; a repeated order adds new commits to the same pull request."""
    job = jobs.get(service, job_id)
    repo = served_repo(service, job.repo)
    work = work_of(service, job)
    base = _base(base, work.branch)
    fact_id = publish_id(job.job_id)
    wanted = Publication(job_id=job.job_id, actor=actor, base=base)
    row = FactRow(
        *(fact_id, FactKind.PUBLISH, job.root_job_id, repo.github, job.pull_request or 0, work.branch),
        text=wanted.model_dump_json(),
        state=facts.PUSH,
        host=repo.host if service.settings.github.is_configured or not repo.remote else "",  # any that has the account
    )
    known = facts.get(service.store, fact_id)
    if known is None:
        facts.declare(service.store, [row])
    elif known.state != facts.DONE or _is_new(known, work.commit, base):
        was = publication(known)
        text = was.model_copy(update={"base": base or was.base, "actor": actor}).model_dump_json()
        news = {"text": text, "github": repo.github, "subject": work.branch, "host": row.host}
        facts.again(service.store, fact_id, state=facts.PUSH, **news)
    return look(service, facts.get(service.store, fact_id) or row)


def _is_new(known: FactRow, commit: str, base: str) -> bool:
    was = publication(known)
    return was.commit != commit or (base not in {"", was.base})


def publication(fact: FactRow) -> Publication:
    """Return the publication stored in a fact's row."""
    return Publication.model_validate_json(fact.text)


def served_repo(service: Service, name: str) -> Repo:
    """Return the registered repository if the service can write its pull requests; else raise, with the command to
    type.
    """
    settings, repo = service.settings.github, checkouts.seen_here(service, repo_rows.must_get(service.store, name))
    if not settings.is_configured and not (repo.remote and _is_served_elsewhere(service)):
        message = f"GitHub is not set up: {service.home.config} has no [github] with an account"
        raise RefusedError(message, "set [github].token_env there, then: service config check")
    binding_words.check_github(repo.name, repo.path, repo.github)
    if settings.repos and name not in settings.repos:
        message = f"[github].repos does not name {name}: nothing of it is written to GitHub"
        raise RefusedError(message, f"add it in {service.home.config}, then: service config check")
    return repo


def _is_served_elsewhere(service: Service) -> bool:
    """Return whether another host of a shared store can publish: GitHub accepted the account recently."""
    known = account.read(service.store)
    return bool(service.settings.store.url and known.login) and time.time() - known.seen_at < ACCOUNT_SECONDS


def is_possible(service: Service, name: str) -> bool:
    """Return whether the service can write this repository's pull requests."""
    try:
        served_repo(service, name)
    except ServiceError:
        return False
    return True


def _base(base: str | None, branch: str) -> str:
    if not base:
        return ""
    if not _BRANCH.fullmatch(base) or _NEVER.search(base):
        raise UsageError(f"{base!r} is not a branch", "--base BRANCH")
    if base == branch:
        raise UsageError(f"{base} is the branch that is published: it cannot be its own base", "--base BRANCH")
    return base


def current(service: Service, job_id: str) -> PublishAnswer | None:
    """Return the state of the publication of a job's work; None if the work was not ordered to be published."""
    fact = facts.get(service.store, publish_id(job_id))
    return look(service, fact) if fact else None


def of_tree(service: Service, root: str) -> list[PublishAnswer]:
    """Return all publications of a tree, finished or ordered."""
    return [look(service, fact) for fact in facts.published_of(service.store, [root])]


def look(service: Service, fact: FactRow) -> PublishAnswer:
    """Return a publication's state, with sentences for people, from its fact's row."""
    what = publication(fact)
    return PublishAnswer(
        job_id=what.job_id,
        root_job_id=fact.root_job_id,
        github=fact.github,
        branch=fact.subject,
        state=fact.state,
        commit=what.commit,
        url=fact.url,
        says=_says(service, fact, what),
    )


def _says(service: Service, fact: FactRow, what: Publication) -> str:
    if fact.state == facts.DONE:
        if what.base and what.into not in {"", what.base}:
            return f"it was open already and goes into {what.into}, not {what.base}: change that on its page"
        return _STATES.get(what.state, "") or fact.error
    if fact.state == facts.FAILED:
        return fact.error
    known = account.read(service.store)
    if known.blocked_until and known.blocked_until > time.time():
        return f"GitHub is left alone until {clock(known.blocked_until)}: {known.problem}; it will be done then"
    if fact.error:
        return f"{fact.error}; it is tried again"
    seen = ready.read(service.home.github_ready) if fact.host == service.settings.host else None
    if fact.host == service.settings.host and not (seen and seen.alive):
        return "the process that has the GitHub account does not run; it is done when it does: service daemon start"
    return "it is being pushed" if fact.state == facts.PUSH else "its pull request is being written"


def is_held_up(service: Service) -> bool:
    """Return whether GitHub's rate limit or an outage delays requests for longer than a caller waits."""
    return (account.read(service.store).blocked_until or 0.0) > time.time() + WAIT_SECONDS


def work_of(service: Service, job: JobRecord) -> NamedCommit:
    """Return the commit to publish: of the whole tree for its root's id, else of one leg. Raise unless one branch
    contains all of it.
    """
    tree = branches.of_tree(service, job.job_id, typed=f"service job publish {job.job_id}", fresh=True)
    path = Path(tree.path)
    work = _of_root(path, tree) if job.job_id == job.root_job_id else _of_leg(tree, job)
    if not work.branch.startswith(OUR_BRANCHES):
        message = f"{work.branch or job.job_id} is not a branch of the service: only {OUR_BRANCHES}... is published"
        raise RefusedError(message, f"service job branches {job.root_job_id}")
    if work.commit == tree.line != tree.head:
        merge_offer.refuse_foreign_on(service, tree, "; nothing was published")
    elif work.commit != tree.head:
        for leg in tree.legs:
            if leg.branch and work.commit in (leg.head_sha, git_branches.tip(path, leg.branch)):
                refuse_foreign(service, tree, replace(leg, head_sha=work.commit), "; nothing was published")
    return work


def _of_root(path: Path, tree: Branches) -> NamedCommit:
    """Return the commit of a tree to publish: the task's branch; before the first merge the line, or a branch that
    contains all others.

    So a tree has only one pull request, whatever is published later.
    """
    if tree.head or tree.line:
        return NamedCommit(tree.task_branch, tree.head or tree.line)
    ready = [leg for leg in tree.legs if leg.state is BranchState.UNMERGED and leg.job_state is JobState.SUCCEEDED]
    if ready:
        commits = {leg.branch: leg.head_sha or "" for leg in ready}
        if whole := _whole(path, list(commits.values())):
            return NamedCommit(tree.task_branch, whole)
        message = f"{len(commits)} branches hold work of {tree.root_job_id}, and {tree.task_branch} is not made yet"
        insists = "" if any(not leg.objection for leg in ready) else " --anyway"
        raise RefusedError(message, f"service job merge {tree.root_job_id}{insists}")
    if any(leg.state is BranchState.MERGED for leg in tree.legs):
        message = f"the branch {tree.task_branch} is gone"
        raise NotFoundError(message, f"service job branches {tree.root_job_id}")
    return NamedCommit(tree.task_branch, _so_far(path, tree))


def _so_far(path: Path, tree: Branches) -> str:
    """Return the newest commit of the running jobs, if one of their branches contains all the others."""
    running = [leg for leg in tree.legs if leg.state is BranchState.RUNNING]
    tips = {leg.branch: tip for leg in running if (tip := git_branches.tip(path, leg.branch)) and tip != leg.base_sha}
    if not tips:
        message = f"there is nothing to publish: no job of {tree.root_job_id} has left commits"
        hint = f"service job tree {tree.root_job_id} --watch" if running else f"service job branches {tree.root_job_id}"
        raise NothingToPublishError(message, hint)
    whole = _whole(path, list(tips.values()))
    if whole is None:
        message = f"{len(tips)} jobs of {tree.root_job_id} still work, each on a branch of its own"
        raise RefusedError(message, f"service job tree {tree.root_job_id} --watch")
    return whole


def _whole(path: Path, commits: Sequence[str]) -> str | None:
    """Return the commit that contains all the others; None if there is no such commit."""
    whole = (each for each in commits if all(git_branches.contains(path, each, other) for other in commits))
    return next(whole, None)


def _of_leg(tree: Branches, job: JobRecord) -> NamedCommit:
    leg = next((each for each in tree.legs if each.job_id == job.job_id), None)
    if job.action is not Action.IMPLEMENT or leg is None:
        message = f"{job.job_id} ({job.action}) has no branch: what it changed was thrown away"
        raise NothingToPublishError(message, f"service job publish {tree.root_job_id}")
    if job.state in {JobState.QUEUED, JobState.RUNNING}:
        raise RefusedError(f"{job.job_id} is still {job.state}", f"service job tree {job.job_id} --watch")
    if job.state is not JobState.SUCCEEDED:
        why = f": {job.reason}" if job.reason else ""
        message = f"{job.job_id} {job.state.in_a_sentence}{why}; only work that succeeded is published"
        raise RefusedError(message, branches.again(job))
    return NamedCommit(leg.branch, _commit(tree, leg))


def _commit(tree: Branches, leg: LegBranch) -> str:
    match leg.state:
        case BranchState.EMPTY:
            message = f"{leg.job_id} changed nothing: there is nothing to publish"
            raise NothingToPublishError(message, f"service job show {leg.job_id}")
        case BranchState.GONE | BranchState.DROPPED:
            message = f"the branch {leg.branch} of {leg.job_id} is gone"
            back = branches.restore(tree.path, leg.branch, leg.head_sha or "")
            hint = back if leg.ahead is not None else f"service job branches {tree.root_job_id}"
            raise NotFoundError(message, hint)
        case _:
            return leg.head_sha or ""
