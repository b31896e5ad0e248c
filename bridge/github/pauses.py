"""The pauses that were open on a thread when a comment was written: its commands are judged by these (ruling L4).

Services on one thread act at different times. If each judged by the pauses open at its own time, one of them could take
an answer as its own that another refused.
"""

import asyncio
import re
from dataclasses import dataclass

from activities.github import api
from activities.github.models import Comment
from activities.store import jobs as stored_jobs
from activities.store.github.comments import CommentRow
from bridge.github.session import Session
from bridge.operations.jobs import rounds
from workflows.github.commands import Resume
from workflows.github.facts import fact_of, marked, pause_id
from workflows.model.rows import RoundRecord
from workflows.policy.answers import Meant, Verb, line_to_type, refuse_duration

_PAUSE = re.compile(r"(job-[0-9a-z]++).*-r[0-9]+-pause")
"""The marker of a pause comment; while the pause is open, the comment says which command to write."""

SECOND = 1.0
"""GitHub rounds times down to whole seconds."""


@dataclass(frozen=True)
class Pauses:
    """The rounds that a comment can mean."""

    mine: tuple[RoundRecord, ...]
    others: frozenset[str]
    """The roots of other services' trees."""
    now: tuple[RoundRecord, ...]
    """Our rounds that are open now: the refusal suggests their commands."""

    @property
    def lines(self) -> str:
        """The corrected commands to suggest, each with its job."""
        return "\n".join(each.commands[0] for each in self.now if each.commands)

    def lines_for(self, said: Resume) -> str:
        """Return the commands that keep what is right in an order which lacks only the job."""
        return "\n".join(_line(each, said) for each in self.now if each.commands)


def _line(row: RoundRecord, said: Resume) -> str:
    """Return the command for a round that keeps the order's verb and words where the round takes them."""
    if said.verb not in row.verbs or (said.verb == Verb.EXTEND and refuse_duration(said.text)):
        return row.commands[0]
    if said.verb == Verb.ANSWER:
        asks = {question.id: question.choices for question in row.questions}
        return line_to_type(said.text, asks, Meant(said.partial, said.other), row.coordinator_id)
    return f"service resume {row.coordinator_id} {said.verb} {said.text}".rstrip()


async def open_then(session: Session, row: CommentRow, roots: list[str]) -> Pauses:
    """Return the pauses of these trees, and of other services, that were open when the comment was written.

    If any of them was announced on the thread by then, return only those: people answer what they have read.
    """
    thread = await api.comments_of(session.client, row.github, row.number, 0.0)
    told = {fact_of(mark): each for each in thread if (mark := marked(each.body)) and each.created_at <= row.created_at}
    return await asyncio.to_thread(_judged, session, row, roots, told)


def _judged(session: Session, row: CommentRow, roots: list[str], told: dict[str, Comment]) -> Pauses:
    every = [each for root in roots for each in rounds.of_tree(session.service, root)]
    mine = [each for each in every if _was_open(each, row, told)]
    others = frozenset(
        found[1]
        for mark, comment in told.items()
        if (found := _PAUSE.fullmatch(mark)) and _told_as_open(found[1], comment, row)
        if stored_jobs.task_of(session.store, found[1]) is None
    )
    read = [each for each in mine if pause_id(each.round_id) in told]
    now = tuple(each for each in every if each.end is None)
    return Pauses(tuple(read if read or others else mine), others, now)


def _was_open(each: RoundRecord, row: CommentRow, told: dict[str, Comment]) -> bool:
    begun = each.opened_at < row.created_at + SECOND or pause_id(each.round_id) in told
    return begun and (each.closed_at is None or each.closed_at > row.created_at)


def _told_as_open(root: str, comment: Comment, row: CommentRow) -> bool:
    """Return whether the service's comment asks for a resume, or was edited since and may have asked for one."""
    return f"/service resume {root}" in comment.body or comment.updated_at > row.created_at
