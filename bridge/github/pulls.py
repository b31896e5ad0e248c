"""The pull request of a pushed branch: found by its head, or opened, and updated as the tree goes (ruling L9).

Every step looks at GitHub first and does one write, so neither a crash nor a second process creates a duplicate.
"""

import asyncio
import time

from activities.github import api
from activities.github.client import DeclinedError
from activities.github.models import Pull
from activities.store import attempts, jobs
from activities.store.github import facts
from activities.store.github.facts import FactRow
from bridge.github.session import APART, Later, Never, Session, Wrote
from bridge.operations.branches.publish import publication
from workflows.contract.models import ServiceResult
from workflows.github.bound_tree import BoundTree, last_job
from workflows.github.facts import Publication, marked
from workflows.github.texts import pull_requests as texts
from workflows.github.texts.pull_requests import Told
from workflows.model.rows import JobRecord
from workflows.model.states import TaskState
from workflows.policy.backoff import backoff
from workflows.text.digests import digest

NOT_SEEN_YET = 4
"""Attempts to wait for GitHub to see a branch that was just pushed."""


async def open_pull(session: Session, fact: FactRow) -> Wrote:
    """Open the pull request, or update the existing one."""
    what = publication(fact)
    told = await asyncio.to_thread(_told, session, fact, what)
    found = await api.pulls_of(session.client, fact.github, fact.subject)
    standing = next((each for each in found if each.state == "open"), None)
    over = next((each for each in found if each.head.sha == what.commit), None)
    if standing is None and over is None:
        standing = await _open(session, fact, what, told)
        what = await asyncio.to_thread(_again, session, fact)
    if standing is None:
        assert over is not None
        state = "merged" if over.merged or over.merged_at else "closed"
        return await _seen(session, fact, what, told, over, state)
    return await _update(session, fact, what, told, standing)


async def _open(session: Session, fact: FactRow, what: Publication, told: Told) -> Pull | None:
    """Open the pull request, and record its body's digest before the POST, so that a crash in between can be
    recognised.
    """
    base = what.base or await _base(session, fact)
    body, draft = texts.body(told, fact.fact_id), told.running and not what.no_drafts
    await _keep(session, fact, what.about_to_say(_said(body)).model_copy(update={"draft": draft}))
    said = {"title": texts.title(told), "body": body, "head": fact.subject, "base": base, "draft": draft}
    try:
        return await api.open_pull(session.client, fact.github, **said)
    except DeclinedError as error:
        return await _declined(session, fact, what, error, base)


async def _declined(session: Session, fact: FactRow, what: Publication, error: DeclinedError, base: str) -> Pull:
    """Handle GitHub's 422: use a pull request that somebody opened first, retry without a draft, or give up."""
    if error.status != 422:
        raise error
    why = str(error).lower()
    if "already exists" in why:
        found = await api.pulls_of(session.client, fact.github, fact.subject)
        if standing := next((each for each in found if each.state == "open"), None):
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


async def _base(session: Session, fact: FactRow) -> str:
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


async def _update(session: Session, fact: FactRow, what: Publication, told: Told, there: Pull) -> Wrote:
    """Update the body if nobody else edited it, and mark the service's own draft ready. The title is never changed."""
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, github_id=str(there.number), url=there.html_url)
    body = texts.body(told, fact.fact_id)
    ours = marked(_plain(there.body)) == fact.fact_id and _said(there.body) in what.said
    changed = ours and _said(there.body) != _said(body)
    if changed:
        what = what.about_to_say(_said(body))
        await _keep(session, fact, what)
        await api.change_pull(session.client, fact.github, there.number, body=body)
    if what.draft and there.draft and told.task.state is TaskState.DONE and not told.task.cut_short:
        if changed:
            raise Later("its text is written; next, that it is ready", time.time() + APART)
        await api.mark_ready(session.client, there.node_id)
        what, there = what.model_copy(update={"draft": False}), there.model_copy(update={"draft": False})
    if not there.draft:
        what = what.model_copy(update={"draft": False})
    return await _seen(session, fact, what, told, there, "draft" if there.draft else "open")


async def _seen(session: Session, fact: FactRow, what: Publication, told: Told, there: Pull, state: str) -> Wrote:
    """Record the state of the pull request and the revision of the task it reflects."""
    text = what.model_copy(update={"state": state, "into": there.base.ref}).model_dump_json()
    revision = told.task.revision
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, text=text, revision=revision)
    return Wrote(str(there.number), there.html_url, what.said[-1] if what.said else "")


async def _keep(session: Session, fact: FactRow, what: Publication) -> None:
    text = what.model_dump_json()
    await asyncio.to_thread(facts.note, session.store, fact.fact_id, text=text)


def _again(session: Session, fact: FactRow) -> Publication:
    """Read the publication again from the store."""
    return publication(facts.get(session.store, fact.fact_id) or fact)


def _told(session: Session, fact: FactRow, what: Publication) -> Told:
    store = session.store
    task, job = jobs.task_of(store, fact.root_job_id), jobs.get(store, what.job_id)
    if task is None or job is None:
        raise Never(f"the rows of {what.job_id} are gone")
    tree = BoundTree(task, tuple(jobs.tree(store, fact.root_job_id)))
    last = last_job(tree) if job.job_id == fact.root_job_id else job
    address = session.service.settings.bridge.url  # an address of this machine only is of no use there
    page = f"{address}/ui/trees/{fact.root_job_id}" if address else ""
    return Told(task, job, last, _result(session, last), page)


def _result(session: Session, job: JobRecord | None) -> ServiceResult | None:
    """Return the result of a job that has ended."""
    runs = attempts.of_job(session.store, job.job_id) if job and job.ended_at else []
    found = (runs[-1].payload or {}).get("service_result") if runs else None
    return ServiceResult.model_validate(found) if found else None


def _plain(body: str) -> str:
    """Normalise a body's line ends, which GitHub's editor changes."""
    return body.replace("\r\n", "\n").rstrip("\n")


def _said(body: str) -> str:
    return digest(_plain(body))
