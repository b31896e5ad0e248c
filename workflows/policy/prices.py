"""What tokens cost, and how dollars are written (ruling K5)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workflows.contract.models import Tier
from workflows.model.price_table import MID, MODELS, Price
from workflows.model.spend import Usage

TIER = "tier:"
"""What a price of the settings begins with that is a whole tier's."""

_SUFFIX = re.compile(r"\[[^\]]*\]$")


@dataclass(frozen=True)
class Cost:
    """Dollars, and whether the price is a guess."""

    usd: float
    assumed: bool


FREE = Cost(usd=0.0, assumed=False)


def spent(usage: Usage, *, said: str | None, asked: str | None, overrides: Mapping[str, Price]) -> Cost:
    """Price tokens by the model the program said it used, else by the one it was asked to use; no tokens are free."""
    return cost(usage, said or asked, overrides) if usage.total else FREE


def cost(usage: Usage, model: str | None, overrides: Mapping[str, Price]) -> Cost:
    """Settings first, then the table; a model nobody knows is priced at the mid tier, and flagged."""
    names = tuple(dict.fromkeys(_names((model or "").strip().lower())))
    price = _own(names, overrides) or _listed(names, overrides)
    per_input, per_output = price or overrides.get(TIER + Tier.STANDARD, MID)
    usd = (usage.input_tokens * per_input + usage.output_tokens * per_output) / 1_000_000
    return Cost(usd=round(usd, 9), assumed=price is None)


def dollars(usd: float, *, assumed: bool) -> str:
    """`$0.12`; `~$0.12` where some of it is a guess."""
    return f"{'~' if assumed else ''}${usd:.2f}"


def _names(model: str) -> Iterator[str]:
    """As it is; without a variant in brackets (`[1m]`); without the provider before it, however many there are."""
    yield model
    bare = _SUFFIX.sub("", model)
    yield bare
    while "/" in bare:
        bare = bare.partition("/")[2]
        yield bare


def _own(names: tuple[str, ...], overrides: Mapping[str, Price]) -> Price | None:
    """The price the settings give a model: by its very name, else by the first pattern that fits."""
    own = {pattern.lower(): price for pattern, price in overrides.items() if not pattern.startswith(TIER)}
    exact = (own[name] for name in names if name in own)
    fitting = (price for name in names for pattern, price in own.items() if fnmatchcase(name, pattern))
    return next(exact, None) or next(fitting, None)


def _listed(names: tuple[str, ...], overrides: Mapping[str, Price]) -> Price | None:
    """The price in the table; a tier that the settings give a price has it in all its models."""
    found = ((tier, price) for name in names for pattern, tier, price in MODELS if fnmatchcase(name, pattern))
    for tier, price in found:
        return overrides.get(TIER + tier, price)
    return None
