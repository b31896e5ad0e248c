"""The branches of a tree: merging, dropping and publishing them, and starting jobs that resolve, revise or review them
(rulings L9, L10, O6).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from fastapi import APIRouter

from activities.git.merges.task_branch import TaskBranchConflict
from bridge.http.wire import projections
from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import CallDep, OnceDep, ServiceDep
from bridge.http.wire.document import ACTS, BODY, ORDER, STARTS, errors
from bridge.http.wire.parameters import JobId
from bridge.http.wire.schemas import (
    DropAnswer,
    DropRequest,
    LineComment,
    MergeAnswer,
    MergeRequest,
    PublishRequest,
    ResolveAnswer,
    ResolveRequest,
    ReviewRequest,
    ReviseRequest,
)
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import act
from bridge.machine.token_scopes import TokenScope
from bridge.operations.branches import drops, merges, publish
from bridge.operations.branches.publish import PublishAnswer
from bridge.operations.idempotency import Answer
from bridge.operations.orders import follow_ups, revising
from bridge.operations.orders.follow_ups import ReviewAnswer
from bridge.operations.orders.revising import DiffComment, Feedback, ReviseAnswer
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError

router = APIRouter(route_class=StrictRoute, tags=["jobs"])


@router.post("/v1/jobs/{job_id}/publish", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def publish_job(
    service: ServiceDep, job_id: JobId, call: CallDep, body: PublishRequest | None = None
) -> PublishAnswer:
    """Publish a task's or a leg's branch as a pull request; a repeated call changes nothing."""
    base, actor = body.base if body else None, call.actor_in_words
    return await act(lambda: asyncio.to_thread(_publish, service, job_id, actor, base))


@router.post(
    "/v1/jobs/{job_id}/merge",
    responses=errors(NotFoundError, RefusedError, TaskBranchConflict, *ORDER, *BODY),
    openapi_extra=needs(TokenScope.ACT),
)
async def merge_job(service: ServiceDep, job_id: JobId, call: CallDep, body: MergeRequest | None = None) -> MergeAnswer:
    """Merge branches into the task's branch, all or none: a leg's and those of further legs, or for a root job all
    branches.
    """
    wanted, actor = body or MergeRequest(), call.actor_in_words
    return await act(lambda: asyncio.to_thread(_merge, service, (job_id, *wanted.then), actor, wanted))


@router.post("/v1/jobs/{job_id}/drop", responses=ACTS, openapi_extra=needs(TokenScope.ACT))
async def drop_job(service: ServiceDep, job_id: JobId, call: CallDep, body: DropRequest | None = None) -> DropAnswer:
    """Remove a leg's branch, or for a root job every branch of the task. Unmerged branches are removed only with
    `force`.
    """
    force, actor = body is not None and body.force, call.actor_in_words
    return await act(lambda: asyncio.to_thread(_drop, service, job_id, actor, force))


@router.post("/v1/jobs/{job_id}/resolve", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def resolve_job(
    service: ServiceDep, job_id: JobId, once: OnceDep, body: ResolveRequest | None = None
) -> ResolveAnswer:
    """Start a job that resolves the merge conflicts of a task's branches."""
    wanted = body or ResolveRequest()

    async def start(root: str | None) -> Answer:
        return asdict(await follow_ups.resolve(service, job_id, agent=wanted.agent or "", root=root))

    return ResolveAnswer.model_validate(await once.start(wanted, start))


@router.post("/v1/jobs/{job_id}/revise", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def revise_job(
    service: ServiceDep, job_id: JobId, body: ReviseRequest, call: CallDep, once: OnceDep
) -> ReviseAnswer:
    """Start a job that applies comments on a job's diff."""
    actor, comments = call.actor, [_comment(comment) for comment in body.comments]
    feedback = Feedback(comments, body.text, body.head, body.whole_tree)

    async def send(root: str | None) -> Answer:
        agent = body.agent or ""
        made = await revising.revise(
            service, job_id, feedback, actor=actor, channel=call.channel, agent=agent, root=root
        )
        return made.model_dump()

    return ReviseAnswer.model_validate(await once.start(body, send))


@router.post("/v1/jobs/{job_id}/review", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def review_job(
    service: ServiceDep, job_id: JobId, call: CallDep, once: OnceDep, body: ReviewRequest | None = None
) -> ReviewAnswer:
    """Start a review of the task's commits that were not reviewed yet."""
    wanted, actor = body or ReviewRequest(), call.actor_in_words

    async def start(root: str | None) -> Answer:
        agent = wanted.agent or ""
        started = await follow_ups.review(service, job_id, actor=actor, agent=agent, root=root)
        return started.model_dump()

    return ReviewAnswer.model_validate(await once.start(wanted, start))


def _comment(comment: LineComment) -> DiffComment:
    return DiffComment(comment.path, comment.line, comment.text, old=comment.side == "old")


def _publish(service: Service, job_id: str, actor: str, base: str | None) -> PublishAnswer:
    return projections.hide_paths(service, publish.publish(service, job_id, actor=actor, base=base))


def _merge(service: Service, job_ids: Sequence[str], actor: str, wanted: MergeRequest) -> MergeAnswer:
    done = merges.merge(service, job_ids, actor=actor, anyway=wanted.anyway)
    return projections.view_of(service, MergeAnswer, done)


def _drop(service: Service, job_id: str, actor: str, force: bool) -> DropAnswer:
    gone = drops.drop(service, job_id, actor=actor, force=force)
    return DropAnswer.model_validate(gone, from_attributes=True)
