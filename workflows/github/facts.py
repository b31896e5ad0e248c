"""The facts to write on GitHub, each once under its own id: the comments that the rows of a bound tree call for (ruling
L3), and the publication of its work (ruling L9).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from workflows.github.bound_tree import BoundTree
from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord
from workflows.model.wire import Wire

_OURS = re.compile(r"<!-- service:([A-Za-z0-9][A-Za-z0-9._-]{0,199}) -->")
_ANY = re.compile(r"<!--\s*service:", re.IGNORECASE)


def marker(fact_id: str) -> str:
    """Return the mark of a fact, which is the last line of its comment."""
    mark = f"<!-- service:{fact_id} -->"
    if not _OURS.fullmatch(mark):
        raise ValueError(f"{fact_id!r} is not the id of a fact")
    return mark


def fact_in(body: str) -> str | None:
    """Return the id of the fact that a comment states, or None if its last line is not exactly a mark.

    The caller checks that the service wrote the comment: anybody can type a mark.
    """
    last = body.rstrip("\r\n").rpartition("\n")[2]
    match = _OURS.fullmatch(last)
    return match[1] if match else None


def holds_mark(body: str) -> bool:
    """Return whether a text contains anything like a mark."""
    return _ANY.search(body) is not None


class FactKind(StrEnum):
    """The kind of a fact on GitHub."""

    STATUS = "status"
    """The tree's progress: one comment, edited in place."""
    PAUSE = "pause"
    REMINDER = "reminder"
    END = "end"
    REFUSAL = "refusal"
    REPORT = "report"
    """The answer to `/service status`."""
    TAKEN = "taken"
    """An eyes reaction on the commanding comment."""
    APPLIED = "applied"
    """A thumbs-up reaction on the commanding comment, once its command has taken effect."""
    PUBLISH = "publish"
    """A branch, and its pull request."""
    CHECK = "check"
    """A check run on the head of a pull request."""


class FactState(StrEnum):
    """The progress of a fact."""

    PUSH = "push"
    """Its branch has to be pushed from its host first; then the state is `open`."""
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    """It cannot be written; a person has to look."""
    DROPPED = "dropped"
    """A person decided that it is not needed, or deleted the comment."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact to post once."""

    fact_id: str
    kind: FactKind
    about: str = ""
    """The round or event it is about."""
    only_edit: bool = False
    """True once the fact is outdated: an existing comment is edited, a missing comment is not created."""


def status_id(root: str) -> str:
    return f"{root}-status"


def pause_id(round_id: str) -> str:
    return f"{round_id}-pause"


def comment_fact_id(kind: FactKind, comment_id: int, root: str = "") -> str:
    """Return the id of a reaction or reply to a comment: `comment-<id>-refusal`, `-taken`, `-applied`,
    `-report-<root>`.

    Reports name the root, since services that share an account each report their own trees.
    """
    return f"comment-{comment_id}-{kind}" + (f"-{root}" if root else "")


def on_pull(fact_id: str, number: int) -> str:
    """Return the id of this fact's copy on a pull request that publishes the tree's work."""
    return f"{fact_id}{_ON}{number}"


def fact_of(fact_id: str) -> str:
    """Return the id of the original fact, without the suffix that `on_pull` adds for a copy on another thread."""
    return fact_id.partition(_ON)[0]


def publish_id(job_id: str) -> str:
    return f"{job_id}-publish"


def check_id(root: str, head_sha: str) -> str:
    return f"{root}-check-{head_sha}"


OUR_BRANCHES = "service/"
"""The prefix of the service's branches; no other branch is ever pushed."""

BY_ITSELF = "[github].publish"
"""The actor of a publication that was requested by the settings, not by a person."""

REMEMBERED = 4
"""The number of kept digests of the service's latest texts."""

EDITED = frozenset({FactKind.STATUS, FactKind.PAUSE, FactKind.REMINDER, FactKind.END})
"""The kinds whose comments are updated when the rows change; comments of other kinds are posted once."""

