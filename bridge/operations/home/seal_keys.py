"""Rotation of the seal key: a new one reaches all hosts before any of them seals with it (ruling Q10).

For a key that nobody else has read. One that others could have read is replaced, with all former ones
(`bridge.daemon.replace_seal_key`).
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from activities.host import seal_keys as at_home
from activities.runs.regular_files import write_private
from activities.sealing import payload_seals, seal_key
from activities.sealing.seal_key import SHOWN
from activities.store import attempts
from activities.store.registry import hosts, seal_keys
from activities.store.registry.hosts import Cluster, Host
from activities.store.registry.seal_keys import KnownKey
from activities.temporal import RPC_TIMEOUT
from bridge.machine.progress import Step, unheard
from bridge.operations.github import desk
from bridge.operations.pipelines import definitions
from bridge.operations.service import Service
from bridge.operations.temporal import candidate, client_of, translated
from workflows.model.errors import Commands, NotFoundError, RefusedError, UnreachableError
from workflows.policy.host_availability import lacks_worker, way_back
from workflows.text.durations import clock

LOOK_SECONDS = 1.0
BEATS_SECONDS = 30.0
"""Time in which a running host adopts a key: its worker reads the store every ten seconds."""

SKEW_SECONDS = 60.0
"""Most difference between the clocks of Temporal's server and of the store."""

MOST, MOST_NAMED = 1000, 5
AGAIN = "service host rotate-key"


class Rotated(BaseModel):
    """The outcome of a rotation."""

    model_config = ConfigDict(frozen=True)

    key: str
    former: str
    hosts: tuple[str, ...]
    """The other hosts, which have the new key."""
    behind: tuple[str, ...] = ()
    """Those that do not seal with it yet, because they are away."""


class Replaced(BaseModel):
    """A new key, in place of all former ones."""

    model_config = ConfigDict(frozen=True)

    key: str
    hosts: tuple[str, ...]
    """The other hosts, which have to join again."""


class Removed(BaseModel):
    """A former key that was removed."""

    model_config = ConfigDict(frozen=True)

    key: str


def rotate(service: Service, *, wait: bool = False, step: Step = unheard) -> Rotated:
    """Make a new seal key, give it to all hosts, and seal with it once all have it. A rotation that was begun goes on.

    With `wait`, also wait for hosts that are away; without it, raise and name them.
    """
    home = service.home.ensure().root
    if service.home.seal_key_open.exists():
        why = "others could have read the seal key, so it must be replaced, not rotated"
        raise RefusedError(f"{why}: a rotation hides nothing from whoever has the former one", "service doctor")
    at_home.follow(home, service.store)
    former = seal_key.fingerprint(seal_key.ensure(home))
    at_home.offer(home, service.store)
    offered = seal_keys.offered(seal_keys.every(service.store))
    assert offered is not None
    missing = _awaited(service, wait, step, lambda host: offered.fingerprint in host.keys, "does not have the new key")
    if missing:
        says = f"the new seal key {offered.fingerprint[:SHOWN]} waits for {_named(missing)}; nothing seals with it yet"
        gone = f"service host remove {missing[0].name}  (if it never comes back)"
        raise RefusedError(says, Commands(way_back(missing[0].name), f"{AGAIN} --wait", gone))
    seal_keys.rotate(service.store, offered.fingerprint)
    at_home.follow(home, service.store)
    behind = _awaited(service, False, step, lambda host: host.key == offered.fingerprint, "seals with the former key")
    if not behind:
        with suppress(UnreachableError):  # `remove` does it then
            asyncio.run(_leave(service, former))
    others = tuple(host.name for host in _others(service))
    return Rotated(
        key=offered.fingerprint[:SHOWN], former=former[:SHOWN], hosts=others, behind=tuple(each.name for each in behind)
    )


def replace(service: Service) -> Replaced:
    """Replace all keys by a new one that no other host has, after they were lost or others could have read them.

    Whatever is sealed with the former ones ends. Refused while a host works: it would go on with the former key.
    """
    every = hosts.every(service.store)
    if working := [host.name for host in every if not lacks_worker(host.seen)]:
        ways = (f"on {name}: service daemon stop" for name in working)
        raise RefusedError(f"{', '.join(working)} would go on with the former key", Commands(*ways))
    home, namespace = service.home.ensure(), candidate(service).namespace
    seal_keys.forget(service.store)
    write_private(home.seal_key_new, "")  # the schedules of pipelines are sealed anew
    at_home.renew(home.root, service.store)
    home.seal_key_open.unlink(missing_ok=True)
    fingerprint = seal_key.fingerprint(seal_key.ensure(home.root))
    hosts.form(service.store, Cluster(fingerprint, namespace, hosts.release()), replace=True)
    others = tuple(host.name for host in every if host.name != service.settings.host)
    return Replaced(key=fingerprint[:SHOWN], hosts=others)


