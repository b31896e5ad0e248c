"""`service job`: shows jobs and tasks, ends them, repeats failed parts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cli import branches, transcript
from cli.asking.follow_tree import follow_commands
from cli.dashboard import Web, address_of, open_page
from cli.drawing.lines import of_state
from cli.drawing.output import say, say_document, say_json, say_next, say_table, tell
from cli.drawing.tables import Column
from cli.invocation.options import Json, service_here
from workflows.text.plurals import quantity

if TYPE_CHECKING:
    from activities.store.job_rows import JobFilter
    from activities.store.tree_list import TreeFilter
    from bridge.operations.orders.trees import Killed
    from bridge.operations.service import Service

app = typer.Typer(help="Look at jobs and tasks.", no_args_is_help=True, rich_markup_mode=None)
JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job id; any job of a task names the task.")]
ReviewId = Annotated[str, typer.Argument(metavar="REVIEW", help="The id that `job open` printed.")]


@app.command(name="list")
def list_(
    repo: Annotated[str | None, typer.Option(help="Only work on OWNER/NAME.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only tasks with a job of this agent.")] = None,
    state: Annotated[str | None, typer.Option(help="Only tasks in this state; with --jobs, jobs.")] = None,
    search: Annotated[
        str, typer.Option(metavar="TEXT", help="Only with these words in a title, id, part or agent.")
    ] = "",
    pr: Annotated[int | None, typer.Option(min=1, help="Only work on this pull request.")] = None,
    issue: Annotated[int | None, typer.Option(min=1, help="Only work on this issue.")] = None,
    jobs: Annotated[bool, typer.Option("--jobs", help="List jobs instead of tasks.")] = False,
    tree: Annotated[str | None, typer.Option(metavar="JOB", help="Only the jobs of this job's tree.")] = None,
    roots: Annotated[bool, typer.Option("--roots", help="Only the first job of each task.")] = False,
    preflight_failed: Annotated[
        bool, typer.Option("--preflight-failed", help="Only coordinators whose delegations could not be routed.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    json: Json = False,
    web: Web = False,
) -> None:
    """List the newest tasks: state, what they wait for, last message. With --jobs, list jobs."""
    from activities.store.job_rows import JobFilter
    from activities.store.tree_list import TreeFilter
    from bridge.operations.jobs.tree_list import state_by_name

    service = service_here()
    by_job = jobs or roots or preflight_failed or tree is not None
    if web:
        from bridge.operations.home import links

        narrowed = {"q": search, "repo": repo, "agent": agent, "state": state, "pr": pr, "issue": issue}
        flags = {"roots": int(roots), "preflight_failed": int(preflight_failed)}
        where = links.page_of_jobs(service, tree, **narrowed, **flags) if by_job else links.page_of_trees(**narrowed)
        open_page(service, where)
    elif by_job:
        from bridge.operations.jobs.jobs import states_by_name

        wanted = JobFilter(
            repo=repo,
            agent=agent,
            states=states_by_name(state),
            tree=tree,
            roots_only=roots,
            preflight_failed=preflight_failed,
            text=search,
            pull_request=pr,
            issue=issue,
            limit=limit,
        )
        _list_jobs(service, wanted, json=json)
    else:
        trees = TreeFilter(
            repo=repo,
            agent=agent,
            state=state_by_name(state),
            text=search,
            pull_request=pr,
            issue=issue,
            limit=limit,
        )
        _list_trees(service, trees, json=json)


def _list_trees(service: "Service", wanted: "TreeFilter", *, json: bool) -> None:
    from bridge.operations.jobs import tree_list
    from cli.drawing.words import tree_row

    trees = tree_list.find(service, wanted)
    if not trees:
        _check_names(service, wanted.repo, wanted.agent)
    if json:
        from bridge.operations.jobs.views import listed_tree

        say_json([listed_tree(row) for row in trees])
        return
    link = link_of(address_of(service, "/ui/"))
    headings = (Column("TASK", link=link), *TREE_HEADINGS[1:], PREFLIGHT)
    count = len(headings) if any(row.tree.preflight_failed for row in trees) else -1
    say_table(headings[:count], [tree_row(row)[:count] for row in trees], NOTHING)
    if any(row.tree.waits_for.who == "person" for row in trees):
        tell("to see what waits for you, with the commands: service attention")


def _check_names(service: "Service", repo: str | None, agent: str | None) -> None:
    if repo is not None:
        from bridge.operations.registry import repos

        repos.refuse_unknown(service, repo)
    if agent is not None:
        from bridge.operations.registry import agents

        agents.refuse_unknown(service, agent)


def _list_jobs(service: "Service", wanted: "JobFilter", *, json: bool) -> None:
    from bridge.operations.jobs import jobs
    from cli.drawing.words import job_row

    found_jobs = jobs.find(service, wanted)
    if not found_jobs:
        _check_names(service, wanted.repo, wanted.agent)
    if json:
        from bridge.operations.jobs.views import JobSummary

        say_json([JobSummary.of(job) for job in found_jobs])
        return
    link, labels = link_of(address_of(service, "/ui/")), jobs.state_labels(service, found_jobs)
    say_table(
        (Column("JOB", link=link), *HEADINGS[1:]), [job_row(job, labels[job.job_id]) for job in found_jobs], NOTHING
    )


@app.command()
def show(job_id: JobId, json: Json = False, web: Web = False) -> None:
    """Show one job: its state with the reason, its result, its claimed and observed changes, and the next command."""

    from bridge.operations.branches import branches
    from bridge.operations.home import links
    from bridge.operations.jobs import jobs
    from bridge.operations.registry import reviews
    from cli.drawing.words import in_words, review_in_words, way_out_in_words

    service = service_here()
    if web:
        is_review = job_id.startswith("review-")
        open_page(service, links.REVIEWS if is_review else links.page_of_job(service, job_id))
        return
    if job_id.startswith("review-"):
        review = reviews.view(reviews.get(service, job_id))
        say_json(review) if json else say(*review_in_words(review))
        return
    detail = jobs.detail(service, job_id)
    ways = list(branches.ways_out(service, [detail.job.root_job_id]))
    if json:
        from bridge.operations.jobs import views

        say_json(views.detail(detail) | {"conflicts": ways})
        return
    say(
        *in_words(
            detail,
            service.settings.program_name(detail.job.runtime),
            address_of(service, links.page_of_record(detail.job)),
        )
    )
    for way in ways:
        say("", *way_out_in_words(way))


@app.command()
def prompt(
    job_id: JobId,
    attempt: Annotated[int | None, typer.Option(min=1, help="Number of the attempt; the last one by default.")] = None,
    task: Annotated[bool, typer.Option("--task", help="Only the task, as it was ordered.")] = False,
    json: Json = False,
) -> None:
    """Print the prompt that a job's program got, with secrets redacted. For people only."""

    from bridge.operations.jobs import output

    if task:
        ordered = output.task(service_here(), job_id)
        say_json({"task": ordered}) if json else say_document(ordered)
        return
    text = output.prompt(service_here(), job_id, attempt)
    say_json(text) if json else say_document(text.prompt)


