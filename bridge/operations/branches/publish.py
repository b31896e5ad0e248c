"""Publishing a tree's work as a pull request, and how far that is (ruling L9)."""

import re
import time

from pydantic import BaseModel, ConfigDict, Field

from activities.host import checkouts
from activities.settings import ready
from activities.store.github import account, facts
from activities.store.github import publishing as stored
from activities.store.github.facts import FactRow
from activities.store.registry import repos as stored_repos
from activities.store.registry.repos import Repo
from bridge.operations.branches.published_work import work_of
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.github.facts import FactKind, Publication, publish_id
from workflows.model.errors import RefusedError, ServiceError, UsageError
from workflows.policy import belongs_to
from workflows.text.durations import clock

WAIT_SECONDS = 60.0
ACCOUNT_SECONDS = 2 * 3600.0
"""Seconds for which a host's account counts as there: it is looked at once an hour."""
_BRANCH = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock$|[/.]$))[!-~]{1,200}")
_NEVER = re.compile(r"[\s~^:?*\[\\]")
_STATES = {
    "draft": "a draft until the tree is done",
    "closed": "it was closed with exactly this work: nothing was done",
    "merged": "it is merged already, with exactly this work: nothing was done",
}


class PublishAnswer(BaseModel):
    """Work on its way to a pull request; a repeated call returns its current state."""

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
        """Return whether nothing is left to do."""
        return self.state in {facts.DONE, facts.FAILED}


def publish(service: Service, job_id: str, *, actor: str, base: str | None = None) -> PublishAnswer:
    """Order the publication of a tree's or a leg's work; a repeated order adds new commits to the same pull request."""
    job = jobs.get(service, job_id)
    repo = served(service, job.repo)
    work = work_of(service, job)
    base = _base(base, work.branch)
    fact_id = publish_id(job.job_id)
    wanted = Publication(job_id=job.job_id, actor=actor, base=base)
    row = FactRow(
        *(fact_id, FactKind.PUBLISH, job.root_job_id, repo.github, job.pull_request or 0, work.branch),
        text=wanted.model_dump_json(),
        state=facts.PUSH,
        host=repo.host if service.settings.github.configured or not repo.remote else "",  # any that has the account
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


def served(service: Service, name: str) -> Repo:
    """Return the registered repository if the service can write its pull requests; else raise, with the command to
    type.
    """
    settings, repo = service.settings.github, checkouts.seen_here(service, stored_repos.registered(service.store, name))
    if not settings.configured and not (repo.remote and _is_served_elsewhere(service)):
        message = f"GitHub is not set up: {service.home.config} has no [github] with an account"
        raise RefusedError(message, "set [github].token_env there, then: service config check")
    belongs_to.check_github(repo.name, repo.path, repo.github)
    if settings.repos and name not in settings.repos:
        message = f"[github].repos does not name {name}: nothing of it is written to GitHub"
        raise RefusedError(message, f"add it in {service.home.config}, then: service config check")
    return repo


def _is_served_elsewhere(service: Service) -> bool:
    """Return whether another host of the store has an account, which was let in lately."""
    known = account.read(service.store)
    return bool(service.settings.store.url and known.login) and time.time() - known.seen_at < ACCOUNT_SECONDS


def is_possible(service: Service, name: str) -> bool:
    """Return whether the service can write this repository's pull requests."""
    try:
        served(service, name)
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
    """Return the state of the publication of a job's work; None if nobody has ordered one."""
    fact = facts.get(service.store, publish_id(job_id))
    return look(service, fact) if fact else None


def of_tree(service: Service, root: str) -> list[PublishAnswer]:
    """Return all publications of a tree, finished or ordered."""
    return [look(service, fact) for fact in stored.of_trees(service.store, [root])]


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
    """Return whether GitHub's rate limit or an outage delays requests longer than a caller would wait."""
    return (account.read(service.store).blocked_until or 0.0) > time.time() + WAIT_SECONDS
