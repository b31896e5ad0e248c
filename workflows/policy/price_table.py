"""Dollars per million tokens, by model, rounded to tiers and last set on the date below (ruling K5). Data only.

Settings override a model's price; what no pattern fits counts at the mid tier and is flagged.
"""

AS_OF = "2026-11-20"

TIERS: dict[str, tuple[float, float]] = {
    "small": (1.0, 5.0),
    "mid": (3.0, 15.0),
    "large": (15.0, 75.0),
}
"""Input and output price of a tier."""

MODELS: tuple[tuple[str, str], ...] = (
    ("*haiku*", "small"),
    ("*-mini*", "small"),
    ("*-nano*", "small"),
    ("*flash*", "small"),
    ("*-fast*", "small"),
    ("*opus*", "large"),
    ("*-pro*", "large"),
    ("*sonnet*", "mid"),
    ("gpt-*", "mid"),
    ("o[134]*", "mid"),
    ("*codex*", "mid"),
    ("kimi-*", "mid"),
    ("claude-*", "mid"),
)
"""Patterns in the order they are tried; the first that fits decides."""
