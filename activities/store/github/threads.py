"""Trees of pull requests and issues, with the last event that their facts cover; and comments with a command: each acts
only once, ever, however it arrived (ruling L5).
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, Row, Select, func, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, rows, scalar, write
from workflows.model.states import TaskState

table, jobs, repos, events = schema.github_threads, schema.jobs, schema.repos, schema.events
facts, comments = schema.github_facts, schema.github_comments

PUBLISHED = "published"
"""The kind of a pull request made from a tree's work. People read about the tree's pauses there, and can end them
there.
"""

TAKEN, DONE, REFUSED, IGNORED = "taken", "done", "refused", "ignored"


@dataclass(frozen=True)
class Thread:
    """A tree, and its pull request or issue."""

    root_job_id: str
    repo: str
    github: str
    """OWNER/NAME on GitHub."""
    number: int
    kind: str
    """`pull_request`, `issue` or `published`."""
    bound_at: float
    told_seq: int = -1
    """The last event that the tree's declared facts cover."""
    over: bool = False
    """True if the tree has ended and its facts are declared: nothing is checked until it is opened again."""
    head_sha: str | None = None
    """The pull request's head when last seen."""
    closed: bool = False
    """True if the pull request was closed when last seen: it needs no check."""


@dataclass(frozen=True)
class CommentRow:
    """A comment with a command, and its outcome."""

    comment_id: int
    github: str
    number: int
    author: str
    created_at: float
    state: str = TAKEN
    outcome: str = ""
    job_id: str | None = None
    at: float = 0.0
    acted_at: float | None = None


def bind_new(engine: Engine, served: Collection[str] = ()) -> set[str]:
    """Add the trees that were started for a pull request or issue since the last call. Return their repositories'
    GitHub names.

    `served`: the repositories; empty: all.
    """
    root = jobs.c.job_id == jobs.c.root_job_id
    bound = jobs.c.pull_request.is_not(None) | jobs.c.issue.is_not(None)
    first = jobs.c.continuation == "none"
    query = select(jobs.c.root_job_id, jobs.c.repo, repos.c.github, jobs.c.pull_request, jobs.c.issue, jobs.c.queued_at)
    query = query.join(repos, repos.c.name == jobs.c.repo).outerjoin(table, table.c.root_job_id == jobs.c.root_job_id)
    query = query.where(root, bound, first, repos.c.github != "", table.c.root_job_id.is_(None))
    if served:
        query = query.where(jobs.c.repo.in_(served))
    with engine.begin() as connection:
        new = [
            {
                "root_job_id": row.root_job_id,
                "repo": row.repo,
                "github": row.github,
                "number": row.pull_request or row.issue,
                "kind": "pull_request" if row.pull_request else "issue",
                "bound_at": row.queued_at,
                "told_seq": -1,
                "over": False,
                "closed": False,
            }
            for row in rows(connection, query)
        ]
        insert_new(connection, table, *new)
    return {row["github"] for row in new}


def bind_pulls(engine: Engine, served: Collection[str] = ()) -> set[str]:
    """Bind trees without a thread whose work has become a pull request to that pull request."""
    alone = (jobs.c.pull_request.is_(None), jobs.c.issue.is_(None), table.c.root_job_id.is_(None))
    query = _pulls().outerjoin(table, table.c.root_job_id == facts.c.root_job_id).where(*alone)
    if served:
        query = query.where(jobs.c.repo.in_(served))
    with engine.begin() as connection:
        new = [_of_pull(row) for row in rows(connection, query)]
        insert_new(connection, table, *map(asdict, new))
    return {thread.github for thread in new}


def pulls_of(engine: Engine, thread: Thread) -> list[Thread]:
    """Return the pull requests that a tree's work was published as, apart from the thread the tree belongs to."""
    query = _pulls().where(facts.c.root_job_id == thread.root_job_id)
    return [pull for pull in map(_of_pull, rows(engine, query)) if pull.number != thread.number]


def of_thread(engine: Engine, github: str, number: int) -> list[Thread]:
    """Return every tree that belongs to this thread, or whose work this pull request publishes, newest first."""
    bound = _read(engine, select(table).where(table.c.github == github, table.c.number == number))
    query = _pulls().where(facts.c.github == github, facts.c.github_id == str(number))
    threads = {thread.root_job_id: thread for thread in (*map(_of_pull, rows(engine, query)), *bound)}
    return sorted(threads.values(), key=lambda thread: thread.bound_at, reverse=True)


def look_again(engine: Engine, root: str) -> None:
    """Reset the tree's event cursor, so that its facts are declared again, because its work has become a pull
    request.
    """
    write(engine, update(table).where(table.c.root_job_id == root).values(told_seq=-1))


def _pulls() -> Select[tuple[object, ...]]:
    columns = (facts.c.root_job_id, jobs.c.repo, facts.c.github, facts.c.github_id, facts.c.at)
    query: Select[tuple[object, ...]] = select(*columns).join(jobs, jobs.c.job_id == facts.c.root_job_id)
    return query.where(facts.c.kind == "publish", facts.c.github_id.is_not(None), facts.c.github_id != "")


