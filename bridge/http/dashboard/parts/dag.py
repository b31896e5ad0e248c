"""Layout of a tree's graph: chains of jobs from left to right in lines, and each batch as a group of its legs.

Legs that depend on each other stand in columns, followers further right. Folded batches are one box.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from bridge.http.dashboard.parts.outline import Batch, Chain, JobLine

WIDTH, HEIGHT = 190, 50
"""Size of a job's box."""
ACROSS, DOWN, MARGIN = 52, 12, 10
LANE = 8
"""The height reserved for a line that passes a column of boxes."""
ROOM = 1190
"""The width in which chains and batches are wrapped: that of the page."""
COLUMN = 470
"""The width in which the chain of a leg is wrapped if others depend on it, or it on others."""
PAD, HEADING = 14, 30
"""The inner margin of a group, and the height of its heading."""
TURN = 8
"""The distance that an edge goes past the end of a row before it turns back."""

Point = tuple[float, float]
Size = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A box, by its upper left corner."""

    job_id: str
    x: float
    y: float
    batch: Batch | None = None
    """The folded batch that it is instead of a job."""


@dataclass(frozen=True)
class BatchFrame:
    """The frame around the legs of a batch."""

    batch: Batch
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """A line from a box or group to a follower, point by point."""

    source: str
    target: str
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        """The SVG path: curved where it goes down to the right, else straight."""
        first, *rest = self.points
        commands = [f"M{first[0]:g} {first[1]:g}"]
        for (x, y), (to_x, to_y) in zip(self.points, rest, strict=False):
            middle = (x + to_x) / 2
            curved = to_x > x and y != to_y
            commands.append(
                f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}" if curved else f"L{to_x:g} {to_y:g}"
            )
        return "".join(commands)


@dataclass(frozen=True)
class Picture:
    """A layout, or a part of one."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    width: float = 0.0
    height: float = 0.0
    groups: tuple[BatchFrame, ...] = ()
    enters: str = ""
    """The box or group to which lines from before lead, and below the one from which lines lead on."""
    leaves: str = ""
    out: Point = (WIDTH, HEIGHT / 2)
    """The point where outgoing edges start. Incoming edges end at the left, halfway down the first box."""
    box: Size = (WIDTH, HEIGHT)

    def at(self, x: float, y: float) -> "Picture":
        """Return the picture moved to the right and down."""
        return replace(
            self,
            nodes=tuple(replace(node, x=node.x + x, y=node.y + y) for node in self.nodes),
            groups=tuple(replace(group, x=group.x + x, y=group.y + y) for group in self.groups),
            out=(self.out[0] + x, self.out[1] + y),
            edges=tuple(
                replace(edge, points=tuple((to_x + x, to_y + y) for to_x, to_y in edge.points)) for edge in self.edges
            ),
        )


def draw(chains: Sequence[Chain], follows: Iterable[tuple[str, str]]) -> Picture:
    """Lay out a tree. `follows` has pairs of jobs, the earlier one first."""
    after: dict[str, list[str]] = {}
    for source, target in dict.fromkeys(follows):
        after.setdefault(source, []).append(target)
    inner = _flow([_chain(chain, after, ROOM) for chain in chains], ROOM, joined=False)
    return replace(inner.at(MARGIN, MARGIN), width=inner.width + 2 * MARGIN, height=inner.height + 2 * MARGIN)


def _chain(chain: Chain, after: Mapping[str, Sequence[str]], room: float) -> Picture:
    pieces = []
    for part in chain.parts:
        if isinstance(part, JobLine):
            pieces.append(box(part.job.job_id))
        elif isinstance(part, Batch):
            pieces.append(box(f"batch-{part.key}", part) if part.folded else _group(part, after, room))
    return _flow(pieces, room, joined=True)


def box(name: str, batch: Batch | None = None) -> Picture:
    """Return the box of a job or a folded batch."""
    return Picture((Node(name, 0, 0, batch),), (), WIDTH, HEIGHT, enters=name, leaves=name)


