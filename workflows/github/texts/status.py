"""The status comment of a tree, edited in place; also the answer to `/service status`."""

from collections.abc import Iterator, Sequence

from workflows.github.bound_tree import BoundTree
from workflows.github.facts import status_id
from workflows.github.texts import views
from workflows.github.texts.parts import Part, code, comment
from workflows.text.durations import clock

TABLE_BYTES = 20_000
WAITS_BYTES = 8_000
MOST_NAMED = 20
"""Questions or legs of a round that are named."""


def status(tree: BoundTree) -> str:
    """Render the status comment: title, state, open rounds, legs and spend of a tree."""
    return comment(status_id(tree.root), _parts(tree, TABLE_BYTES))


def report(fact_id: str, trees: Sequence[BoundTree]) -> str:
    """Render the status of all trees of a thread, as of now."""
    share = TABLE_BYTES // max(1, len(trees))
    parts = [part for tree in trees for part in _parts(tree, share)]
    nothing = Part(["No tree belongs to this thread."], 200, "")
    return comment(fact_id, parts or [nothing])


def _parts(tree: BoundTree, table: int) -> Iterator[Part]:
    all_of_it = views.everything(tree)
    yield Part([views.heading(tree, "Task"), "", f"**{views.state(tree)}**"], 2_000, "")
    waits = list(_waits(tree)) or list(views.why(tree))
    if waits:
        yield Part(waits, WAITS_BYTES, all_of_it)
    yield Part(views.legs(tree), table, all_of_it)
    yield views.published(tree)
    yield Part([views.used(tree), "", f"{all_of_it} {views.updated(tree)}"], 2_000, "")


def _waits(tree: BoundTree) -> Iterator[str]:
    for each in tree.rounds:
        if each.end is None:
            named = [code(one.id) for one in each.questions] + [f"{code(one.leg)} {one.state}" for one in each.failing]
            more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
            asks = f"{code(each.coordinator_id)} asks a person about {', '.join(named[:MOST_NAMED])}{more}"
            yield f"- until {clock(each.expires_at)}: {asks}"
