"""The page of unmerged branches of trees that are over: what they cost, and a form that drops the chosen ones."""

import asyncio
from collections.abc import Mapping

from bridge.http.dashboard.frame.page import ActionNote, Done, FormAction, PageRequest, PageView, SubmittedForm
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.branches import drops
from bridge.operations.branches.drops import Choice, UnmergedWork
from bridge.operations.service import Service
from workflows.model.errors import UsageError

WORK: Background[list[UnmergedWork]] = Background(lambda service: drops.find_unmerged(service, Choice()))


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    seen = WORK.last_check(service)
    works = drops.remaining(service, seen.answer or ())
    return {
        "title": "Branches",
        "seen": seen,
        "works": works,
        "bytes": sum(work.bytes for work in works),
        "count": sum(len(work.branches) for work in works),
    }


async def _check(service: Service, form: SubmittedForm) -> Done:
    WORK.begin(service)
    return Done((ActionNote("The branches are being measured."),))


async def _drop(service: Service, form: SubmittedForm) -> Done:
    """Drop every branch of the chosen trees."""
    chosen = form.all("tree")
    if not chosen:
        raise UsageError("no task is chosen; nothing was dropped")
    if form.text("sure", "") != "yes":
        raise UsageError("nothing was dropped: tick 'Also drop commits that were never merged'")
    outcome = await asyncio.to_thread(_drop_trees, service, chosen, form.actor_in_words)
    WORK.begin(service)
    notes = [ActionNote(problem, done=False) for problem in outcome.problems]
    if outcome.dropped:
        first = outcome.dropped[0]
        text = f"{len(outcome.dropped)} branches are dropped. To bring back the first (and others likewise):"
        notes.insert(0, ActionNote(text, hint=first.back))
    return Done(tuple(notes))


def _drop_trees(service: Service, chosen: tuple[str, ...], actor: str) -> drops.DroppedWork:
    return drops.drop_unmerged(service, drops.find_unmerged(service, Choice(trees=chosen)), actor=actor)


PAGES = (PageView("/branches", "branches.html", _look, fresh_seconds=2.0),)
ACTIONS = (FormAction("/branches/check", _check), FormAction("/branches/drop", _drop))