def _group(batch: Batch, after: Mapping[str, Sequence[str]], room: float) -> Picture:
    """Frame the legs of a batch: those that depend on each other in columns, all others in lines."""
    inside = room - 2 * PAD
    legs = {leg.first.job_id: leg for leg in batch.legs}
    pairs = [*_dependencies(batch, after)]
    pieces = []
    for names in _components([*legs], pairs):
        column = inside if len(names) == 1 else min(inside, COLUMN)
        drawn = {name: _chain(legs[name], after, column) for name in names}
        pieces.append(_together(names, pairs, drawn, inside))
    inner = _flow(pieces, inside, joined=False)
    width, height = max(inner.width, WIDTH) + 2 * PAD, inner.height + HEADING + PAD
    name = f"batch-{batch.key}"
    return replace(
        inner.at(PAD, HEADING),
        width=width,
        height=height,
        groups=(BatchFrame(batch, 0, 0, width, height), *inner.at(PAD, HEADING).groups),
        enters=name,
        leaves=name,
        out=(width, HEIGHT / 2),
    )


def _dependencies(batch: Batch, after: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of legs of which the second depends on the first, by their first jobs."""
    legs = {leg.first.job_id for leg in batch.legs}
    for leg in batch.legs:
        for job in leg.own:
            yield from ((leg.first.job_id, target) for target in after.get(job.job_id, ()) if target in legs)


def _components(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the connected components, in the order of `names`."""
    group = {name: [name] for name in names}
    for one, other in pairs:
        if group[one] is not group[other]:
            group[one].extend(group[other])
            for name in group[other]:
                group[name] = group[one]
    order = {name: at for at, name in enumerate(names)}
    components = {id(component): component for component in group.values()}
    return [sorted(component, key=order.__getitem__) for component in components.values()]


def _together(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], drawn: Mapping[str, Picture], room: float
) -> Picture:
    """Lay out legs that depend on each other: one after the other in lines if they can only be so, else in columns."""
    mine = [pair for pair in pairs if pair[0] in names]
    if len(mine) == len(names) - 1 and len({source for source, _ in mine}) == len({end for _, end in mine}) == len(
        mine
    ):
        then = dict(mine)
        line = [next(name for name in names if name not in then.values())]
        while line[-1] in then:
            line.append(then[line[-1]])
        return _flow([drawn[name] for name in line], room, joined=True)
    plan = in_columns(names, mine, drawn)
    placed = [drawn[node.job_id].at(node.x, node.y) for node in plan.nodes]
    return _whole(placed, plan.edges, plan.width, plan.height)


def _whole(pieces: Sequence[Picture], edges: Sequence[Edge], width: float, height: float) -> Picture:
    """Return pieces that have their places as one picture, with further lines."""
    return Picture(
        nodes=tuple(node for piece in pieces for node in piece.nodes),
        edges=(*(edge for piece in pieces for edge in piece.edges), *edges),
        width=width,
        height=height,
        groups=tuple(group for piece in pieces for group in piece.groups),
        enters=pieces[0].enters if pieces else "",
        leaves=pieces[-1].leaves if pieces else "",
        out=pieces[-1].out if pieces else (0.0, 0.0),
    )


def _flow(pieces: Sequence[Picture], room: float, *, joined: bool) -> Picture:
    """Place pictures beside each other, in as many lines as they need; if joined, with a line from each to the next."""
    across, down = (ACROSS, 2 * DOWN) if joined else (DOWN, DOWN)
    placed, edges, width = list[Picture](), list[Edge](), 0.0
    y = float(-down)
    for line in _lines(pieces, room, across):
        x, y = 0.0, y + down
        for piece in line:
            if joined and placed:
                out, into = placed[-1].out, (x, y + HEIGHT / 2)
                points = (out, into) if x else _back(out, y - DOWN, into)
                edges.append(Edge(placed[-1].leaves, piece.enters, points))
            placed.append(piece.at(x, y))
            x += piece.width + across
        width, y = max(width, x - across), y + max(piece.height for piece in line)
    return _whole(placed, edges, width, max(0.0, y))


def _lines(pieces: Sequence[Picture], room: float, across: float) -> list[list[Picture]]:
    lines, used = list[list[Picture]](), room
    for piece in pieces:
        if used + piece.width > room:
            lines.append([])
            used = 0.0
        lines[-1].append(piece)
        used += piece.width + across
    return lines


def _back(out: Point, between: float, into: Point) -> tuple[Point, ...]:
    """Return the points of an edge from the end of a row back to the start of the next one."""
    right, left = out[0] + TURN, into[0] - TURN
    return (out, (right, out[1]), (right, between), (left, between), (left, into[1]), into)


# Legs that depend on each other


@dataclass(frozen=True)
class _Passage:
    """The place where the lines to one leg pass a column."""

    target: str
    layer: int


_Item = str | _Passage


