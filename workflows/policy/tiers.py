"""The models of each tier that the agents' programs accept, on the date below (spec: advisory tiers).

The default model of a program is its `standard` one. `[runtimes.<name>].tiers` adds to this table and overrides it.
"""

from collections.abc import Mapping

from workflows.contract.models import Tier
from workflows.model.settings import RuntimeDefaults

AS_OF = "2026-11-26"

MODELS: Mapping[str, Mapping[str, str]] = {
    "codex": {Tier.MECHANICAL: "gpt-6-luna", Tier.CHEAP: "gpt-6.1-terra", Tier.DEEP: "gpt-6-astra"},
    "claude": {Tier.MECHANICAL: "haiku", Tier.CHEAP: "sonnet", Tier.DEEP: "fable"},
}
"""Models by the program's name. Kimi has none here: its models are defined in its own settings."""


def model_of(named: str | None, defaults: RuntimeDefaults) -> str | None:
    """Return the model's name. A tier's word becomes the runtime's model of that tier, if there is one."""
    if not named or named == Tier.STANDARD:
        return defaults.default_model
    return defaults.tiers.get(named, named)
