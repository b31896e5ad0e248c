"""`service job publish`: publishes the work of a tree or a leg as a pull request."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import say, say_json

if TYPE_CHECKING:
    from bridge.operations.branches.publish import PublishAnswer
    from bridge.operations.service import Service

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

INTERVAL = 0.2


def publish(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="The root of a tree, or an implement leg.")],
    base: Annotated[
        str | None,
        typer.Option(metavar="BRANCH", help="What is to take it; else the pull request's branch, or the default one."),
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is there.")] = False,
    json: Json = False,
) -> None:
    """Push the branch to GitHub and open its pull request, or bring the one that is there up to date."""
    from bridge.operations.branches import publish as operations
    from bridge.operations.service import Service
    from cli.progress import progress
    from cli.waiting import if_interrupted
    from cli.words import signed
    from workflows.model.errors import RefusedError

    service = Service.locate()
    found = operations.publish(service, job_id, actor=signed(), base=base)
    if not no_wait:
        with if_interrupted("it is published all the same", f"service job publish {job_id}"), progress() as step:
            step(f"{found.branch} is being published")
            found = _until_over(service, found)
    if json:
        say_json(found.model_dump() | {"over": found.over})
    elif found.state != "failed":
        _tell(found)
    if found.state == "failed":
        raise RefusedError(f"{found.branch} is not published: {found.says}", f"service job publish {job_id}")


def _until_over(service: "Service", found: "PublishAnswer") -> "PublishAnswer":
    """Wait until it is published, bounded; publishing continues without us."""
    from bridge.operations.branches import publish as operations

    until = time.monotonic() + operations.WAIT_SECONDS
    while not found.over and time.monotonic() < until:
        if operations.is_held_up(service):
            return operations.current(service, found.job_id) or found
        time.sleep(INTERVAL)
        found = operations.current(service, found.job_id) or found
    return found


def _tell(found: "PublishAnswer") -> None:
    if found.over:
        say(found.url or f"{found.branch}: {found.says}")
        if found.url and found.says:
            say(found.says)
        return
    say(f"{found.branch} of {found.job_id} will be published at {found.github}: {found.says}")
    say(f"see how far it is: service job publish {found.job_id}")