def _of_pull(row: Row[Any]) -> Thread:
    return Thread(row.root_job_id, row.repo, row.github, int(row.github_id), PUBLISHED, row.at)


def get(engine: Engine, root: str) -> Thread | None:
    threads = _read(engine, select(table).where(table.c.root_job_id == root))
    return threads[0] if threads else None


def open_ones(engine: Engine) -> list[Thread]:
    """Return the trees that are not over, oldest first."""
    return _read(engine, select(table).where(table.c.over.is_(False)).order_by(table.c.bound_at))


def blocked_ones(engine: Engine) -> list[Thread]:
    """Return the blocked trees, which continue only after a retry."""
    query = select(table).join(schema.tasks, schema.tasks.c.root_job_id == table.c.root_job_id)
    return _read(engine, query.where(schema.tasks.c.state == TaskState.BLOCKED))


def of_number(engine: Engine, github: str, number: int) -> list[Thread]:
    """Return every tree that belongs to a pull request or issue, newest first."""
    query = select(table).where(table.c.github == github, table.c.number == number, table.c.kind != PUBLISHED)
    return _read(engine, query.order_by(table.c.bound_at.desc()))


def of_github(engine: Engine, github: str) -> list[Thread]:
    """Return every tree of a GitHub repository."""
    return _read(engine, select(table).where(table.c.github == github))


def untold(engine: Engine) -> list[Thread]:
    """Return trees with events that their facts don't cover yet. Ended trees count too: a retry may have reopened
    them.
    """
    newest = select(events.c.root_job_id, func.max(events.c.seq).label("seq")).group_by(events.c.root_job_id)
    newest = newest.where(events.c.root_job_id.in_(select(table.c.root_job_id)))
    last = newest.subquery()
    query = select(table).join(last, last.c.root_job_id == table.c.root_job_id)
    return _read(engine, query.where(last.c.seq > table.c.told_seq).order_by(table.c.bound_at))


def advance(engine: Engine, root: str, seq: int, *, over: bool) -> None:
    """Advance the tree's event cursor to this event, whose facts are declared; `over`: expect no more events."""
    write(engine, update(table).where(table.c.root_job_id == root).values(told_seq=seq, over=over))


def open_pulls(engine: Engine, github: str = "") -> list[Thread]:
    """Return trees of pull requests that are not known to be closed."""
    query = select(table).where(table.c.kind == "pull_request", table.c.closed.is_(False))
    return _read(engine, query.where(table.c.github == github) if github else query)


def saw_head(engine: Engine, github: str, number: int, head_sha: str) -> None:
    """Record that the pull request is open, with this head."""
    _saw(engine, github, number, head_sha=head_sha, closed=False)


def saw_closed(engine: Engine, github: str, number: int) -> None:
    """Record that the pull request is closed, or merged."""
    _saw(engine, github, number, closed=True)


def _saw(engine: Engine, github: str, number: int, **values: object) -> None:
    where = (table.c.github == github, table.c.number == number)
    write(engine, update(table).where(*where).values(**values))


def _read(engine: Engine, query: Select[tuple[object, ...]]) -> list[Thread]:
    return [Thread(**row._mapping) for row in rows(engine, query)]


def take_comments(engine: Engine, new: Sequence[CommentRow]) -> int:
    """Insert comments to act on; known ones are left alone. Return how many were new."""
    return insert_new(engine, comments, *(asdict(row) | {"at": row.at or time.time()} for row in new))


def open_comments(engine: Engine) -> list[CommentRow]:
    """Return the comments that wait for their action, in the order they were written."""
    query = select(comments).where(comments.c.state == TAKEN).order_by(comments.c.created_at, comments.c.comment_id)
    return [CommentRow(**row._mapping) for row in rows(engine, query)]


def latest_comments(engine: Engine, most: int) -> list[CommentRow]:
    """Return the latest commands, newest first."""
    query = select(comments).order_by(comments.c.created_at.desc(), comments.c.comment_id.desc()).limit(most)
    return [CommentRow(**row._mapping) for row in rows(engine, query)]


def comment(engine: Engine, comment_id: int) -> CommentRow | None:
    row = one(engine, select(comments).where(comments.c.comment_id == comment_id))
    return CommentRow(**row._mapping) if row else None


def reserve_job(engine: Engine, comment_id: int, job_id: str) -> str:
    """Return the id of the tree that a comment starts: `job_id`, unless another id was reserved before."""
    mine = comments.c.comment_id == comment_id
    with engine.begin() as connection:
        write(connection, update(comments).where(mine, comments.c.job_id.is_(None)).values(job_id=job_id))
        return scalar(connection, select(comments.c.job_id).where(mine)) or job_id


def settle_comment(engine: Engine, comment_id: int, state: str, outcome: str, job_id: str | None = None) -> None:
    """Record the outcome of a comment, which is final."""
    mine = (comments.c.comment_id == comment_id) & (comments.c.state == TAKEN)
    values = {"state": state, "outcome": outcome, "acted_at": time.time()} | ({"job_id": job_id} if job_id else {})
    write(engine, update(comments).where(mine).values(**values))
