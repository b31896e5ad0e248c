"""Publishing a tree's branch (ruling L9): push the branch, open its pull request or find an existing one by its head,
and update it while the tree runs.

Every step looks at GitHub first and does one write, so neither a crash nor a second process creates a duplicate.
"""

import asyncio
import time
from pathlib import Path

from sqlalchemy import Engine

from activities.git import pushing
from activities.git.command import GitError
from activities.github import api
from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.github.models import Pull
from activities.host import checkouts
from activities.store import job_rows
from activities.store.github import account, facts
from activities.store.github.facts import FactRow
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.github.session import APART, GithubSession, Later, Never, Wrote
from bridge.operations.branches.publish import NamedCommit, NothingToPublishError, publication, work_of
from bridge.operations.github.tree import result_of
from bridge.operations.service import Service
from workflows.github.bound_tree import BoundTree, last_job
from workflows.github.facts import BY_ITSELF, OUR_BRANCHES, FactKind, Publication, fact_in, publish_id
from workflows.github.texts import pull_requests
from workflows.github.texts.pull_requests import PullRequestData
from workflows.model.errors import NotFoundError, RefusedError, ServiceError
from workflows.model.states import TaskState
from workflows.policy.backoff import backoff
from workflows.text.digests import digest

LATE_SECONDS = 86_400.0
"""Seconds after a tree's end in which its rows in the store may still change."""
FIRST_WAIT = 60.0
MOST_PUSHES = 8
"""Attempts to push, with exponential backoff: four hours in all."""

NOT_SEEN_YET = 4
"""Attempts to open a pull request while GitHub does not see the pushed branch yet."""


def declare(session: GithubSession) -> None:
    """Declare automatic publications, and updates of pull requests whose tree has ended since they were written."""
    store, repos_ = session.store, _published_repos(session)
    facts.publish_in(store, [each.name for each in repos_], time.time())
    known = {each.name: each for each in repos_}
    facts.declare(store, [_fact(tree, known[tree.repo]) for tree in facts.to_publish(store)])
    facts.examined_until(store, time.time() - LATE_SECONDS)
    for fact in facts.outdated_pulls(store):
        facts.again(store, fact.fact_id, state=facts.PUSH)


def is_news(service: Service, now: float) -> bool:
    """Return whether a publication exists that no turn has seen."""
    store = service.store
    fresh = any(each.attempts == 0 for each in facts.to_push(store, now))
    return fresh or bool(facts.outdated_pulls(store) or facts.to_publish(store))


def _published_repos(session: GithubSession) -> list[Repo]:
    """Return the repositories whose finished work is published automatically."""
    if session.settings.publish != "on_success":
        return []
    wanted = session.settings.repos
    known = (checkouts.seen_here(session.service, repo) for repo in repo_rows.every(session.store))
    return [repo for repo in known if repo.github and (not wanted or repo.name in wanted)]


def _fact(tree: facts.Finished, repo: Repo) -> FactRow:
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
    due = []
    for fact in facts.to_push(store, now):
        if fact.attempts >= MOST_PUSHES:
            facts.give_up(store, fact.fact_id, fact.error)
            continue
        where = f" of the host {fact.host}" if fact.host else ""
        why = fact.error or f"the GitHub process{where} has not pushed it yet"
        facts.put_off(store, fact.fact_id, now + backoff(FIRST_WAIT, fact.attempts), why)
        due.append(fact)
    return due


def pusher(session: GithubSession, fact: FactRow) -> str:
    """Return the host that pushes the branch: this host if the repository has a remote, since this host has the
    account; else the checkout's host.
    """
    task = job_rows.task_of(session.store, fact.root_job_id)
    repo = repo_rows.get(session.store, task.repo) if task else None
    here = session.service.settings.host
    if repo is None or not repo.remote or fact.host == here:
        return fact.host
    facts.note(session.store, fact.fact_id, host=here)
    return here


async def push(session: GithubSession, fact_id: str) -> None:
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


