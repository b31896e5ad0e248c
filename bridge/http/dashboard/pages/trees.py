"""The page of one tree: state, jobs, spend, and the orders it accepts (ruling M3)."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from bridge.http.dashboard.frame.page import ActionNote, Done, FormAction, PageRequest, PageView, SubmittedForm
from bridge.http.dashboard.parts import dag, grid, legs, outline, timeline
from bridge.operations.branches import publish
from bridge.operations.home import links
from bridge.operations.jobs import jobs, rounds
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups, trees
from bridge.operations.service import Service
from workflows.contract import models
from workflows.model.errors import UsageError
from workflows.model.rows import EventRecord, RoundRecord

EVENTS = 60
"""Number of newest events shown; a command lists all."""


@dataclass(frozen=True)
class TreeView:
    """The chosen view of a tree. It is part of the address, so it survives updates and needs no scripts."""

    path: str
    clock: bool
    """True if the timeline shows idle times in full."""
    unfolded: tuple[str, ...]
    """The keys of finished batches that the graph shows leg by leg, or `all`."""
    folds: bool
    """True if finished batches are folded otherwise."""

    @property
    def other_clock(self) -> str:
        return self._address(clock=not self.clock, unfolded=self.unfolded)

    @property
    def whole(self) -> str:
        return self._address(clock=self.clock, unfolded=() if "all" in self.unfolded else ("all",))

    def unfold(self, key: str) -> str:
        return self._address(clock=self.clock, unfolded=(*self.unfolded, key))

    def fold(self, key: str) -> str:
        return self._address(
            clock=self.clock, unfolded=tuple(other for other in self.unfolded if other not in (key, "all"))
        )

    def _address(self, *, clock: bool, unfolded: tuple[str, ...]) -> str:
        query = ({"time": "clock"} if clock else {}) | ({"unfold": ",".join(unfolded)} if unfolded else {})
        return f"{self.path}?{urlencode(query, safe=',')}" if query else self.path


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    tree = jobs.tree(service, asked.params["root"])
    root = tree.task.root_job_id
    events = jobs.events(service, root)
    branches = legs.branches_of(service, tree, events)
    asked_of = rounds.of_tree(service, root)
    return {
        "title": tree.task.title,
        "tree": tree,
        "root": tree.jobs[0],
        **_pictures(service, asked, tree, events, asked_of),
        "spend": grid.spend(tree),
        "branches": branches,
        "finish": legs.finish_of(service, tree, events, branches),
        "gate": legs.verdict_of(service, tree, events, branches),
        "conflicts": legs.conflicts_of(service, tree, events),
        "may_resolve": follow_ups.possible(service, models.Action.IMPLEMENT, tree.task.repo),
        "may_review": follow_ups.possible(service, models.Action.REVIEW, tree.task.repo),
        "published": publish.of_tree(service, root),
        "may_publish": publish.is_possible(service, tree.task.repo),
        "rounds": asked_of,
        "events": events[-EVENTS:],
        "all_events": len(events),
        "web_ui": links.web_ui(service, root),
    }


def _pictures(
    service: Service, asked: PageRequest, tree: Tree, events: Sequence[EventRecord], asked_of: Sequence[RoundRecord]
) -> Mapping[str, object]:
    """Return the tree's outline, timeline and graph, as the address wants them."""
    root, folds = tree.task.root_job_id, len(tree.jobs) > outline.LARGE
    unfolded = tuple(key for key in asked.query.get("unfold", "").split(",") if key)
    view = TreeView(f"/ui/trees/{root}", asked.query.get("time") == "clock", unfolded, folds)
    follows = jobs.edges_of_tree(service, tree)
    chains = outline.of_tree(tree.jobs, asked_of, over=tree.over)
    shown = outline.of_tree(tree.jobs, over=tree.over, unfolded=unfolded) if unfolded else chains
    course = timeline.Course(tree.jobs, events, jobs.waits(service, root), asked_of, follows, time.time())
    drawn = timeline.draw(course, cut=not view.clock)
    return {
        "view": view,
        "chains": chains,
        "by_id": {job.job_id: job for job in tree.jobs},
        "labels": {lane.job.job_id: lane.label for lane in drawn.lanes},
        "lasted": timeline.precise_span,
        "timeline": drawn,
        "picture": dag.draw(shown, follows),
    }


async def _kill(service: Service, form: SubmittedForm) -> Done:
    immediate = form.text("how") == "now"
    killed = await trees.kill(service, form.asked.params["root"], actor=form.actor_in_words, immediate=immediate)
    if killed.over:
        return legs.over(killed)
    how = "Its agents are stopped." if immediate else "What runs finishes; nothing more starts."
    return Done((ActionNote(f"The tree is being ended. {how} One last job sums up.", about=killed.root_job_id),))


async def _dismiss(service: Service, form: SubmittedForm) -> Done:
    killed = await trees.dismiss(service, form.asked.params["root"], actor=form.actor_in_words)
    return (
        legs.over(killed) if killed.over else Done((ActionNote("The tree is being ended.", about=killed.root_job_id),))
    )


async def _branches(service: Service, form: SubmittedForm) -> Done:
    """Merge the chosen legs, all or none; or drop each of them."""
    chosen = form.all("all") if form.text("do") == "merge-all" else form.all("leg")
    root = jobs.get(service, form.asked.params["root"]).root_job_id
    if not chosen:
        raise UsageError("no leg is chosen; nothing was done")
    if strange := [leg for leg in chosen if jobs.get(service, leg).root_job_id != root]:
        raise UsageError(f"{strange[0]} does not belong to the tree {root}; nothing was done")
    if form.text("do") == "drop":
        return Done(tuple(legs.drop(service, leg, form) for leg in chosen))
    return legs.merge(service, chosen, form)


async def _finish(service: Service, form: SubmittedForm) -> Done:
    """Merge all work of a tree, drop it, or have an agent resolve what conflicts or review what is unseen."""
    root = jobs.get(service, form.asked.params["root"]).root_job_id
    match form.text("do"):
        case "resolve":
            return await legs.resolve(service, root)
        case "review":
            return await legs.review(service, root, form)
        case "drop":
            return Done((legs.drop(service, root, form),))
        case _:
            return legs.merge(service, (root,), form)


async def _publish(service: Service, form: SubmittedForm) -> Done:
    """Publish a tree's work as a pull request; the page shows its address once it exists."""
    publication = await asyncio.to_thread(
        publish.publish, service, form.asked.params["root"], actor=form.actor_in_words
    )
    text = publication.url or f"It will be published at {publication.github}: {publication.says}."
    return Done((ActionNote(text, about=publication.branch),))


PAGES = (PageView("/trees/{root}", "tree.html", _look),)
ACTIONS = (
    FormAction("/trees/{root}/kill", _kill),
    FormAction("/trees/{root}/dismiss", _dismiss),
    FormAction("/trees/{root}/branches", _branches),
    FormAction("/trees/{root}/finish", _finish),
    FormAction("/trees/{root}/publish", _publish),
)
