"""The views of one tree: overview, timeline, changes and log, and the orders it accepts (ruling M3)."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from bridge.http.dashboard.frame.page import ActionNote, Done, FormAction, PageRequest, PageView, SubmittedForm
from bridge.http.dashboard.parts import dag, diff_view, grid, legs, outline, resuming, timeline
from bridge.http.dashboard.parts.events import newest_first
from bridge.operations.branches import outcome, publish
from bridge.operations.branches.branches import Branches
from bridge.operations.home import links
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import attention, follow_ups, trees
from bridge.operations.orders.attention import Item
from bridge.operations.service import Service
from workflows.contract import models
from workflows.github.merge_gate import GateState, GateVerdict
from workflows.model.errors import UsageError
from workflows.model.rows import EventRecord
from workflows.model.states import TaskState

TRANSCRIPTS, EVENTS = 12, 30
"""Number of newest transcripts and events that the log begins with; a link shows all."""
LOGS = 3
"""Number of failed parts whose log's end is shown."""

Values = Mapping[str, object]


@dataclass(frozen=True)
class ChosenView:
    """The chosen view of a timeline or an outline, as its address has it: it survives updates and needs no scripts."""

    path: str
    clock: bool
    """True if the timeline shows idle times in full."""
    unfolded: tuple[str, ...]
    """The keys of finished batches that are shown leg by leg, or `all`."""
    folds: bool
    """True if finished batches are folded otherwise."""

    @classmethod
    def of(cls, seen: "_Seen", at: str = "") -> "ChosenView":
        """Return the view that the address wants."""
        unfolded = tuple(key for key in seen.asked.query.get("unfold", "").split(",") if key)
        folds, clock = len(seen.tree.jobs) > outline.LARGE, seen.asked.query.get("time") == "clock"
        return cls(f"/ui/trees/{seen.root}{at}", clock, unfolded, folds)

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


@dataclass(frozen=True)
class _Seen:
    """The rows and branches that every view of a tree begins with."""

    service: Service
    asked: PageRequest
    tree: Tree
    events: Sequence[EventRecord]
    branches: Branches | None
    finish: legs.Finish | None

    @property
    def root(self) -> str:
        return self.tree.task.root_job_id

    @property
    def gate(self) -> GateVerdict | None:
        """Return the merge gate's verdict; None once the operator's branch has the work, or before there is a commit to
        judge.
        """
        if self.finish and self.finish.merged and self.finish.merged.is_mine:
            return None
        verdict = legs.verdict_of(self.service, self.tree, self.events, self.branches)
        return verdict if verdict and (verdict.head or verdict.state is not GateState.PENDING) else None


def _view(at: str, more: Callable[[_Seen], Values]) -> Callable[[Service, PageRequest], Values]:
    """Return the function that reads a view of a tree: what its head shows, and what `more` adds."""

    def look(service: Service, asked: PageRequest) -> Values:
        tree = jobs.tree(service, asked.params["root"])
        events = jobs.events(service, tree.task.root_job_id)
        branches = legs.branches_of(service, tree, events)
        seen = _Seen(service, asked, tree, events, branches, legs.finish_of(service, tree, events, branches))
        merged = seen.finish.merged if seen.finish else None
        head = {
            "title": tree.task.title,
            "at": at,
            "tree": tree,
            "task": tree.task,
            "root": tree.jobs[0],
            "by_id": {job.job_id: job for job in tree.jobs},
            "branches": branches,
            "finish": seen.finish,
            "merged": merged,
            "outcome": outcome.sentence(tree, merged),
            "spent": grid.spend_in_sum(tree),
            "take_over": legs.take_over(branches, seen.finish),
            **_merging(seen),
            "web_ui": links.web_ui(service, tree.task.root_job_id),
        }
        return head | dict(more(seen))

    return look


def _overview(seen: _Seen) -> Values:
    service, tree = seen.service, seen.tree
    page, view = attention.of_tree(service, seen.root), ChosenView.of(seen)
    return {
        **resuming.values_of(service, page),
        "conflicts": () if page.items else legs.conflicts_of(service, tree, seen.events),
        "logs": {job: text for item in page.items for job, text in _logs(service, item)},
        "view": view,
        "chains": outline.overview(tree.jobs, tree.rounds, over=tree.over, unfolded=view.unfolded),
        "spend": grid.spend(tree),
        "failed": outcome.failed_parts(tree),
        "result": _result(service, tree),
    }


@dataclass(frozen=True)
class _LastResult:
    """The job with the result of a tree that is over, and the number of its findings."""

    job_id: str
    findings: int


def _result(service: Service, tree: Tree) -> _LastResult | None:
    if tree.task.state is not TaskState.DONE:
        return None
    last = outcome.last_job(tree).job_id
    payload = jobs.detail(service, last).payload or {}
    return _LastResult(last, len((payload.get("service_result") or {}).get("findings") or ()))