def _here(session: GithubSession, fact: FactRow) -> Repo | None:
    """Return the fact's repository if its checkout is on this host; else assign the fact to that host and
    return None.
    """
    task = job_rows.task_of(session.store, fact.root_job_id)
    repo = repo_rows.get(session.store, task.repo) if task else None
    if repo is None:
        raise NotFoundError(f"the repository of {fact.root_job_id} is not registered", "service repo list")
    if repo.is_on(session.service.settings.host):
        checkouts.path_of(session.service, repo)
        return checkouts.seen_here(session.service, repo)
    facts.note(session.store, fact.fact_id, host=repo.host, next_at=0.0)
    return None


def _work(session: GithubSession, fact: FactRow) -> NamedCommit:
    """Return the branch and commit to publish now; if the branch is gone, the commit pushed before."""
    was = publication(fact)
    job = job_rows.get(session.store, was.job_id)
    if job is None:
        raise NotFoundError(f"there is no job {was.job_id}", "service job list")
    try:
        return work_of(session.service, job)
    except (NotFoundError, RefusedError):
        if was.commit:
            return NamedCommit(fact.subject, was.commit)
        raise


async def _refuse_protected(session: GithubSession, github: str, branch: str) -> None:
    """Refuse to push to the default branch or to a protected one. Ask GitHub each time."""
    default = (await api.repository(session.client, github)).default_branch
    there = await api.branch(session.client, github, branch)
    if branch == default or (there is not None and there.protected):
        what = "the default branch" if branch == default else "protected"
        raise RefusedError(f"{branch} is {what} of {github}: it is never pushed", "service job publish PART")


def _push(session: GithubSession, fact: FactRow, repo: Path, work: NamedCommit) -> None:
    to = pushing.destination(repo, fact.github, session.settings.web, session.client.token)
    pushing.push(repo, work.commit, work.branch, to)


def _leave(store: Engine, fact: FactRow, error: NothingToPublishError) -> None:
    """End a publication that has nothing to publish: close it if it was automatic, fail it if a person ordered it."""
    if publication(fact).actor == BY_ITSELF:
        facts.mark_written(store, fact.fact_id)
        facts.note(store, fact.fact_id, error=error.message)
    else:
        facts.give_up(store, fact.fact_id, _whole(error))


def _whole(error: ServiceError) -> str:
    return f"{error.message}; to go on: {error.hint}" if error.hint else error.message


async def open_pull(session: GithubSession, fact: FactRow) -> Wrote:
    """Open the pull request, or update the existing one."""
    what = publication(fact)
    content = await asyncio.to_thread(_content, session, fact, what)
    pulls = await api.pulls_of(session.client, fact.github, fact.subject)
    standing = next((each for each in pulls if each.state == "open"), None)
    over = next((each for each in pulls if each.head.sha == what.commit), None)
    if standing is None and over is None:
        standing = await _open(session, fact, what, content)
        what = await asyncio.to_thread(_again, session, fact)
    if standing is None:
        assert over is not None
        state = "merged" if over.merged or over.merged_at else "closed"
        return await _record(session, fact, what, content, over, state)
    return await _update(session, fact, what, content, standing)


async def _open(session: GithubSession, fact: FactRow, what: Publication, content: PullRequestData) -> Pull | None:
    """Open the pull request, and record its body's digest before the POST, so that a crash in between can be
    recognised.
    """
    base = what.base or await _base(session, fact)
    body, draft = pull_requests.body(content, fact.fact_id), content.running and not what.no_drafts
    await _keep(session, fact, what.about_to_say(_body_digest(body)).model_copy(update={"draft": draft}))
    fields = {"title": pull_requests.title(content), "body": body, "head": fact.subject, "base": base, "draft": draft}
    try:
        return await api.open_pull(session.client, fact.github, **fields)
    except DeclinedError as error:
        return await _handle_refusal(session, fact, what, error, base)