def remove(service: Service, name: str) -> Removed:
    """Remove a former key from all hosts; raise while something is sealed with it."""
    at_home.follow(service.home.ensure().root, service.store)
    known = seal_keys.every(service.store)
    key = _former(known, name)
    behind = [host for host in _others(service) if host.key == key.fingerprint]
    if behind:
        says = f"{_named(behind)} still seals with the key {key.fingerprint[:SHOWN]}"
        gone = f"service host remove {behind[0].name}  (if it never comes back)"
        raise RefusedError(says, Commands(way_back(behind[0].name), gone))
    if key.left_at is None:
        asyncio.run(_leave(service, key.fingerprint))
        key = _former(seal_keys.every(service.store), name)
    assert key.left_at is not None
    if open_ := asyncio.run(_sealed_with(service, key.left_at)):
        more = f" and {len(open_) - MOST_NAMED} more" if len(open_) > MOST_NAMED else ""
        says = f"the key {key.fingerprint[:SHOWN]} is needed by what began before {clock(key.left_at)} and is not over"
        hint = "service job list --state running  (when they have ended, type this again)"
        raise RefusedError(f"{says}: {', '.join(open_[:MOST_NAMED])}{more}", hint)
    if mine := at_home.by_fingerprint(service.home.root).get(key.fingerprint):
        attempts.seal_again(service.store, [mine])
    seal_keys.remove(service.store, key.fingerprint)
    at_home.follow(service.home.root, service.store)
    return Removed(key=key.fingerprint[:SHOWN])


def _former(known: list[KnownKey], name: str) -> KnownKey:
    """Return the key that a person named by the beginning of its fingerprint."""
    sealing = seal_keys.sealing(known)
    matching = [key for key in known if name and key.fingerprint.startswith(name.lower()) and not key.removed_at]
    former = [key.fingerprint[:SHOWN] for key in known if key.seals_since and key != sealing and not key.removed_at]
    if len(matching) != 1:
        have = f"former keys are {', '.join(former)}" if former else "there is no former key"
        hint = f"service host remove-key {former[0]}" if former else AGAIN
        raise NotFoundError(f"{name[:100]!r} matches {len(matching) or 'no'} seal keys; {have}", hint)
    if matching[0] == sealing or not matching[0].seals_since:
        says = f"the key {matching[0].fingerprint[:SHOWN]} is the one that all hosts seal with, or will"
        raise RefusedError(says, AGAIN)
    return matching[0]


def _others(service: Service) -> list[Host]:
    """Return the other hosts of a fleet. This one has what its home has, whether or not its worker runs."""
    if not service.settings.store.url:
        return []
    return [host for host in hosts.every(service.store) if host.name != service.settings.host]


def _awaited(service: Service, wait: bool, step: Step, has: Callable[[Host], bool], lacks: str) -> list[Host]:
    """Wait until every other host has something; without `wait` only for those whose workers run, and not for long.
    Return the hosts that lack it.
    """
    deadline = time.monotonic() + BEATS_SECONDS
    while missing := [host for host in _others(service) if not has(host)]:
        lively = [host for host in missing if not lacks_worker(host.seen)]
        if not wait and (not lively or time.monotonic() > deadline):
            break
        step(f"waiting for {_named(missing)}, which {lacks}")
        time.sleep(LOOK_SECONDS)
    return missing


def _named(missing: list[Host]) -> str:
    return ", ".join(
        f"{host.name} (no sign of life since {clock(host.stopped_at or host.seen_at)})"
        if lacks_worker(host.seen)
        else host.name
        for host in missing
    )


async def _leave(service: Service, fingerprint: str) -> None:
    """Record that nothing is sealed with this key from now on. Schedules and the desk, which stay, are made anew."""
    await asyncio.sleep(payload_seals.LOOK_SECONDS)  # by then every process of a host has seen the new key
    await definitions.schedule_again(service)
    if service.settings.github.configured:
        await desk.renew(service)
    seal_keys.leave(service.store, fingerprint)


async def _sealed_with(service: Service, left_at: float) -> list[str]:
    """Return workflows and runs in progress that began while the key was in use."""
    client, settings = await client_of(service), service.settings
    before = left_at + (SKEW_SECONDS if settings.store.url else 0.0)
    began = f"StartTime < '{datetime.fromtimestamp(before, UTC).isoformat()}'"
    query = f"ExecutionStatus = 'Running' AND TaskQueue = '{settings.temporal.task_queue}' AND {began}"
    with translated("Temporal cannot say what is open"):
        open_workflows = [each.id async for each in client.list_workflows(query, limit=MOST, rpc_timeout=RPC_TIMEOUT)]
    return sorted({*open_workflows, *attempts.open_since_before(service.store, before)})
