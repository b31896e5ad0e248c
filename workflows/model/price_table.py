"""Dollars per million input and output tokens, by model: list prices on the date below (ruling K5).

If the models of a family have different prices, the highest counts: it is better to end a tree too early than too late.
Prices are for short prompts, without a discount for cached input.
"""

from workflows.contract.models import Tier

AS_OF = "2026-11-22"

Price = tuple[float, float]

MID: Price = (3.0, 15.0)
"""The price of the mid tier, used for a model that matches no pattern."""

MODELS: tuple[tuple[str, Tier, Price], ...] = (
    ("*haiku-5*", Tier.MECHANICAL, (0.1, 0.5)),
    ("*haiku*", Tier.CHEAP, (1.0, 5.0)),
    ("*sonnet-5*", Tier.STANDARD, (2.0, 10.0)),
    ("*sonnet*", Tier.STANDARD, (3.0, 15.0)),
    ("*3-opus*", Tier.DEEP, (15.0, 75.0)),
    ("*opus-4-[01]*", Tier.DEEP, (15.0, 75.0)),
    ("*opus-4-2025*", Tier.DEEP, (15.0, 75.0)),
    ("*opus-5-5*", Tier.DEEP, (4.0, 20.0)),
    ("*opus*", Tier.DEEP, (5.0, 25.0)),
    ("*fable*", Tier.DEEP, (10.0, 50.0)),
    ("*mythos*", Tier.DEEP, (8.0, 40.0)),
    ("*claude*", Tier.STANDARD, MID),
    ("gpt-oss*", Tier.MECHANICAL, (0.04, 0.2)),
    ("gpt-*-nano*", Tier.MECHANICAL, (0.2, 1.25)),
    ("gpt-6*-luna*", Tier.MECHANICAL, (0.1, 0.5)),
    ("gpt-*-luna*", Tier.MECHANICAL, (0.2, 1.2)),
    ("gpt-*-mini*", Tier.CHEAP, (0.75, 4.5)),
    ("codex-mini*", Tier.CHEAP, (1.5, 6.0)),
    ("gpt-6*-terra*", Tier.CHEAP, (1.0, 5.0)),
    ("gpt-*-terra*", Tier.STANDARD, (2.0, 12.0)),
    ("gpt-6*-sol*", Tier.STANDARD, (2.0, 10.0)),
    ("gpt-*-sol*", Tier.DEEP, (4.0, 20.0)),
    ("gpt-*-pro*", Tier.DEEP, (30.0, 180.0)),
    ("gpt-*-astra*", Tier.DEEP, (10.0, 50.0)),
    ("gpt-*-cyber*", Tier.DEEP, (20.0, 100.0)),
    ("gpt-5", Tier.STANDARD, (1.25, 10.0)),
    ("gpt-5-*", Tier.STANDARD, (1.25, 10.0)),
    ("gpt-5.[123]*", Tier.STANDARD, (1.75, 14.0)),
    ("gpt-5.5*", Tier.DEEP, (5.0, 30.0)),
    ("gpt-4o*", Tier.STANDARD, (2.5, 10.0)),
    ("gpt-4.1*", Tier.STANDARD, (2.0, 8.0)),
    ("gpt-*", Tier.STANDARD, (2.5, 15.0)),
    ("o[134]-mini*", Tier.CHEAP, (1.1, 4.4)),
    ("o[134]-pro*", Tier.DEEP, (150.0, 600.0)),
    ("o1*", Tier.DEEP, (15.0, 60.0)),
    ("o[34]*", Tier.STANDARD, (2.0, 8.0)),
    ("*codex*", Tier.STANDARD, (2.5, 15.0)),
    ("kimi-k2*-highspeed*", Tier.STANDARD, (1.9, 8.0)),
    ("kimi-k2*-turbo*", Tier.STANDARD, (1.15, 8.0)),
    ("kimi-k2*", Tier.CHEAP, (0.95, 4.0)),
    ("kimi-*-highspeed*", Tier.DEEP, (4.0, 20.0)),
    ("kimi-k3.*", Tier.STANDARD, (2.0, 10.0)),
    ("kimi-*", Tier.STANDARD, (3.0, 15.0)),
    ("moonshot-*", Tier.CHEAP, (2.0, 5.0)),
    ("gemini-*-flash-lite*", Tier.MECHANICAL, (0.3, 2.5)),
    ("gemini-*-flash*", Tier.CHEAP, (0.75, 3.75)),
    ("gemini-*", Tier.STANDARD, (2.0, 12.0)),
    ("deepseek-*-flash*", Tier.MECHANICAL, (0.3, 1.2)),
    ("deepseek-*", Tier.CHEAP, (1.32, 3.96)),
    ("glm-*-flash*", Tier.MECHANICAL, (0.37, 1.25)),
    ("glm-*", Tier.CHEAP, (1.4, 4.4)),
    ("grok-*-mini*", Tier.CHEAP, (0.6, 4.0)),
    ("grok-*", Tier.STANDARD, (3.0, 15.0)),
)
"""Pattern, tier and price. Patterns are tried in this order; the first match counts."""