async def _handle_refusal(
    session: GithubSession, fact: FactRow, what: Publication, error: DeclinedError, base: str
) -> Pull:
    """Handle GitHub's 422: use a pull request that somebody else opened, retry without a draft, or give up."""
    if error.status != 422:
        raise error
    why = str(error).lower()
    if "already exists" in why:
        pulls = await api.pulls_of(session.client, fact.github, fact.subject)
        if standing := next((each for each in pulls if each.state == "open"), None):
            return standing
        raise Later("GitHub does not list the pull request yet", time.time() + APART) from None
    if "draft" in why and not what.no_drafts:
        await _keep(session, fact, what.model_copy(update={"no_drafts": True, "draft": False}))
        raise Later("the repository has no drafts", time.time() + APART) from None
    if "no commits between" in why:
        raise Never(f"there is nothing to publish: all of {fact.subject} is in {base} already") from None
    if "'base'" in why:
        hint = f"service job publish {what.job_id} --base BRANCH"
        raise Never(f"{fact.github} has no branch {base} to merge it into; to go on: {hint}") from None
    if "'head'" in why and fact.attempts < NOT_SEEN_YET:
        raise Later("GitHub does not know the branch yet", time.time() + backoff(5.0, fact.attempts)) from None
    raise error


async def _base(session: GithubSession, fact: FactRow) -> str:
    """Return the head branch of the bound pull request if it is open and in this repository; else the default
    branch.
    """
    if fact.number:
        try:
            bound = await api.pull(session.client, fact.github, fact.number)
        except DeclinedError as error:
            if error.status != 404:
                raise
        else:
            here = bound.head.repo is not None and bound.head.repo.full_name.lower() == fact.github.lower()
            if bound.state == "open" and here and bound.head.ref != fact.subject:
                return bound.head.ref
    return (await api.repository(session.client, fact.github)).default_branch


async def _update(
    session: GithubSession, fact: FactRow, what: Publication, content: PullRequestData, there: Pull
) -> Wrote:
    """Update the body if nobody else edited it, and mark the service's own draft ready. The title is never changed."""
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, github_id=str(there.number), url=there.html_url)
    body = pull_requests.body(content, fact.fact_id)
    ours = fact_in(_plain(there.body)) == fact.fact_id and _body_digest(there.body) in what.said
    changed = ours and _body_digest(there.body) != _body_digest(body)
    if changed:
        what = what.about_to_say(_body_digest(body))
        await _keep(session, fact, what)
        await api.change_pull(session.client, fact.github, there.number, body=body)
    if what.draft and there.draft and content.task.state is TaskState.DONE and not content.task.cut_short:
        if changed:
            raise Later("its text is written; next, that it is ready", time.time() + APART)
        await api.mark_ready(session.client, there.node_id)
        what, there = what.model_copy(update={"draft": False}), there.model_copy(update={"draft": False})
    if not there.draft:
        what = what.model_copy(update={"draft": False})
    return await _record(session, fact, what, content, there, "draft" if there.draft else "open")


async def _record(
    session: GithubSession, fact: FactRow, what: Publication, content: PullRequestData, there: Pull, state: str
) -> Wrote:
    """Record the state of the pull request and the revision of the task it reflects."""
    text = what.model_copy(update={"state": state, "into": there.base.ref}).model_dump_json()
    revision = content.task.revision
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, text=text, revision=revision)
    return Wrote(str(there.number), there.html_url, what.said[-1] if what.said else "")


async def _keep(session: GithubSession, fact: FactRow, what: Publication) -> None:
    text = what.model_dump_json()
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, text=text)


def _again(session: GithubSession, fact: FactRow) -> Publication:
    """Read the publication again from the store."""
    return publication(facts.get(session.store, fact.fact_id) or fact)


def _content(session: GithubSession, fact: FactRow, what: Publication) -> PullRequestData:
    store = session.store
    task, job = job_rows.task_of(store, fact.root_job_id), job_rows.get(store, what.job_id)
    if task is None or job is None:
        raise Never(f"the rows of {what.job_id} are gone")
    tree = BoundTree(task, tuple(job_rows.tree(store, fact.root_job_id)))
    last = last_job(tree) if job.job_id == fact.root_job_id else job
    address = session.service.settings.bridge.url  # an address of this machine only is of no use there
    page = f"{address}/ui/trees/{fact.root_job_id}" if address else ""
    result = result_of(session.service, last) if last and last.ended_at else None
    return PullRequestData(task, job, last, result, page)


def _plain(body: str) -> str:
    """Normalise a body's line ends, which GitHub's editor changes."""
    return body.replace("\r\n", "\n").rstrip("\n")


def _body_digest(body: str) -> str:
    return digest(_plain(body))