def _logs(service: Service, item: Item) -> Sequence[tuple[str, str]]:
    failing = item.round.failing if item.round else item.failing
    return [(job.job_id, legs.log_end(service, job.job_id, job.attempt)) for job in failing[:LOGS]]


def _merging(seen: _Seen) -> Values:
    return {
        "gate": seen.gate,
        "may_resolve": follow_ups.possible(seen.service, models.Action.IMPLEMENT, seen.tree.task.repo),
        "may_review": follow_ups.possible(seen.service, models.Action.REVIEW, seen.tree.task.repo),
    }


def _timeline(seen: _Seen) -> Values:
    """Return the timeline in the tree's order, and the graph, as the address wants them."""
    service, tree = seen.service, seen.tree
    view = ChosenView.of(seen, "/timeline")
    follows = jobs.edges_of_tree(service, tree)
    chains = outline.of_tree(tree.jobs, tree.rounds, over=tree.over)
    names = outline.names(chains)
    by_id = {job.job_id: job for job in tree.jobs}
    ordered = [by_id[job_id] for job_id in names]
    waits = jobs.waits(service, seen.root)
    course = timeline.Course(ordered, seen.events, waits, tree.rounds, follows, time.time(), names)
    drawn = timeline.draw(course, cut=not view.clock)
    graph = outline.of_tree(tree.jobs, over=tree.over, unfolded=view.unfolded) if view.unfolded else chains
    return {
        "view": view,
        "names": names,
        "labels": {lane.job.job_id: lane.label for lane in drawn.lanes},
        "timeline": drawn,
        "picture": dag.draw(graph, follows),
    }


def _changes(seen: _Seen) -> Values:
    service, tree = seen.service, seen.tree
    return {
        "diff": diff_view.of_tree(service, tree) if seen.branches else None,
        "published": publish.of_tree(service, seen.root),
        "may_publish": publish.is_possible(service, tree.task.repo),
    }


def _log(seen: _Seen) -> Values:
    """Return the newest transcripts and events, or all of them, as the address wants."""
    lines = [*outline.lines(outline.of_tree(seen.tree.jobs, seen.tree.rounds, over=seen.tree.over))]
    begun = [line for line in lines if line.job.started_at is not None]
    whole = seen.asked.query.get("all") == "yes"
    return {
        "names": {line.job.job_id: line.name for line in lines},
        "transcripts": sorted(begun, key=lambda line: line.job.started_at or 0.0, reverse=True),
        "events": newest_first(seen.events),
        "shown": (len(begun), len(seen.events)) if whole else (TRANSCRIPTS, EVENTS),
    }


async def _kill(service: Service, form: SubmittedForm) -> Done:
    immediate = form.text("how") == "now"
    killed = await trees.kill(service, form.asked.params["root"], actor=form.actor_in_words, immediate=immediate)
    if killed.over:
        return legs.over(killed)
    how = "Its agents are stopped." if immediate else "What runs finishes; nothing more starts."
    return Done((ActionNote(f"The task is being ended. {how} One last job sums up.", about=killed.root_job_id),))


async def _dismiss(service: Service, form: SubmittedForm) -> Done:
    killed = await trees.dismiss(service, form.asked.params["root"], actor=form.actor_in_words)
    return (
        legs.over(killed) if killed.over else Done((ActionNote("The task is being ended.", about=killed.root_job_id),))
    )


async def _branches(service: Service, form: SubmittedForm) -> Done:
    """Merge the chosen parts, all or none; or drop each of them."""
    chosen = form.all("all") if form.text("do") == "merge-all" else form.all("leg")
    root = jobs.get(service, form.asked.params["root"]).root_job_id
    if not chosen:
        raise UsageError("no part is chosen; nothing was done")
    if strange := [leg for leg in chosen if jobs.get(service, leg).root_job_id != root]:
        raise UsageError(f"{strange[0]} does not belong to the task {root}; nothing was done")
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


PAGES = (
    PageView("/trees/{root}", "tree.html", _view("", _overview)),
    PageView("/trees/{root}/timeline", "tree_timeline.html", _view("timeline", _timeline)),
    PageView("/trees/{root}/changes", "tree_changes.html", _view("changes", _changes)),
    PageView("/trees/{root}/log", "tree_log.html", _view("log", _log)),
)
ACTIONS = (
    FormAction("/trees/{root}/kill", _kill),
    FormAction("/trees/{root}/dismiss", _dismiss),
    FormAction("/trees/{root}/branches", _branches),
    FormAction("/trees/{root}/finish", _finish),
    FormAction("/trees/{root}/publish", _publish),
)
