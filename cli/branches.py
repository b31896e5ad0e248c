"""The verbs of `service job` for branches: list, diff, merge, drop, resolve, revise, review, gate and publish."""

import contextlib
import re
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import of_state, prose
from cli.drawing.output import hand_over, page, say, say_json, say_next, say_table, tell
from cli.drawing.tables import Column
from cli.invocation.options import Json, Wait, service_here, token_here

if TYPE_CHECKING:
    from bridge.operations.branches.branches import LegBranch
    from bridge.operations.branches.publish import PublishAnswer
    from bridge.operations.orders.follow_ups import Resolving, ReviewAnswer
    from bridge.operations.orders.revising import DiffComment, ReviseAnswer
    from bridge.operations.service import Service

JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job id; any job of a task names the task.")]

_ON = re.compile(r"(?P<path>.+?):(?P<side>old:|new:)?(?P<line>[0-9]{1,9})=(?P<text>.*)", re.DOTALL)
MERGE = "TO MERGE IT"
LOOK_SECONDS = 0.2
HEADINGS = (
    Column("PART", least=8),
    "JOB",
    Column("STATE", leaves=1, tone=of_state),
    Column("BRANCH", leaves=5),
    Column("WORK", tone=of_state),
    Column("AHEAD", leaves=3, right=True),
    Column("BEHIND", leaves=4, right=True),
    Column("FILES", leaves=2, right=True),
    Column(MERGE, leaves=6),
)
_IS = {"waiting": "not made yet", "running": "being worked on", "empty": "no commits"}


def merge(
    legs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...", help="Job ids of parts that write, in merge order; a task's first job stands for all."
        ),
    ],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Merge even what the part itself or its checker decided against.")
    ] = False,
    into_mine: Annotated[
        bool,
        typer.Option(
            "--into-mine",
            help="Then merge the task's branch into the branch you have checked out; without a checkout, into the "
            "default branch at the remote.",
        ),
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="PART",
            help="With --into-mine: take the rest although this part is left out. May be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Merge the branches of these parts into their task's branch: all of them, or none. Only --into-mine touches a
    checkout.
    """
    from bridge.operations.branches import merges
    from cli.drawing.progress import progress
    from cli.drawing.words import signature

    with progress("merging"):
        done = merges.merge(
            service_here(), legs, actor=signature(), anyway=anyway, into_mine=into_mine, without=without or ()
        )
    if json:
        say_json(done)
        return
    for job_id in done.already:
        say(f"{job_id} is already merged into {done.task_branch}")
    for job_id in done.merged:
        say(f"{job_id} is merged into {done.task_branch}")
    for conflict in done.left_out:
        say(prose(f"{conflict.says}; to go on:"), *(f"  {command}" for command in conflict.commands))
    if done.into_mine:
        whose = done.default or f"your branch in {done.path}"
        say(f"{whose} has the work of {done.task_branch} now ({done.into_mine})")
    take = [] if done.into_mine else [done.taking_over]
    clean = [] if done.left_out else [f"service job drop {legs[0]}"]
    say_next(*take, *clean)


def resolve(
    job_id: JobId,
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="The agent that does it; by default the one whose work conflicts, if it is able.",
        ),
    ] = "",
    with_mine: Annotated[
        bool, typer.Option("--with-mine", help="Include the branch that you have checked out.")
    ] = False,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start a job that resolves the merge conflicts of a task's branches. Merge its branch like any other."""
    import asyncio

    from bridge.operations.orders import follow_ups

    service = service_here()
    started = asyncio.run(follow_ups.resolve(service, job_id, agent=agent, with_mine=with_mine))
    does = f"{started.agent} merges {', '.join(each.leg for each in started.conflicts)}"
    then = f"service job merge {started.job_id}{' --into-mine' if with_mine else ''}"
    _follow_or_say(service, started, does, then, wait=wait, json=json)


def revise(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="A job id.")],
    text: Annotated[str, typer.Argument(help="What to change; `-` reads it from standard input.")] = "",
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on",
            metavar="PATH:LINE=TEXT",
            help="A comment on a line of the diff; PATH:old:LINE for a line that it removes. May be repeated.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent that does it; by default the job's own.")
    ] = "",
    tree: Annotated[
        bool, typer.Option("--tree", help="About all work of the task, as `job diff --tree` shows it.")
    ] = False,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start a job that applies your comments on a diff."""
    import asyncio

    from bridge.operations.orders import revising
    from cli.drawing.words import actor
    from cli.invocation.options import text_of

    service = service_here()
    comments = revising.Feedback(tuple(map(comment_of, on or ())), text_of(text), whole=tree)
    made = asyncio.run(revising.revise(service, job_id, comments, actor=actor(), channel="cli", agent=agent))
    does = "runs again with your comments" if made.again else f"{made.agent} works on your comments"
    _follow_or_say(service, made, does, f"service job merge {made.job_id}", wait=wait, json=json)


def comment_of(typed: str) -> "DiffComment":
    """Parse a typed comment: `PATH:LINE=TEXT`, or `PATH:old:LINE=TEXT` for a line that was removed."""
    from bridge.operations.orders.revising import DiffComment
    from workflows.model.errors import UsageError

    match = _ON.fullmatch(typed)
    if match is None:
        example = "--on 'src/app.py:12=Use a set.'"
        raise UsageError(f"{typed!r} is not a comment: it has the form PATH:LINE=TEXT", example)
    return DiffComment(match["path"], int(match["line"]), match["text"], old=match["side"] == "old:")


def review(
    job_id: JobId,
    agent: Annotated[
        str,
        typer.Option("--agent", metavar="NAME", help="The agent that does it; by default who reviewed it before."),
    ] = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start a review of the task's commits that were not reviewed yet. Its verdict counts for the gate."""
    import asyncio

    from bridge.operations.orders import follow_ups
    from cli.drawing.words import signature

    service = service_here()
    started = asyncio.run(follow_ups.review(service, job_id, actor=signature(), agent=agent))
    does = f"{started.agent} reviews {started.head[:7]}"
    _follow_or_say(service, started, does, f"service job gate {started.root_job_id}", wait=wait, json=json)


