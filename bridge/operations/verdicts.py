"""What is said of a resume before Temporal is asked, and when its tree is no more (rulings F4, F5)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from activities.store import jobs as stored_jobs
from activities.store import rounds
from bridge.operations.service import Service
from workflows.errors import RefusedError, UsageError
from workflows.policy import whole_answers
from workflows.policy.answers import one_line
from workflows.policy.verbs import Verb, refuse_verb
from workflows.policy.whole_answers import ASKS_BACK, Meant, nearest
from workflows.tree.records import RoundRecord

if TYPE_CHECKING:
    from bridge.operations.people import Resume

TRY = "\n     "
"""Further lines stand under the first one, behind its `try: `."""


def too_late(service: Service, root: str, order: "Resume") -> str:
    """For who speaks to a tree that has ended: who was heard before, how and when (ruling F4)."""
    task = stored_jobs.task_of(service.store, root)
    ended = f"the tree {root} has ended ({task.state})" if task else f"the tree {root} has ended"
    over = last_words(service, root, order.job_id, order.round)
    return f"{ended}; {over}" if over else f"{ended}; nothing in it waits"


def last_words(service: Service, root: str, job_id: str, number: int | None = None) -> str:
    """How the round ended that is meant: the named one of the job, else its last, else the last of the tree."""
    known = [each for each in rounds.of_tree(service.store, root) if each.end is not None]
    mine = [each for each in known if job_id in (each.coordinator_id, each.job_id)] or known
    meant = [each for each in mine if each.number == number] or mine
    if not meant:
        return ""
    last = max(meant, key=lambda each: each.closed_at or 0.0)
    return f"round {last.number} of {last.coordinator_id} is over: {last.closed}"


def check_verb(order: "Resume") -> None:
    if order.verb not in list(Verb):
        near = nearest(order.verb, list(Verb))
        hint = f"service resume {order.job_id} {near}" if near else f"service resume {order.job_id}"
        raise UsageError(f"{one_line(order.verb)!r} is no verb; they are {', '.join(Verb)}", hint)


def check_answer(order: "Resume", found: list[RoundRecord]) -> None:
    """The tree's own verdict, given here too: where no worker is, nobody could ask back later (ruling F5)."""
    mine = [each for each in found if order.job_id in (each.coordinator_id, each.job_id)] or found
    if order.verb != Verb.ANSWER or order.channel not in ASKS_BACK or len(mine) != 1:
        return
    meant = mine[0]
    if order.round not in (None, meant.number) or not meant.digest.startswith(order.digest) or not meant.questions:
        return
    asks, what = {each.id: each.choices for each in meant.questions}, f"round {meant.number} of {meant.coordinator_id}"
    means = Meant(partial=order.partial, other=order.other)
    refusal = refuse_verb(order.verb, order.text, meant.kind, list(asks), what)
    refusal = refusal or whole_answers.refuse(order.text, asks, means, meant.coordinator_id, what)
    if refusal:
        raise RefusedError(refusal.message, lines_to_type(refusal.data, order.job_id))


def lines_to_type(data: Mapping[str, object], job_id: str) -> str:
    """What a refusal says to type instead."""
    lines = data.get("commands")
    return TRY.join(map(str, lines)) if isinstance(lines, list) and lines else f"service job tree {job_id}"