ON_PULLS = frozenset({FactKind.PAUSE, FactKind.REMINDER})
"""The kinds that are also posted on the pull requests which publish a tree's work."""

_ON = "-on-"
COMMENT = "comment"
"""The channel name of orders that come from comments."""

_ENDS = frozenset({EventKind.TREE_ENDED, EventKind.TASK_BLOCKED, EventKind.TREE_LOST, EventKind.TASK_DISMISSED})
_OPENS_AGAIN = frozenset({EventKind.RETRY_REQUESTED, EventKind.TREE_TAKEN_UP})


class Publication(Wire):
    """A request to publish a job's work as a branch and a pull request, and its progress; stored in the fact's row."""

    job_id: str
    actor: str
    base: str = ""
    """The requested base branch; if empty, the service looks for it."""
    commit: str = ""
    """The last pushed commit."""
    draft: bool = False
    """True if the service created it as a draft, and has not marked it ready since."""
    no_drafts: bool = False
    """True if the repository does not support drafts."""
    said: tuple[str, ...] = ()
    """Digests of texts that the service wrote, or was about to write: any other text is a person's."""
    into: str = ""
    """The base branch on GitHub, which people may change."""
    state: str = ""
    """The state of the pull request when last seen: open, draft, closed, merged."""

    def about_to_say(self, digest: str) -> "Publication":
        """Record a text's digest before posting it, so that the service recognises its own text after a crash in
        between.
        """
        digests = tuple(text for text in self.said if text != digest)
        return self.model_copy(update={"said": (*digests, digest)[-REMEMBERED:]})


def due(tree: BoundTree) -> tuple[Fact, ...]:
    """Return the facts that are due. A fact that is no longer due keeps its comment."""
    return (
        Fact(status_id(tree.root), FactKind.STATUS),
        *_pauses(tree),
        *_reminders(tree),
        *_refusals(tree),
        *_end(tree),
    )


def _pauses(tree: BoundTree) -> Iterator[Fact]:
    for row in tree.rounds:
        yield Fact(pause_id(row.round_id), FactKind.PAUSE, row.round_id, only_edit=row.end is not None)


def _reminders(tree: BoundTree) -> Iterator[Fact]:
    """Yield one reminder for each reminder event of an open round; only the latest is current."""
    waiting = {each.round_id for each in tree.rounds if each.end is None}
    latest: dict[str, EventRecord] = {}
    for event in tree.events:
        if event.kind == EventKind.ROUND_REMINDER:
            latest[f"{event.job_id}-r{event.data['round']}"] = event
    for event in tree.events:
        if event.kind == EventKind.ROUND_REMINDER:
            round_id = f"{event.job_id}-r{event.data['round']}"
            over = round_id not in waiting or latest[round_id] is not event
            yield Fact(event.event_id, FactKind.REMINDER, event.event_id, only_edit=over)


def _refusals(tree: BoundTree) -> Iterator[Fact]:
    """Yield a fact for each resume from a comment that the tree refused, unless the reply to that comment already says
    so.
    """
    for event in tree.events:
        written = event.kind == EventKind.RESUME_REFUSED and event.data.get("channel") == COMMENT
        if written and event.message not in tree.answered:
            yield Fact(event.event_id, FactKind.REFUSAL, event.event_id)


def _end(tree: BoundTree) -> Iterator[Fact]:
    """Yield the fact that the tree ended. It is named after the first ending event since the last reopening, so later
    endings edit the same comment. A tree that ended after its events were read has none yet. Without any events,
    the tree names it.
    """
    if not tree.task.state.is_closed:
        return
    first = ""
    for event in tree.events:
        if event.kind in _OPENS_AGAIN:
            first = ""
        elif event.kind in _ENDS and not first:
            first = event.event_id
    if first or not tree.events:
        yield Fact(f"{first or tree.root}-end", FactKind.END, first)