app.command()(transcript.log)


@app.command()
def tree(
    job_id: JobId,
    watch: Annotated[bool, typer.Option("--watch", help="Show it live until it has ended.")] = False,
    json: Json = False,
    web: Web = False,
) -> None:
    """Show a task: every job under the one that delegated it, and the spend against every limit."""
    from bridge.operations.home import links
    from bridge.operations.jobs import jobs
    from cli.drawing.tree import lines

    service = service_here()
    if web:
        open_page(service, links.page_of_tree(service, job_id))
        return
    if watch:
        from cli.asking.follow_tree import watch_tree

        watch_tree(service, job_id, json=json)
        return
    shown = jobs.tree(service, job_id)
    if json:
        from bridge.operations.jobs.views import WholeTree

        say_json(WholeTree.of(shown))
    else:
        say(*lines(shown))


@app.command()
def events(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", help="Show new events until the task has ended.")] = False,
    json: Json = False,
) -> None:
    """Show the events of a job; for a root job, of its whole task."""
    from bridge.operations.jobs import jobs
    from cli.asking.follow_tree import follow_events
    from cli.drawing.words import event_in_words

    service = service_here()
    if follow:
        follow_events(service, job_id, json=json)
        return
    history = sorted(jobs.events(service, job_id) + jobs.waits(service, job_id), key=lambda event: event.at)
    if json:
        say_json(history)
    else:
        say(*(map(event_in_words, history) if history else [f"nothing remarkable happened to {job_id}"]))


