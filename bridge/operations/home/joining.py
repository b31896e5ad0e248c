"""Joining a fleet: a new home gets the settings and seal keys of the fleet, or stays as it was (ruling Q1)."""

import base64
import hmac
import ipaddress
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import quote, unquote, urlsplit

from sqlalchemy.engine import make_url

from activities.host import identity
from activities.sealing import seal_key
from activities.sealing.invitation import Invitation
from activities.settings import toml
from activities.settings.home import Home
from activities.store.registry import host_rows, invite_rows
from activities.temporal import connect_config, external_config
from bridge.machine.address import choose_address
from bridge.machine.locks import holder
from bridge.machine.step_messages import Step, unheard
from bridge.operations import settings
from bridge.operations.health import doctor
from bridge.operations.service import Service
from bridge.operations.temporal import candidate
from workflows.contract.storable import short_line
from workflows.model.errors import Commands, NotFoundError, RefusedError, UnreachableError, UsageError
from workflows.policy.host_availability import UNSEEN_SECONDS, lacks_worker
from workflows.policy.invitations import LASTS_SECONDS
from workflows.text.durations import clock

INVITE = "on a host of the fleet: service host invite"
SHARED = ("orchestrate", "temporal", "store", "git", "fleet", "prices")
"""Sections of the settings that a new host gets."""
OWN = {("temporal", "port"), ("temporal", "ui_port")}
"""Settings in the shared sections that a new host does not get, because they differ by host."""
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


