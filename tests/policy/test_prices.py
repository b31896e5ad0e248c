"""Prices by the settings, by the table, by the mid tier; and the format of dollars."""

import pytest

from workflows.contract.models import Tier
from workflows.model.price_table import AS_OF, MID, MODELS
from workflows.model.spend import Usage
from workflows.policy.prices import cost, dollars, price_of

MILLION = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


def price(model: str | None, overrides: dict[str, tuple[float, float]] | None = None) -> tuple[float, bool]:
    """Return the dollars for a million tokens in and a million out, and whether they are an estimate."""
    dollars = cost(MILLION, model, overrides or {})
    return dollars.usd, dollars.assumed


@pytest.mark.ruling("K5", "spec:limits.dollars")
@pytest.mark.parametrize("model", [None, "", "  ", "nobody-knows-me", "acme/nobody", "[1m]", "/", "tier:deep"])
def test_an_unknown_model_is_priced_at_the_mid_tier_and_flagged(model: str | None) -> None:
    assert price(model) == (sum(MID), True)
    assert price(model, {"tier:standard": (1.0, 2.0), "tier:deep": (50.0, 50.0)}) == (3.0, True)


@pytest.mark.ruling("K5")
@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("claude-opus-5-5", 24.0),
        ("claude-sonnet-5-5", 12.0),
        ("claude-haiku-4-5-20251001", 6.0),
        ("claude-opus-4-1-20250805", 90.0),
        ("gpt-6.1-sol", 12.0),
        ("gpt-5-mini-2025-08-07", 5.25),
        ("o4-mini", 5.5),
        ("kimi-k3", 18.0),
        ("kimi-for-coding", 18.0),
    ],
)
def test_the_programs_models_are_in_the_table(model: str, usd: float) -> None:
    assert price(model) == (usd, False)


@pytest.mark.ruling("K5")
@pytest.mark.parametrize(
    ("model", "plain"),
    [
        ("openai/gpt-5", "gpt-5"),
        ("openrouter/anthropic/claude-opus-5-5", "claude-opus-5-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("kimi-code/kimi-for-coding", "kimi-for-coding"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("Anthropic/Claude-Opus-5-5[1M]", "claude-opus-5-5"),
        (" gpt-6.1-sol ", "gpt-6.1-sol"),
    ],
)
def test_provider_date_and_variant_do_not_hide_a_model(model: str, plain: str) -> None:
    assert price(model) == price(plain)
    assert not price(model)[1]


@pytest.mark.ruling("K5")
def test_settings_come_first_by_name_by_pattern_by_tier() -> None:
    assert price("Claude-Opus-5-5", {"claude-opus*": (1.0, 2.0)}) == (3.0, False)
    assert price("new[1m]", {"new*": (9.0, 9.0), "NEW[1m]": (1.0, 0.0)}) == (1.0, False), "brackets are no pattern here"
    assert price("acme/new", {"acme/*": (2.0, 0.0)}) == (2.0, False)
    assert price("acme/new", {"new": (4.0, 0.0)}) == (4.0, False)
    assert price("free", {"free": (0.0, 0.0)}) == (0.0, False)
    tier = {"tier:deep": (30.0, 40.0), "gpt-6-astra": (1.0, 1.0)}
    assert price("claude-opus-5-5", tier) == (70.0, False)
    assert price("gpt-6-astra", tier) == (2.0, False)
    assert price("claude-sonnet-5-5", tier) == price("claude-sonnet-5-5")


@pytest.mark.ruling("K5")
def test_the_table_is_dated_every_tier_is_in_it_and_no_row_stands_in_anothers_shadow() -> None:
    assert AS_OF.count("-") == 2
    assert {tier for _, tier, _ in MODELS} == set(Tier)
    assert all(0 < own <= other for _, _, (own, other) in MODELS), "output is the dearer"
    for pattern, tier, own in MODELS:
        probe = pattern.replace("*", "").replace("[134]", "3").replace("[123]", "2").replace("[34]", "3")
        assert price(probe.replace("[01]", "1"))[0] == pytest.approx(sum(own)), (pattern, tier)


@pytest.mark.ruling("K5")
def test_tokens_cost_by_the_model_that_was_said_else_by_the_one_that_was_asked_for_else_the_mid_tier() -> None:
    def of(reported: str | None, asked: str | None) -> tuple[float, bool]:
        dollars = price_of(MILLION, reported=reported, asked=asked, overrides={})
        return dollars.usd, dollars.assumed

    assert of("claude-opus-5-5", None) == of(None, "claude-opus-5-5") == (24.0, False)
    assert of("gpt-6-astra", "gpt-6.1-sol") == (60.0, False)
    assert of("home-made", None) == of(None, None) == (18.0, True)


@pytest.mark.ruling("K5")
def test_nothing_used_is_no_guess() -> None:
    assert not price_of(Usage(), reported=None, asked=None, overrides={}).assumed


@pytest.mark.ruling("K5")
def test_a_guess_is_marked() -> None:
    assert (dollars(0.014, assumed=True), dollars(0.014, assumed=False)) == ("~$0.01", "$0.01")


@pytest.mark.ruling("A5")
def test_requests_that_no_program_told_are_not_in_the_json_of_usage() -> None:
    assert Usage(input_tokens=2).model_dump() == {"input_tokens": 2, "output_tokens": 0}
    assert Usage(requests=3).model_dump()["requests"] == 3
