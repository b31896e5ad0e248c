"""Bindings of a tree: valid numbers, and their texts."""

import pytest

from tests.tree.simulator import tree_input
from workflows.model.errors import RefusedError, UsageError
from workflows.policy import binding_words
from workflows.policy.storable_rows import LARGEST, reduce_row
from workflows.tree.reducer import new_tree

pytestmark = pytest.mark.ruling("L1")


def test_it_is_one_or_the_other() -> None:
    with pytest.raises(UsageError, match="to a pull request or to an issue, not to both"):
        binding_words.check_numbers(7, 7)


@pytest.mark.parametrize("number", [0, -1, LARGEST + 1])
def test_a_number_is_from_one_to_what_a_column_takes(number: int) -> None:
    with pytest.raises(UsageError, match=f"^{number} is not the number of a pull request"):
        binding_words.check_numbers(number, None)
    with pytest.raises(UsageError, match=f"^{number} is not the number of an issue"):
        binding_words.check_numbers(None, number)


def test_what_fits_is_taken() -> None:
    for number in (1, LARGEST):
        binding_words.check_numbers(number, None)
        binding_words.check_numbers(None, number)
    binding_words.check_numbers(None, None)


def test_without_a_name_on_github_it_is_said_how_to_give_one() -> None:
    binding_words.check_github("acme/shop", "/srv/shop", "acme/shop")
    with pytest.raises(RefusedError, match="the repository acme/shop has no GitHub name") as refused:
        binding_words.check_github("acme/shop", "/srv/shop", "")
    assert refused.value.hint == "service repo add acme/shop /srv/shop --github OWNER/NAME"


@pytest.mark.parametrize(
    ("numbers", "github", "words", "page"),
    [
        ((7, None), "acme/shop", "pull request #7 of acme/shop", "https://github.com/acme/shop/pull/7"),
        ((None, 3), "acme/shop", "issue #3 of acme/shop", "https://github.com/acme/shop/issues/3"),
        ((7, None), "", "pull request #7", ""),
        ((None, None), "acme/shop", "", ""),
    ],
)
def test_how_it_is_said_and_where_it_is_seen(
    numbers: tuple[int | None, int | None], github: str, words: str, page: str
) -> None:
    assert binding_words.in_words(*numbers, github) == words
    assert binding_words.address(github, *numbers) == page
    assert binding_words.sentence(words) == (f"This work belongs to {words}." if words else "")


def test_another_web_address_is_taken() -> None:
    assert binding_words.address("a/b", None, 3, "https://git.acme.example/") == "https://git.acme.example/a/b/issues/3"


def test_how_it_is_typed() -> None:
    assert (binding_words.options(7, None), binding_words.options(None, 3), binding_words.options(None, None)) == (
        " --pr 7",
        " --issue 3",
        "",
    )


def test_programs_see_the_number_or_nothing() -> None:
    assert binding_words.variables(7, None) == {"SERVICE_PULL_REQUEST": "7", "SERVICE_ISSUE": ""}
    assert binding_words.variables(None, 3) == {"SERVICE_PULL_REQUEST": "", "SERVICE_ISSUE": "3"}


def test_a_row_that_must_fit_keeps_a_number_that_fits() -> None:
    [row] = new_tree(tree_input()).jobs.values()
    kept = reduce_row(row.model_copy(update={"pull_request": 7, "issue": LARGEST + 1}))
    assert (kept.pull_request, kept.issue) == (7, None)