def _follow_or_say(
    service: "Service",
    started: "Resolving | ReviseAnswer | ReviewAnswer",
    does: str,
    then: str,
    *,
    wait: bool,
    json: bool,
) -> None:
    """Follow a new job. Without --follow, say what it does, how to watch it, and what to type once it has succeeded."""
    from cli.asking.follow_tree import follow

    if wait:
        raise typer.Exit(follow(service, started.job_id, json=json))
    if json:
        say_json(started)
        return
    say(f"{started.job_id}: {does}")
    say_next(f"service job tree {started.job_id} --watch", then)


def gate(
    job_id: JobId,
    pr: Annotated[int | None, typer.Option("--pr", min=1, help="Judge the head of this pull request.")] = None,
    json: Json = False,
) -> None:
    """Say whether a task's work is ready to be merged. If not, print one reason a line and exit with 3."""
    from bridge.operations.branches import merge_gate
    from workflows.github.merge_gate import GateState
    from workflows.model.errors import RefusedError

    service = service_here()
    verdict = merge_gate.of_tree(service, job_id, pull_request=pr, token=token_here(service))
    if json:
        say_json(verdict)
    else:
        say(*(verdict.reasons or ["ready"]))
    if verdict.state is not GateState.PASSING:
        raise typer.Exit(RefusedError.exit_code)


def branches(job_id: JobId, json: Json = False) -> None:
    """List every branch of a task: its commits, whether it is merged, how to merge it."""
    from bridge.operations.branches import branches, merge_offer, publish
    from bridge.operations.jobs import jobs

    service = service_here()
    listing = branches.of_tree(service, job_id)
    if json:
        say_json(listing)
        return
    at = f"is at {listing.head[:12]}" if listing.head else "is made by the first merge"
    say(f"task branch {listing.task_branch}" if listing.problem else f"task branch {listing.task_branch} {at}")
    if listing.problem:
        say(f"the repository cannot be read: {listing.problem}")
        say_next(*([listing.way_on] if listing.way_on.startswith("ssh ") else []))
    if listing.stale:
        tell(f"what other hosts did last may be missing: {listing.stale}")
    offer = merge_offer.offer(service, jobs.tree(service, listing.root_job_id), listing)
    fresh = {leg.job_id for leg in offer.fresh}
    rows = (_row(leg, leg.merge if leg.job_id in fresh else "") for leg in listing.legs)
    cut = say_table(HEADINGS, rows, "no job of this task may write: there are no branches")
    for published in publish.of_tree(service, listing.root_job_id):
        say(f"published {published.branch}: {published.url or published.says}")
    ready = [leg for leg in offer.fresh if leg not in offer.objected]
    if len(ready) > 1 and not (listing.line and offer.objected):
        say(f"all at once: service job merge {listing.root_job_id}")
    elif ready and MERGE in cut:
        say(f"to merge it: {ready[0].merge}")
    for leg in offer.objected:
        say(prose(f"{leg.job_id} is merged only with --anyway: {leg.objection}"))
    for conflict in offer.left_out:
        say(prose(f"{conflict.says}; to go on:"), f"  {conflict.commands[0]}")


