"""Resources: what waits, and tasks with their whole diffs and texts; open streams are told of changes (ruling S2)."""

import asyncio
import json
import re
from functools import partial
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    event_to_notification,
)

from bridge.http.mcp import tools
from bridge.http.mcp.answers import Quote, as_text, shorten
from bridge.http.mcp.route_calls import RouteCalls
from bridge.http.mcp.tools import TREES, LookArguments, NoArguments
from bridge.http.wire.call import call_of
from bridge.http.wire.parameters import JOB_PATTERN
from bridge.http.wire.projections import without_paths
from bridge.http.wire.store_watch import StoreWatch
from bridge.http.wire.thread_pools import read
from bridge.operations.branches import diffs
from bridge.operations.jobs import jobs, output
from bridge.operations.service import Service
from workflows.text.invisible import one_line, visible

WAITING = "service://waiting"
MOST_ENTRIES = 5_000
LOOK_SECONDS = 1.0
"""The least time between two looks of a stream."""

QUIET_SECONDS = 15.0
TEXT = "text/plain"
PARTS = {
    "diff": ("all changes", "text/x-diff"),
    "log": ("all events", TEXT),
    "transcript": ("what the agent said and did", TEXT),
    "result": ("the agent's result", "application/json"),
    "prompt": ("the agent's prompt", TEXT),
}
"""What can be read of a task or a job beside its summary."""

_URI = re.compile(rf"{TREES}(?P<job>{JOB_PATTERN.strip('^$')})(?:/(?P<part>{'|'.join(PARTS)}))?")


async def list_page(calls: RouteCalls, cursor: str | None) -> types.ListResourcesResult:
    """Return what waits, and a page of tasks, newest first."""
    page = await calls.get("/v1/trees", limit=tools.LISTED, cursor=cursor)
    waiting = types.Resource(uri=WAITING, name="waiting", title="What needs a person", mime_type=TEXT)
    tasks = [
        types.Resource(
            uri=TREES + tree["job_id"],
            name=tree["job_id"],
            title=one_line(tree["tree"]["title"]),
            description=f"{tree['tree']['state']}, {tree['repo']}",
            mime_type=TEXT,
        )
        for tree in page["trees"]
    ]
    return types.ListResourcesResult(
        resources=[*([] if cursor else [waiting]), *tasks], next_cursor=page["next_cursor"]
    )


def templates() -> types.ListResourceTemplatesResult:
    """Return how the resources of a task or a job are named."""
    parts = [("", ("the summary", TEXT)), *((f"/{part}", described) for part, described in PARTS.items())]
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template=f"{TREES}{{job}}{part}",
                name=f"task{part.replace('/', '-')}",
                description=f"Of a task or a job: {says}.",
                mime_type=kind,
            )
            for part, (says, kind) in parts
        ]
    )


async def contents(calls: RouteCalls, uri: str) -> types.ReadResourceResult:
    """Return the text of a resource, without paths of this machine (ruling J6)."""
    job, part = _named(uri)
    text = shorten(await _text(calls, job, part), diffs.JSON_LIMIT, f"service job show {job}")
    content = types.TextResourceContents(
        uri=uri, mime_type=PARTS[part][1] if part else TEXT, text=await read(without_paths, calls.service, text)
    )
    return types.ReadResourceResult(contents=[content])


async def tell(
    calls: RouteCalls, context: Any, params: types.SubscriptionsListenRequestParams, watch: StoreWatch
) -> types.SubscriptionsListenResult:
    """Tell a client of changes of what waits, of tasks and of their list, until it or its token has gone.

    Tools and prompts never change while the bridge runs; parts of tasks have no news of their own.
    """
    asked = params.notifications
    uris = [uri for uri in asked.resource_subscriptions or () if not _named(uri)[1]]
    honored = asked.model_copy(update={"resource_subscriptions": uris or None})
    meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
    acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, meta=meta)
    events: list[ServerEvent] = [ResourceUpdated(uri) for uri in uris]
    events += [ResourcesListChanged()] if asked.resources_list_changed else []
    with calls.scope["app"].state.held.wait(calls.scope), watch:
        before = [await _state(calls, event) for event in events]
        send = partial(context.session.send_notification, related_request_id=context.request_id)
        await send(types.SubscriptionsAcknowledgedNotification(params=acknowledged))
        while await call_of(calls.scope).opens():
            change = watch.change
            now = [await _state(calls, event) for event in events]
            for event, old, new in zip(events, before, now, strict=True):
                if old != new:
                    await send(event_to_notification(event, meta))
            before = now
            await asyncio.sleep(LOOK_SECONDS)
            await watch.later_than(change, QUIET_SECONDS)
    return types.SubscriptionsListenResult(meta=meta)


async def _state(calls: RouteCalls, event: ServerEvent) -> str | list[str]:
    """Return what differs once there is such an event."""
    if isinstance(event, ResourceUpdated):
        return await _text(calls, *_named(event.uri))
    return [resource.uri for resource in (await list_page(calls, None)).resources]


def _named(uri: str) -> tuple[str, str]:
    """Return the job and the part that a URI names; neither is what waits."""
    if uri == WAITING:
        return "", ""
    if (named := _URI.fullmatch(uri)) is None:
        known = f"{WAITING} or {TREES}JOB, with /{', /'.join(PARTS)} or nothing behind it"
        raise MCPError(types.INVALID_PARAMS, f"Unknown resource {uri[:100]!r}. Use {known}.", {"uri": uri[:1000]})
    return named["job"], named["part"] or ""


async def _text(calls: RouteCalls, job: str, part: str) -> str:
    service = calls.service
    match part:
        case "" if not job:
            return as_text(await tools.waiting(calls, NoArguments()))
        case "diff":
            return await read(_diff, service, job)
        case "log":
            events = await read(partial(jobs.events, limit=MOST_ENTRIES), service, job)
            return "\n".join(one_line(f"{event.kind}: {event.message}") for event in events)
        case "transcript":
            log = await read(partial(output.log, cursor=0, limit=MOST_ENTRIES), service, job)
            return as_text({"transcript": [{entry.kind: Quote(entry.text or entry.argument)} for entry in log.entries]})
        case "result":
            return visible(json.dumps((await calls.get(f"/v1/jobs/{job}"))["result"], indent=1, ensure_ascii=False))
        case "prompt":
            return visible((await read(output.prompt, service, job)).prompt)
        case _:
            return as_text(await tools.look(calls, LookArguments(job=job)))


def _diff(service: Service, job: str) -> str:
    text, cut = diffs.beginning(tools.diff_of(service, job).pieces(), diffs.JSON_LIMIT)
    return visible(text) + ("\n[cut here]" if cut else "")
