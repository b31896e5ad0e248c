"""Admission of a host to its fleet: a foreign seal key, or a name in use, is refused before anything is polled (Q1).

The first worker of a store writes what all hosts must have in common. A home with its own database is the only host:
its row just follows its settings, because no other host depends on it.
"""

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from activities.host import identity
from activities.sealing import seal_key
from activities.sealing.seal_key import SHOWN
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.registry import host_rows
from activities.store.registry.host_rows import Cluster
from workflows.model.errors import ServiceError
from workflows.policy.host_availability import UNSEEN_SECONDS, lacks_worker

if TYPE_CHECKING:
    from activities.host.context import Context


class NotAdmittedError(ServiceError):
    """This host may not join the fleet of its store: its seal key or namespace differs, or another host has its
    name.
    """

    code = "not_admitted"


@dataclass(frozen=True)
class JoiningHost:
    """A host as it would join its fleet."""

    store: Engine
    home: Home
    settings: Settings
    namespace: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the fingerprints of the host's seal keys. The first is of the key that it seals with."""
        return tuple(map(seal_key.fingerprint, seal_key.every(self.home.root)))


def admit(context: "Context", namespace: str, *, started_at: float) -> None:
    """Register this host's name, and create the cluster row if missing. Raise `NotAdmittedError` with the reason if the
    host may not join.
    """
    host = JoiningHost(context.store, context.home, context.settings, namespace)
    check_key(host)
    seal_key.ensure(host.home.ensure().root)
    wanted = Cluster(host.keys[0], namespace, host_rows.release())
    host_rows.form(host.store, wanted, replace=not host.settings.store.url)
    check_key(host)  # another host may have been faster
    if not host.settings.store.url:
        host_rows.free(host.store, host.settings.host)
    if not identity.see(context, started_at):
        check_name(host)
        raise _name_in_use(host, 0.0)


def check(host: JoiningHost) -> None:
    """Raise NotAdmittedError with the reason if the host would not be admitted; change nothing."""
    check_key(host)
    check_name(host)


def check_key(host: JoiningHost) -> None:
    """Raise unless this host has the seal key and the Temporal namespace of the other hosts on its store."""
    known = host_rows.cluster(host.store) if host.settings.store.url else None
    if known is None:
        return
    if known.key not in host.keys:
        own = f"this home's seal.key is {host.keys[0][:SHOWN]}" if host.keys else "this home has no seal.key"
        says = f"{own}, and that of its store's hosts is {known.key[:SHOWN]}: they could not read each other's work"
        raise NotAdmittedError(says, _copy(host, known))
    if known.namespace != host.namespace:
        says = f"this host works in the Temporal namespace {host.namespace}, and the others of its store in "
        fix = f'set namespace = "{known.namespace}" in [temporal] of {host.home.config}'
        raise NotAdmittedError(says + known.namespace, fix)


def check_name(host: JoiningHost) -> None:
    """Raise if another machine has had the host's name within the last minute, in a store that others may share."""
    row = host_rows.get(host.store, host.settings.host) if host.settings.store.url else None
    if row and row.machine not in ("", identity.machine(host.home.root)) and not lacks_worker(row.seen):
        raise _name_in_use(host, row.now - row.seen_at)


def _name_in_use(host: JoiningHost, ago: float) -> NotAdmittedError:
    says = f"the host name {host.settings.host} is in use on another machine or in another home, seen {ago:.0f} s ago"
    gone = f"or, if that one is gone for good, wait {max(1.0, UNSEEN_SECONDS - ago):.0f} s"
    return NotAdmittedError(says, f'set host = "ANOTHER_NAME" in [worker] of {host.home.config}  ({gone})')


def _copy(host: JoiningHost, known: Cluster) -> str:
    """Return the command that copies the key from the host that has it and was seen last; without such a host, the
    command that makes a new key.
    """
    having = [row for row in host_rows.every(host.store) if row.key == known.key and row.name != host.settings.host]
    if not having:
        return "service host replace-key --now  (what the lost key has sealed ends)"
    source, place = max(having, key=lambda row: row.seen_at).name, shlex.quote(str(host.home.seal_key))
    return f"scp {source}:.service/seal.key {place} && chmod 600 {place}"
