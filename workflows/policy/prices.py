"""What tokens cost (ruling K5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workflows.policy.price_table import MODELS, TIERS
from workflows.tree.jobs import Usage


@dataclass(frozen=True)
class Cost:
    """Dollars, and whether the price is a guess."""

    usd: float
    assumed: bool


def cost(usage: Usage, model: str | None, overrides: Mapping[str, tuple[float, float]]) -> Cost:
    """Settings first, then the table; a model nobody knows is priced at the mid tier, and flagged."""
    price = _price((model or "").lower(), overrides)
    per_input, per_output = price or TIERS["mid"]
    usd = (usage.input_tokens * per_input + usage.output_tokens * per_output) / 1_000_000
    return Cost(usd=round(usd, 9), assumed=price is None)


def _price(model: str, overrides: Mapping[str, tuple[float, float]]) -> tuple[float, float] | None:
    for pattern, price in overrides.items():
        if fnmatchcase(model, pattern.lower()):
            return price
    return next((TIERS[tier] for pattern, tier in MODELS if fnmatchcase(model, pattern)), None)