def _row(leg: "LegBranch", merge: str) -> tuple[str, ...]:
    counts = ("-" if count is None else str(count) for count in (leg.ahead, leg.behind, leg.files))
    state = _IS.get(leg.state, leg.state)
    return (leg.leg, leg.job_id, leg.job_state, leg.branch or "-", state, *counts, merge or "-")


def drop(
    leg: Annotated[
        str, typer.Argument(metavar="JOB", help="The job id of a part that writes; a task's first job stands for all.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Also delete unmerged work.")] = False,
    json: Json = False,
) -> None:
    """Remove a part's branch, or all branches of a task. Unmerged branches are removed only with --force."""
    from bridge.operations.branches import drops
    from cli.drawing.words import signature

    gone = drops.drop(service_here(), leg, actor=signature(), force=force)
    if json:
        say_json(gone)
        return
    for branch in gone.dropped:
        say(f"{branch.branch} is dropped{f', it was at {branch.head_sha[:12]}' if len(gone.dropped) > 1 else ''}")
    say(f"to bring {'the first (others likewise)' if len(gone.dropped) > 1 else 'it'} back: {gone.back}")
    if gone.stays:
        say(f"{gone.stays} stays, its work is not in the branch you have checked out; to go on:")
        say(*(f"  {command}" for command in gone.ways_on))


def diff(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="A job id.")],
    stat: Annotated[
        bool, typer.Option("--stat", help="Print only the files and their numbers of changed lines.")
    ] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Print only the names of the files.")] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="All work of the task, as far as it merges, against the task's base.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a job changed; for a read-only job, the changes that were discarded."""
    from bridge.operations.branches import diffs
    from cli.drawing import diff

    changes = diffs.of_tree(service_here(), job_id) if tree else diffs.of_job(service_here(), job_id)
    if changes.left_out:
        tell(f"not shown, because it conflicts with the rest: {', '.join(changes.left_out)}")
    if json:
        say_json(diffs.as_json(changes))
    elif name_only:
        diff.print_names(changes)
    elif stat:
        say(*diff.stat(changes))
    elif sys.stdout.isatty():
        page(diff.lines(changes))
    else:
        with contextlib.suppress(BrokenPipeError):
            hand_over(changes.pieces(binary=True))
    if not json and not changes.files:
        tell(f"{'the task of ' if tree else ''}{job_id} changed nothing")


def publish(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="The first job of a task, or a part that writes.")],
    base: Annotated[
        str | None,
        typer.Option(metavar="BRANCH", help="The base branch; by default the pull request's, else the default branch."),
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is published.")] = False,
    json: Json = False,
) -> None:
    """Push the branch to GitHub, and open its pull request or update the open one."""
    from bridge.operations.branches import publish
    from cli.drawing.progress import progress
    from cli.drawing.words import signature
    from cli.invocation.faults import if_interrupted
    from workflows.model.errors import RefusedError

    service = service_here()
    answer = publish.publish(service, job_id, actor=signature(), base=base)
    if not no_wait:
        with if_interrupted("it is published all the same", f"service job publish {job_id}"), progress() as step:
            step(f"{answer.branch} is being published")
            answer = _until_over(service, answer)
    if json:
        say_json(answer.model_dump() | {"over": answer.over})
    elif answer.state != "failed":
        _tell(answer)
    if answer.state == "failed":
        raise RefusedError(f"{answer.branch} is not published: {answer.says}", f"service job publish {job_id}")


def _until_over(service: "Service", answer: "PublishAnswer") -> "PublishAnswer":
    """Wait until the branch is published, with a timeout. Return early if GitHub delays requests; publishing continues
    in the background.
    """
    from bridge.operations.branches import publish

    until = time.monotonic() + publish.WAIT_SECONDS
    while not answer.over and time.monotonic() < until:
        if publish.is_held_up(service):
            return publish.current(service, answer.job_id) or answer
        time.sleep(LOOK_SECONDS)
        answer = publish.current(service, answer.job_id) or answer
    return answer


def _tell(answer: "PublishAnswer") -> None:
    if answer.over:
        say(answer.url or f"{answer.branch}: {answer.says}")
        if answer.url and answer.says:
            say(answer.says)
        return
    say(f"{answer.branch} of {answer.job_id} will be published at {answer.github}: {answer.says}")
    say(f"see how far it is: service job publish {answer.job_id}")
