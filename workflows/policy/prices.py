"""Prices of tokens, and the format of dollars (ruling K5)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workflows.contract.models import Tier
from workflows.model.price_table import MID, MODELS, Price
from workflows.model.spend import Usage

TIER = "tier:"
"""Prefix of a settings entry that prices a whole tier."""

_SUFFIX = re.compile(r"\[[^\[\]]*\]$")


@dataclass(frozen=True)
class Cost:
    """Dollars, and whether a price in them is an estimate."""

    usd: float
    assumed: bool


FREE = Cost(usd=0.0, assumed=False)


def price_of(usage: Usage, *, reported: str | None, asked: str | None, overrides: Mapping[str, Price]) -> Cost:
    """Price tokens by the model that the program reported, or else by the requested model. Zero tokens cost nothing."""
    return cost(usage, reported or asked, overrides) if usage.total else FREE


def cost(usage: Usage, model: str | None, overrides: Mapping[str, Price]) -> Cost:
    """Price tokens by the settings first, then the table; an unknown model costs the mid tier, flagged as assumed."""
    names = tuple(dict.fromkeys(_names((model or "").strip().lower())))
    price = _own(names, overrides) or _table_price(names, overrides)
    per_input, per_output = price or overrides.get(TIER + Tier.STANDARD, MID)
    usd = (usage.input_tokens * per_input + usage.output_tokens * per_output) / 1_000_000
    return Cost(usd=round(usd, 9), assumed=price is None)


def dollars(usd: float, *, assumed: bool) -> str:
    """Format dollars as `$0.12`, or `~$0.12` if part of the amount is an estimate."""
    return f"{'~' if assumed else ''}${usd:.2f}"


def _names(model: str) -> Iterator[str]:
    """Yield a model's name; then without a variant in brackets (`[1m]`); then without each provider prefix."""
    yield model
    bare = _SUFFIX.sub("", model)
    yield bare
    while "/" in bare:
        bare = bare.partition("/")[2]
        yield bare


def _own(names: tuple[str, ...], overrides: Mapping[str, Price]) -> Price | None:
    """Return the price of a model by the settings: by its exact name, or else by the first matching pattern."""
    own = {pattern.lower(): price for pattern, price in overrides.items() if not pattern.startswith(TIER)}
    exact = (own[name] for name in names if name in own)
    fitting = (price for name in names for pattern, price in own.items() if fnmatchcase(name, pattern))
    return next(exact, None) or next(fitting, None)


def _table_price(names: tuple[str, ...], overrides: Mapping[str, Price]) -> Price | None:
    """Return the price of a model by the table, or the settings' price of its tier."""
    matches = ((tier, price) for name in names for pattern, tier, price in MODELS if fnmatchcase(name, pattern))
    for tier, price in matches:
        return overrides.get(TIER + tier, price)
    return None
