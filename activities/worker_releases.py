"""The service's releases as versions of a Temporal Worker Deployment, where hosts share their trees (ruling Q8).

All trees' steps go to one current release, so a tree is never stepped by an older release than before. A release
becomes current when two hosts run it, or all that run do: the death of the first upgraded host stops no tree. A tree
moves to the current release with its next step (`AUTO_UPGRADE`), also one that is in a pause. Trees are not pinned to
the release they began with: machines are upgraded in place, so a release's last worker ends with the last upgrade, and
a pinned tree would stall. A release can continue all earlier trees: the golden histories replay.

A single host has no deployment: its next worker takes up everything, whatever its release.
"""

import asyncio
import logging
import re
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from activities.host.context import Context
from activities.settings.model import Settings
from activities.store.registry import host_rows
from activities.temporal import RPC_TIMEOUT
from workflows.policy.host_availability import lacks_worker
from workflows.policy.releases import must_become_current

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
"""Interval of checking that the current release still has a host."""

KNOWN_SECONDS, AGAIN_SECONDS = 10.0, 0.1
"""Longest wait until the server knows a worker that has begun to poll, and the interval of trying."""

_FOR_NOW = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.RESOURCE_EXHAUSTED)
_NOT_IN_NAMES = re.compile(r"[.:]")


class NoDeploymentsError(Exception):
    """The server has no Worker Deployments, or this caller may not use them."""


@dataclass(frozen=True)
class Deployment:
    """The releases that have worked for a task queue."""

    name: str
    current: str = ""
    """The release that takes all steps; empty before the first."""


async def deployment(client: Client, settings: Settings) -> Deployment:
    """Return the deployment of a task queue's workers; raise NoDeploymentsError if the server has none."""
    name = _NOT_IN_NAMES.sub("-", settings.temporal.task_queue)
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        described = await client.workflow_service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return Deployment(name)
        if error.status in _FOR_NOW:
            raise
        raise NoDeploymentsError(error.message) from None
    return Deployment(name, described.worker_deployment_info.routing_config.current_deployment_version.build_id)


async def config(client: Client, settings: Settings) -> WorkerDeploymentConfig | None:
    """Return this release's place in the deployment; None for a single host, and where the server has none."""
    try:
        known = await deployment(client, settings)
    except NoDeploymentsError as error:
        if settings.store.url:
            log.warning("hosts of different releases share the steps of trees: %s", error)
        return None
    if not settings.store.url and not known.current:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(known.name, host_rows.release()),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


async def make_current(client: Client, context: Context) -> bool:
    """Make this release the current one if it has to be. Return False if no release is current: then no tree
    continues.
    """
    known, own = await deployment(client, context.settings), host_rows.release()
    living = [
        host.version for host in await asyncio.to_thread(host_rows.every, context.store) if not lacks_worker(host.seen)
    ]
    if not must_become_current(own, known.current, living):
        return True
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=known.name,
        build_id=own,
        identity=context.host,
        ignore_missing_task_queues=True,
    )
    deadline = asyncio.get_running_loop().time() + KNOWN_SECONDS
    while True:
        try:
            await client.workflow_service.set_worker_deployment_current_version(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND or asyncio.get_running_loop().time() > deadline:
                log.warning("release %s cannot take the steps of trees: %s", own, error.message)
                return bool(known.current)
        else:
            log.info("release %s takes the steps of all trees", own)
            return True
        await asyncio.sleep(AGAIN_SECONDS)


async def keep_current(client: Client, context: Context) -> None:
    """Check periodically whether this release has to become the current one, while the worker lives."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await make_current(client, context)
        except (RPCError, RuntimeError, SQLAlchemyError, NoDeploymentsError) as error:
            log.warning("cannot look for the current release: %s", error)
