"""`service github`: the account that reads and writes pull requests and issues."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import Look, of_state
from cli.drawing.output import say, say_document, say_fields, say_json, say_table
from cli.drawing.tables import Column
from cli.drawing.words import LONGEST, ago, clock, one_line
from cli.invocation.options import Json, service_here

if TYPE_CHECKING:
    from bridge.operations.github.account import AccountStatus, RequestCounts, Synced

app = typer.Typer(help="Pull requests and issues on GitHub.", no_args_is_help=True, rich_markup_mode=None)
MOST = 20
REPOSITORIES = (
    "REPOSITORY",
    "LOOKED AT",
    Column("READ NOW", leaves=3, look=of_state),
    Column("THIS HOUR", leaves=1),
    Column("24 HOURS", leaves=2),
    Column("PROBLEM", least=16, plain=80, look=lambda _: Look.BAD),
)
THREADS = ("THREAD", "TREE", Column("TITLE", least=16, plain=60))
ORDERS = (
    Column("ORDERED", leaves=1),
    "THREAD",
    Column("BY", leaves=2),
    Column("STATE", look=of_state),
    Column("OUTCOME", least=16, plain=100),
)


@app.command()
def status(json: Json = False) -> None:
    """Show the account, what is left of its quota, what is read, what waits to be written, what was ordered."""
    from bridge.operations.github import account

    found = account.status(service_here())
    say_json(found) if json else _say(found)


@app.command()
def sync(
    name: Annotated[str | None, typer.Argument(help="OWNER/NAME; by default all that are read.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what could not be written.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Give up what could not be written.")] = False,
    json: Json = False,
) -> None:
    """Have comments looked at now, and say when that has happened."""
    from bridge.operations.github import account
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted
    from workflows.model.errors import UsageError

    if retry and drop:
        raise UsageError("--retry and --drop do not go together", "service github sync --retry")
    goes_on = if_interrupted("it will be read all the same", "service github status")
    with goes_on, progress() as step:
        done = account.sync(service_here(), name, retry=retry, drop=drop, step=step)
    say_json(done) if json else say(*_synced(done, drop=drop))


@app.command("comment-preview")
def comment_preview(
    job: Annotated[str, typer.Argument(help="A job of the tree.")],
    fact: Annotated[str, typer.Option(help="Only this fact.")] = "",
    json: Json = False,
) -> None:
    """Print the comments of a tree as they would be written; needs no account."""
    from bridge.operations.github import tree

    found = tree.comments(service_here(), job, fact)
    if json:
        say_json(found)
        return
    for each in found:
        more = ", only changed where it was written before" if each.only_edit else ""
        say(f"--- {each.fact_id} ({each.kind}{more})")
        say_document(f"{each.body}\n")
        say()


def _say(found: "AccountStatus") -> None:
    known = found.account
    left = f"{known.remaining} of {known.quota} requests" if known.remaining is not None else ""
    until = f" until {clock(known.reset_at)}" if known.reset_at else ""
    kind = {"app": "a GitHub App", "user": "a user"}.get(known.kind, "")
    say_fields(
        [
            ("account", f"{known.login}, {kind}, seen {ago(known.seen_at)}" if known.login else "not seen yet"),
            ("process", found.process or "does not run; service daemon status"),
            ("address", found.api_url),
            ("left", left and left + until),
            ("trouble", known.problem),
            ("since", clock(known.failing_since) if known.failing_since else ""),
            ("waits until", clock(known.blocked_until) if known.blocked_until else ""),
            ("webhook", _webhook(found) if found.webhook else ""),
            ("this hour", _requests(found.requests.hour)),
            ("24 hours", _requests(found.requests.day)),
        ]
    )
    say()
    rows = [
        (
            each.github,
            ago(each.polled_at) if each.polled_at else "never",
            "yes" if each.of_interest else "no",
            _requests(each.requests.hour),
            _requests(each.requests.day),
            one_line(each.error, LONGEST),
        )
        for each in found.repos
    ]
    say_table(REPOSITORIES, rows, "no repository is read")
    _say_threads(found)
    _say_facts(found)


def _webhook(found: "AccountStatus") -> str:
    if found.delivery is None:
        return "nothing was delivered yet"
    event, at = found.delivery
    return f"{event or 'something'} was delivered {ago(at)}"


def _say_threads(found: "AccountStatus") -> None:
    rows = [(f"{each.github}#{each.number}", each.root_job_id, one_line(each.title, LONGEST)) for each in found.threads]
    say()
    say_table(THREADS, rows, "no tree that goes on belongs to a pull request or issue")
    if found.commands:
        say()
        orders = [
            (
                ago(each.created_at),
                f"{each.github}#{each.number}",
                each.author,
                each.state,
                one_line(each.outcome, LONGEST),
            )
            for each in found.commands
        ]
        say_table(ORDERS, orders, "")


def _say_facts(found: "AccountStatus") -> None:
    say()
    say(f"{len(found.waiting)} to be written, {len(found.failed)} could not be written")
    for each in (*found.failed, *found.waiting)[:MOST]:
        why = f": {one_line(each.error, 200)}" if each.error else ""
        say(f"  {each.state}  {each.kind} on {each.where}  {each.fact_id}, {ago(each.at)}{why}")
    if found.failed:
        say("  service github sync --retry  (or, to leave it: service github sync --drop)")


def _requests(asked: "RequestCounts") -> str:
    return f"{asked.counted} counted, {asked.free} free, {asked.written} written"


def _synced(done: "Synced", *, drop: bool) -> list[str]:
    lines = [f"{each.github} was read {clock(each.polled_at)}" for each in done.looked]
    lines += [f"{each.github} is still to be read" for each in done.late]
    if done.tried:
        lines.append(f"{done.tried} that had failed: {'dropped' if drop else 'tried again'}")
    if done.problem:
        lines.append(f"GitHub is not asked now: {done.problem}")
    return lines or ["nothing is read now: no tree waits or runs for a pull request or issue"]
