"""`service memory`: notes that people confirm and that agents get in their prompts."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import of_state
from cli.drawing.output import say, say_document, say_fields, say_json, say_table
from cli.drawing.tables import Column
from cli.invocation.options import Json, service_here, text_of

if TYPE_CHECKING:
    from workflows.policy.memory import Entry

app = typer.Typer(help="Confirm and recall memory.", no_args_is_help=True, rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="ID", help="The id that `memory list` prints.")]
Key = Annotated[str, typer.Argument(help="Its subject, in a few words.")]
Content = Annotated[str, typer.Argument(help="What to remember; `-` reads it from standard input.")]
HEADINGS = (
    "ID",
    Column("STATE", tone=of_state),
    Column("AGENT", least=8, leaves=3),
    Column("REPO", least=12, leaves=4),
    Column("KEY", least=10, plain=40),
    Column("WRITTEN", leaves=2),
    Column("CONTENT", least=16, plain=60),
)


@app.command()
def add(
    key: Key,
    content: Content,
    agent: Annotated[str | None, typer.Option(help="For this agent only; without it, shared by all.")] = None,
    repo: Annotated[str | None, typer.Option(help="About OWNER/NAME; without it, general.")] = None,
    json: Json = False,
) -> None:
    """Add a confirmed entry."""
    from bridge.operations.registry import memory
    from cli.drawing.words import actor

    _show(memory.add(service_here(), memory.NewEntry(key, text_of(content), agent, repo), actor()), json)


@app.command()
def propose(
    key: Key,
    content: Content,
    job: Annotated[str, typer.Option("--job", metavar="JOB", envvar="SERVICE_JOB_ID", help="The job that learnt it.")],
    shared: Annotated[bool, typer.Option("--shared", help="Share it with every agent, not only the job's.")] = False,
    general: Annotated[
        bool, typer.Option("--general", help="Make it general, not only about the job's repository.")
    ] = False,
    json: Json = False,
) -> None:
    """Propose an entry from a job; it waits until a person confirms it."""
    from bridge.operations.registry import memory
    from cli.invocation.calling import own_job

    entry = memory.propose(service_here(), memory.Proposal(own_job(job), key, text_of(content), shared, general))
    _show(entry, json)


@app.command(name="list")
def list_(
    state: Annotated[str | None, typer.Option(help="Only pending, confirmed or retired ones.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's own.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Only shared ones.")] = False,
    repo: Annotated[str | None, typer.Option(help="Only those about OWNER/NAME.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """List the newest entries."""
    from bridge.operations.registry import memory
    from cli.drawing.words import LONGEST, ago, one_line

    entries = memory.find(service_here(), memory.MemoryFilter(agent, shared, repo, state, limit))
    if json:
        say_json(entries)
        return
    rows = [
        (
            e.id,
            e.state,
            e.agent or "-",
            e.repo or "-",
            one_line(e.key, LONGEST),
            ago(e.created_at),
            one_line(e.content, LONGEST),
        )
        for e in entries
    ]
    say_table(HEADINGS, rows, 'nothing is remembered; add something: service memory add KEY "CONTENT"')


@app.command()
def show(entry_id: Id, json: Json = False) -> None:
    """Show one entry: its text, its author, and who confirmed or retired it."""
    from bridge.operations.registry import memory
    from cli.drawing.words import clock, state

    entry = memory.get(service_here(), entry_id)
    if json:
        say_json(entry)
        return
    decided = f"{entry.decided_by}, {clock(entry.decided_at)}" if entry.decided_at else ""
    say_fields(
        [
            ("id", entry.id),
            ("state", state(entry.state)),
            ("agent", entry.agent or "shared"),
            ("repo", entry.repo or "general"),
            ("key", entry.key),
            ("content", entry.content),
            ("written", f"{entry.author}, {clock(entry.created_at)}"),
            ("job", entry.job_id),
            ("decided", decided),
            ("next", _next(entry)),
        ]
    )


@app.command()
def confirm(entry_id: Id, json: Json = False) -> None:
    """Confirm an entry, so that it can be recalled."""
    from bridge.operations.registry import memory
    from cli.drawing.words import actor

    _show(memory.confirm(service_here(), entry_id, actor()), json)


@app.command()
def retire(entry_id: Id, json: Json = False) -> None:
    """Stop an entry from being recalled; it is kept."""
    from bridge.operations.registry import memory
    from cli.drawing.words import actor

    _show(memory.retire(service_here(), entry_id, actor()), json)


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="Any text; `-` reads it from standard input.")],
    repo: Annotated[str | None, typer.Option(help="Entries about OWNER/NAME, and general ones.")] = None,
    agent: Annotated[str | None, typer.Option(help="This agent's own entries, and shared ones.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Shared entries only.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 15,
    json: Json = False,
) -> None:
    """Search confirmed entries, best match first. The output is fit for an agent's prompt."""
    from bridge.operations.registry import memory
    from workflows.policy.memory import render_memory

    wanted = memory.Recall(query=text_of(query), repo=repo, agent=agent, shared=shared, limit=limit)
    answer = memory.recall(service_here(), wanted)
    if json:
        say_json(answer)
    else:
        say_document(f"{render_memory(answer.entries) or 'no confirmed memory matches'}\n")


def _show(entry: "Entry", json: bool) -> None:

    following = [_next(entry)] if _next(entry) else []
    say_json(entry) if json else say(f"{entry.id} is {entry.state}", *following)


def _next(entry: "Entry") -> str:
    """Return the next step for a pending entry."""
    return f"a person confirms it: service memory confirm {entry.id}" if entry.state == "pending" else ""