@app.command()
def kill(
    job_id: JobId,
    now: Annotated[bool, typer.Option("--now", help="Also stop running agents.")] = False,
    json: Json = False,
) -> None:
    """End a task: running jobs finish, no new ones start, and one last job writes the summary."""
    import asyncio

    from bridge.operations.orders import trees
    from cli.drawing.words import signature

    killed = asyncio.run(trees.kill(service_here(), job_id, actor=signature(), immediate=now))
    if json or killed.over:
        _say_over(killed, json=json)
        return
    how = "its agents are stopped" if now else "what runs finishes"
    say(f"{killed.root_job_id} is being ended; {how}")
    say_next(*follow_commands(killed.root_job_id))


@app.command()
def dismiss(job_id: JobId, json: Json = False) -> None:
    """End a blocked task, so that nobody is reminded of it again. Its branches stay."""
    import asyncio

    from bridge.operations.orders import trees
    from cli.drawing.words import signature

    _say_over(asyncio.run(trees.dismiss(service_here(), job_id, actor=signature())), json=json)


def _say_over(killed: "Killed", *, json: bool) -> None:
    root = killed.root_job_id
    if json:
        unmerged = [leg.branch for leg in killed.unmerged]
        say_json({"root_job_id": root, "over": killed.over, "unmerged_branches": unmerged})
        return
    say(f"{root} is over" if killed.over else f"{root} is being ended")
    for leg in killed.unmerged:
        say(f"  not merged: {leg.branch} ({leg.merge or f'service job drop {leg.job_id} --force'})")
    if not killed.over:
        say_next(*follow_commands(root))


@app.command()
def retry(job_id: JobId, json: Json = False) -> None:
    """Run a failed part again; a task that it blocked then continues."""
    import asyncio

    from bridge.operations.orders import trees
    from cli.drawing.words import signature

    retried = asyncio.run(trees.retry(service_here(), job_id, actor=signature()))
    if json:
        say_json({"job_id": retried.job_id, "reopened": retried.reopened})
        return
    opened = "; its task is open again" if retried.reopened else ""
    say(f"{job_id} runs again{opened}")
    say_next(*follow_commands(job_id))


for verb in (
    branches.branches,
    branches.diff,
    branches.merge,
    branches.drop,
    branches.resolve,
    branches.revise,
    branches.review,
    branches.gate,
    branches.publish,
):
    app.command()(verb)


@app.command(name="open")
def open_(
    pr: Annotated[int, typer.Option(min=1, help="The pull request's number.")],
    head_sha: Annotated[str, typer.Option("--head-sha", help="The commit that is reviewed.")],
    workflow: Annotated[str, typer.Option(help="A label for how it is reviewed.")],
    type_: Annotated[str, typer.Option("--type", help="What is opened: review.")] = "review",
    repo: Annotated[str | None, typer.Option(help="OWNER/NAME")] = None,
    json: Json = False,
) -> None:
    """Record that you are reviewing a pull request yourself. This only informs people; it doesn't count for the
    gate.
    """
    from bridge.operations.registry import reviews

    review = reviews.open_review(
        service_here(), kind=type_, pull_request=pr, head_sha=head_sha, workflow=workflow, repo=repo
    )
    say_json(reviews.view(review)) if json else say(review.review_id)


