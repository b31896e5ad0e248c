"""`service host`: the hosts that share one store."""

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import of_state
from cli.drawing.output import quote_name, say, say_fields, say_json, say_next, say_table, tell
from cli.drawing.tables import Column
from cli.drawing.words import ago
from cli.invocation.options import Json, service_here
from workflows.model.errors import UsageError
from workflows.text.durations import format_duration

if TYPE_CHECKING:
    from bridge.operations.registry.hosts import Drained, LostHost

app = typer.Typer(help="The hosts that share the work.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="The host's name.")]

MOST_NAMED = 5
LOOK_SECONDS = 1.0
JOBS = ("JOB", Column("REPOSITORY", leaves=1), Column("RUNNING FOR", right=True))
HOSTS = (
    "HOST",
    Column("STATE", tone=of_state),
    "SEEN",
    Column("SLOTS", right=True),
    "VERSION",
    Column("LABELS", leaves=1),
)


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the hosts that share the store: state, when each was last seen, slots in use, release and labels."""
    from bridge.operations.jobs import hosts

    every = hosts.every(service_here())
    if json:
        say_json(every)
        return
    rows = [
        (
            host.name,
            host.state,
            ago(host.last_sign_at),
            f"{host.taken}/{host.slots}",
            host.version,
            ", ".join(host.labels),
        )
        for host in every
    ]
    say_table(HOSTS, rows, "no host was ever seen; on each: service daemon start")


@app.command()
def show(name: Name, json: Json = False) -> None:
    """Show one host: state, slots, labels, bridge, seal key, checkouts and open jobs."""
    from activities.sealing.seal_key import SHOWN
    from bridge.operations.registry import hosts

    host = hosts.get(service_here(), name)
    if json:
        say_json(host)
        return
    say_fields(
        (
            ("host", host.name),
            ("state", f"{host.state}: {host.held}" if host.held else host.state),
            ("seen", ago(host.last_sign_at)),
            ("slots", f"{host.taken} of {host.slots} in use"),
            ("version", host.version),
            ("labels", ", ".join(host.labels)),
            ("bridge", host.address or "not reachable from other hosts"),
            ("seal key", host.key[:SHOWN]),
            ("checkouts", ", ".join(host.checkouts)),
            ("open jobs", ", ".join(host.open_jobs)),
        )
    )


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a host that will not return. Refused while it is alive, has open jobs, or holds a repository's only
    checkout.
    """
    from bridge.operations.registry import hosts

    service = service_here()
    hosts.remove(service, name)
    keeps = ["the seal key", "the database's password"] if service.settings.is_fleet else []
    if json:
        say_json({"removed": name, "keeps": keeps})
        return
    say(f"{quote_name(name)} is forgotten; nothing on that machine was changed")
    if keeps:
        say(f"it still has {' and '.join(keeps)}, so it can speak for all hosts until both are replaced")
        say_next("service help hosts  (Removing a host)")


@app.command()
def invite(json: Json = False) -> None:
    """Print the command with which a new machine joins. It works once, within 15 minutes; keep it secret."""
    from bridge.operations.home import joining

    invited = joining.invite(service_here())
    if json:
        say_json(invited)
        return
    say(invited.command)
    tell(*(f"warning: {warning}" for warning in invited.warnings))
    tell("type this on the new machine within 15 minutes; it works once")


@app.command()
def join(
    token: Annotated[str, typer.Argument(help="What `service host invite` printed on a host of the fleet.")],
    source: Annotated[
        str, typer.Option("--from", help="A host of the fleet: http://HOST:PORT, https://HOST or ssh://HOST.")
    ] = "",
    host: Annotated[str, typer.Option(help="The name of this host, if not this machine's.")] = "",
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start the daemon afterwards.")] = True,
    json: Json = False,
) -> None:
    """Make this machine a host of the fleet: fetch settings and seal key, check them, start the daemon."""
    from bridge.daemon import control
    from bridge.operations.home import joining
    from cli.drawing.progress import progress

    service = service_here()
    with progress("joining") as step:
        joined = joining.join(service, token, source, host, step)
        seen = control.start(service_here(), step=step) if start else None
    if json:
        say_json({**vars(joined), "daemon": seen.model_dump(mode="json") if seen else None})
        return
    say(f"{quote_name(joined.host)} has joined the fleet of the Temporal namespace {joined.namespace}")
    if "bridge.addr" in joined.settings:
        say(f"its bridge listens for the other hosts, as theirs do: [bridge] in {service.home.config}")
    elif not service_here().reading.typed.keys() & {("bridge", "addr"), ("bridge", "url")}:
        say("what its agents print is seen on this host alone, since its bridge has no address: service help hosts")
    say(f"next: service host list  (settings: {service.home.config})" if seen else "next: service daemon start")


@app.command(hidden=True)
def answer() -> None:
    """Answer a joining host over ssh: read its proof of the invitation, and print settings and keys encrypted for
    it.
    """
    from base64 import b64encode

    from bridge.operations.home import joining

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("a new host asks this by ssh, not a person", "service host join TOKEN --from ssh://HOST")
    say(b64encode(joining.answer(service_here(), sys.stdin.readline(1000).strip())).decode())


@app.command()
def replace_key(
    now: Annotated[bool, typer.Option("--now", help="Even if something is under way: it ends.")] = False,
    json: Json = False,
) -> None:
    """Replace the seal key and all former ones. Refused while a host is alive, or a task or pipeline run is open."""
    from bridge.operations.home import seal_keys

    replaced = seal_keys.replace(service_here(), now=now)
    if json:
        say_json(replaced)
        return
    say(f"the new seal key is {replaced.key}; what a former one sealed for Temporal is not accepted any more")
    again = [f"on {quote_name(host)}: rm ~/.service/seal.key; service host join TOKEN" for host in replaced.hosts]
    say_next("service daemon start", *(["service host invite  (once for each other host)", *again] if again else ()))


@app.command()
def lost(
    name: Name,
    now: Annotated[bool, typer.Option("--now", help="Even if the host works: its agents are stopped.")] = False,
    json: Json = False,
) -> None:
    """Move the jobs of a lost host to other hosts, where they continue from their last snapshots. Refused while the
    host is alive.
    """
    import asyncio

    from bridge.operations.registry import hosts
    from cli.drawing.words import signature

    given_up = asyncio.run(hosts.give_up(service_here(), name, actor=signature(), now=now))
    say_json(given_up) if json else _say_lost(given_up)


def _say_lost(given_up: "LostHost") -> None:
    moving = len(given_up.moving)
    moves = f"{moving} job{'s go' if moving > 1 else ' goes'} on elsewhere" if moving else "no job has to move"
    say(f"{quote_name(given_up.host)} counts as lost; {moves}")
    if staying := given_up.staying:
        more = " …" if len(staying) > MOST_NAMED else ""
        say(f"these wait for it, because their repository has no remote: {', '.join(staying[:MOST_NAMED])}{more}")
        say_next(given_up.next)


@app.command()
def drain(
    name: Annotated[str, typer.Argument(help="The host's name; by default this host.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Take new jobs again.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until its last job has ended.")] = False,
    json: Json = False,
) -> None:
    """Stop a host from starting jobs, and list those it still runs. It stays drained across restarts, until --undo."""
    from time import sleep

    from bridge.operations.registry import hosts
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    service = service_here()
    drained = hosts.drain(service, name, undo=undo)
    if wait and drained.draining:
        goes_on = if_interrupted("it stays drained", f"service host drain {quote(drained.host)} --wait")
        with goes_on, progress("waiting") as step:
            while drained.left:
                step(f"{len(drained.left)} left")
                sleep(LOOK_SECONDS)
                drained = hosts.drain_status(service, drained.host)
    say_json(drained) if json else _say_drained(drained)


def _say_drained(drained: "Drained") -> None:
    if not drained.draining:
        say(f"{quote_name(drained.host)} takes new jobs again")
        return
    say(f"{quote_name(drained.host)} starts no more jobs; {'it still runs:' if drained.left else 'it runs none'}")
    if drained.left:
        rows = [(job.job_id, job.repo, format_duration(round(job.seconds))) for job in drained.left]
        say_table(JOBS, rows, "")
        say_next(f"service host drain {quote(drained.host)} --wait")
    else:
        say_next(
            f"on {quote_name(drained.host)}: service daemon stop", f"service host drain {quote(drained.host)} --undo"
        )
