"""The resources that jobs and trees have used: tokens, jobs, time, dollars. Token prices are in `policy/prices`."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ConfigDict, Field

from workflows.contract.size_limits import MOST_TOKENS
from workflows.model.wire import Wire


def total_requests(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counts that are known; None if none is."""
    known = [count for count in counts if count is not None]
    return min(MOST_TOKENS, sum(known)) if known else None


class Usage(Wire):
    """Tokens and requests, as far as the runtime reports them."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int | None = Field(default=None, exclude_if=lambda count: count is None)
    """Requests to the model; None, and not in JSON, if no program said how many (ruling S6)."""

    @property
    def total(self) -> int:
        """The tokens that count against the budget."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=min(MOST_TOKENS, self.input_tokens + other.input_tokens),
            output_tokens=min(MOST_TOKENS, self.output_tokens + other.output_tokens),
            requests=total_requests((self.requests, other.requests)),
        )

    def less(self, counted: "Usage") -> "Usage":
        """Return this usage minus the part that was counted before."""
        return Usage(
            input_tokens=max(0, self.input_tokens - counted.input_tokens),
            output_tokens=max(0, self.output_tokens - counted.output_tokens),
            requests=None if self.requests is None else max(0, self.requests - (counted.requests or 0)),
        )


@dataclass(frozen=True)
class Ledger:
    """What a tree has used so far."""

    jobs: int = 0
    elapsed_seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if part of the cost is an estimate (ruling K5)."""
