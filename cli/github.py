"""`service github`: the account that reads and writes pull requests and issues."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import Tone, of_state
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
    Column("READ NOW", leaves=3, tone=of_state),
    Column("THIS HOUR", leaves=1),
    Column("24 HOURS", leaves=2),
    Column("PROBLEM", least=16, plain=80, tone=lambda _: Tone.BAD),
)
THREADS = ("THREAD", "TASK", Column("TITLE", least=16, plain=60))
ORDERS = (
    Column("ORDERED", leaves=1),
    "THREAD",
    Column("BY", leaves=2),
    Column("STATE", tone=of_state),
    Column("OUTCOME", least=16, plain=100),
)


@app.command()
def status(json: Json = False) -> None:
    """Show the account and its remaining quota, the repositories that are read, the comments that wait to be written,
    and the orders in comments.
    """
    from bridge.operations.github import account

    status = account.status(service_here())
    say_json(status) if json else _say(status)


@app.command()
def sync(
    name: Annotated[str | None, typer.Argument(help="OWNER/NAME; by default all that are read.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what could not be written.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Give up what could not be written.")] = False,
    json: Json = False,
) -> None:
    """Look for new comments at once, and say when that is done."""
    from bridge.operations.github import account
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted
    from workflows.model.errors import UsageError

    if retry and drop:
        raise UsageError("--retry and --drop do not go together", "service github sync --retry")
    goes_on = if_interrupted("it will be read all the same", "service github status")
    with goes_on, progress() as step:
        done = account.sync(service_here(), name, retry=retry, drop=drop, step=step)
    say_json(done) if json else say(*_sync_lines(done, drop=drop))


@app.command("comment-preview")
def comment_preview(
    job: Annotated[str, typer.Argument(help="A job of the task.")],
    fact: Annotated[str, typer.Option(help="Only this fact.")] = "",
    json: Json = False,
) -> None:
    """Print a task's comments as they would be posted. Needs no account."""
    from bridge.operations.github import tree

    comments = tree.comments(service_here(), job, fact)
    if json:
        say_json(comments)
        return
    for comment in comments:
        more = ", only changed where it was written before" if comment.only_edit else ""
        say(f"--- {comment.fact_id} ({comment.kind}{more})")
        say_document(f"{comment.body}\n")
        say()


def _say(status: "AccountStatus") -> None:
    known = status.account
    left = f"{known.remaining} of {known.quota} requests" if known.remaining is not None else ""
    until = f" until {clock(known.reset_at)}" if known.reset_at else ""
    kind = {"app": "a GitHub App", "user": "a user"}.get(known.kind, "")
    say_fields(
        [
            ("account", f"{known.login}, {kind}, seen {ago(known.seen_at)}" if known.login else "not seen yet"),
            ("process", status.process or "does not run; service daemon status"),
            ("address", status.api_url),
            ("left", left and left + until),
            ("trouble", known.problem),
            ("since", clock(known.failing_since) if known.failing_since else ""),
            ("waits until", clock(known.blocked_until) if known.blocked_until else ""),
            ("webhook", _webhook(status) if status.webhook else ""),
            ("this hour", _requests(status.requests.hour)),
            ("24 hours", _requests(status.requests.day)),
        ]
    )
    say()
    rows = [
        (
            repo.github,
            ago(repo.polled_at) if repo.polled_at else "never",
            "yes" if repo.of_interest else "no",
            _requests(repo.requests.hour),
            _requests(repo.requests.day),
            one_line(repo.error, LONGEST),
        )
        for repo in status.repos
    ]
    say_table(REPOSITORIES, rows, "no repository is read")
    _say_threads(status)
    _say_facts(status)


def _webhook(status: "AccountStatus") -> str:
    if status.delivery is None:
        return "nothing was delivered yet"
    event, at = status.delivery
    return f"{event or 'something'} was delivered {ago(at)}"


def _say_threads(status: "AccountStatus") -> None:
    rows = [(f"{row.github}#{row.number}", row.root_job_id, one_line(row.title, LONGEST)) for row in status.threads]
    say()
    say_table(THREADS, rows, "no task that goes on belongs to a pull request or issue")
    if status.commands:
        say()
        orders = [
            (
                ago(row.created_at),
                f"{row.github}#{row.number}",
                row.author,
                row.state,
                one_line(row.outcome, LONGEST),
            )
            for row in status.commands
        ]
        say_table(ORDERS, orders, "")


def _say_facts(status: "AccountStatus") -> None:
    say()
    say(f"{len(status.waiting)} to be written, {len(status.failed)} could not be written")
    for fact in (*status.failed, *status.waiting)[:MOST]:
        why = f": {one_line(fact.error, 200)}" if fact.error else ""
        say(f"  {fact.state}  {fact.kind} on {fact.where}  {fact.fact_id}, {ago(fact.at)}{why}")
    if status.failed:
        say("  service github sync --retry  (or, to leave it: service github sync --drop)")


def _requests(asked: "RequestCounts") -> str:
    return f"{asked.counted} counted, {asked.free} free, {asked.written} written"


def _sync_lines(done: "Synced", *, drop: bool) -> list[str]:
    lines = [f"{repo.github} was read {clock(repo.polled_at)}" for repo in done.looked]
    lines += [f"{repo.github} is still to be read" for repo in done.late]
    if done.tried:
        lines.append(f"{done.tried} that had failed: {'dropped' if drop else 'tried again'}")
    if done.problem:
        lines.append(f"GitHub is not asked now: {done.problem}")
    return lines or ["nothing is read now: no task waits or runs for a pull request or issue"]
