"""Invitations to the fleet, and the answer to a machine that joins: settings and seal keys, encrypted for it."""

import hmac
import ipaddress
import json
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from sqlalchemy.engine import make_url

from activities.host import identity
from activities.sealing import seal_key
from activities.sealing.invitation import Invitation
from activities.store.registry import hosts, invites
from activities.store.registry.invites import LASTS
from activities.temporal import connect_config, external_config
from bridge.machine.address import wanted
from bridge.operations.service import Service
from bridge.operations.temporal import candidate
from workflows.model.errors import NotFoundError, RefusedError
from workflows.policy.host_availability import UNSEEN_SECONDS, lacks_worker
from workflows.text.durations import clock

INVITE = "on a host of the fleet: service host invite"
SHARED = ("orchestrate", "temporal", "store", "git", "fleet", "prices")
"""Sections of the settings that a new host gets."""
OWN = {("temporal", "port"), ("temporal", "ui_port")}
"""Settings in these sections that it does not get: they are each host's own."""
LISTENING = (("bridge", "addr"), ("bridge", "allow_remote"))
"""Settings that a new host gets unless it has its own."""
HEADER = "x-service-invitation"
PATH = "/join"


@dataclass(frozen=True)
class Invited:
    """An invitation, the command to type on the new machine, and warnings about what would keep it from working."""

    token: str
    command: str
    seconds: float
    warnings: tuple[str, ...]


def invite(service: Service) -> Invited:
    """Make an invitation that works once, within 15 minutes."""
    from activities.host import admission

    settings = service.settings
    if not settings.store.url or external_config(settings) is None:
        own = "Temporal server" if settings.store.url else "database"
        raise RefusedError(f"this home runs on a {own} of its own, which no other host can use", "service help hosts")
    admission.check_key(candidate(service))
    made = Invitation.new(seal_key.ensure(service.home.root), identity.bridge_address(service.home, settings))
    invites.add(service.store, made.digest, settings.host)
    source = "" if made.address else f" --from ssh://{settings.host}"
    return Invited(
        made.token, f"service host join {made.token}{source}", LASTS, tuple(_warnings(service, made.address))
    )


def request(invitation: Invitation, host: str) -> str:
    """Return what a new host sends: the number of its invitation, the proof that it has the token, its own name."""
    return f"{invitation.number.hex()} {invitation.proof} {quote(host, safe='')}"


def answer(service: Service, shown: str) -> bytes:
    """Return settings and seal keys, encrypted for the holder of the invitation, and use the invitation up."""
    number, _, rest = shown.partition(" ")
    proof, _, host = rest.partition(" ")
    invitation, name = _known(service, number, proof), unquote(host)
    _refuse_used_name(service, name)
    if not invites.use(service.store, invitation.digest, name):
        raise RefusedError(_why_not(service, invitation), INVITE)
    keys = [key.hex() for key in seal_key.every(service.home.root)]
    return invitation.closed(json.dumps({"settings": [*_shared(service).items()], "keys": keys}).encode())


def _known(service: Service, number: str, proof: str) -> Invitation:
    """Return the invitation that the caller has proved to have."""
    try:
        made = [Invitation.of(key, bytes.fromhex(number)) for key in seal_key.every(service.home.root)]
    except ValueError:
        made = []
    for each in made:
        if hmac.compare_digest(each.proof.encode(), proof.encode()):
            return each
    raise NotFoundError(f"the host {service.settings.host} knows no such invitation: it is of another fleet", INVITE)


def _refuse_used_name(service: Service, name: str) -> None:
    """Refuse the name of a host that works, before the invitation is used up."""
    row = hosts.get(service.store, name)
    if row is None or lacks_worker(row.seen):
        return
    ago = row.now - row.seen_at
    other = "service host join TOKEN --host ANOTHER_NAME"
    raise RefusedError(
        f"the host name {name} is in use, seen {ago:.0f} s ago",
        f"{other}  (or wait {max(1.0, UNSEEN_SECONDS - ago):.0f} s, if that host is gone for good)",
    )


def _why_not(service: Service, invitation: Invitation) -> str:
    known = invites.get(service.store, invitation.digest)
    if known is None:
        return "the invitation has expired: it was made long ago"
    if known.used_at is not None:
        return f"the invitation was used already, at {clock(known.used_at)} by {known.used_by}"
    return f"the invitation expired at {clock(known.expires_at)}"


def _shared(service: Service) -> dict[tuple[str, ...], object]:
    """Return those settings that a person gave here, the address and namespace of Temporal, and that the bridge listens
    for other hosts if this one's does.
    """
    typed = {path: value for path, value in service.reading.typed.items() if path[0] in SHARED and path not in OWN}
    config = connect_config(service.home, service.settings)
    place = {("temporal", "address"): config["target_host"], ("temporal", "namespace"): config["namespace"]}
    return typed | place | _listening(service)


def _listening(service: Service) -> dict[tuple[str, ...], object]:
    own = service.settings.bridge
    if not own.allow_remote or wanted(own, None, allow_remote=True).is_loopback:
        return {}
    return dict(zip(LISTENING, ("::" if ":" in own.addr else "0.0.0.0", True), strict=True))  # noqa: S104


def _warnings(service: Service, address: str) -> list[str]:
    """Return a sentence for each thing that would keep another machine from working with what it is given."""
    settings, config = service.settings, connect_config(service.home, service.settings)
    database = make_url(settings.store.url).host or "localhost"
    temporal = urlsplit(f"//{config['target_host']}").hostname or ""
    warnings = [
        f"{name} is at {host}, which on another machine is that machine: name this one in {setting}, then invite again"
        for name, host, setting in (
            ("the database", database, "[store].url"),
            ("Temporal", temporal, "[temporal].address"),
        )
        if _is_loopback(host)
    ]
    if settings.temporal.profile or config.get("tls") or config.get("api_key"):
        warnings.append(
            "certificates and API keys for Temporal are not sent: give the new machine its profile or TEMPORAL_*"
        )
    if not address:
        warnings.append("this host's bridge only listens for its own machine, so the new one asks by ssh, with --from")
    return warnings


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")