SECONDS, SSH_SECONDS = 10.0, 120.0
MOST = 1024 * 1024
"""Largest answer, in bytes."""
REFUSALS = (404, 409, 429)
"""Statuses with which a bridge of the fleet refuses an invitation."""
_SAID = re.compile(r"^error: (.*?)(?:\ntry: (.*?))?\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class FleetSettings:
    """The settings and seal keys of the fleet."""

    settings: dict[toml.Path, object]
    keys: tuple[bytes, ...]


@dataclass(frozen=True)
class Joined:
    """A home that has joined, under the name of its host."""

    host: str
    home: str
    namespace: str
    settings: tuple[str, ...]
    """The names of the settings that the fleet gave."""


def join(service: Service, token: str, source: str = "", host: str = "", step: Step = unheard) -> Joined:
    """Fetch settings and keys from a host of the fleet, write them, and check that this host can work with them."""
    invitation = Invitation.read(token)
    if invitation is None:
        raise UsageError(f"{short_line(token, 20)} is not the whole token of an invitation", INVITE)
    _refuse_used_home(service.home, invitation)
    name = _name(service, host)
    step("asking for the settings")
    given = _open_answer(invitation, _fetch(invitation, source or invitation.address, name))
    with _as_before(service.home):
        _write(service.home, given, host)
        step("checking whether this host can work with them")
        joined = Service(service.home)
        says, fixes = doctor.lacking(joined)
        if says:
            raise RefusedError(f"this host could not work, so nothing was changed:\n{says}", Commands(*fixes, INVITE))
        _remove_withdrawn_keys(service.home, given)
        namespace = str(given.settings["temporal", "namespace"])
        written = tuple(toml.dotted_name(path) for path in given.settings)
        return Joined(joined.settings.host, str(joined.home.root), namespace, written)


def _refuse_used_home(home: Home, invitation: Invitation) -> None:
    """Refuse a home that already has work, which would be lost in the change to another database."""
    other = "export SERVICE_HOME=/an/empty/folder"
    if (pid := holder(home.daemon_lock)) is not None:
        raise RefusedError(f"a daemon (process {pid}) runs for {home.root}", "service daemon stop")
    if there := [path.name for path in (home.store, home.temporal_db) if path.exists()]:
        raise RefusedError(f"{home.root} holds a service of its own ({', '.join(there)})", other)
    home.trust()
    key = seal_key.read(home.root) if home.root.exists() else None
    if key is not None and not seal_key.fingerprint(key).startswith(invitation.fingerprint):
        ways = Commands(other, f"rm '{home.seal_key}'  (what it sealed is not accepted any more)")
        raise RefusedError(f"{home.root} has another seal.key than the fleet", ways)
    if find_spec("psycopg") is None:
        why = f"the fleet's store needs PostgreSQL's driver psycopg, which is not installed for {sys.executable}"
        raise RefusedError(why, f"{sys.executable} -m pip install 'delegation-service[postgres]'")


def _name(service: Service, host: str) -> str:
    """Return the name this host will have; refuse one that its settings contradict."""
    named = service.reading.typed.get(("worker", "host")) if service.home.config.exists() else None
    if host and named not in (None, host):
        raise RefusedError(f"{service.home.config} names this host {named}, not {host}", "leave --host out, or edit it")
    return host or service.settings.host


def _fetch(invitation: Invitation, source: str, host: str) -> bytes:
    """Return the answer of a host of the fleet, decrypted with this invitation's token."""
    scheme = urlsplit(source).scheme
    if not source:
        why = "the host that invited cannot be reached over HTTP: say where to ask"
        raise UsageError(why, "service host join TOKEN --from ssh://HOST  (or --from http://HOST:PORT)")
    if scheme not in ("http", "https", "ssh") or not urlsplit(source).hostname:
        raise UsageError(f"{source!r} is no address", "--from http://HOST:PORT, https://HOST or ssh://HOST")
    shown = request(invitation, host)
    return _by_ssh(source, shown) if scheme == "ssh" else _by_http(source, shown)


def _by_http(source: str, shown: str) -> bytes:
    import ssl

    import httpx

    address = f"{source.rstrip('/')}{PATH}"
    try:
        # No proxy comes between hosts, and the machine's own certificate authorities count.
        with httpx.Client(timeout=SECONDS, trust_env=False, verify=ssl.create_default_context()) as client:
            answer = client.post(address, headers={HEADER: shown})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = short_line(str(error) or type(error).__name__, 200)
        raise UnreachableError(f"{source} does not answer: {why}", _another_way(source)) from None
    if answer.status_code == httpx.codes.OK and len(answer.content) <= MOST:
        return answer.content
    try:
        refusal = str(answer.json()["error"])
    except (ValueError, TypeError, LookupError):
        why = f"{source} answers with status {answer.status_code}: no bridge of this service is there"
        raise UnreachableError(why, _another_way(source)) from None
    message, _, hint = refusal.partition("; try: ")
    if answer.status_code not in REFUSALS:
        raise UnreachableError(f"{source} does not accept invitations: {message}", _another_way(source))
    raise RefusedError(message, hint or INVITE)


def _another_way(source: str) -> str:
    return f"service host join TOKEN --from ssh://{urlsplit(source).hostname}"


def _by_ssh(source: str, shown: str) -> bytes:
    where = urlsplit(source)
    if shutil.which("ssh") is None:
        raise RefusedError("there is no ssh on the PATH", "service host join TOKEN --from http://HOST:PORT")
    port = ("-p", str(where.port)) if where.port else ()
    user = f"{where.username}@" if where.username else ""
    command = ("ssh", *port, "--", f"{user}{where.hostname}", "service", "host", "answer")
    try:
        done = subprocess.run(command, input=shown, capture_output=True, text=True, timeout=SSH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{source} did not answer within {SSH_SECONDS:g} s", " ".join(command[:-2])) from None
    if done.returncode == 0:
        with suppress(ValueError):
            return base64.b64decode(done.stdout.strip(), validate=True)
    if refusal := _SAID.search(done.stderr.rstrip()):
        raise RefusedError(refusal[1], refusal[2] or INVITE)
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    raise UnreachableError(f"service cannot be run by {source}: {short_line(last, 200)}", " ".join(command[:-1]))


def _open_answer(invitation: Invitation, answer: bytes) -> FleetSettings:
    data = invitation.decrypt_answer(answer)
    if data is None:
        raise RefusedError("the answer is not encrypted for this invitation", INVITE)
    content = json.loads(data)
    wanted = {tuple(path): value for path, value in content["settings"]}
    kept = {
        path: value for path, value in wanted.items() if path in LISTENING or (path[0] in SHARED and path not in OWN)
    }
    return FleetSettings(kept, tuple(bytes.fromhex(key) for key in content["keys"]))


@contextmanager
def _as_before(home: Home) -> Iterator[None]:
    """Restore the home if anything fails during the context: remove what was written."""
    existed, config = home.root.exists(), home.config.read_bytes() if home.config.exists() else None
    keys = {path for path in (home.seal_key, *seal_key.files(home.root)) if path.exists()}
    try:
        yield
    except BaseException:
        for path in {home.seal_key, *seal_key.files(home.root)} - keys:
            path.unlink(missing_ok=True)
        if config is None:
            home.config.unlink(missing_ok=True)
        else:
            home.config.write_bytes(config)
        if not existed:
            shutil.rmtree(home.root, ignore_errors=True)
        raise


def _write(home: Home, given: FleetSettings, host: str) -> None:
    home.ensure()
    there = Service(home).reading.typed
    own = there.keys() & {("bridge", "addr"), ("bridge", "url")}
    wanted = {path: value for path, value in given.settings.items() if not own or path not in LISTENING}
    if host:
        wanted["worker", "host"] = host
    for path, value in wanted.items():
        if path not in there:
            settings.put(Service(home), *_line(path, value))
        elif there[path] != value:
            says = f"{toml.dotted_name(path)} is {toml.value(there[path])} in {home.config}, and in the fleet "
            raise RefusedError(says + toml.value(value), f"remove it from {home.config}; then {INVITE}")
    home.seal_key_open.unlink(missing_ok=True)  # it was about a key that is gone
    first, *others = given.keys
    seal_key.take(home.root, first, others)


def _remove_withdrawn_keys(home: Home, given: FleetSettings) -> None:
    """Remove former keys that the fleet no longer accepts: others may have read them before they were replaced."""
    accepted = {seal_key.fingerprint(key) for key in given.keys}
    for path in seal_key.files(home.root):
        if path.name not in accepted:
            path.unlink()


def _line(path: toml.Path, value: object) -> tuple[str, str]:
    """Return a setting's table and its line, as in `config.toml`."""
    *_, line = toml.lines({path: value}, {})
    return toml.dotted_name(path[:-1]), line


def invite(service: Service) -> Invited:
    """Create an invitation that works once, within 15 minutes."""
    from activities.host import admission

    settings = service.settings
    if not settings.store.url or external_config(settings) is None:
        own = "Temporal server" if settings.store.url else "database"
        raise RefusedError(f"this home runs on a {own} of its own, which no other host can use", "service help hosts")
    admission.check_key(candidate(service))
    made = Invitation.new(seal_key.ensure(service.home.root), identity.bridge_address(service.home, settings))
    invite_rows.add(service.store, made.digest, settings.host)
    source = "" if made.address else f" --from ssh://{settings.host}"
    return Invited(
        made.token, f"service host join {made.token}{source}", LASTS_SECONDS, tuple(_warnings(service, made.address))
    )


def request(invitation: Invitation, host: str) -> str:
    """Return the request of a new host: the invitation's number, the proof that it has the token, and the host's
    name.
    """
    return f"{invitation.number.hex()} {invitation.proof} {quote(host, safe='')}"


def answer(service: Service, shown: str) -> bytes:
    """Use up the invitation, and return settings and seal keys, encrypted for its holder."""
    number, _, rest = shown.partition(" ")
    proof, _, host = rest.partition(" ")
    invitation, name = _invitation(service, number, proof), unquote(host)
    _refuse_used_name(service, name)
    if not invite_rows.use(service.store, invitation.digest, name):
        raise RefusedError(_why_not(service, invitation), INVITE)
    keys = [key.hex() for key in seal_key.every(service.home.root)]
    return invitation.encrypt_answer(
        json.dumps({"settings": [*_settings_to_share(service).items()], "keys": keys}).encode()
    )


def _invitation(service: Service, number: str, proof: str) -> Invitation:
    """Return the invitation that the caller has proved to have."""
    try:
        made = [Invitation.of(key, bytes.fromhex(number)) for key in seal_key.every(service.home.root)]
    except ValueError:
        made = []
    for invitation in made:
        if hmac.compare_digest(invitation.proof.encode(), proof.encode()):
            return invitation
    raise NotFoundError(f"the host {service.settings.host} knows no such invitation: it is of another fleet", INVITE)


def _refuse_used_name(service: Service, name: str) -> None:
    """Refuse the name of a host that is alive, before the invitation is used up."""
    row = host_rows.get(service.store, name)
    if row is None or lacks_worker(row.seen):
        return
    ago = row.now - row.seen_at
    other = "service host join TOKEN --host ANOTHER_NAME"
    raise RefusedError(
        f"the host name {name} is in use, seen {ago:.0f} s ago",
        f"{other}  (or wait {max(1.0, UNSEEN_SECONDS - ago):.0f} s, if that host is gone for good)",
    )


def _why_not(service: Service, invitation: Invitation) -> str:
    known = invite_rows.get(service.store, invitation.digest)
    if known is None:
        return "the invitation has expired: it was made long ago"
    if known.used_at is not None:
        return f"the invitation was used already, at {clock(known.used_at)} by {known.used_by}"
    return f"the invitation expired at {clock(known.expires_at)}"


def _settings_to_share(service: Service) -> dict[tuple[str, ...], object]:
    """Return the settings that a person gave here, Temporal's address and namespace, and the bridge's settings to
    listen for other hosts if this bridge does.
    """
    typed = {path: value for path, value in service.reading.typed.items() if path[0] in SHARED and path not in OWN}
    config = connect_config(service.home, service.settings)
    place = {("temporal", "address"): config["target_host"], ("temporal", "namespace"): config["namespace"]}
    return typed | place | _listening(service)


def _listening(service: Service) -> dict[tuple[str, ...], object]:
    own = service.settings.bridge
    if not own.allow_remote or choose_address(own, None, allow_remote=True).is_loopback:
        return {}
    return dict(zip(LISTENING, ("::" if ":" in own.addr else "0.0.0.0", True), strict=True))  # noqa: S104


def _warnings(service: Service, address: str) -> list[str]:
    """Return a warning for each of these settings that would not work on another machine."""
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
