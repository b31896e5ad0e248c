"""The options of a start, as its command repeats them."""

import pytest

from bridge.operations.orders.new_jobs import NewJob, NewRecipe, options
from workflows.policy.recipes import Recipe

pytestmark = pytest.mark.ruling("B3")


def test_only_options_that_were_typed_are_repeated() -> None:
    assert options(NewJob("scout", "ask", "why?", "acme/shop", pull_request=7)) == ""
    new = NewJob(
        "scout", "ask", "why?", "acme/shop", model="large", runtime="codex", base="a b", timeout="1h", budget=2.5
    )
    assert options(new) == "--model large --runtime codex --base 'a b' --timeout 1h --budget 2.5"


def test_a_recipe_repeats_its_own() -> None:
    new = NewRecipe(Recipe.VERIFIER, "go", "acme/shop", runtimes=("runtime_a", "runtime_b"), legs=2)
    assert options(new) == "--runtimes runtime_a,runtime_b --legs 2"
