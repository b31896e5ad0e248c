"""Replacing the seal key: by a person, or by the daemon if others could have read it (N1, Q10)."""

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Engine

from activities.runs.regular_files import write_private
from activities.sealing import seal_key
from activities.sealing.seal_key import SHOWN
from activities.settings.home import Home
from activities.store import attempt_rows, run_rows
from activities.store.registry import host_rows
from activities.store.registry.host_rows import Cluster
from bridge.machine.locks import holder
from bridge.operations.service import Service
from bridge.operations.temporal import candidate
from workflows.model.errors import Commands, RefusedError
from workflows.policy.host_availability import lacks_worker

MOST_NAMED = 5


class Replaced(BaseModel):
    """The outcome of replacing the seal key."""

    model_config = ConfigDict(frozen=True)

    key: str
    hosts: tuple[str, ...]
    """The other hosts, which have to join again."""


def replace(service: Service, *, now: bool = False) -> Replaced:
    """Replace all keys by a new one that no other host has. Refused while a host is alive, because it would keep using
    the former key. Also refused while work is under way; `now` lets that work end.
    """
    if not now:
        _refuse_under_way(service.store)
    every, own = host_rows.every(service.store), service.settings.host
    working = {host.name for host in every if not lacks_worker(host.seen)}
    working |= {own} if holder(service.home.daemon_lock) is not None else set()
    if working:
        ways = (f"on {name}: service daemon stop" for name in sorted(working))
        raise RefusedError(f"{', '.join(sorted(working))} would go on with the former key", Commands(*ways))
    home, namespace = service.home.ensure(), candidate(service).namespace
    write_private(home.seal_key_new, "")  # the schedules of pipelines are sealed anew
    renew(home, service.store)
    home.seal_key_open.unlink(missing_ok=True)
    fingerprint = seal_key.fingerprint(seal_key.ensure(home.root))
    host_rows.form(service.store, Cluster(fingerprint, namespace, host_rows.release()), replace=True)
    return Replaced(key=fingerprint[:SHOWN], hosts=tuple(host.name for host in every if host.name != own))


def _refuse_under_way(store: Engine) -> None:
    open_ = run_rows.under_way(store)
    if not open_:
        return
    more = f" and {len(open_) - MOST_NAMED} more" if len(open_) > MOST_NAMED else ""
    ends = "service host replace-key --now  (they end: for a key that is lost, or that others could have read)"
    says = f"{', '.join(open_[:MOST_NAMED])}{more} would end, sealed with the former key, and may still go on"
    raise RefusedError(says, Commands("service job list", "service pipeline runs", ends))


def renew(home: Home, store: Engine) -> None:
    """Replace all keys by a new one. Sealed data of ended attempts stays readable."""
    former = seal_key.every(home.root)
    seal_key.renew(home.root)
    attempt_rows.seal_again(store, former)