@dataclass
class _Columns:
    """The items of each column, and the predecessors of each item in the column before."""

    items: list[list[_Item]]
    drawn: Mapping[str, Picture]
    before: dict[_Item, list[_Item]] = field(default_factory=dict)

    def height(self, item: _Item) -> float:
        return LANE if isinstance(item, _Passage) else self.drawn[item].height

    @property
    def edges(self) -> list[float]:
        """Return where each column begins; the last number is where one more would."""
        x, begins = 0.0, [0.0]
        for column in self.items:
            x += max(self.drawn[item].width for item in column if isinstance(item, str)) + ACROSS
            begins.append(x)
        return begins


def in_columns(names: Sequence[str], follows: Iterable[tuple[str, str]], drawn: Mapping[str, Picture]) -> Picture:
    """Place items in columns, followers further right. An edge that would close a cycle is left out."""
    pairs = [pair for pair in dict.fromkeys(follows) if set(pair) <= set(names)]
    layers = _layers(names, pairs)
    pairs = [(source, target) for source, target in pairs if layers[source] < layers[target]]
    columns = _columns(layers, pairs, drawn)
    tops, xs = _tops(columns), columns.edges
    lowest = min(tops.values(), default=0.0)
    y = {item: top - lowest for item, top in tops.items()}
    return Picture(
        nodes=tuple(Node(name, xs[layers[name]], y[name]) for name in names),
        edges=tuple(Edge(*pair, _points(*pair, layers, columns, y)) for pair in pairs),
        width=max(0.0, xs[-1] - ACROSS),
        height=max((top + columns.height(item) for item, top in y.items()), default=0.0),
    )


def _layers(names: Sequence[str], follows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Assign each item the leftmost column that is right of its predecessors. A cycle begins with its first item."""
    left, column_of = dict.fromkeys(names), dict[str, int]()
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in follows:
        before[target].append(source)
    while left:
        free = [name for name in left if not any(earlier in left for earlier in before[name])] or [next(iter(left))]
        for name in free:
            column_of[name] = 1 + max(
                (column_of[earlier] for earlier in before[name] if earlier in column_of), default=-1
            )
            del left[name]
    return column_of


def _columns(layers: Mapping[str, int], edges: Sequence[tuple[str, str]], drawn: Mapping[str, Picture]) -> _Columns:
    columns = _Columns([[] for _ in range(max(layers.values(), default=-1) + 1)], drawn)
    for name, layer in layers.items():
        columns.items[layer].append(name)
    for source, target in edges:
        last: _Item = source
        for layer in range(layers[source] + 1, layers[target]):
            lane = _Passage(target, layer)
            if lane not in columns.items[layer]:
                columns.items[layer].append(lane)
            columns.before.setdefault(lane, []).append(last)
            last = lane
        columns.before.setdefault(target, []).append(last)
    return columns


def _tops(columns: _Columns) -> dict[_Item, float]:
    """Return the vertical position of each item: beside its predecessors, as near as its neighbours allow."""
    middles, tops, height = dict[_Item, float](), dict[_Item, float](), columns.height
    for items in columns.items:
        wanted = {
            item: fmean([middles[earlier] for earlier in columns.before.get(item, ())] or [0.0]) for item in items
        }
        at, placed = 0.0, list[tuple[_Item, float]]()
        for item in sorted(items, key=wanted.__getitem__):
            at = max(at, wanted[item] - height(item) / 2) if placed else wanted[item] - height(item) / 2
            placed.append((item, at))
            at += height(item) + DOWN
        shift = fmean([wanted[item] - top - height(item) / 2 for item, top in placed])
        for item, top in placed:
            tops[item] = round(top + shift)
            middles[item] = tops[item] + height(item) / 2
    return tops


def _points(
    source: str, target: str, layers: Mapping[str, int], columns: _Columns, y: Mapping[_Item, float]
) -> tuple[Point, ...]:
    """Return the points of an edge: straight across columns, curved between them."""
    xs, out = columns.edges, columns.drawn[source].out
    x, y_out = xs[layers[source]] + out[0], y[source] + out[1]
    points, edge = [(x, y_out)], xs[layers[source] + 1] - ACROSS
    points += [(edge, y_out)] if edge > x else []
    for layer in range(layers[source] + 1, layers[target]):
        middle = y[_Passage(target, layer)] + LANE / 2
        points += [(xs[layer], middle), (xs[layer + 1] - ACROSS, middle)]
    return (*points, (xs[layers[target]], y[target] + HEIGHT / 2))
