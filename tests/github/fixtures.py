"""A GitHub for a test, with the repository acme/tool, ann who writes there, bob who only reads, and a GitHub App.

A conftest elsewhere takes them by

from tests.github.fixtures import github as github
from tests.github.fixtures import hub as hub
"""

from collections.abc import Iterator

import pytest

from tests.github.emulator import Emulator
from tests.github.hub import Hub

GitHub = Hub | Emulator


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        peopled(made)
        yield made


@pytest.fixture(params=["hub", pytest.param("emulate", marks=pytest.mark.long)])
def github(request: pytest.FixtureRequest) -> Iterator[GitHub]:
    """One scenario on both: the Hub in every ring, the emulator in the long one, where it is installed."""
    made = Hub() if request.param == "hub" else Emulator()
    with made:
        peopled(made)
        yield made


def peopled(github: GitHub) -> None:
    github.repo("acme/tool")
    github.user("ann", role="write")
    github.user("bob")
    github.app()
