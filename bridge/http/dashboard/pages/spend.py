"""The page of spend by day, agent, repository and model (ruling M4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.http.dashboard.frame.page import PageRequest, PageView
from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.jobs import spend
from bridge.operations.jobs.spend import Spend, SpendLine, SpendSum
from bridge.operations.service import Service
from workflows.model.errors import UsageError

CHOICES = (7, 30, 90, 365)
MOST_NAMED = 30
WIDTH, HEIGHT = 600, 120
"""Size of the picture in its own units; on a page it is as wide as there is room."""

_spent = Recent[Spend](seconds=5)


@dataclass(frozen=True)
class DayBar:
    """One day's bar in the picture."""

    line: SpendLine
    x: float
    y: float
    width: float
    height: float


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    days = _days(asked.query.get("days", "30"))
    # The sum reads every job: an open page repeats it every few seconds, not at every change.
    summary = _spent.get((service.home, days), lambda: spend.find(service, days))
    by_dollars = summary.total.cost_usd > 0
    tables = (("Agent", summary.agents), ("Repository", summary.repos), ("Model", summary.models))
    return {
        "title": "Spend",
        "days": days,
        "choices": CHOICES,
        "summary": summary,
        "bars": _bars(summary.days, by_dollars=by_dollars),
        "by_dollars": by_dollars,
        "most": max(summary.days, key=lambda line: _height(line.used, by_dollars=by_dollars)),
        "width": WIDTH,
        "height": HEIGHT,
        "tables": [(name, *_largest(lines)) for name, lines in tables],
    }


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3:
        raise UsageError(f"{text[:20]!r} is not a number of days", "service spend --days 30")
    return int(text)


def _bars(days: Sequence[SpendLine], *, by_dollars: bool) -> list[DayBar]:
    """Return the bars: dollars, or tokens if there are none. Any value above zero is visible."""
    most = max(_height(line.used, by_dollars=by_dollars) for line in days) or 1
    step = WIDTH / len(days)
    bars = []
    for number, line in enumerate(days):
        value = _height(line.used, by_dollars=by_dollars)
        height = max(1.5, HEIGHT * value / most) if value else 0
        bars.append(
            DayBar(line, round(number * step, 2), round(HEIGHT - height, 2), round(step * 0.8, 2), round(height, 2))
        )
    return bars


def _height(used: SpendSum, *, by_dollars: bool) -> float:
    return used.cost_usd if by_dollars else used.tokens


def _largest(lines: Sequence[SpendLine]) -> tuple[Sequence[SpendLine], int, SpendSum]:
    """Return the most expensive lines, the number of the other lines, and the sum of those."""
    rest = lines[MOST_NAMED:]
    return lines[:MOST_NAMED], len(rest), SpendSum.of(line.used for line in rest)


PAGES = (PageView("/spend", "spend.html", _look),)
