"""`service job`: looking at jobs."""

from typing import Annotated

import typer

from cli.output import say, say_json, say_table

app = typer.Typer(help="Look at jobs.", no_args_is_help=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job id.")]


@app.command(name="list")
def list_(
    repo: Annotated[str | None, typer.Option(help="Only jobs on OWNER/NAME.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only jobs of this agent.")] = None,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """List the newest jobs."""
    from bridge.operations import jobs
    from bridge.operations.service import Service
    from cli.words import ago

    found = jobs.find(Service.locate(), repo=repo, agent=agent, state=state, limit=limit)
    if json:
        say_json([job.model_dump(mode="json", exclude={"revision"}) for job in found])
        return
    rows = [
        (
            job.job_id,
            job.state,
            job.action,
            job.agent,
            job.repo,
            job.decision or "-",
            ago(job.queued_at),
            _one_line(job.summary or job.reason),
        )
        for job in found
    ]
    say_table(
        ("JOB", "STATE", "ACTION", "AGENT", "REPO", "DECISION", "STARTED", "SUMMARY"),
        rows,
        'no jobs; start one: service agent ask NAME "MESSAGE" --repo OWNER/NAME',
    )


@app.command()
def show(job_id: JobId, json: Json = False) -> None:
    """Show one job: its state and why, its result, what was observed, what to type next."""
    from bridge.operations import jobs
    from bridge.operations.service import Service
    from cli.words import in_words

    detail = jobs.detail(Service.locate(), job_id)
    say_json(jobs.as_json(detail)) if json else say(in_words(detail))


@app.command()
def events(job_id: JobId, json: Json = False) -> None:
    """Show what happened to a job; for a root, to its whole tree."""
    from bridge.operations import jobs
    from bridge.operations.service import Service
    from cli.words import clock

    found = jobs.events(Service.locate(), job_id)
    if json:
        say_json([event.model_dump(mode="json") for event in found])
        return
    rows = [(clock(event.at), event.job_id, event.kind, event.message) for event in found]
    say_table(("TIME", "JOB", "EVENT", "MESSAGE"), rows, f"nothing remarkable happened to {job_id}")


def _one_line(text: str, width: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
