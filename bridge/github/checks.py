"""The merge gate's verdict as the check `service/gate` on the head of a pull request (ruling L10).

Only GitHub Apps may create check runs: other accounts set a commit status of that name.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from activities.github import api
from activities.github.client import DeclinedError
from activities.store import job_rows
from activities.store.github import account, facts, threads
from activities.store.github.facts import FactRow
from activities.store.github.threads import Thread
from bridge.github.session import GithubSession, Needless, Wrote
from bridge.operations.branches import merge_gate
from bridge.operations.github.tree import result_of
from workflows.github.facts import FactKind, check_id
from workflows.github.merge_gate import GateState, GateVerdict, deciding_tree, queued_number
from workflows.github.texts import pull_requests
from workflows.github.texts.pull_requests import Annotation
from workflows.text.digests import digest

NAME = "service/gate"
FORBIDDEN = 403
CONCLUSIONS = {GateState.PASSING: "success", GateState.FAILING: "failure", GateState.UNKNOWN: "action_required"}
STATUSES = {
    GateState.PASSING: "success",
    GateState.FAILING: "failure",
    GateState.PENDING: "pending",
    GateState.UNKNOWN: "error",
}


def wanted_checks(session: GithubSession, thread: Thread) -> list[FactRow]:
    """Return the check to set for a tree on its pull request's last known head, if any."""
    if not session.settings.check or thread.kind != "pull_request" or not thread.head_sha:
        return []
    if not _decides(session, thread):
        return []
    return [_fact(thread, thread.head_sha)]


def again(session: GithubSession, thread: Thread) -> None:
    """Queue an update of every written check of the tree, because the verdict may have changed."""
    for fact in facts.of_root(session.store, thread.root_job_id):
        if fact.kind == FactKind.CHECK and fact.state == facts.DONE:
            facts.again(session.store, fact.fact_id)


async def look(session: GithubSession, github: str) -> None:
    """Fetch the heads of the watched pull requests and the merge queue's entries; record new ones."""
    store = session.store
    mine = await asyncio.to_thread(threads.open_pulls, store, github) if session.settings.check else []
    if not mine:
        return
    heads: dict[int, str | None] = {each.number: each.head.sha for each in await api.open_pulls(session.client, github)}
    for number in {each.number for each in mine} - heads.keys():
        pull = await api.pull(session.client, github, number)  # closed, or beyond the listed ones
        heads[number] = pull.head.sha if pull.state == "open" else None
    await asyncio.to_thread(_record_heads, session, mine, heads)
    for ref in await api.merge_queue(session.client, github):
        tried = queued_number(ref.ref)
        if tried is not None and tried in heads:
            await asyncio.to_thread(_queue, session, github, tried, ref.object.sha)


def _record_heads(session: GithubSession, mine: list[Thread], heads: Mapping[int, str | None]) -> None:
    """Record new heads, and declare a check on each; the check is pending until the head is judged."""
    for thread in mine:
        head = heads[thread.number]
        if head is None:
            threads.saw_closed(session.store, thread.github, thread.number)
            continue
        if head != thread.head_sha:
            threads.saw_head(session.store, thread.github, thread.number, head)
        if _decides(session, thread):
            facts.declare(session.store, [_fact(thread, head)])


def _queue(session: GithubSession, github: str, number: int, sha: str) -> None:
    deciding = (each for each in threads.of_number(session.store, github, number) if _decides(session, each))
    facts.declare(session.store, [_fact(each, sha) for each in deciding])


def _fact(thread: Thread, sha: str) -> FactRow:
    fact_id = check_id(thread.root_job_id, sha)
    return FactRow(fact_id, FactKind.CHECK, thread.root_job_id, thread.github, thread.number, sha)


def _decides(session: GithubSession, thread: Thread) -> bool:
    mine = (each.root_job_id for each in threads.of_number(session.store, thread.github, thread.number))
    trees = ((root, [job.action for job in job_rows.tree(session.store, root)]) for root in mine)
    return thread.root_job_id == deciding_tree(trees)


