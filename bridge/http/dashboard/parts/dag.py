"""Layout of a tree's picture: followers further right, without overlaps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

WIDTH, HEIGHT = 190, 50
"""Size of a job's box."""
ACROSS, DOWN, MARGIN = 52, 12, 10
LANE = 8
"""The height reserved for a line that passes a column of boxes."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A job's box, by its upper left corner."""

    job_id: str
    x: float
    y: float


@dataclass(frozen=True)
class Edge:
    """A line from a job to a follower, point by point to the right."""

    source: str
    target: str
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        """The SVG path: curved between columns, straight where it passes one."""
        first, *rest = self.points
        said = [f"M{first[0]:g} {first[1]:g}"]
        for (x, y), (to_x, to_y) in zip(self.points, rest, strict=False):
            middle = (x + to_x) / 2
            said.append(f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}" if y != to_y else f"H{to_x:g}")
        return "".join(said)


@dataclass(frozen=True)
class Picture:
    """The layout of a whole tree, from left to right."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float
    box: Point = (WIDTH, HEIGHT)


@dataclass(frozen=True)
class _Lane:
    """The place where the lines to one job pass a column."""

    target: str
    layer: int


_Item = str | _Lane


@dataclass
class _Columns:
    """The items of each column, and the predecessors of each item in the column before."""

    items: list[list[_Item]]
    before: dict[_Item, list[_Item]] = field(default_factory=dict)


def draw(jobs: Sequence[str], follows: Iterable[tuple[str, str]]) -> Picture:
    """Lay out the jobs and their edges. An edge that would close a cycle is left out."""
    names, pairs = list(dict.fromkeys(jobs)), list(dict.fromkeys(follows))
    layers = _layers(names, pairs)
    edges = [(source, target) for source, target in pairs if _to_the_right(layers, source, target)]
    columns = _columns(layers, edges)
    tops = _tops(columns)
    lowest = min(tops.values(), default=0.0)
    y = {item: top - lowest + MARGIN for item, top in tops.items()}
    return Picture(
        nodes=tuple(Node(job, _x(layers[job]), y[job]) for job in names),
        edges=tuple(Edge(source, target, _points(layers, y, source, target)) for source, target in edges),
        width=_x(len(columns.items)) - ACROSS + MARGIN,
        height=max((top + _height(item) for item, top in y.items()), default=0.0) + MARGIN,
    )


def _layers(jobs: Sequence[str], follows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Assign each job the leftmost column that is right of its predecessors. A cycle begins with its first job."""
    left, found = dict.fromkeys(jobs), dict[str, int]()
    before: dict[str, list[str]] = {job: [] for job in jobs}
    for source, target in follows:
        if source in left and target in left:
            before[target].append(source)
    while left:
        free = [job for job in left if not any(each in left for each in before[job])] or [next(iter(left))]
        for job in free:
            found[job] = 1 + max((found[each] for each in before[job] if each in found), default=-1)
            del left[job]
    return found


def _to_the_right(layers: Mapping[str, int], source: str, target: str) -> bool:
    return source in layers and target in layers and layers[source] < layers[target]


def _columns(layers: Mapping[str, int], edges: Sequence[tuple[str, str]]) -> _Columns:
    columns = _Columns([[] for _ in range(max(layers.values(), default=-1) + 1)])
    for job, layer in layers.items():
        columns.items[layer].append(job)
    for source, target in edges:
        last: _Item = source
        for layer in range(layers[source] + 1, layers[target]):
            lane = _Lane(target, layer)
            if lane not in columns.items[layer]:
                columns.items[layer].append(lane)
            columns.before.setdefault(lane, []).append(last)
            last = lane
        columns.before.setdefault(target, []).append(last)
    return columns


def _tops(columns: _Columns) -> dict[_Item, float]:
    """Return the vertical position of each item: beside its predecessors, as near as its neighbours allow."""
    middles, tops = dict[_Item, float](), dict[_Item, float]()
    for items in columns.items:
        wanted = {item: fmean([middles[each] for each in columns.before.get(item, ())] or [0.0]) for item in items}
        at, placed = 0.0, list[tuple[_Item, float]]()
        for item in sorted(items, key=wanted.__getitem__):
            at = max(at, wanted[item] - _height(item) / 2) if placed else wanted[item] - _height(item) / 2
            placed.append((item, at))
            at += _height(item) + DOWN
        shift = fmean([wanted[item] - top - _height(item) / 2 for item, top in placed])
        for item, top in placed:
            tops[item] = round(top + shift)
            middles[item] = tops[item] + _height(item) / 2
    return tops


def _height(item: _Item) -> float:
    return LANE if isinstance(item, _Lane) else HEIGHT


def _x(layer: int) -> float:
    return MARGIN + layer * (WIDTH + ACROSS)


def _points(layers: Mapping[str, int], y: Mapping[_Item, float], source: str, target: str) -> tuple[Point, ...]:
    points = [(_x(layers[source]) + WIDTH, y[source] + HEIGHT / 2)]
    for layer in range(layers[source] + 1, layers[target]):
        height = y[_Lane(target, layer)] + LANE / 2
        points += [(_x(layer), height), (_x(layer) + WIDTH, height)]
    return (*points, (_x(layers[target]), y[target] + HEIGHT / 2))
