"""Publishing a tree's work: declaring pull requests, and pushing the branch first (ruling L9). Next step: `pulls`."""

import asyncio
import time
from pathlib import Path

from sqlalchemy import Engine

from activities.git import pushing
from activities.git.command import GitError
from activities.github import api
from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.host import checkouts
from activities.store import jobs
from activities.store.github import account, facts
from activities.store.github import publishing as stored
from activities.store.github.facts import FactRow
from activities.store.registry import repos
from activities.store.registry.repos import Repo
from bridge.github.session import Session
from bridge.operations.branches.publish import NothingToPublishError, Work, publication, work_of
from bridge.operations.service import Service
from workflows.github.facts import BY_ITSELF, OUR_BRANCHES, FactKind, Publication, publish_id
from workflows.model.errors import NotFoundError, RefusedError, ServiceError
from workflows.policy.backoff import backoff

LATE_SECONDS = 86_400.0
"""Seconds after a tree's end within which its rows may still be written."""
FIRST_WAIT = 60.0
MOST_PUSHES = 8
"""Attempts to push, with exponential backoff: four hours in all."""


def declare(session: Session) -> None:
    """Declare automatic publications, and pull requests whose tree has ended since they were written."""
    store, repos_ = session.store, _served(session)
    stored.serve(store, [each.name for each in repos_], time.time())
    known = {each.name: each for each in repos_}
    facts.declare(store, [_fact(tree, known[tree.repo]) for tree in stored.unpublished(store)])
    stored.looked_at(store, time.time() - LATE_SECONDS)
    for fact in stored.outdated(store):
        facts.again(store, fact.fact_id, state=facts.PUSH)


def is_news(service: Service, now: float) -> bool:
    """Return whether a publication exists that no turn has seen."""
    store = service.store
    fresh = any(each.attempts == 0 for each in facts.to_push(store, now))
    return fresh or bool(stored.outdated(store) or stored.unpublished(store))


def _served(session: Session) -> list[Repo]:
    """Return the repositories whose finished work is published automatically."""
    if session.settings.publish != "on_success":
        return []
    wanted = session.settings.repos
    known = (checkouts.seen_here(session.service, repo) for repo in repos.every(session.store))
    return [repo for repo in known if repo.github and (not wanted or repo.name in wanted)]


def _fact(tree: stored.Finished, repo: Repo) -> FactRow:
    root = tree.root_job_id
    return FactRow(
        *(
            publish_id(root),
            FactKind.PUBLISH,
            root,
            repo.github,
            tree.pull_request or 0,
            f"{OUR_BRANCHES}{tree.task_id}",
        ),
        text=Publication(job_id=root, actor=BY_ITSELF).model_dump_json(),
        state=facts.PUSH,
        host=repo.host,
    )


def to_push(store: Engine, now: float) -> list[FactRow]:
    """Return the facts whose branch is to be pushed now, each with its next attempt already scheduled."""
    found = []
    for fact in facts.to_push(store, now):
        if fact.attempts >= MOST_PUSHES:
            facts.give_up(store, fact.fact_id, fact.error)
            continue
        where = f" of the host {fact.host}" if fact.host else ""
        why = fact.error or f"the GitHub process{where} has not pushed it yet"
        facts.put_off(store, fact.fact_id, now + backoff(FIRST_WAIT, fact.attempts), why)
        found.append(fact)
    return found


def pusher(session: Session, fact: FactRow) -> str:
    """Return the host that pushes: that of the checkout; for a repository with a remote, this one, which surely has the
    account.
    """
    task = jobs.task_of(session.store, fact.root_job_id)
    repo = repos.get(session.store, task.repo) if task else None
    here = session.service.settings.host
    if repo is None or not repo.remote or fact.host == here:
        return fact.host
    facts.note(session.store, fact.fact_id, host=here)
    return here


async def push(session: Session, fact_id: str) -> None:
    """Push the branch from this host's checkout, and record the outcome in the fact's row."""
    store = session.store
    fact = await asyncio.to_thread(facts.get, store, fact_id)
    if fact is None or fact.state != facts.PUSH:
        return
    try:
        repo = await asyncio.to_thread(_here, session, fact)
        if repo is None:
            return
        work = await asyncio.to_thread(_work, session, fact)
        await _refuse_protected(session, fact.github, work.branch)
        await asyncio.to_thread(_push, session, fact, Path(repo.path), work)
    except LimitedError as error:
        await asyncio.to_thread(facts.note, store, fact_id, error=str(error), next_at=error.until)
        await asyncio.to_thread(account.note, store, blocked_until=error.until, problem=str(error))
        return
    except (AwayError, DeclinedError, GitError) as error:
        why = error.message if isinstance(error, GitError) else str(error)
        await asyncio.to_thread(facts.note, store, fact_id, error=why)
        return
    except NothingToPublishError as error:
        await asyncio.to_thread(_leave, store, fact, error)
        return
    except ServiceError as error:
        await asyncio.to_thread(facts.give_up, store, fact_id, _whole(error))
        return
    text = publication(fact).model_copy(update={"commit": work.commit}).model_dump_json()
    done = {"state": facts.OPEN, "subject": work.branch, "text": text, "next_at": 0.0, "attempts": 0, "error": ""}
    await asyncio.to_thread(facts.note, store, fact_id, **done)


def _here(session: Session, fact: FactRow) -> Repo | None:
    """Return the fact's repository if its checkout is on this host; else assign the fact to that host and
    return None.
    """
    task = jobs.task_of(session.store, fact.root_job_id)
    repo = repos.get(session.store, task.repo) if task else None
    if repo is None:
        raise NotFoundError(f"the repository of {fact.root_job_id} is not registered", "service repo list")
    if repo.is_on(session.service.settings.host):
        checkouts.path_of(session.service, repo)
        return checkouts.seen_here(session.service, repo)
    facts.note(session.store, fact.fact_id, host=repo.host, next_at=0.0)
    return None


def _work(session: Session, fact: FactRow) -> Work:
    """Return the branch and commit to publish now; if the branch is gone, the commit pushed before."""
    was = publication(fact)
    job = jobs.get(session.store, was.job_id)
    if job is None:
        raise NotFoundError(f"there is no job {was.job_id}", "service job list")
    try:
        return work_of(session.service, job)
    except (NotFoundError, RefusedError):
        if was.commit:
            return Work(fact.subject, was.commit)
        raise


async def _refuse_protected(session: Session, github: str, branch: str) -> None:
    """Refuse to push to the default branch or to a protected one. GitHub is asked for every name."""
    default = (await api.repository(session.client, github)).default_branch
    there = await api.branch(session.client, github, branch)
    if branch == default or (there is not None and there.protected):
        what = "the default branch" if branch == default else "protected"
        raise RefusedError(f"{branch} is {what} of {github}: it is never pushed", "service job publish LEG")


def _push(session: Session, fact: FactRow, repo: Path, work: Work) -> None:
    to = pushing.destination(repo, fact.github, session.settings.web, session.client.token)
    pushing.push(repo, work.commit, work.branch, to)


def _leave(store: Engine, fact: FactRow, error: NothingToPublishError) -> None:
    """Close an automatic publication that has nothing to publish; fail one that a person has ordered."""
    if publication(fact).actor == BY_ITSELF:
        facts.written(store, fact.fact_id)
        facts.note(store, fact.fact_id, error=error.message)
    else:
        facts.give_up(store, fact.fact_id, _whole(error))


def _whole(error: ServiceError) -> str:
    return f"{error.message}; to go on: {error.hint}" if error.hint else error.message