async def write(session: GithubSession, fact: FactRow) -> Wrote:
    """Create or update the check. No-op if its content has not changed."""
    thread = await asyncio.to_thread(threads.get, session.store, fact.root_job_id)
    if thread is None or thread.closed or not await asyncio.to_thread(_decides, session, thread):
        raise Needless
    verdict = await asyncio.to_thread(_verdict, session, thread)
    if fact.subject == thread.head_sha and verdict.head not in {None, fact.subject}:
        raise Needless  # a newer head exists, which the next look at the pull request finds
    body = _body(session, thread, fact, verdict)
    now = digest([json.dumps(body, sort_keys=True)])
    if fact.github_id and fact.digest == now:
        return Wrote(digest=now)
    if not (await asyncio.to_thread(account.read, session.store)).checks_refused:
        try:
            return await _check_run(session, fact, body, now)
        except DeclinedError as error:
            if error.status != FORBIDDEN:
                raise
            await asyncio.to_thread(lambda: account.note(session.store, checks_refused=True))
    state, title = STATUSES[verdict.state], body["output"]["title"]
    page = {"target_url": body["details_url"]} if "details_url" in body else {}
    status = {"state": state, "context": NAME, "description": title[:140]} | page
    await api.set_status(session.client, fact.github, fact.subject, status)
    return Wrote("status", digest=now)


async def _check_run(session: GithubSession, fact: FactRow, body: dict[str, Any], now: str) -> Wrote:
    """Create or update the check run, found by its external id. GitHub accepts 50 annotations a request and appends
    them.
    """
    notes = [] if body["status"] == "in_progress" else await asyncio.to_thread(_notes, session, fact.root_job_id)
    there, sent = await _ours(session, fact, looks=bool(notes))
    some = notes[sent : sent + api.MOST_ANNOTATIONS]
    part = {**body, "output": {**body["output"], "annotations": [annotation.as_json() for annotation in some]}}
    if there:
        made = await api.change_check(session.client, fact.github, there, part)
    else:
        made = await api.add_check(session.client, fact.github, {**part, "head_sha": fact.subject})
    return Wrote(str(made.id), made.html_url, now, more=sent + len(some) < len(notes))


async def _ours(session: GithubSession, fact: FactRow, *, looks: bool) -> tuple[str, int]:
    """Return the id of the service's own check run, or "", and its number of annotations."""
    if fact.github_id and not looks:
        return fact.github_id, 0
    check_runs = await api.check_runs(session.client, fact.github, fact.subject, NAME)
    mine = [each for each in check_runs if each.external_id == fact.fact_id]
    return (str(mine[0].id), mine[0].output.annotations_count) if mine else (fact.github_id or "", 0)


def _verdict(session: GithubSession, thread: Thread) -> GateVerdict:
    return merge_gate.of_tree(
        session.service, thread.root_job_id, pull_request=thread.number, token=session.client.token or None
    )


def _body(session: GithubSession, thread: Thread, fact: FactRow, verdict: GateVerdict) -> dict[str, Any]:
    """Return the body of a check run."""
    output = {"title": pull_requests.check_title(verdict), "summary": pull_requests.check_summary(verdict)}
    body: dict[str, Any] = {"name": NAME, "external_id": fact.fact_id, "output": output}
    if session.service.settings.bridge.url:
        body["details_url"] = f"{session.service.settings.bridge.url}/ui/trees/{thread.root_job_id}"
    if verdict.state is GateState.PENDING:
        return body | {"status": "in_progress"}
    return body | {"status": "completed", "conclusion": CONCLUSIONS[verdict.state]}


def _notes(session: GithubSession, root: str) -> list[Annotation]:
    """Return the findings of the tree that name a file and a line, as annotations."""
    results = (result_of(session.service, job) for job in job_rows.tree(session.store, root))
    return [each for result in results if result for each in pull_requests.annotations(result.findings)]
