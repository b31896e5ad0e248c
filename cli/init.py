"""`service init`: from nothing to the first useful job in the current repository.

It asks everything before it does anything, so that leaving in the middle leaves nothing behind.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from activities.git.checkout import top_level
from cli.asking.init import InitAnswers, decide, in_words
from cli.drawing.output import say, say_json, tell
from cli.invocation.faults import if_interrupted
from cli.invocation.options import service_here
from workflows.model.errors import UsageError

if TYPE_CHECKING:
    from bridge.operations.health.runtimes import RuntimeStatus
    from bridge.operations.registry.init import InitPlan
    from bridge.operations.service import Service

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def init(
    name: Annotated[str | None, typer.Option(help="OWNER/NAME; by default as on GitHub, else local/FOLDER.")] = None,
    builder: Annotated[str | None, typer.Option(help="The runtime that plans and builds.")] = None,
    checker: Annotated[
        str | None,
        typer.Option(help="The runtime that reviews; by default another than the builder's, if there is one."),
    ] = None,
    start: Annotated[
        bool | None, typer.Option("--start/--no-start", help="Start the daemon.", show_default=False)
    ] = None,
    check: Annotated[
        bool | None, typer.Option("--check/--no-check", help="Try it with one tiny job.", show_default=False)
    ] = None,
    without_box: Annotated[
        bool | None,
        typer.Option(
            "--without-box/--with-box",
            help="Run agents without a box, or not at all, if no box of this machine holds.",
            show_default=False,
        ),
    ] = None,
    weak_box: Annotated[bool | None, typer.Option("--weak-box/--no-weak-box", hidden=True)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, and take the defaults.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Register this repository and a team of three agents, start the daemon, try it, and say what to type next.

    Existing registrations stay as they are. A Temporal server of your own is prepared first, as by `service cluster
    init`. Where hosts share a store, the repository is registered with its remote `origin`.
    """
    if weak_box is not None:
        raise UsageError("there is no weaker box any more; use --without-box or --with-box", "service init --help")
    top = top_level(Path())  # before all that is slow to import

    from bridge.operations.health import runtimes
    from bridge.operations.home import cluster
    from bridge.operations.registry import init, repos
    from cli.drawing.progress import progress

    service = service_here()
    checkout = init.checkout(service, top)
    with progress("looking at the agents' programs, the Temporal server and the remote"):
        with ThreadPoolExecutor() as threads:
            lacking = threads.submit(cluster.lacking, service)
            reached = threads.submit(init.reach, service, checkout)
            seen = runtimes.check_runtimes(service)
            usable = init.usable(seen)
        lacks, checkout = lacking.result(), reached.result()
    wanted = decide(
        service, checkout, usable, lacks, InitAnswers(yes, name, builder, checker, start, check, without_box)
    )
    made = _prepare(service, json=json) if lacks else ()
    if wanted.unboxed:
        init.unbox(service, wanted.unboxed)
        tell(f"agents run with box none: {service.home.config}")
        service = service_here()
    with progress("registering"):
        repo, plan = init.carry_out(service, wanted.plan)
    if not json:
        say(*in_words(service, plan), *(() if plan.is_known else repos.push_notice(service, repo)))
    started = _start(service) if wanted.start else False
    checked, code = _try_job(service, repo.name, json=json) if wanted.check else (None, 0)
    following = init.next_commands(service, plan, usable)
    if json:
        daemon = "started" if started else "running" if init.runs(service) else "not running"
        done = init.as_json(repo, plan, seen)
        say_json(done | {"cluster": made, "daemon": daemon, "check": checked, "next": following})
    else:
        say(*_lacking(plan, seen), "next:", *(f"  {each}" for each in [*_path(), *following]))
    raise typer.Exit(code)


def _prepare(service: "Service", *, json: bool) -> tuple[str, ...]:
    """Prepare the Temporal server, and return what was created. Without the permission, print the commands for it and
    exit.
    """
    from bridge.operations.home import cluster
    from cli.drawing.progress import progress

    with progress("making the Temporal server ready") as step:
        made = cluster.init(service, None, step)
    if made.by_hand:
        say_json(made) if json else say(*made.lines)
        tell("nothing was registered; when that is done: service init")
        raise typer.Exit(3)
    if not json:
        say(*made.lines)
    return made.said


def _start(service: "Service") -> bool:
    from bridge.daemon import control
    from cli.drawing.progress import progress

    tell("starting the daemon …")
    with if_interrupted("it goes on starting", "service init"), progress("starting the daemon") as step:
        control.start(service, step=step)
    return True


def _try_job(service: "Service", repo: str, *, json: bool) -> tuple[dict[str, Any], int]:
    """Have the lead answer a tiny question, and return the outcome."""
    import asyncio

    from bridge.operations.orders import new_jobs
    from bridge.operations.registry import init
    from cli.asking.follow_tree import follow, silently

    new = new_jobs.NewJob(init.LEAD, "ask", init.QUESTION, repo)
    job_id = asyncio.run(new_jobs.start(service, new))
    tell(f"trying it: {job_id}")
    if json:
        tree = silently(service, job_id)
        last = tree.jobs[-1]
        what = {"job_id": job_id, "state": last.state, "summary": last.summary, "reason": last.reason}
        code = 0 if tree.state == "done" else 1
    else:
        what, code = {}, follow(service, job_id, json=False, ends=False)
    if code:
        again, never = f"service job retry {job_id}", f"service job dismiss {job_id}"
        tell("it did not work; once that is put right:", f"  {again}", "or leave it be:", f"  {never}")
    return what, code


def _lacking(plan: "InitPlan", seen: "Sequence[RuntimeStatus]") -> list[str]:
    """Return lines on the team's programs that lack something, with the command to type."""
    used = {each.runtime for each in plan.members}
    return [f"{each.program}: {each.says}; {each.fix}" for each in seen if each.name in used and each.fix]


def _path() -> list[str]:
    """Return the line that puts this program on PATH, if the shell finds another `service` or none."""
    here, there = Path(sys.prefix) / "bin" / "service", shutil.which("service")
    if not here.exists() or (there and os.path.samefile(here, there)):
        return []
    return [f'export PATH="{here.parent}:$PATH"']
