"""Spending: tokens and dollars by day, agent, repository and model (ruling M4)."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from activities.store import usage_rows
from activities.store.usage_rows import DAY_SECONDS, Repairs, Spent
from bridge.operations.service import Service
from workflows.model.errors import UsageError
from workflows.model.spend import total_requests

MOST_DAYS = 366
Part = Spent | Repairs


@dataclass(frozen=True)
class SpendSum:
    """The total usage of some jobs."""

    jobs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if a part of the cost is estimated (ruling K5)."""
    repaired: int = 0
    """Number of results that agents were asked to correct (ruling A5)."""
    requests: int | None = None
    """Requests to models, of the programs that say how many; None if none does (ruling S6)."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @classmethod
    def of(cls, parts: "Iterable[SpendSum | Part]") -> "SpendSum":
        """Add up usages."""
        used = [cls(repaired=part.count) if isinstance(part, Repairs) else part for part in parts]
        return cls(
            sum(part.jobs for part in used),
            sum(part.input_tokens for part in used),
            sum(part.output_tokens for part in used),
            sum(part.cost_usd for part in used),
            any(part.price_assumed for part in used),
            sum(part.repaired for part in used if isinstance(part, cls)),
            total_requests(part.requests for part in used),
        )


@dataclass(frozen=True)
class SpendLine:
    """The usage of one agent, repository, model or day."""

    name: str
    used: SpendSum


@dataclass(frozen=True)
class Spend:
    """The usage of the last days. A job counts for the day (UTC) on which it ended, or began if it has not ended."""

    days: tuple[SpendLine, ...]
    """Every day, oldest first; also those without usage."""
    agents: tuple[SpendLine, ...]
    """One line per agent. These lines, and those of the fields below, are sorted by cost, highest first."""
    repos: tuple[SpendLine, ...]
    models: tuple[SpendLine, ...]
    total: SpendSum


def find(service: Service, days: int = 30, now: float | None = None) -> Spend:
    """Return the usage of today and the days before it."""
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"{days} days cannot be shown; from 1 to {MOST_DAYS}", "service spend --days 30")
    today = _today(now)
    first = today - days + 1
    parts: list[Part] = [*usage_rows.since(service.store, first), *usage_rows.repairs(service.store, first)]
    by_day = {line.name: line for line in _dearest(parts, lambda part: date(part.day))}
    dates = [date(day) for day in range(today - days + 1, today + 1)]
    later = sorted(set(by_day) - set(dates))  # the clock of a host may be ahead of this one's
    return Spend(
        days=tuple(by_day.get(name, SpendLine(name, SpendSum())) for name in (*dates, *later)),
        agents=_dearest(parts, lambda part: part.agent),
        repos=_dearest(parts, lambda part: part.repo),
        models=_dearest(parts, lambda part: part.model),
        total=SpendSum.of(parts),
    )


def _today(now: float | None) -> int:
    return int((time.time() if now is None else now) // DAY_SECONDS)


def as_json(spend: Spend) -> dict[str, Any]:
    """Return the JSON for `--json`."""
    return {
        "days": [{"day": line.name, **asdict(line.used)} for line in spend.days],
        "agents": [{"agent": line.name, **asdict(line.used)} for line in spend.agents],
        "repos": [{"repo": line.name, **asdict(line.used)} for line in spend.repos],
        "models": [{"model": line.name or None, **asdict(line.used)} for line in spend.models],
        "total": asdict(spend.total),
    }


def date(day: int) -> str:
    """Format a day for people: `2026-11-22`."""
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC).strftime("%Y-%m-%d")


def _dearest(parts: Iterable[Part], name: Callable[[Part], str]) -> tuple[SpendLine, ...]:
    by_name: dict[str, list[Part]] = {}
    for part in parts:
        by_name.setdefault(name(part), []).append(part)
    lines = [SpendLine(each, SpendSum.of(theirs)) for each, theirs in by_name.items()]
    return tuple(sorted(lines, key=lambda line: (-line.used.cost_usd, -line.used.tokens, line.name)))