@app.command()
def reviews(
    repo: Annotated[str | None, typer.Option(help="Only reviews on OWNER/NAME.")] = None,
    pr: Annotated[int | None, typer.Option(min=1, help="Only reviews of this pull request.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """List the reviews that people recorded with `job open`, newest first. They don't count for the gate."""
    from activities.store.registry.review_rows import ReviewFilter
    from bridge.operations.registry import reviews
    from cli.drawing.words import review_row

    listed = [reviews.view(each) for each in reviews.find(service_here(), ReviewFilter(repo, pr, limit))]
    if json:
        say_json(listed)
        return
    nothing = "no in-session reviews; record one: service job open --type review --pr N --head-sha SHA --workflow LABEL"
    say_table(REVIEW_HEADINGS, [review_row(each) for each in listed], nothing)


@app.command()
def note(
    review_id: ReviewId,
    text: Annotated[str, typer.Argument(help="How the review is going.")],
    author: Annotated[str, typer.Option(help="The author's name; it is not checked.")] = "",
    json: Json = False,
) -> None:
    """Add a progress note to an open review."""
    from bridge.operations.registry import reviews
    from cli.drawing.words import actor

    review = reviews.note(service_here(), review_id, text, author or actor())
    say_json(reviews.view(review)) if json else say(f"{review_id}: {quantity(len(review.notes), 'note')}")


@app.command()
def close(
    review_id: ReviewId,
    verdict: Annotated[str, typer.Option(help="What you concluded.")] = "",
    json: Json = False,
) -> None:
    """Close a review you reviews."""
    from bridge.operations.registry import reviews

    review = reviews.close(service_here(), review_id, verdict)
    say_json(reviews.view(review)) if json else say(f"{review_id} is closed")


NOTHING = 'no jobs; start one: service agent ask NAME "MESSAGE" --repo OWNER/NAME'
PREFLIGHT = Column("PREFLIGHT_FAILED:", least=17, leaves=1, plain=60)
TREE_HEADINGS = (
    "TASK",
    Column("STATE", tone=of_state),
    Column("TITLE", least=16, plain=60),
    Column("WAITS FOR", least=12, leaves=2, plain=60),
    Column("JOBS", leaves=4, right=True),
    Column("TOKENS", leaves=7, right=True),
    Column("COST", leaves=5, right=True),
    Column("STARTED", leaves=3),
    Column("REPO", least=12, leaves=6),
    Column("LAST WORDS", least=16, leaves=1, plain=60),
)
HEADINGS = (
    "JOB",
    Column("STATE", tone=of_state),
    Column("ACTION", leaves=4),
    Column("AGENT", least=8, leaves=2),
    Column("REPO", least=16, leaves=6),
    Column("DECISION", leaves=5, tone=of_state),
    Column("STARTED", leaves=3),
    Column("SUMMARY", least=16, plain=60),
    PREFLIGHT,
)
REVIEW_HEADINGS = (
    "REVIEW",
    Column("STATE", tone=of_state),
    Column("REPO", leaves=3),
    "PR",
    Column("HEAD", leaves=4),
    Column("WORKFLOW", leaves=5, plain=30),
    Column("OPENED", leaves=2),
    Column("STATUS", least=20),
    Column("VERDICT", least=12, plain=60),
)


def link_of(dashboard: str) -> Callable[[str], str]:
    """Return a function that maps a job's id to its address: a root's tree page, or a job's own page."""

    def address(job_id: str) -> str:
        return f"{dashboard}{'jobs' if '.' in job_id else 'trees'}/{job_id}" if dashboard else ""

    return address
