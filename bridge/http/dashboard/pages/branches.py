"""The page of unmerged branches of trees that are over: what they cost, and a form that drops the chosen ones."""

import asyncio
from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Note, Page
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.branches import drops
from bridge.operations.branches.drops import Choice, UnmergedWork
from bridge.operations.service import Service
from workflows.model.errors import UsageError

WORK: Background[list[UnmergedWork]] = Background(lambda service: drops.find_unmerged(service, Choice()))


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    seen = WORK.seen(service)
    works = drops.remaining(service, seen.found or ())
    return {
        "title": "Branches",
        "seen": seen,
        "works": works,
        "bytes": sum(work.bytes for work in works),
        "count": sum(len(work.branches) for work in works),
    }


async def _check(service: Service, form: Form) -> Done:
    WORK.begin(service)
    return Done((Note("The branches are being measured."),))


async def _drop(service: Service, form: Form) -> Done:
    """Drop every branch of the chosen trees."""
    chosen = form.all("tree")
    if not chosen:
        raise UsageError("no tree is chosen; nothing was dropped")
    if form.text("sure", "") != "yes":
        raise UsageError("nothing was dropped: confirm that these commits are merged nowhere")
    done = await asyncio.to_thread(_dropped, service, chosen, form.signed)
    WORK.begin(service)
    notes = [Note(problem, done=False) for problem in done.problems]
    if done.dropped:
        first = done.dropped[0]
        said = f"{len(done.dropped)} branches are dropped. To bring back the first (and others likewise):"
        notes.insert(0, Note(said, hint=first.back))
    return Done(tuple(notes))


def _dropped(service: Service, chosen: tuple[str, ...], actor: str) -> drops.DroppedWork:
    return drops.drop_unmerged(service, drops.find_unmerged(service, Choice(trees=chosen)), actor=actor)


PAGES = (Page("/branches", "branches.html", _look, fresh_seconds=2.0),)
ACTIONS = (Action("/branches/check", _check), Action("/branches/drop", _drop))
